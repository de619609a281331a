"""From a table of methods to HTML: what each finds on the same two sets, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finc_eval.comparison.method import MethodName
from finc_eval.comparison.methods import SAME, Kind, MethodTable
from finc_eval.comparison.modes import Mode, Role
from finc_eval.report.comparison import SET_NAMES, SetLabel, read_pictures, sides_of, titles
from finc_eval.report.pages import ALPHA, METHOD_NAMES, environment, interval_scale, kinds
from finc_eval.samples import Samples

SHOWN = 8
"""Samples of each mode: of the set that has more, on the mode's first side."""

LEAD = 4
"""Samples of a kind, from the mode that was found first."""

SHOWN_IN_FRAGMENT = 3

EXPLAINED: dict[MethodName, str] = {
    "finc": "leading directions of the difference of the two sets, by random features",
    "ken": "the same without random features, from the kernel matrix, unrotated",
    "rarity": "clusters of the samples that lie where the other set is sparsest",
    "fld": "clusters of the samples that a mixture around the other set makes least likely",
}


def render_methods(
    table: MethodTable, *, gen_samples: Samples | None = None, ref_samples: Samples | None = None
) -> str:
    """The page of a table of methods as the text of one HTML file that loads nothing.

    Args:
        table: what to show.
        gen_samples: where the generated samples are, if not at their own source: anything that `open_source` takes.
            Samples that cannot be read are shown by their ids, and the page says why.
        ref_samples: where the reference samples are, likewise.
    """
    modes = [mode for found in table.comparisons.values() for mode in found.all_modes]
    return (
        environment()
        .get_template("methods.html")
        .render(
            _shared(table, SHOWN, gen_samples, ref_samples),
            summary=summary(table),
            warnings=table.warnings,
            interval=interval_scale((mode.excess, mode.interval) for mode in modes),
            explained=EXPLAINED,
            lead=LEAD,
            same=SAME,
            version=table.first.version,
        )
    )


def render_methods_fragment(table: MethodTable) -> str:
    """The table of kinds against methods, for a notebook; it takes on the notebook's colors."""
    return environment().get_template("methods_fragment.html").render(_shared(table, SHOWN_IN_FRAGMENT, None, None))


def summary(table: MethodTable) -> str:
    """What was found, in a few plain sentences."""
    sentences = []
    words = {"over": "more", "under": "less"}
    for role, _, _, _ in groups(table):
        counts = {
            method: sum(mode.role == role for mode in found.significant(ALPHA))
            for method, found in table.comparisons.items()
        }
        listed = ", ".join(f"{METHOD_NAMES[method]} finds {count}" for method, count in counts.items())
        sentences.append(f"Modes of which the generated set has significantly {words[role]}: {listed}.")
    of_kinds = [kind for *_, found in groups(table) for kind in found]
    everywhere = sum(all(_significant(table, method, kind) for method in table.comparisons) for kind in of_kinds)
    sentences.append(f"They are of {kinds(len(of_kinds))}, {everywhere} of which every method finds.")
    return " ".join(sentences)


def cells(table: MethodTable, method: str, kind: Kind) -> list[tuple[int, Mode]]:
    """The modes of this kind that a method finds, with their ranks."""
    found = table.comparisons[method]
    ranked = enumerate(found.modes if kind.role == "over" else found.under_represented, start=1)
    return [(rank, mode) for rank, mode in ranked if mode.id in kind.modes.get(method, ())]


def groups(table: MethodTable) -> list[tuple[Role, str, str, list[Kind]]]:
    """The roles, each with a heading, a meaning and the kinds that some method finds significant."""
    headings: list[tuple[Role, str, str]] = [
        ("over", "Over-represented", "more in the generated set"),
        ("under", "Under-represented", "less in the generated set"),
    ]
    return [
        (
            role,
            heading,
            meaning,
            [k for k in table.kinds if k.role == role and any(_significant(table, method, k) for method in k.modes)],
        )
        for role, heading, meaning in headings
    ]


def _significant(table: MethodTable, method: str, kind: Kind) -> bool:
    return any(mode.p_value <= ALPHA for _, mode in cells(table, method, kind))


def _shared(table: MethodTable, count: int, gen_samples: object, ref_samples: object) -> dict[str, Any]:
    """What page and fragment speak of."""
    shown: dict[SetLabel, list[str]] = {"gen": [], "ref": []}
    for found in table.comparisons.values():
        for mode in found.all_modes:
            shown[sides_of(mode.role)[0]] += own_ids(mode)[:count]
    pictures, notes = read_pictures(table.first, shown, gen_samples, ref_samples)
    return {
        "table": table,
        "comparison": table.first,
        "titles": titles(table.first),
        "groups": groups(table),
        "first_mode": lambda kind: cells(table, next(iter(kind.modes)), kind)[0][1],
        "cells": lambda method, kind: cells(table, method, kind),
        "modes_of": lambda found, role: found.modes if role == "over" else found.under_represented,
        "own_ids": own_ids,
        "sides_of": sides_of,
        "set_names": SET_NAMES,
        "names": METHOD_NAMES,
        "pictures": pictures,
        "notes": notes,
        "alpha": ALPHA,
        "shown": count,
    }


def own_ids(mode: Mode) -> Sequence[str]:
    """The samples that are most of a mode, of the set that has more of it."""
    return mode.tails[0].gen_ids if mode.role == "over" else mode.tails[0].ref_ids
