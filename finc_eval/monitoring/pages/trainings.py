"""The page of two trainings side by side: what differs, since when, and the curves of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from finc_eval.core.words import join_words, plural
from finc_eval.findings.finding import Finding
from finc_eval.monitoring.followed import label_of, start_text
from finc_eval.monitoring.pages.charts import UNITS, Curve, MarkedChange, UnitOfThing, chart
from finc_eval.monitoring.steps import step_text
from finc_eval.monitoring.trainings.result import FollowedByBoth, TrainingDifference, Trainings
from finc_eval.report import Page
from finc_eval.report.colors import COLOR_NAMES, Ink
from finc_eval.report.exports.outline import Outline, TextTable
from finc_eval.report.formats import number, p_value
from finc_eval.report.pages import Section, render

NAMED = 3  # differences in the first sentences, and ids in a cell
INKS: tuple[Ink, Ink] = ("gen", "ref")  # colors of the first and of the second training

HOW = (
    "At each step that both trainings have, the samples of the first are compared to those of the second. If both "
    "have one law, they are a random part of the samples of both, so the score of a step is standard normal, and "
    "independent of all other steps. What both have in common, such as a drift of both, is not a difference. The "
    "p-value of a thing is over all steps, from any of which it may differ, at once or slowly; Holm's correction makes "
    "all followed things one family. The start of a difference and its size at the last step have intervals of 95 %. "
    "What follows from a cause is listed in its row. A union of kinds is listed if it differs."
)


def says(result: Trainings) -> dict[str, str]:
    """Return the largest difference and since when, and the further ones; or that none was found."""
    first, second = result.names
    texts = [finding.text for finding in result.findings]
    if not texts:
        steps = plural(len(result.steps), "step")
        return {"differences": f"{first} and {second} do not differ in {steps}, in all that is followed."}
    found = {"differences": f"{first} and {second} differ: {texts[0]}."}
    if len(texts) > 1:
        more = len(texts) - NAMED
        rest = [*texts[1:NAMED], *([plural(more, "further difference")] if more > 0 else [])]
        found["further"] = f"Also {join_words(rest)}."
    return found


def outline(result: Trainings) -> Outline:
    """Return what two trainings say in all outputs."""
    return Outline(
        kind="two trainings",
        title=" and ".join(result.names),
        says=says(result),
        sets={name: sum(counts) for name, counts in zip(result.names, result.samples, strict=True)},
        signatures=[],
        call="fe.compare_trainings({…}, reference)",
        tables=[_differences(result), _things(result), _steps(result)],
        warnings=result.warnings,
        how=HOW,
    )


def _differences(result: Trainings) -> TextTable:
    units = _units(result)
    by_text = {difference.text: difference for difference in result.differences}
    first, second = result.names

    def of_difference(write: Callable[[TrainingDifference], str]) -> Callable[[Finding], str]:
        return lambda finding: write(by_text[finding.text]) if finding.text in by_text else "–"

    return TextTable.of(
        "Differences",
        {
            "What": lambda finding: finding.name,
            "Since step": of_difference(lambda found: start_text(found.since, found.since_interval)),
            "What differs": lambda finding: finding.text,
            first: of_difference(lambda found: units[found.name].write(found.first)),
            second: of_difference(lambda found: units[found.name].write(found.second)),
            "Difference": of_difference(lambda found: units[found.name].write_range(found.interval, found.second)),
            "p-value": of_difference(lambda found: p_value(found.p_value)),
            "What follows from it": lambda finding: join_words(finding.explains) or "–",
            "Samples": lambda finding: ", ".join(finding.ids[:NAMED]) or "–",
        },
        result.findings,
        words=["What differs", "What follows from it", "Samples"],
        nothing="No difference was found.",
        legend=f"{UNITS.format(f'{second} at the first step')} The difference is from {second} at the last step."
        if result.findings
        else "",
    )


def _things(result: Trainings) -> TextTable:
    units = _units(result)
    columns = {
        f"{name}, {when} step": (number, place)
        for number, name in enumerate(result.names)
        for when, place in (("first", 0), ("last", -1))
    }
    return TextTable.of(
        "Followed things",
        {"What": lambda thing: label_of(thing.name)}
        | {
            title: lambda thing, number=number, place=place: units[thing.name].write(_values(thing)[number][place])
            for title, (number, place) in columns.items()
        }
        | {"p-value": lambda thing: p_value(thing.p_value)},
        sorted(result.followed, key=lambda thing: thing.p_value),
        legend=UNITS.format(f"{result.names[1]} at the first step"),
    )


def _values(thing: FollowedByBoth) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    return thing.first, thing.second


def _steps(result: Trainings) -> TextTable:
    rows = [
        [step_text(step), *(f"{count:,}" for count in own), number(apart)]
        for step, *own, apart in zip(result.steps, *result.samples, result.apart, strict=True)
    ]
    titles = [f"Samples of {name}" for name in result.names]
    return TextTable("Steps that both have", ["Step", *titles, "Distance in φ between both"], rows)


def _units(result: Trainings) -> dict[str, UnitOfThing]:
    """Return the unit of each thing; scores are measured from the second training at its first step."""
    known = {thing.name: UnitOfThing(thing.name, thing.second[0], thing.spread) for thing in result.followed}
    return {difference.name: UnitOfThing(difference.name, None, None) for difference in result.differences} | known


def page(result: Trainings, _: Mapping[str, Any]) -> str:
    """Return the page."""
    said = outline(result)
    texts = {finding.text for finding in result.findings}
    shown = {difference.name: difference for difference in result.differences if difference.text in texts}
    first = sorted(
        (thing for thing in result.followed if thing.name in shown), key=lambda thing: [*shown].index(thing.name)
    )
    rest = [thing for thing in result.followed if thing.name not in shown]
    differences, things, steps = said.tables
    colors = " and ".join(f"{COLOR_NAMES[ink]}: {name}" for ink, name in zip(INKS, result.names, strict=True))
    drawn, folded = (
        Markup("").join(_draw(result, thing, shown.get(thing.name)) for thing in some) for some in (first, rest)
    )
    parts = [Section("courses", "Courses without a difference", colors, figure=folded)] if folded else []
    return render(
        result,
        said,
        sections=[
            Section("differences", differences.title, f"{colors}." if drawn else "", table=differences, figure=drawn),
            Section("things", things.title, table=things, parts=parts),
            Section("steps", steps.title, table=steps),
        ],
        colors=dict(zip(result.names, INKS, strict=True)),
    )


def _draw(result: Trainings, thing: FollowedByBoth, difference: TrainingDifference | None) -> Markup:
    """Draw the courses of a thing in both trainings, and since when they differ."""
    change = None
    if difference is not None:
        change = MarkedChange(difference.since, difference.since_interval, difference.text)
    curves = [Curve(ink, name, values) for ink, name, values in zip(INKS, result.names, _values(thing), strict=True)]
    return chart(label_of(thing.name), result.steps, curves, _units(result)[thing.name], change=change)


PAGE = Page(says, outline, page)
