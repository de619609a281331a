"""Scores of metrics: their page, their notebook view and their terminal table, from the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

from finc_eval.metrics.score import Score, Scores
from finc_eval.report.pages import environment
from finc_eval.report.terminal import print_table

DIRECTIONS = {True: "higher", False: "lower", None: ""}
"""Word for the better direction of a score."""


class Row(NamedTuple):
    """Text of one score.

    Attributes:
        metric: name of the score.
        value: its value.
        interval: its interval; empty if it has none.
        floor: value that the reference itself gets; empty if it was not computed.
        better: "higher" or "lower", or empty if neither direction is better.
    """

    metric: str
    value: str
    interval: str
    floor: str
    better: str


COLUMNS = ("metric", "value", "95 %", "floor", "better")
"""Heading of each field of a row."""


def page(scores: Scores, samples: Mapping[str, Any]) -> str:
    """Return the page of scores as HTML. It does not show samples."""
    return environment().get_template("scores.html").render(**_content(scores), version=version("finc-eval"))


def fragment(scores: Scores) -> str:
    """Return the table of scores for a notebook."""
    return environment().get_template("scores_fragment.html").render(**_content(scores))


def show(scores: Scores) -> None:
    """Print the table of scores, then the signature and the notes of each."""
    if scores.scores:
        title = f"{scores.gen} against {scores.ref}"
        print_table(title, list(COLUMNS), [list(_row(score)) for score in scores.scores])
    for score in scores.scores:
        print(score.signature)
        for note in score.notes:
            print(f"  note: {note}")


def summary(scores: Scores) -> str:
    """Say in one sentence how many numbers there are, and how many metrics have none."""
    computed, failed = len(scores.scores), len(scores.failures)
    numbers = f"{computed} number{'s' * (computed != 1)}"
    refused = f"; {failed} metric{'s' * (failed != 1)} could not be computed" if failed else ""
    return f"{numbers} on how {scores.gen} compares with {scores.ref}{refused}."


def _row(score: Score) -> Row:
    return Row(
        metric=score.key,
        value=f"{score.value:.6g}",
        interval="" if score.interval is None else f"[{score.interval[0]:.6g}, {score.interval[1]:.6g}]",
        floor="" if score.floor is None else f"{score.floor:.6g}",
        better=DIRECTIONS[score.higher_is_better],
    )


def _content(scores: Scores) -> dict[str, Any]:
    return {
        "result": scores,
        "columns": COLUMNS,
        "rows": [(_row(score), score) for score in scores.scores],
        "summary": summary(scores),
        "warnings": [f"{name}: {reason}" for name, reason in scores.failures.items()],
        "notes": (),
    }
