"""The page, the notebook view and the terminal text of a fabrication."""

from __future__ import annotations

from collections.abc import Callable

from finc_eval.core.words import percent, plural
from finc_eval.memorization.membership import score_sentence
from finc_eval.numerics.attack_statistics import AttackStatistics
from finc_eval.private.dp.guarantee import FOR_HOLDER
from finc_eval.private.kahm.fabrication_result import (
    FABRICATED,
    ORIGINAL,
    DistanceQuantiles,
    Fabrication,
    FabricationNearness,
)
from finc_eval.private.kahm.membership_page import figures
from finc_eval.report import Page
from finc_eval.report.exports.outline import Cell, Outline, TextTable, call

HOW = (
    "Noise is added to every entry (Result 1), and noisy samples are smoothed and mapped to their images (Definition "
    "14). That reads nothing but noisy samples. The guarantee is about one entry: sets are neighbors if they differ in "
    "one entry of one sample. For a whole record it is as many times weaker as a record has entries. Classes, their "
    "sizes and the order of the samples are public: what lies in a row was fabricated from the original in that row."
)

MEASURED = (
    " Distances are Euclidean, in the unit of the features. If a fabricated sample is nearer to its original than "
    "originals are to each other, it can be linked to it. Attacks: by models of the fabricated samples (eq. 69) and by "
    "the nearest fabricated sample. An attack that fails does not mean that nothing leaks."
)

DISTANCES: dict[str, Callable[[DistanceQuantiles], str]] = {
    "Distance": lambda row: row.name,
    "Samples": lambda row: f"{row.samples:,}",
    "10 %": lambda row: f"{row.tenth:.3g}",
    "Median": lambda row: f"{row.median:.3g}",
    "90 %": lambda row: f"{row.ninetieth:.3g}",
}
"""Columns of the table of distances."""

GUARANTEE = ("Unit", "ε", "δ")

ATTACK = ("Figure", "Value")


def outline(result: Fabrication) -> Outline:
    """Return what the fabrication says in all outputs."""
    measured, promised = result.nearness, result.guarantee
    rows = [
        ["one entry", f"{promised.epsilon:g}", f"{promised.delta:g}"],
        [f"one record of {promised.dim:,} entries", f"{promised.record_epsilon:g}", f"{promised.record_delta:g}"],
    ]
    low, high = result.bounds
    tables = [
        *_pairs(result),
        *([] if measured is None else _measured(measured)),
        TextTable(
            "Guarantee", GUARANTEE, rows, legend=f"Entries were clipped to [{low:g}, {high:g}] before the noise."
        ),
        TextTable("Classes", ["Class", "Samples"], [[name, f"{count:,}"] for name, count in result.classes.items()]),
    ]
    steps = f", {plural(max(result.steps), 'step')}" if result.steps else ", not smoothed"
    private = f"{promised.adjacency} epsilon {promised.epsilon:g}, delta {promised.delta:g}"
    return Outline(
        kind="samples fabricated from noisy samples" + ("" if measured is None else ", not private"),
        title=f"{plural(result.samples, 'fabricated sample')} of {plural(len(result.classes), 'class')}",
        says=says(result),
        sets={FABRICATED: result.samples},
        signatures=[f"{result.settings}; {private}, bounds {low:g} to {high:g}{steps}"],
        call=call("kahm.fabricate_classes", "…", "labels", "noise"),
        tables=tables,
        warnings=_warnings(result),
        how=HOW + ("" if measured is None else MEASURED),
    )


def _measured(nearness: FabricationNearness) -> list[TextTable]:
    """Return the tables of what was measured on the originals."""
    tables = [TextTable.of("Distances", DISTANCES, nearness.distances)]
    if nearness.membership is not None:
        tables.append(TextTable("Attack by models", ATTACK, figures(nearness.membership), words=ATTACK[:1]))
    if nearness.attack is not None:
        rows = [
            ("AUC of the attack by the nearest fabricated sample", _auc(nearness.attack)),
            ("True positives at 1 %", percent(nearness.attack.at_1_percent.tpr, 1)),
            ("True positives at 0.1 %", percent(nearness.attack.at_01_percent.tpr, 1)),
        ]
        tables.append(TextTable("Attack by the nearest sample", ATTACK, rows, words=ATTACK[:1]))
    return tables


def _auc(attack: AttackStatistics) -> str:
    """Write the AUC of an attack with its interval."""
    low, high = attack.auc_interval
    return f"{attack.auc:.3f} [{low:.3f}, {high:.3f}]"


def _pairs(result: Fabrication) -> list[TextTable]:
    """Return the table of originals beside what was fabricated from them, if it has pictures."""
    rows = [
        [Cell(name, samples=[(ORIGINAL, [name])]), Cell("from it", samples=[(FABRICATED, [name])])]
        for name in result.pairs[: result.shown]
    ]
    columns = ["Original", "Fabricated"]
    return [TextTable("Pairs", columns, rows, names=columns[:1], words=columns)] if rows else []


def _warnings(result: Fabrication) -> list[str]:
    """Return what to know before the samples are passed on."""
    warnings = []
    if not result.guarantee.private:
        warnings.append("NOT PRIVATE: the noise came from a seeded generator")
    if result.unmapped:
        warnings.append(f"{plural(result.unmapped, 'sample')} had no image, and stayed noisy")
    return warnings


def says(result: Fabrication) -> dict[str, str]:
    """Return what was promised and, for the holder of the originals, what links fabricated samples to them."""
    measured = result.nearness
    found = {} if measured is None else {"holder": FOR_HOLDER}
    made = "fabricated" if result.is_smoothed else "made by adding noise"
    found["guarantee"] = f"{plural(result.samples, 'sample')} were {made}: {result.guarantee}."
    if measured is None:
        return found
    own, _, among = (f"{row.median:.3g}" for row in measured.distances[:3])
    found["linked"] = (
        f"{percent(measured.linked, 1)} of them are nearer to their own original than to any other. The median "
        f"distance to their own original is {own}, and that between an original and its nearest other one {among}."
    )
    if measured.membership is not None:
        found["score"] = score_sentence(measured.membership.difference, " of models of the fabricated samples")
    if measured.attack is not None:
        found["attack"] = (
            f"The nearest fabricated sample distinguishes originals from other samples with an AUC of "
            f"{_auc(measured.attack)}; 0.5 is chance."
        )
    return found


PAGE = Page(says, outline)
