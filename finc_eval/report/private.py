"""Scores against a private sketch, private sketches and ledgers: their pages and terminal tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from finc_eval.privacy.dp.ledger import Ledger
from finc_eval.privacy.reference.result import PairedDifference, Part, PrivateComparison, PrivateScore
from finc_eval.privacy.reference.sketch import PrivateSketch
from finc_eval.report.formats import p_value, percent
from finc_eval.report.pages import ALPHA, interval_scale, render, table_fragment
from finc_eval.report.terminal import print_notes, print_table

PrivateResult = PrivateScore | PrivateComparison

MAX_IDENTIFIER = 20
"""Longest name of a data set that is shown whole; digests are longer and are shown by their first 12 characters."""


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
        cells: texts of the cells.
        estimate: value and interval that the page draws.
        muted: whether the page shows it in gray.
    """

    cells: tuple[str, ...]
    estimate: tuple[float, tuple[float, float]]
    muted: bool = False


@dataclass(frozen=True)
class Section:
    """One table of a result.

    Attributes:
        id: anchor on the page.
        title: heading.
        legend: explanation on the page.
        columns: label and CSS class of each column; the class "interval" gets a drawing.
        rows: lines of the table.
    """

    id: str
    title: str
    legend: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]

    @property
    def scale(self) -> dict[str, Any]:
        """Common scale of the drawings."""
        return interval_scale(row.estimate for row in self.rows)


def page(result: PrivateResult, samples: Mapping[str, Any]) -> str:
    """Return the page of a score or a comparison: one HTML file that loads nothing.

    Args:
        result: the result.
        samples: unused, as these pages show no samples.
    """
    return render(
        "private_score.html",
        result,
        scores=_scores(result),
        sections=_sections(result),
        summary=_summary(result),
        warnings=_notes(result),
    )


def fragment(result: PrivateResult) -> str:
    """Return the table of the scores for a notebook."""
    caption = " ".join((_summary(result), *(f"Guarantee: {guarantee}." for guarantee in result.guarantees)))
    section = _sections(result)[0]
    return table_fragment(caption, [label for label, _ in section.columns], [row.cells for row in section.rows])


def show(result: PrivateResult) -> None:
    """Print the tables of a score or a comparison on standard output."""
    for section in _sections(result):
        print_table(section.title, [label for label, _ in section.columns], [row.cells for row in section.rows])
    print(f"differences below {_scores(result)[0].smallest_detected:.3g} are hidden by the noise of the reference")
    for guarantee in result.guarantees:
        print(f"guarantee: {guarantee}")
    print_notes(_notes(result))
    print(result.signature)


def show_sketch(path: str, sketch: PrivateSketch) -> None:
    """Print the contents and the guarantees of a private sketch on standard output."""
    transform, phi = sketch.transform, sketch.feature_map
    print(f"{path}: private sketch of {sketch.m} records, {sketch.space}, {sketch.size} features")
    print(f"transform {transform.digest[:12]}: {transform.origin}")
    print(f"features: {phi.kind} {phi.order}, length scale {phi.length_scale:.4g}, radius {transform.radius:.4g}")
    if sketch.classes is not None:
        print(f"classes: {', '.join(sketch.classes)}")
    print(f"noise {sketch.noise:.4g} on every feature")
    for release in sketch.releases:
        print(f"{release.m} records, sensitivity {release.sensitivity:.4g}: {release.guarantee}")


def show_ledger(ledger: Ledger) -> None:
    """Print the spent and the remaining budget of each data set on standard output."""
    budget = ledger.budget
    rows = [
        [
            ", ".join(one if len(one) < MAX_IDENTIFIER else one[:12] for one in account["data"]),
            str(len(account["releases"])),
            f"{account['epsilon_spent']:.4g}",
            f"{account['epsilon_left']:.4g}",
        ]
        for account in ledger.to_dict()["data_sets"]
    ]
    print_table("", ["data set", "releases", "epsilon spent", "epsilon left"], rows)
    print(f"budget of each data set: epsilon {budget.epsilon:g}, delta {budget.delta:g}, {budget.adjacency} adjacency")


def _scores(result: PrivateResult) -> tuple[PrivateScore, ...]:
    return (result,) if isinstance(result, PrivateScore) else result.scores


def _pairs(result: PrivateResult) -> tuple[PairedDifference, ...]:
    return () if isinstance(result, PrivateScore) else result.pairs


def _notes(result: PrivateResult) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for score in _scores(result) for note in score.notes))


def _sections(result: PrivateResult) -> list[Section]:
    """Return the tables of a result, without empty ones."""
    estimate = (("Standard error", "n"), (f"Interval, {percent(result.confidence)}", "interval"))
    pairs = _pairs(result)
    sections = [
        Section(
            "scores",
            "Distance from the private records",
            "",
            (("Generator", "id"), ("Samples", "n"), ("MMD²", "n excess"), *estimate, ("Noise alone", "")),
            tuple(
                _row((score.name, f"{score.n:,}"), score, more=(_range(score.noise_interval),))
                for score in _scores(result)
            ),
        ),
        Section(
            "pairs",
            "Who is nearer: paired differences",
            "Differences of two scores, in which most of the noise cancels. p-values are adjusted for all "
            f"{len(pairs)} pairs; rows above {ALPHA} are gray.",
            (("Nearer", "id"), ("Farther", "words"), ("Difference", "n excess"), *estimate, ("Adj. p", "n")),
            tuple(
                _row((pair.first, pair.second), pair, more=(p_value(pair.p_value),), muted=pair.p_value > ALPHA)
                for pair in pairs
            ),
        ),
        Section(
            "parts",
            "Which moments are wrong",
            "Degree 0 is about how far samples are from the center, 1 about means, 2 about variances and correlations. "
            "The parts of a generator add to its MMD². Rows whose interval reaches zero are gray.",
            (("Generator", "id"), ("Part", "words"), ("Features", "n"), ("MMD²", "n excess"), *estimate),
            tuple(
                _row((score.name, part.name, f"{part.features:,}"), part, muted=part.interval[0] <= 0)
                for score in _scores(result)
                for part in (*score.degrees, *score.classes)
            ),
        ),
    ]
    return [section for section in sections if section.rows]


def _row(
    head: tuple[str, ...],
    estimate: PrivateScore | PairedDifference | Part,
    *,
    more: tuple[str, ...] = (),
    muted: bool = False,
) -> Row:
    numbers = _number(estimate.value, 3), _number(estimate.standard_error, 1), _range(estimate.interval)
    return Row((*head, *numbers, *more), (estimate.value, estimate.interval), muted)


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}e}".replace("-", "−")


def _range(interval: tuple[float, float]) -> str:
    return f"[{_number(interval[0], 2)}, {_number(interval[1], 2)}]"


def _summary(result: PrivateResult) -> str:
    """Return the findings in a few plain sentences."""
    scores, sentences = _scores(result), []
    first = scores[0]
    if isinstance(result, PrivateScore):
        sentences.append(
            f"The MMD² between {first.name} and the private records is estimated as {first.value:.3g}, with a "
            f"{percent(result.confidence)} interval from {first.interval[0]:.3g} to {first.interval[1]:.3g}."
        )
        if first.interval[0] <= 0:
            sentences.append("The interval includes zero: the sketch cannot tell the two apart.")
    else:
        against = [pair for pair in result.pairs if pair.first == first.name]
        beaten = [pair.second for pair in against if pair.p_value <= ALPHA]
        tied = [pair.second for pair in against if pair.p_value > ALPHA]
        sentences.append(f"Of {len(scores)} generators, {first.name} has the smallest MMD² from the private records.")
        if beaten:
            sentences.append(f"It is significantly nearer than {', '.join(beaten)} (adjusted p ≤ {ALPHA:g}).")
        if tied:
            sentences.append(f"Its distance cannot be told apart from that of {', '.join(tied)}.")
    sentences.append(f"The noise of the reference alone hides differences below {first.smallest_detected:.2g}.")
    return " ".join(sentences)
