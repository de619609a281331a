"""The page, the notebook view and the terminal table of the scores of metrics."""

from __future__ import annotations

from collections.abc import Callable

from finc_eval.core.words import figure, join_words
from finc_eval.measures.registry import METRICS
from finc_eval.measures.score import Score, Scores
from finc_eval.report import Page
from finc_eval.report.exports.outline import Outline, TextTable, call

NAMED_SCORES = 4  # scores that the summary has

BETTER = {True: "higher", False: "lower", None: "–"}


def _number(value: float | None) -> str:
    return figure(value, ".6g")


COLUMNS: dict[str, Callable[[Score], str]] = {
    "Metric": lambda score: score.name,
    "Value": lambda score: _number(score.value),
    "Unbiased": lambda score: _number(score.unbiased),
    "Interval, 95 %": lambda score: f"[{', '.join(map(_number, score.interval))}]" if score.interval else "–",
    "Floor": lambda score: _number(score.floor),
    "Better": lambda score: BETTER[score.higher_is_better],
}
"""The columns of a table of scores."""

HOW = (
    "The interval covers the sampling of the sets, and is around the unbiased value if there is one. "
    "It covers neither the training of the generator nor the choice of the extractor. The floor is what the reference "
    "itself gets instead of the generated set: a distance near its floor is as good as it can be. Two values compare "
    "only if their signatures agree in everything but the size of the generated set."
)


def outline(scores: Scores) -> Outline:
    """Return what the scores say in all outputs."""
    metrics: list[str] = []
    notes: dict[str, list[str]] = {}
    for score in scores:
        # Some metrics have several scores, named otherwise.
        given = (score.key, *dict(score.signature.fields).values(), score.signature.metric.replace("-", "_"))
        metrics.append(next((name for name in given if name in METRICS), score.key))
        for note in score.notes:
            notes.setdefault(note, []).append(score.name)
    failures = [f"{name}: {reason}." for name, reason in scores.failures.items()]
    return Outline(
        kind="metrics of a generated set against a reference",
        title=f"{scores.gen} against {scores.ref}",
        says=says(scores),
        sets=dict.fromkeys((scores.gen, scores.ref)),
        signatures=[*dict.fromkeys(score.signature for score in scores)],
        call=call("metrics", "gen", "ref", repr([*dict.fromkeys((*metrics, *scores.failures))])),
        tables=[
            TextTable.of("The scores", COLUMNS, scores.scores, words=["Better"], nothing="No metric could be computed.")
        ],
        details=[f"{', '.join(keys)}: {note}." for note, keys in notes.items()],
        warnings=failures,
        failures=failures,
        how=HOW,
    )


def says(scores: Scores) -> dict[str, str]:
    """Return the first numbers, and which metrics could not be computed, in one sentence."""
    values = [f"{score.name} {figure(score.value)}" for score in scores]
    more = len(values) - NAMED_SCORES
    named = join_words([*values[:NAMED_SCORES], *([f"{more} more"] if more > 0 else [])]) or "no number"
    refused = f"; {join_words([*scores.failures])} could not be computed" if scores.failures else ""
    return {"scores": f"{scores.gen} against {scores.ref}: {named}{refused}."}


PAGE = Page(says, outline)
