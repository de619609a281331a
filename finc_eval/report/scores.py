"""The page, the notebook view and the terminal table of the scores of metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from finc_eval.metrics.score import Score, Scores
from finc_eval.report.exports.made import call
from finc_eval.report.exports.outline import Outline, Table
from finc_eval.report.pages import refuse_samples, render, table_fragment
from finc_eval.report.terminal import print_table
from finc_eval.samples import Samples

BETTER = {True: "higher", False: "lower", None: "–"}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"


COLUMNS: dict[str, Callable[[Score], str]] = {
    "Metric": lambda score: score.key,
    "Value": lambda score: _number(score.value),
    "Unbiased": lambda score: _number(score.unbiased),
    "Interval, 95 %": lambda score: f"[{', '.join(map(_number, score.interval))}]" if score.interval else "–",
    "Floor": lambda score: _number(score.floor),
    "Better": lambda score: BETTER[score.higher_is_better],
}
"""The columns of a table of scores, on the page and on the terminal."""


def page(scores: Scores, samples: Mapping[str, Samples]) -> str:
    """Return the page: one HTML file that loads nothing. It shows no samples."""
    refuse_samples(scores, samples)
    columns = {**COLUMNS, "Notes": lambda score: "; ".join(score.notes)}
    return render("scores.html", scores, outline(scores), columns=columns)


def outline(scores: Scores) -> Outline:
    """Return what the scores say in all outputs."""
    metrics = [score.signature.metric for score in scores] + [*scores.failures]
    return Outline(
        kind="metrics of a generated set against a reference",
        title=f"{scores.gen} against {scores.ref}",
        headline=summary(scores),
        sets=dict.fromkeys((scores.gen, scores.ref)),
        signatures=[score.signature for score in scores],
        call=call("evaluate", "gen", "ref", repr([*dict.fromkeys(metrics)])),
        tables=[Table("The scores", [*COLUMNS], _rows(scores))],
        details=[f"{score.key}: {note}." for score in scores for note in score.notes],
        warnings=_failures(scores),
        failures=_failures(scores),
    )


def fragment(scores: Scores) -> str:
    """Return the scores as a table, for a notebook."""
    return table_fragment(" ".join([summary(scores), *_failures(scores)]), list(COLUMNS), _rows(scores))


def show(scores: Scores) -> None:
    """Print the scores, then the signature and the notes of each."""
    if scores.scores:
        print_table(f"{scores.gen} against {scores.ref}", list(COLUMNS), _rows(scores), names=["Metric"])
    for score in scores.scores:
        print(score.signature)
        for note in score.notes:
            print(f"  note: {note}")


def summary(scores: Scores) -> str:
    """Return how many numbers there are, and how many metrics have none, in one sentence."""
    computed, failed = len(scores.scores), len(scores.failures)
    numbers = f"{computed} number{'s' * (computed != 1)}"
    refused = f"; {failed} metric{'s' * (failed != 1)} could not be computed" if failed else ""
    return f"{numbers} on how {scores.gen} compares with {scores.ref}{refused}."


def _failures(scores: Scores) -> list[str]:
    return [f"{name}: {reason}." for name, reason in scores.failures.items()]


def _rows(scores: Scores) -> list[list[str]]:
    return [[text(score) for text in COLUMNS.values()] for score in scores.scores]
