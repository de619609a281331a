"""Outputs of a night for pipelines: JUnit, and annotations of GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from finc_eval.gates.pipelines import Case, annotate, suite_xml
from finc_eval.gates.pipelines import tell_outcome as tell_outcome
from finc_eval.golden.result import Night


def junit_xml(night: Night) -> str:
    """Return the night as JUnit XML: a red pair is a failure, and an amber pair an error, as neither passes."""
    stated = {"headline": night.sentence, "verdict": night.verdict, "night": night.night}
    tags: dict[str, Literal["failure", "error"]] = {"red": "failure", "amber": "error"}
    rows = [(pair.id, pair.verdict, pair.sentence) for pair in night.pairs]
    if all(verdict == "green" for _, verdict, _ in rows):
        rows.append(("all pairs", night.verdict, night.told["verdict"]))
    cases = [
        Case("gate.golden", name, tag, verdict, said) if (tag := tags.get(verdict)) else Case("gate.golden", name)
        for name, verdict, said in rows
    ]
    return suite_xml(stated | ({} if night.machine is None else {"machine": night.machine}), (), cases)


def annotation_lines(night: Night) -> Iterator[str]:
    """Yield the commands that annotate a run with what was found, unless the night is green."""
    if night.verdict != "green":
        pairs = [f"{pair.id}: {pair.sentence}" for pair in night.pairs if pair.verdict != "green"]
        yield from annotate([night.sentence, *pairs], "pairs changed, see night.html")
