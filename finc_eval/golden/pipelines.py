"""Outputs of a night for pipelines: JUnit, and annotations of GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator

from finc_eval.gates.pipelines import Case, annotate, suite_xml
from finc_eval.gates.pipelines import tell_outcome as tell_outcome
from finc_eval.golden.result import Night


def junit_xml(night: Night) -> str:
    """Return the night as JUnit XML: a red pair is a failure, and an amber one an error, as neither passes."""
    stated = {"headline": night.sentence, "verdict": night.verdict, "night": night.night}
    cases = [
        Case("gate.golden", one.id)
        if one.verdict == "green"
        else Case("gate.golden", one.id, "failure" if one.verdict == "red" else "error", one.verdict, one.sentence)
        for one in night.pairs
    ]
    if night.verdict != "green" and not any(one.tag for one in cases):
        tag = "failure" if night.verdict == "red" else "error"
        cases.append(Case("gate.golden", "all pairs", tag, night.verdict, night.told["verdict"]))
    return suite_xml(stated | ({} if night.machine is None else {"machine": night.machine}), (), cases)


def annotation_lines(night: Night) -> Iterator[str]:
    """Yield the commands that annotate a run with what was found, unless the night is green."""
    if night.verdict != "green":
        pairs = [f"{one.id}: {one.sentence}" for one in night.pairs if one.verdict != "green"]
        yield from annotate([night.sentence, *pairs], "pairs changed, see night.html")
