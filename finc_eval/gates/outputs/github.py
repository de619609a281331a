"""Outputs that GitHub Actions reads of a verdict: an output, a summary of the job, and at most ten annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from finc_eval.core.terminal import visible
from finc_eval.gates.verdict import Verdict

MAX_ANNOTATIONS = 10
"""Annotations of one step that GitHub shows."""


def annotation_lines(verdict: Verdict) -> Iterator[str]:
    """Yield the commands that annotate a run, the most urgent limits first; the last one counts the rest."""
    urgent = [limit for limit in verdict.by_urgency if limit.verdict in ("regressed", "missing", "undecided")]
    shown = urgent if len(urgent) <= MAX_ANNOTATIONS else urgent[: MAX_ANNOTATIONS - 1]
    for limit in shown:
        level = "warning" if limit.verdict == "undecided" and verdict.policy.undecided == "warn" else "error"
        yield f"::{level} title=finc-eval gate::{_escape(limit.sentence)}"
    if len(shown) < len(urgent):
        yield f"::error title=finc-eval gate::{len(urgent) - len(shown)} more limits did not hold, see verdict.html"


def tell_github(verdict: Verdict, environment: Mapping[str, str]) -> None:
    """Append the output `verdict` and the summary to the files that GitHub Actions names; elsewhere do nothing."""
    outputs: dict[str, Callable[[], str]] = {
        "GITHUB_OUTPUT": lambda: f"verdict={verdict.overall}\n",
        "GITHUB_STEP_SUMMARY": verdict.to_markdown,
    }
    for variable, write in outputs.items():
        if path := environment.get(variable):
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(write())


def _escape(text: str) -> str:
    """Escape what ends a command."""
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
