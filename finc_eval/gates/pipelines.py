"""Outputs of a verdict for pipelines: JUnit, and the annotations, outputs and summary of GitHub Actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from finc_eval.core.terminal import visible
from finc_eval.core.words import one_line
from finc_eval.gates.verdict import FIRST, Verdict

MAX_ANNOTATIONS = 10  # annotations of one step that GitHub shows


def junit_xml(verdict: Verdict) -> str:
    """Return the verdict as JUnit XML.

    A regression is a failure; what is missing or undecided is an error, as neither passes. Times are 0, so that equal
    verdicts are equal files.
    """
    tags = {"regressed": "failure", "missing": "error", "undecided": "error"}
    counts = {"failure": 0, "error": 0}
    suites = Element("testsuites")
    suite = SubElement(suites, "testsuite", name="finc-eval gate", time="0")
    properties = SubElement(suite, "properties")
    stated = {
        "headline": verdict.headline,
        "verdict": verdict.overall,
        "noise": verdict.noise,
        "family": verdict.family,
    }
    for name, value in {**stated, "signature": str(verdict.signature)}.items():
        SubElement(properties, "property", name=name, value=visible(value))
    for warning in verdict.warnings:
        SubElement(properties, "property", name="warning", value=visible(warning))
    for limit in verdict.limits:
        rule, name = (one_line(visible(text)) for text in (f"gate.{limit.rule}", limit.name))
        case = SubElement(suite, "testcase", classname=rule, name=name, time="0")
        if tag := tags.get(limit.verdict):
            counts[tag] += 1
            message = one_line(visible(limit.sentence))
            SubElement(case, tag, type=limit.verdict, message=message).text = message
    if not verdict.limits:
        case = SubElement(suite, "testcase", classname="gate", name=FIRST if verdict.first else "limits", time="0")
        if not verdict.first:
            counts["error"] += 1
            SubElement(case, "error", type="missing", message="the policy limits nothing")
    suite.set("tests", str(max(len(verdict.limits), 1)))
    for tag, attribute in (("failure", "failures"), ("error", "errors")):
        suite.set(attribute, str(counts[tag]))
    indent(suites, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def annotation_lines(verdict: Verdict) -> Iterator[str]:
    """Yield the commands that annotate a run, the most urgent limits first; the last one counts the rest."""
    urgent = [limit for limit in verdict.by_urgency if limit.verdict in ("regressed", "missing", "undecided")]
    shown = urgent if len(urgent) <= MAX_ANNOTATIONS else urgent[: MAX_ANNOTATIONS - 1]
    for limit in shown:
        escaped = visible(limit.sentence).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        yield f"::error title=finc-eval gate::{escaped}"
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
