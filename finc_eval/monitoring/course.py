"""`Course`: the result of a monitor: followed things by step, alarms, and which step to keep."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import check_fraction
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import NOT_IN_JSON, Record
from finc_eval.core.serialize import SIGNIFICANT, Document
from finc_eval.core.words import join_words, plural
from finc_eval.findings.finding import Finding
from finc_eval.gallery.thumbnails import Thumbnail
from finc_eval.monitoring.evaluations import Evaluations
from finc_eval.monitoring.exchange import Array
from finc_eval.monitoring.fixed.prompts import FixedCourse
from finc_eval.monitoring.followed import COPIED, DIVERSITY, REPEATS, WITHIN_PROMPTS, Alarm, CopiesAtStep
from finc_eval.monitoring.steps import step_text
from finc_eval.numerics.families import closed_e_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = 6  # courses without an alarm that are drawn, if there is none with: a page of a paper has room for six
SIZE = 6.0, 1.5  # inches of a course: six of them fill a page of 9 inches
COLLAPSING = (DIVERSITY, WITHIN_PROMPTS)  # less of these is a collapse
WORTHLESS = {REPEATS: "its samples repeat", COPIED: "it copies"}  # things that no step to keep has more of than before
DISTANCES = (
    "distance in φ to the reference",
    "distance in φ to the first evaluation",
    "distance in φ to the evaluation before",
)


@dataclass(frozen=True)
class Followed(Record):
    """A followed thing: its course over the evaluations.

    Attributes:
        name: name, such as "saturation".
        reference: its share or mean in the reference; None without samples of it.
        values: its share or mean in each evaluation; None without samples of it.
        evidence: e-value of "it has changed", adjusted for all followed things: an alarm is one of at least 1/α.
        spread: standard deviation of a score in the reference; None of a share, and of a result of an earlier version.
    """

    name: str
    reference: float | None
    values: tuple[float | None, ...]
    evidence: float
    spread: float | None = None


@dataclass(frozen=True, eq=False)
class Course(Document):
    """Course of a training, as a monitor has seen it so far.

    Attributes:
        steps: step of each evaluation.
        samples: number of samples of each evaluation.
        followed: all followed things that have samples.
        alarms: the alarms; any of them is false with probability `alpha` at most, over all evaluations.
        to_reference: squared distance of each evaluation to the reference, between the means of φ, without bias.
        to_first: the same to the first evaluation.
        to_previous: the same to the evaluation before; of the first evaluation 0.
        keep: step to keep; None without an evaluation.
        why: why this step.
        needed: what evaluations of this size can find.
        alpha: probability of any false alarm.
        warnings: what to know before trusting the alarms.
        copies: samples that are also in the reference, by step; they are left out, and no alarm judges them.
        findings: what the alarms are on, each cause once, and copies of the reference; all outputs say these.
        fixed: pictures of fixed prompts over the evaluations; None without such pictures.
        pictures: thumbnails of each kind by step.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> rng = np.random.default_rng(0)
        >>> monitor = fe.Monitor(rng.normal(size=(200, 4)))
        >>> _ = monitor.update(0, rng.normal(size=(64, 4)))
        >>> monitor.result.steps, monitor.result.keep
        ((0.0,), 0.0)
    """

    type_name: ClassVar[str] = "course"
    page: ClassVar[str] = "finc_eval.monitoring.pages.course"

    steps: tuple[float, ...]
    samples: tuple[int, ...]
    followed: tuple[Followed, ...]
    alarms: tuple[Alarm, ...]
    to_reference: tuple[float, ...]
    to_first: tuple[float, ...]
    to_previous: tuple[float, ...]
    keep: float | None
    why: str
    needed: str
    alpha: float
    warnings: tuple[str, ...]
    copies: tuple[CopiesAtStep, ...] = field(default=(), kw_only=True)
    findings: tuple[Finding, ...] = field(default=(), kw_only=True)
    fixed: FixedCourse | None = field(default=None, kw_only=True)
    pictures: Annotated[dict[float, dict[str, Thumbnail]], *NOT_IN_JSON] = field(
        default_factory=dict, kw_only=True, repr=False
    )

    def figure(self, alpha: float = SIGNIFICANT) -> Figure:
        """Draw the courses of the things that have an alarm, or else of those with the most evidence.

        Args:
            alpha: probability of any false alarm; alarms were raised with that of the monitor.
        """
        check_fraction("alpha", alpha)
        alarms = {alarm.name: alarm.step for alarm in self.alarms}
        courses = [
            Drawable(thing.name, thing.values, thing.reference, alarms.get(thing.name))
            for thing in sorted(self.followed, key=lambda thing: -thing.evidence)
        ]
        return draw_courses(self.steps, [course for course in courses if course.alarm is not None] or courses[:DRAWN])

    def _frame_rows(self) -> list[dict[str, Any]]:
        distances = zip(DISTANCES, (self.to_reference, self.to_first, self.to_previous), strict=True)
        courses = [(thing.name, thing.reference, thing.values) for thing in self.followed]
        return [
            {"name": name, "step": step, "samples": n, "value": value, "reference": reference}
            for name, reference, values in [*courses, *((name, None, values) for name, values in distances)]
            for step, n, value in zip(self.steps, self.samples, values, strict=True)
        ]

    def _summary(self) -> str:
        names = "".join(
            f": {finding.name}" if place == 0 else f", {finding.name}" for place, finding in enumerate(self.findings)
        )
        return f"{plural(len(self.steps), 'evaluation')}, {plural(len(self.alarms), 'alarm')}{names}"


def course_of(
    history: Evaluations,
    spreads: Mapping[str, float | None],
    alarms: Sequence[Alarm],
    findings: Sequence[Finding],
    pictures: dict[float, dict[str, Thumbnail]],
    noise: float,
    needed: str,
    alpha: float,
    warnings: Sequence[str],
    copies: Sequence[CopiesAtStep],
    unions: Collection[str] = (),
    fixed: FixedCourse | None = None,
) -> Course:
    """Return the course of a history.

    `spreads` are of all followed things, by name: see `Followed`. `noise` is the squared norm of the covariance of φ in
    the reference. Kinds that are `unions` of others are left out unless they have an alarm.
    """
    names = [*spreads]
    places, alarmed = np.flatnonzero(history.is_followed), {alarm.name for alarm in alarms}
    evidence = np.exp(closed_e_values(history.evidence()[places]))
    means, (reference, _) = history.means(), history.before_and_after(0)
    keep, why = choose_step(history, names, alarms, copies, noise)
    distances: list[list[float]] = history.distances.T.tolist()
    return Course(
        tuple(history.steps.tolist()),
        tuple(map(int, history.samples.tolist())),
        tuple(
            Followed(
                names[place],
                _number(reference[place]),
                tuple(map(_number, means[:, place])),
                float(evidence[order]),
                spreads[names[place]],
            )
            for order, place in enumerate(places.tolist())
            if names[place] not in unions or names[place] in alarmed
        ),
        tuple(alarms),
        to_reference=tuple(distances[0]),
        to_first=tuple(distances[1]),
        to_previous=tuple(distances[2]),
        keep=keep,
        why=why,
        needed=needed,
        alpha=alpha,
        warnings=tuple(warnings),
        copies=tuple(copies),
        findings=tuple(findings),
        fixed=fixed,
        pictures=pictures,
        provenance=Provenance.here("cpu"),
    )


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def choose_step(
    history: Evaluations, names: Sequence[str], alarms: Sequence[Alarm], copies: Sequence[CopiesAtStep], noise: float
) -> tuple[float | None, str]:
    """Return the step to keep, and why: before any change may have begun, nearest to the reference, and late.

    If changes hold from the first evaluation on, the distance decides alone, and the first of the nearest is kept. A
    step that copies, repeats or has collapsed is never kept.

    Args:
        history: all evaluations.
        names: names of all followed things.
        alarms: the alarms.
        copies: samples of evaluations that are also in the reference.
        noise: squared norm of the covariance of φ in the reference.
    """
    if not history.count:
        return None, "There was no evaluation yet."
    is_sound, why_not = _sound(history, names, alarms, copies)
    if not is_sound.any():
        return None, f"No step is to be kept: {why_not}."
    first = min((alarm.began[0] for alarm in alarms), default=np.inf)
    is_early = (history.steps < first) & is_sound
    places = np.flatnonzero(is_early if is_early.any() else is_sound)
    distance: Array = history.distances[places, 0]
    error = np.sqrt(2 * noise) * (1 / history.samples[places] + 1 / history.phi[0, -1])
    near = places[distance <= distance.min() + 2 * error]
    nearest = "of the steps nearest to the reference, within the error of the distance."
    but = f" Not kept: {why_not}." if why_not else ""
    if not is_early.any():
        why = f"Alarms may hold from the first evaluation on, so no step is free of them. It is the first {nearest}"
        return float(history.steps[near[0]]), why + but
    if np.isinf(first):
        return float(history.steps[near[-1]]), f"No alarm was raised. It is the latest {nearest}{but}"
    before = f"It is before step {step_text(first)}, from which on the first alarm may hold"
    return float(history.steps[near[-1]]), f"{before}, and it is the latest {nearest}{but}"


def _sound(
    history: Evaluations, names: Sequence[str], alarms: Sequence[Alarm], copies: Sequence[CopiesAtStep]
) -> tuple[NDArray[np.bool_], str]:
    """Mark evaluations that neither copy nor repeat nor have collapsed, (t,), and say of the others why not."""
    is_sound, why = np.ones(history.count, bool), []
    for alarm in alarms:
        first, is_more = alarm.began[0], alarm.after > alarm.before
        is_from_first = first <= history.steps[0]
        if alarm.name in COLLAPSING and not is_more and not is_from_first:  # else it was never as diverse
            is_sound &= history.steps < first
            why.append(f"from step {step_text(first)} on it collapses")
        elif alarm.name == REPEATS and is_more and is_from_first:  # which evaluations show it
            repeats = history.means()[:, names.index(REPEATS)] > alarm.before
            is_sound &= ~repeats
            why.append(f"at {plural(int(repeats.sum()), 'step')} its samples repeat")
        elif alarm.name in WORTHLESS and is_more:
            is_sound &= history.steps < first
            why.append(f"from step {step_text(first)} on {WORTHLESS[alarm.name]}")
    with_copies = np.isin(history.steps, [one.step for one in copies]) & is_sound
    if with_copies.any():  # beside those that are not kept anyway
        is_sound &= ~with_copies
        why.append(f"at {plural(int(with_copies.sum()), 'step')} it has copies of the reference")
    return is_sound, join_words(why)


class Drawable(NamedTuple):
    """A course to draw: its name, its values by step, the value of the reference, and the step of its alarm."""

    name: str
    values: Sequence[float | None]
    reference: float | None
    alarm: float | None


def draw_courses(steps: Sequence[float], courses: Sequence[Drawable]) -> Figure:
    """Draw courses below each other, at least one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(SIZE[0], SIZE[1] * len(courses)), layout="constrained")
    for axes, course in zip(figure.subplots(len(courses), squeeze=False, sharex=True).flat, courses, strict=True):
        axes.plot(steps, np.array(course.values, np.float64), marker=".")
        if course.reference is not None:
            axes.axhline(course.reference, linestyle="--", color="gray")
        if course.alarm is not None:
            axes.axvline(course.alarm, color="red")
        axes.set_title(course.name, fontsize="small", parse_math=False)
    axes.set_xlabel("Step")
    return figure
