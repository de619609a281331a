"""The page of a course: alarms, the course of each followed thing, pictures of kinds, and which step to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from finc_eval.core.words import join_words, plural
from finc_eval.findings.finding import Finding
from finc_eval.monitoring.course import Course, Followed
from finc_eval.monitoring.followed import Alarm, start_text
from finc_eval.monitoring.steps import step_text
from finc_eval.report import Page
from finc_eval.report.drawings import Axis, drawing, line, mark, text
from finc_eval.report.exports.outline import Outline, TextTable
from finc_eval.report.formats import number, printable
from finc_eval.report.pages import Section, render

NAMED, STRIPS = (
    3,
    8,
)  # findings in the first sentence and ids in a line, and kinds of a page without any that have 7 pictures
WIDTH, HEIGHT, LEFT, EDGE = 520, 110, 60, 22  # pixels of a drawing, and around it

HOW = (
    "Each evaluation was compared to the reference and to all evaluations before. An alarm holds at every evaluation: "
    "if nothing had changed, the probability that any alarm were ever raised is at most α, over all followed things "
    "and all evaluations. Evidence is an e-value, adjusted for all followed things; an alarm is raised at 1/α. The "
    "start of a change and its value now have intervals of 95 %. A union of kinds is listed if it has an alarm. What "
    "follows from a cause has no alarm. Distances are between means of random Fourier features, squared and without "
    "bias, so that equal laws have a distance around 0."
)


def says(course: Course) -> dict[str, str]:
    """Return the samples that no alarm judges, the alarms, and which step to keep."""
    copies = [finding.text for finding in course.findings if finding.kind == "copy"]
    found = {"copies": _sentence(copies)} if copies else {}
    if alarms := _say_findings(course):
        found["alarms"] = alarms
    if course.steps:
        found["keep"] = course.why if course.keep is None else f"Keep step {step_text(course.keep)}. {course.why}"
    return found


def _sentence(clauses: Sequence[str]) -> str:
    words = join_words(clauses)
    return f"{words[:1].upper()}{words[1:]}."


def _say_findings(course: Course) -> str:
    found = [finding.text for finding in course.findings if finding.kind != "copy"]
    if not found and not course.alarms:
        return f"No alarm in {plural(len(course.steps), 'evaluation')}."
    if not found:  # an alarm of copies is said
        return ""
    more = len(found) - NAMED
    return _sentence([*found[:NAMED], *([plural(more, "further finding")] if more > 0 else [])])


def _alarms_said(course: Course) -> dict[str, Alarm]:
    """Return the alarm of each finding, by the name of the finding."""
    said = {finding.name for finding in course.findings}
    return {alarm.finding: alarm for alarm in course.alarms if alarm.finding in said}


def outline(course: Course) -> Outline:
    """Return what a course says in all outputs."""
    return Outline(
        kind="course of a training",
        title="Monitor",
        says=says(course),
        sets={f"step {step_text(step)}": n for step, n in [*zip(course.steps, course.samples, strict=True)][-1:]},
        signatures=[],
        call="fe.Monitor(reference).update(step, samples)",
        tables=[_alarms(course), _things(course), _distances(course)],
        details=[course.needed],
        warnings=course.warnings,
        how=HOW,
    )


def _alarms(course: Course) -> TextTable:
    last = {thing.name: thing.values[-1] for thing in course.followed if thing.values}
    alarms = _alarms_said(course)

    def of_alarm(write: Callable[[Alarm], str]) -> Callable[[Finding], str]:
        return lambda finding: write(alarms[finding.name]) if finding.name in alarms else "–"

    return TextTable.of(
        "Alarms",
        {
            "What": lambda finding: finding.name,
            "Raised at step": of_alarm(lambda alarm: step_text(alarm.step)),
            "Since step": of_alarm(lambda alarm: start_text(alarm.since, alarm.began)),
            "What has changed": lambda finding: finding.text,
            "Before": of_alarm(lambda alarm: number(alarm.before)),
            "Now": of_alarm(lambda alarm: number(alarm.after)),
            "Last evaluation": of_alarm(lambda alarm: _value(last.get(alarm.name))),
            "What follows from it": lambda finding: join_words(finding.explains) or "–",
            "Samples": lambda finding: ", ".join(finding.ids[:NAMED]) or "–",
        },
        course.findings,
        words=["What has changed", "What follows from it", "Samples"],
        nothing="No alarm was raised.",
    )


def _things(course: Course) -> TextTable:
    return TextTable.of(
        "Followed things",
        {
            "What": lambda thing: thing.name,
            "Reference": lambda thing: _value(thing.reference),
            "First evaluation": lambda thing: _value(thing.values[0] if thing.values else None),
            "Last evaluation": lambda thing: _value(thing.values[-1] if thing.values else None),
            "Evidence": lambda thing: f"{thing.evidence:.2g}",
        },
        sorted(course.followed, key=lambda thing: -thing.evidence),
        legend=f"An alarm is raised at an evidence of {1 / course.alpha:g}. Shares are parts of 1.",
    )


def _distances(course: Course) -> TextTable:
    rows = zip(course.steps, course.samples, course.to_reference, course.to_first, course.to_previous, strict=True)
    columns = ["Step", "Samples", "To the reference", "To the first evaluation", "To the evaluation before"]
    table = [[step_text(step), f"{n:,}", *map(number, distances)] for step, n, *distances in rows]
    return TextTable("Distances in φ", columns, table)


def _value(value: float | None) -> str:
    return "–" if value is None else number(value)


def page(course: Course, _: Mapping[str, Any]) -> str:
    """Return the page."""
    said = outline(course)
    alarmed = {alarm.name for alarm in _alarms_said(course).values()}
    first = [thing for thing in course.followed if thing.name in alarmed]
    rest = [thing for thing in course.followed if thing.name not in alarmed]
    alarms, things, distances = said.tables
    sections = [
        Section("alarms", alarms.title, table=alarms, figure=Markup("").join(_draw(course, thing) for thing in first)),
        *_strips(course),
        Section("things", things.title, table=things, texts=said.details, parts=_folded(course, rest)),
        Section("distances", distances.title, table=distances),
    ]
    return render(course, said, sections=sections)


def _folded(course: Course, rest: Sequence[Followed]) -> list[Section]:
    drawn = Markup("").join(_draw(course, thing) for thing in rest if course.steps)
    return [Section("courses", "Courses of things without an alarm", figure=drawn)] if drawn else []


def _draw(course: Course, thing: Followed) -> Markup:
    """Draw the course of a thing with its reference, and a mark at its alarm."""
    known = [(step, value) for step, value in zip(course.steps, thing.values, strict=True) if value is not None]
    ends = [value for _, value in known] + ([] if thing.reference is None else [thing.reference])
    if not known:
        return Markup("")
    across = Axis(min(course.steps), max(course.steps), LEFT, WIDTH - EDGE)
    up = Axis(min(ends), max(ends), HEIGHT - EDGE, EDGE)
    parts = [line([(across.at(step), up.at(value)) for step, value in known], "gen", width=1.5)]
    if thing.reference is not None:
        parts.append(
            line([(LEFT, up.at(thing.reference)), (WIDTH - EDGE, up.at(thing.reference))], "ref", dashes="4 3")
        )
    for alarm in _alarms_said(course).values():
        if alarm.name == thing.name:
            value = dict(known).get(alarm.step, ends[-1])
            parts.append(mark("gen", (across.at(alarm.step), up.at(value)), alarm.text))
    parts += [text((LEFT - 4, up.at(value) + 4), number(value), anchor="end") for value in {min(ends), max(ends)}]
    parts += [
        text((across.at(step), HEIGHT - 6), step_text(step)) for step in sorted({course.steps[0], course.steps[-1]})
    ]
    parts.append(text((LEFT, 14), thing.name, anchor="start"))
    ends_of_it = [f"{number(value)} at step {step_text(step)}" for step, value in (known[0], known[-1])]
    description = f"From {' to '.join(ends_of_it)}"
    return drawing(f"Course of {thing.name}", description, (WIDTH, HEIGHT), parts)


def _strips(course: Course) -> list[Section]:
    """Return the pictures of each kind by step: of the kinds with an alarm, or else of eight."""
    pictures = dict(sorted(course.pictures.items()))
    names = list(dict.fromkeys(name for found in pictures.values() for name in found))
    alarmed = {alarm.name for alarm in _alarms_said(course).values()}
    chosen = [name for name in names if name in alarmed] or names[:STRIPS]
    if not chosen:
        return []
    head = Markup("<tr><th></th>{}</tr>").format(
        Markup("").join(Markup("<th>step {}</th>").format(step_text(step)) for step in pictures)
    )
    cell = Markup('<td><img src="{}" width="{}" height="{}" alt="{}"></td>')
    rows = [
        Markup("<tr><th>{}</th>{}</tr>").format(
            printable(name),
            Markup("").join(
                Markup("<td>–</td>")
                if (picture := found.get(name)) is None
                else cell.format(
                    picture.uri, picture.width, picture.height, printable(f"{name} at step {step_text(step)}")
                )
                for step, found in pictures.items()
            ),
        )
        for name in chosen
    ]
    view = Markup("<table>{}{}</table>").format(head, Markup("").join(rows))
    return [Section("strips", "A sample of each kind by step", view=view, legend="–: no sample of this kind.")]


PAGE = Page(says, outline, page)
