"""JUnit XML of a verdict, one test case per limit, for CI servers."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from finc_eval.core.terminal import visible
from finc_eval.gates.verdict import FIRST, Limit, Verdict


def junit_xml(verdict: Verdict) -> str:
    """Return the verdict as JUnit XML.

    A regression is a failure, what is missing an error. What is undecided is an error or, if the policy says "warn",
    skipped. Times are 0, so that equal verdicts are equal files.
    """
    counts = {"failure": 0, "error": 0, "skipped": 0}
    suites = Element("testsuites")
    suite = SubElement(suites, "testsuite", name="finc-eval gate", time="0")
    properties = SubElement(suite, "properties")
    stated = {"verdict": verdict.overall, "noise": verdict.noise, "family": verdict.family}
    for name, value in {**stated, "signature": str(verdict.signature)}.items():
        SubElement(properties, "property", name=name, value=visible(value))
    for warning in verdict.warnings:
        SubElement(properties, "property", name="warning", value=visible(warning))
    for limit in verdict.limits:
        case = SubElement(suite, "testcase", classname=f"gate.{limit.rule}", name=visible(limit.name), time="0")
        tag = _tag(limit, verdict.policy.undecided == "warn")
        if tag is not None:
            counts[tag] += 1
            message = visible(limit.sentence)
            SubElement(case, tag, type=limit.verdict, message=message).text = message
    if not verdict.limits:
        case = SubElement(suite, "testcase", classname="gate", name=FIRST if verdict.first else "limits", time="0")
        if not verdict.first:
            counts["error"] += 1
            SubElement(case, "error", type="missing", message="the policy limits nothing")
    suite.set("tests", str(max(len(verdict.limits), 1)))
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(counts[tag]))
    indent(suites, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _tag(limit: Limit, warn: bool) -> str | None:
    """Return the element that says how a limit ended; None for one that held."""
    if limit.verdict == "undecided":
        return "skipped" if warn else "error"
    return {"regressed": "failure", "missing": "error"}.get(limit.verdict)
