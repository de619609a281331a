"""The page, the notebook view and the terminal text of fitted models."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from finc_eval.core.words import join_words, plural
from finc_eval.private.kahm.models_fit import ClassFit, ModelsFit
from finc_eval.report import Page
from finc_eval.report.exports.outline import Outline, TextTable, call

HOW = (
    "A model of a class is a union of machines (Definitions 1 to 6). It maps a point to an affine combination of "
    "its samples. Distances are ‖x − A(x)‖, the least over branches and layers, in the unit of the features. A model "
    "that is much nearer to its own samples than to held-out ones remembers them: finc-eval kahm membership scores "
    "that. finc-eval kahm classify says how often the nearest model is right. λ is the bandwidth. "
    "These numbers are computed from the samples without noise: if the samples are private, so is this page."
)

COLUMNS: dict[str, Callable[[ClassFit], str]] = {
    "Class": lambda row: row.name,
    "Samples": lambda row: f"{row.samples:,}",
    "Branches": lambda row: f"{row.branches:,}",
    "Machines": lambda row: f"{row.machines:,}",
    "Components": lambda row: f"{row.components:,}",
    "λ": lambda row: f"{row.lam:.3g}",
    "Own samples to model": lambda row: f"{row.own:.3g}",
    "Own to their mean": lambda row: f"{row.to_mean:.3g}",
}
"""Columns of the table of classes."""

HELD_OUT: dict[str, Callable[[ClassFit], str]] = {
    "Held out to model": lambda row: "–" if row.held_out is None else f"{row.held_out:.3g}",
    "Held out": lambda row: f"{row.held_out_samples:,}",
}
"""Columns that the table has if held-out samples were measured."""


def outline(result: ModelsFit) -> Outline:
    """Return what the fit says in all outputs."""
    columns = COLUMNS | (HELD_OUT if result.is_judged else {})
    legend = "Distances are medians, in the unit of the features."
    fewer = [row.name for row in result.classes if row.components < min(result.asked, result.dim)]
    missing = [row.name for row in result.classes if result.is_judged and not row.held_out_samples]
    warnings = []
    if fewer:
        # 5: classes that a warning names.
        named = join_words([*fewer[:5], *([f"{len(fewer) - 5:,} more"] if len(fewer) > 5 else [])])
        warnings.append(f"models of {named} have fewer than {result.asked} components, because they have few samples")
    if missing:
        warnings.append(f"{plural(len(missing), 'class')} have no held-out samples, such as {missing[0]}")
    return Outline(
        kind="models by kernel affine hull machines",
        title=f"Models of {plural(len(result.classes), 'class')}, {plural(result.samples, 'sample')}",
        says=says(result),
        sets={"own": result.samples},
        signatures=[f"{result.settings}; {result.extractor or 'extractor unknown'}"],
        call=call("kahm.describe_models", "models", *(["others"] if result.is_judged else [])),
        tables=[TextTable.of("Models", columns, result.classes, words=["Class"], legend=legend)],
        warnings=warnings,
        how=HOW,
    )


def says(result: ModelsFit) -> dict[str, str]:
    """Return what the models hold, and how near samples are to the model of their class."""
    found = {
        "models": (
            f"Models of {plural(len(result.classes), 'class')}, with {plural(result.machines, 'machine')}, hold all "
            f"{result.samples:,} samples of {plural(result.dim, 'entry')} that they were fitted to: keep the models as "
            "you keep the samples."
        )
    }
    own, to_mean = (float(np.median([getattr(row, name) for row in result.classes])) for name in ("own", "to_mean"))
    found["own"] = (
        f"In the median class, these samples are {own:.3g} from the model of their class, and {to_mean:.3g} from their "
        "mean."
    )
    pairs = [(row.held_out, row.own) for row in result.classes if row.held_out is not None]
    if pairs:
        held_out, own = (float(np.median(column)) for column in zip(*pairs, strict=True))
        found["held_out"] = f"Held-out samples are {held_out:.3g} from it" + (
            f", {float(np.divide(held_out, own)):.2f} times as far as own samples." if own > 0 else "."
        )
    return found


PAGE = Page(says, outline)
