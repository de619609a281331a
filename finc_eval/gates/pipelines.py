"""Outputs of verdicts for pipelines: JUnit, and the annotations, outputs and summary of GitHub Actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from finc_eval.core.serialize import Document
from finc_eval.core.terminal import visible
from finc_eval.core.words import one_line
from finc_eval.gates.verdict import FIRST, Verdict

MAX_ANNOTATIONS = 10  # annotations of one step that GitHub shows


class Case(NamedTuple):
    """A test case of JUnit: what was asked, and what is wrong; nothing for what passed."""

    of: str  # group of the case, such as "gate.kinds.lose"
    name: str
    tag: Literal["", "failure", "error"] = ""
    kind: str = ""  # verdict, such as "regressed"
    message: str = ""


def junit_xml(verdict: Verdict, seconds: float = 0.0) -> str:
    """Return the verdict as JUnit XML, with how many seconds it took.

    A regression is a failure; what is missing or undecided is an error, as neither passes.
    """
    tags: dict[str, Literal["failure", "error"]] = {"regressed": "failure", "missing": "error", "undecided": "error"}
    stated = {
        "headline": verdict.headline,
        "verdict": verdict.overall,
        "noise": verdict.noise,
        "family": verdict.family,
        "signature": str(verdict.signature),
    } | {f"finding {number}": finding.text for number, finding in enumerate(verdict.findings, 1)}
    cases = [
        Case(f"gate.{limit.rule}", limit.name, tag, limit.verdict, verdict.sentence_on(limit))
        if (tag := tags.get(limit.verdict))
        else Case(f"gate.{limit.rule}", limit.name)
        for limit in verdict.limits
    ]
    nothing = Case("gate", "limits", "error", "missing", "the policy limits nothing")
    cases = cases or [Case("gate", FIRST) if verdict.first else nothing]
    return suite_xml(stated, verdict.warnings, cases, seconds)


def suite_xml(stated: Mapping[str, str], warnings: Iterable[str], cases: Sequence[Case], seconds: float = 0.0) -> str:
    """Return test cases with properties of their suite as JUnit XML.

    The suite has the time of the whole run. All cases are judged at once, so that none has a time of its own.
    """
    suites = Element("testsuites")
    suite = SubElement(suites, "testsuite", name="finc-eval gate", time=f"{seconds:.1f}")
    properties = SubElement(suite, "properties")
    for name, value in [*stated.items(), *(("warning", warning) for warning in warnings)]:
        SubElement(properties, "property", name=name, value=visible(value))
    for given in cases:
        of, name = (one_line(visible(text)) for text in (given.of, given.name))
        case = SubElement(suite, "testcase", classname=of, name=name, time="0")
        if given.tag:
            message = one_line(visible(given.message))
            SubElement(case, given.tag, type=given.kind, message=message).text = message
    suite.set("tests", str(len(cases)))
    for tag, attribute in (("failure", "failures"), ("error", "errors")):
        suite.set(attribute, str(sum(given.tag == tag for given in cases)))
    indent(suites, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def annotation_lines(verdict: Verdict) -> Iterator[str]:
    """Yield the commands that annotate a run, the most urgent limits first; the last one counts the rest."""
    urgent = [
        verdict.sentence_on(limit)
        for limit in verdict.by_urgency
        if limit.verdict in ("regressed", "missing", "undecided")
    ]
    return annotate(urgent, "limits did not hold, see verdict.html")


def annotate(sentences: Sequence[str], rest: str) -> Iterator[str]:
    """Yield the commands that annotate a run with sentences; the last one counts those that are left out."""
    shown = sentences if len(sentences) <= MAX_ANNOTATIONS else sentences[: MAX_ANNOTATIONS - 1]
    for sentence in shown:
        escaped = visible(sentence).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        yield f"::error title=finc-eval gate::{escaped}"
    if len(shown) < len(sentences):
        yield f"::error title=finc-eval gate::{len(sentences) - len(shown)} more {rest}"


def tell_github(verdict: Verdict, environment: Mapping[str, str]) -> None:
    """Tell GitHub Actions a verdict, as `tell_outcome` does."""
    tell_outcome(verdict, verdict.overall, environment)


def tell_outcome(result: Document, verdict: str, environment: Mapping[str, str]) -> None:
    """Append the output `verdict` and the summary to the files that GitHub Actions names; elsewhere do nothing."""
    outputs: dict[str, Callable[[], str]] = {
        "GITHUB_OUTPUT": lambda: f"verdict={verdict}\n",
        "GITHUB_STEP_SUMMARY": result.to_markdown,
    }
    for variable, write in outputs.items():
        if path := environment.get(variable):
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(write())
