"""The page, the notebook view and the terminal text of the utility of synthetic records."""

from __future__ import annotations

from collections.abc import Callable

from finc_eval.core.words import percent, plural, points
from finc_eval.private.dp.guarantee import FOR_HOLDER
from finc_eval.private.synthesis.utility import ClassifierUtility, MarginalUtility, Utility
from finc_eval.report import Page
from finc_eval.report.exports.outline import Outline, TextTable, call

HOW = (
    "Classifiers are trained on synthetic records, and on as many private ones, and tested on private records that the "
    "latter were not trained on. The synthetic records were made of all private ones; what that adds to their score is "
    "limited by their guarantee. To choose between releases by this page, and to publish the choice, reveals more than "
    "the ledger counts."
)

MARGINALS: dict[str, Callable[[MarginalUtility], str]] = {
    "Columns joined": lambda row: str(row.columns),
    "Synthetic": lambda row: f"{row.synthetic:.3f}",
    "Private, drawn again": lambda row: f"{row.resampled:.3f}",
    "Without relations": lambda row: f"{row.independent:.3f}",
}
"""Columns of the table of marginals."""

CLASSIFIERS: dict[str, Callable[[ClassifierUtility], str]] = {
    "Classifier": lambda row: row.classifier,
    "Trained on synthetic": lambda row: percent(row.synthetic, 1),
    "Trained on private": lambda row: percent(row.private, 1),
    "Difference, points": lambda row: _difference(row),
}
"""Columns of the table of classifiers."""

LEGENDS = {
    "marginals": "Total variation distance from the private records, from 0 to 1, averaged over choices of columns. "
    "Drawn again: as many records from the private ones, which no generator beats but by chance. Without relations: "
    "each column drawn again by itself.",
    "classifiers": "Balanced accuracy on private records: the mean over classes of the share that is recognized. The "
    "interval at 95 % is of these trained classifiers on fresh records; another training may differ by more.",
}


def _difference(row: ClassifierUtility) -> str:
    """Write the difference of a classifier with its interval, in points."""
    low, high = map(points, row.interval)
    return f"{points(row.difference)} [{low}, {high}]"


def outline(result: Utility) -> Outline:
    """Return what the utility says in all outputs."""
    tables = []
    if result.classifiers:
        tables.append(TextTable.of("Classifiers", CLASSIFIERS, result.classifiers, legend=LEGENDS["classifiers"]))
    if result.marginals:
        tables.append(TextTable.of("Marginals", MARGINALS, result.marginals, legend=LEGENDS["marginals"]))
    form = "table" if result.marginals else "image"
    return Outline(
        kind="utility of synthetic records, not private",
        title=f"{result.synthetic:,} synthetic records, measured on {result.records:,} private ones",
        says=says(result),
        sets={"private": result.records, "synthetic": result.synthetic},
        signatures=[f"classifiers trained on {plural(result.trained, 'record')} each, seed {result.seed}"],
        call=call(f"privacy.{form}_utility", "private", "synthetic", "…"),
        tables=tables,
        how=HOW,
    )


def says(result: Utility) -> dict[str, str]:
    """Return whom the numbers are for, what classifiers learn, and how near marginals are."""
    found = {"holder": FOR_HOLDER}
    if result.classifiers:
        best = max(result.classifiers, key=lambda row: row.private)
        guessed = percent(1 / len(result.classes), 1)
        found["classifiers"] = (
            f"The {best.classifier} recognizes {percent(best.synthetic, 1)} of the private records of a class, on "
            f"average, after training on synthetic ones, and {percent(best.private, 1)} after training on private "
            f"ones. The difference in points is {_difference(best)}. Guessing recognizes {guessed}."
        )
    if result.marginals:
        most = result.marginals[-1]
        worse = " Columns without relations are as near." if most.synthetic >= most.independent else ""
        found["marginals"] = (
            f"Marginals of {plural(most.columns, 'column')} are {most.synthetic:.3f} from the private ones, of columns "
            f"without relations {most.independent:.3f}, and of private records drawn again {most.resampled:.3f}.{worse}"
        )
    return found


PAGE = Page(says, outline)
