"""The page of a course: alarms, the course of each followed thing, pictures of kinds, and which step to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from finc_eval.core.words import join_words, plural
from finc_eval.findings.finding import Finding
from finc_eval.gallery.thumbnails import Thumbnail
from finc_eval.monitoring.course import Course, Followed
from finc_eval.monitoring.fixed.prompts import FixedChange, say_fixed
from finc_eval.monitoring.followed import Alarm, label_of, start_text
from finc_eval.monitoring.pages.charts import UNITS, Curve, MarkedChange, UnitOfThing, chart
from finc_eval.monitoring.steps import step_text
from finc_eval.report import Page
from finc_eval.report.exports.outline import Outline, TextTable
from finc_eval.report.formats import number, printable
from finc_eval.report.pages import Section, render

NAMED, STRIPS = 3, 8  # findings in sentences and ids in a line, and kinds of a page without any that have 7 pictures

HOW = (
    "Each evaluation was compared to the reference and to all evaluations before. An alarm holds at every evaluation: "
    "if nothing had changed, the probability that any alarm were ever raised is at most α, over all followed things "
    "and all evaluations. Evidence is an e-value, adjusted for all followed things; an alarm is raised at 1/α. The "
    "start of a change and its value now have intervals of 95 %. A union of kinds is listed if it has an alarm. What "
    "follows from a cause has no alarm. Distances are between means of random Fourier features, squared and without "
    "bias, so that equal laws have a distance around 0."
)


def says(course: Course) -> dict[str, str]:
    """Return the samples that no alarm judges, the largest finding, which step to keep, the other findings, and why."""
    copies = [finding.text for finding in course.findings if finding.kind == "copy"]
    others = [finding.text for finding in course.findings if finding.kind != "copy"]
    found = {"copies": _sentence(copies)} if copies else {}
    if others:
        found["alarms"] = _sentence(others[:1])
    elif not course.alarms:
        found["alarms"] = f"No alarm in {plural(len(course.steps), 'evaluation')}."
    if course.keep is not None:
        found["keep"] = f"Keep step {step_text(course.keep)}."
    if len(others) > 1:
        more = len(others) - NAMED
        found["further"] = _sentence([*others[1:NAMED], *([plural(more, "further finding")] if more > 0 else [])])
    if course.steps:
        found["why"] = course.why
    if course.fixed is not None and (said := say_fixed(course.fixed)):
        found["fixed"] = said
    return found


def _sentence(clauses: Sequence[str]) -> str:
    words = join_words(clauses)
    return f"{words[:1].upper()}{words[1:]}."


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
        tables=[_alarms(course), _things(course), _distances(course), *_fixed_tables(course)],
        details=[course.needed],
        warnings=course.warnings,
        how=HOW,
    )


def _alarms(course: Course) -> TextTable:
    units = {thing.name: _unit(thing) for thing in course.followed}
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
            "Before": of_alarm(lambda alarm: _write(units, alarm.name, alarm.before)),
            "Now": of_alarm(lambda alarm: _write(units, alarm.name, alarm.after)),
            "Last evaluation": of_alarm(lambda alarm: _write(units, alarm.name, last.get(alarm.name))),
            "What follows from it": lambda finding: join_words(finding.explains) or "–",
            "Samples": lambda finding: ", ".join(finding.ids[:NAMED]) or "–",
        },
        course.findings,
        words=["What has changed", "What follows from it", "Samples"],
        nothing="No alarm was raised.",
        legend=UNITS.format("the reference") if course.findings else "",
    )


def _write(units: Mapping[str, UnitOfThing], name: str, value: float | None) -> str:
    """Write a value of a thing that may not be followed, as samples that are not finite."""
    return units[name].write(value) if name in units else "–" if value is None else number(value)


def _things(course: Course) -> TextTable:
    return TextTable.of(
        "Followed things",
        {
            "What": lambda thing: label_of(thing.name),
            "Reference": lambda thing: _unit(thing).write(thing.reference),
            "First evaluation": lambda thing: _unit(thing).write(thing.values[0] if thing.values else None),
            "Last evaluation": lambda thing: _unit(thing).write(thing.values[-1] if thing.values else None),
            "Evidence": lambda thing: f"{thing.evidence:.2g}",
        },
        sorted(course.followed, key=lambda thing: -thing.evidence),
        legend=f"An alarm is raised at an evidence of {1 / course.alpha:g}. {UNITS.format('the reference')}",
    )


def _fixed_tables(course: Course) -> list[TextTable]:
    """Return the table of changes of fixed prompts, if the course has such prompts."""
    if course.fixed is None:
        return []
    units = {thing.name: _unit(thing) for thing in course.followed}
    moved = f"{course.fixed.moved[-1]:.2f}"
    return [
        TextTable.of(
            "Fixed prompts",
            {
                "What": lambda change: label_of(change.name),
                "Found at step": lambda change: step_text(change.step),
                "What has changed": lambda change: change.text,
                "First evaluation": lambda change: _write(units, change.name, change.first),
                "Last evaluation": lambda change: _write(units, change.name, change.now),
                "Change of a prompt": lambda change: _write_change(units, change),
                "Evidence": lambda change: f"{change.e_value:.2g}",
            },
            course.fixed.changes,
            words=["What has changed"],
            nothing="Nothing has surely changed by more than a fifth of the spread of the reference.",
            legend=f"{plural(len(course.fixed.prompts), 'prompt')} at {plural(len(course.fixed.steps), 'step')}, "
            f"compared pair by pair. On average a picture is now {moved} times as far from its first picture as two "
            "prompts were from each other. A change is from the first evaluation. It counts if it is surely more than "
            f"a fifth of the spread of the reference; any is false with probability {course.alpha:g} at most.",
        )
    ]


def _write_change(units: Mapping[str, UnitOfThing], change: FixedChange) -> str:
    return units[change.name].write_range(change.interval, change.first) if change.name in units else "–"


def _distances(course: Course) -> TextTable:
    rows = zip(course.steps, course.samples, course.to_reference, course.to_first, course.to_previous, strict=True)
    columns = ["Step", "Samples", "To the reference", "To the first evaluation", "To the evaluation before"]
    table = [[step_text(step), f"{n:,}", *map(number, distances)] for step, n, *distances in rows]
    return TextTable("Distances in φ", columns, table)


def page(course: Course, _: Mapping[str, Any]) -> str:
    """Return the page."""
    said = outline(course)
    alarmed = {alarm.name for alarm in _alarms_said(course).values()}
    first = [thing for thing in course.followed if thing.name in alarmed]
    rest = [thing for thing in course.followed if thing.name not in alarmed]
    alarms, things, distances, *fixed = said.tables
    sections = [
        Section("alarms", alarms.title, table=alarms, figure=Markup("").join(_draw(course, thing) for thing in first)),
        *(_fixed(course, fixed[0]) if fixed else []),
        *_strips(course),
        Section("things", things.title, table=things, texts=said.details, parts=_folded(course, rest)),
        Section("distances", distances.title, table=distances),
    ]
    return render(course, said, sections=sections)


def _folded(course: Course, rest: Sequence[Followed]) -> list[Section]:
    drawn = Markup("").join(_draw(course, thing) for thing in rest if course.steps)
    return [Section("courses", "Courses of things without an alarm", figure=drawn)] if drawn else []


def _draw(course: Course, thing: Followed) -> Markup:
    """Draw the course of a thing with its reference, and since when it has changed."""
    alarm = next((alarm for alarm in _alarms_said(course).values() if alarm.name == thing.name), None)
    change = None if alarm is None else MarkedChange(alarm.since, alarm.began, alarm.text)
    label = label_of(thing.name)
    return chart(
        label, course.steps, [Curve("gen", label, thing.values)], _unit(thing), level=thing.reference, change=change
    )


def _unit(thing: Followed) -> UnitOfThing:
    return UnitOfThing(thing.name, thing.reference, thing.spread)


def _strips(course: Course) -> list[Section]:
    """Return the pictures of each kind by step: of the kinds with an alarm, or else of eight."""
    pictures = dict(sorted(course.pictures.items()))
    names = list(dict.fromkeys(name for found in pictures.values() for name in found))
    alarmed = {alarm.name for alarm in _alarms_said(course).values()}
    chosen = [name for name in names if name in alarmed] or names[:STRIPS]
    if not chosen:
        return []
    view = _pictures_by_step(pictures, {name: label_of(name) for name in chosen})
    return [Section("strips", "A sample of each kind by step", view=view, legend="–: no sample of this kind.")]


def _fixed(course: Course, table: TextTable) -> list[Section]:
    """Return the pictures of fixed prompts, how far they have moved, and what has changed in them."""
    fixed = course.fixed
    if fixed is None:
        return []
    shown = dict(sorted(fixed.pictures.items()))
    names = list(dict.fromkeys(name for found in shown.values() for name in found))
    view = _pictures_by_step(shown, {name: name for name in names}) if names else ""
    parts = [Section("fixed-pictures", "Pictures of fixed prompts by step", view=view, is_open=True)] if names else []
    return [Section("fixed", table.title, table.legend, table=table, parts=parts)]


def _pictures_by_step(pictures: Mapping[float, Mapping[str, Thumbnail]], labels: Mapping[str, str]) -> Markup:
    """Return a table of pictures: a row for each thing with a label, and a column for each step."""
    head = Markup("<tr><th></th>{}</tr>").format(
        Markup("").join(Markup("<th>step {}</th>").format(step_text(step)) for step in pictures)
    )
    cell = Markup('<td><img src="{}" width="{}" height="{}" alt="{}"></td>')
    rows = [
        Markup("<tr><th>{}</th>{}</tr>").format(
            printable(label),
            Markup("").join(
                Markup("<td>–</td>")
                if (picture := found.get(name)) is None
                else cell.format(
                    picture.uri, picture.width, picture.height, printable(f"{label} at step {step_text(step)}")
                )
                for step, found in pictures.items()
            ),
        )
        for name, label in labels.items()
    ]
    table = Markup('<table class="strips">{}{}</table>').format(head, Markup("").join(rows))
    return Markup('<div class="scroll" tabindex="0" role="group" aria-label="Pictures by step">{}</div>').format(table)


PAGE = Page(says, outline, page)
