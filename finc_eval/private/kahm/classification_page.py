"""The page, the notebook view and the terminal text of a classification."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from finc_eval.core.words import join_words, percent, plural, points
from finc_eval.private.kahm.classification import CLASSIFIED, Classification, ClassifiedSample, ClassResult, Yardstick
from finc_eval.report import Page
from finc_eval.report.exports.outline import Cell, Outline, TextTable, call, sizes

MATRIX = 12  # classes of which a page shows all pairs; of more, the most frequent ones

HOW = (
    "A sample is of the class whose model is nearest (Definition 7; over several parties, eq. 104). Distances have the "
    "unit of the features. AUC: how well the class-matching score (Definition 8) separates a class from all others, as "
    "in the paper's Table 4. Each interval is at 95 %, for fresh samples of the same distribution and these models: "
    "models of other samples may differ by more. Distances are exact functions of the samples behind the models; "
    "finc-eval kahm membership scores what they reveal. Of models of private samples, this page is for their holder, "
    "unless the models are of noisy or fabricated ones."
)

LEGENDS = {
    "yardsticks": "Other classifiers, by the same samples as the models. The difference is that of the nearest model "
    "minus the yardstick, on the same labeled samples.",
    "matrix": "Number of labeled samples: their own class by row, the class of the nearest model by column.",
    "doubtful": "Samples that are about as near to two models. Margin: 1 − the distance to the nearest model over that "
    "to the second; 0 for equal distances, and 1 at most.",
    "mistaken": "Samples that are clearly nearer to the model of another class: a wrong label, or a model that misses "
    "them. Those with the largest margins come first.",
}

YARDSTICKS: dict[str, Callable[[Yardstick], str]] = {
    "Classifier": lambda row: row.name,
    "Accuracy": lambda row: percent(row.accuracy, 1),
    "Difference, points": lambda row: _difference(row),
}
"""Columns of the table of yardsticks."""

CLASSES: dict[str, Callable[[ClassResult], Cell | str]] = {
    "Class": lambda row: row.name,
    "Nearest": lambda row: f"{row.nearest:,}",
    "Labeled": lambda row: "–" if row.labeled is None else f"{row.labeled:,}",
    "Recognized": lambda row: _share(row.recognized, row.interval),
    "AUC": lambda row: "–" if row.auc is None else f"{row.auc:.3f}",
}
"""Columns of the table of classes."""

SHOWN: dict[str, Callable[[ClassifiedSample], Cell | str]] = {
    "Sample": lambda row: Cell(row.id, samples=[(CLASSIFIED, [row.id])]),
    "Label": lambda row: row.label or "–",
    "Nearest": lambda row: row.nearest,
    "Second": lambda row: row.second or "–",
    "Distance": lambda row: f"{row.distance:.3g}",
    "Margin": lambda row: f"{row.margin:.3f}",
}
"""Columns of the tables of samples."""


def _difference(row: Yardstick) -> str:
    low, high = map(points, row.interval)
    return f"{points(row.difference)} [{low}, {high}]"


def _ends(interval: tuple[float, float]) -> str:
    """Write an interval of a share in percent."""
    return f"[{', '.join(f'{100 * end:.1f}' for end in interval)}]"


def _share(share: float | None, interval: tuple[float, float] | None) -> Cell | str:
    """Return the cell of a share, with its interval in small print."""
    if share is None:
        return "–"
    return Cell(percent(share, 1), "" if interval is None else _ends(interval))


def outline(result: Classification) -> Outline:
    """Return what the classification says in all outputs."""
    worst_first = sorted(result.classes, key=lambda row: (row.recognized is None, row.recognized or 0.0, -row.nearest))
    tables = [TextTable.of("Classes", CLASSES, worst_first, words=["Class"])]
    if result.yardsticks:
        tables.append(TextTable.of("Yardsticks", YARDSTICKS, result.yardsticks, legend=LEGENDS["yardsticks"]))
    if result.confusions:
        tables.append(_matrix(result) if len(result.classes) <= MATRIX else _pairs(result))
    for title, key, rows in (
        ("Doubtful samples", "doubtful", result.doubtful),
        ("Wrong samples", "mistaken", result.mistaken),
    ):
        if shown := rows[: result.shown]:
            tables.append(
                TextTable.of(title, SHOWN, shown, legend=LEGENDS[key], words=["Sample", "Label", "Nearest", "Second"])
            )
    parties = f"; parties {', '.join(result.parties)}" if result.parties else ""
    of_set = "" if result.set is None or result.set.name == CLASSIFIED else f" of {result.set.name}"
    return Outline(
        kind="classification by kernel affine hull machines",
        title=f"{plural(result.samples, 'sample')}{of_set}, by {plural(len(result.classes), 'class')}",
        says=says(result),
        sets={CLASSIFIED: result.samples} if result.set is None else sizes({CLASSIFIED: result.set}),
        signatures=[f"{result.settings or 'settings of the models unknown'}{parties}"],
        call=call("kahm.classify", "models", "samples"),
        tables=tables,
        warnings=_warnings(result),
        how=HOW,
    )


def _matrix(result: Classification) -> TextTable:
    """Return the numbers of samples of each class by the class of the nearest model."""
    names = [row.name for row in result.classes]
    counts = {(row.label, row.nearest): row.samples for row in result.confusions}
    for row in result.classes:
        lost = sum(pair.samples for pair in result.confusions if pair.label == row.name)
        counts[row.name, row.name] = (row.labeled or 0) - lost
    columns = [*names, *([""] if any(not pair.nearest for pair in result.confusions) else [])]
    rows: list[Sequence[Cell | str]] = [
        [name, *(f"{counts.get((name, other), 0):,}" for other in columns)] for name in names
    ]
    return TextTable("Confusions", ["Class", *(name or "none" for name in columns)], rows, legend=LEGENDS["matrix"])


def _pairs(result: Classification) -> TextTable:
    """Return the most frequent pairs of unlike classes."""
    # 20: pairs that a page shows.
    rows = [[pair.label, pair.nearest or "none", f"{pair.samples:,}"] for pair in result.confusions[:20]]
    return TextTable("Confusions", ["Class", "Nearest", "Samples"], rows, words=["Class", "Nearest"])


def _warnings(result: Classification) -> list[str]:
    """Return what to know before trusting the accuracy."""
    warnings = []
    if result.repeated and not result.are_own:
        warnings.append(
            f"{plural(result.repeated, 'sample')} of {result.samples:,} are also samples of the models, and easier to "
            "recognize than new ones: leave them out"
        )
    if result.undefined:
        warnings.append(f"{plural(result.undefined, 'sample')} without a distance to any class")
    unlabeled = result.samples - result.labeled
    if result.labeled and unlabeled:
        warnings.append(f"{plural(unlabeled, 'sample')} without a label are classified, and not judged")
    return warnings


def says(result: Classification) -> dict[str, str]:
    """Return how often the nearest model is right, beside the yardsticks, and which classes are confused most."""
    found = {"accuracy": _accuracy(result)}
    if result.yardsticks:
        found["yardsticks"] = " ".join(
            f"The {row.name} is right for {percent(row.accuracy, 1)}; the nearest model differs by {_difference(row)} "
            "points."
            for row in result.yardsticks
        )
    if result.confusions:
        first = result.confusions[0]
        taken = f"is taken for {first.nearest}" if first.nearest else "has no distance to any class"
        found["confusions"] = f"Most often {first.label} {taken} ({plural(first.samples, 'sample')})."
    return found


def _accuracy(result: Classification) -> str:
    """Return how often the nearest model is right, or what it says of samples that are not judged."""
    if result.accuracy is None:
        # 3: classes that a sentence names.
        most = sorted(result.classes, key=lambda row: -row.nearest)[:3]
        named = join_words([f"{row.name} ({row.nearest:,})" for row in most])
        why = (
            f"the models have no class {result.strange[0]!r}, which samples are labeled with"
            if result.strange
            else "the samples have no labels"
        )
        return f"The most frequent of {plural(len(result.classes), 'class')} are {named}. No accuracy: {why}."
    right = percent(result.accuracy, 1)
    if result.are_own:
        return (
            f"The nearest model is right for {right} of the {result.labeled:,} samples that the models were fitted to: "
            "pass others to see that of new samples."
        )
    ends = "" if result.accuracy_interval is None else f" {_ends(result.accuracy_interval)}"
    return f"The nearest model is right for {right}{ends} of {plural(result.labeled, 'labeled sample')}."


PAGE = Page(says, outline)
