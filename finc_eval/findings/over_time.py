"""Tests of two sets of clips over time: looks that drift, freezes and loops, which one set has more often.

All looks at all times, freezes and loops are one family: a p-value is the part of exchanges of clips whose largest |z|
over all columns is as large (Westfall and Young 1993). The family has the level `BESIDE_ALPHA`, as looks have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.embeddings.base import Embeddings
from finc_eval.findings.aligned import EVENTS, INSTANTS, LOOPING, PARTS_OF_TIME, Courses, align_courses
from finc_eval.findings.causes import Held
from finc_eval.findings.finding import FREEZES, FROZEN, Finding
from finc_eval.naming.evidence import MOST
from finc_eval.naming.explained import OTHER, STRONG, Explained, Has, threshold_of
from finc_eval.naming.looks import EXAMPLES
from finc_eval.naming.measured import LookColumn, Measured, MeasuredSets, columns_of, exchange_columns
from finc_eval.naming.traits import COURSE, LOOKS_OF_CLIPS, TRAITS, Trait
from finc_eval.numerics.courses import find_bend
from finc_eval.numerics.families import step_down
from finc_eval.numerics.inference import BESIDE_ALPHA

Array = NDArray[np.float64]

EXCHANGED_CLIPS = 999
"""Random exchanges behind a p-value, as of looks: the smallest is .001, a twelfth of `BESIDE_ALPHA`."""

RESAMPLED_CLIPS, RESAMPLED_PART = 400, 0.98
"""Resamples of clips behind the interval of a first frame, and the middle part of them that it has. With .95, it held
the frame in 83 to 97 of 100 planted drifts; the record `clip_drift` of the benchmarks has how often it holds."""

DRIFTS = {
    "brightness": ("with falling brightness", "with rising brightness"),
    "contrast": ("with falling contrast", "with rising contrast"),
    "saturation": ("with falling saturation", "with rising saturation"),
    "warmth": ("turning bluer", "turning redder"),
    "green": ("turning more purple", "turning greener"),
    "speed": ("with falling motion", "with rising motion"),
}
"""Names of clips in which a trait of `COURSE` falls, and rises."""

BLACK = 4 / 255  # brightness of a frame up to which nobody sees a picture

OF_MOTION = tuple(trait.name for trait in LOOKS_OF_CLIPS)  # looks that follow from freezes, loops and changes of speed

_TRAITS = {trait.name: trait for trait in (*TRAITS, Trait("speed", None, None, brings=OF_MOTION))}
_OF_EVENTS = [Trait(event, None, event, least=0.5, brings=OF_MOTION) for event in EVENTS]
_OF_LOOKS = [_TRAITS[name] for _ in range(1, PARTS_OF_TIME) for name in COURSE]
COLUMNS = [*_OF_EVENTS, *_OF_LOOKS]  # traits of the columns of `Courses.table`


@dataclass(frozen=True, eq=False)
class _TestedClips:
    """Clips of both sets, and the test of their columns.

    Attributes:
        sets: embeddings, by label.
        courses: clips, by label.
        columns: columns of the family.
        p_values: their adjusted p-values, (q,).
        z: |z| among the clips in which no event was found, (q,).
        critical: |z| that is exceeded in a part `BESIDE_ALPHA` of the exchanges.
        seed: random seed of resamples.
        looked: number of the samples looked at, by label.
    """

    sets: Mapping[str, Embeddings]
    courses: Mapping[str, Courses]
    columns: Sequence[LookColumn]
    p_values: Array
    z: Array
    critical: float
    seed: int
    looked: Mapping[str, int]

    def p_value(self, place: int) -> float:
        """Return the least p-value of a trait, by its place in `COLUMNS`; 1 for a constant one."""
        known = zip(self.columns, self.p_values, strict=True)
        return float(min((p for column, p in known if column.place == place), default=1.0))


def find_drifts(
    sets: Mapping[str, Embeddings],
    measured: MeasuredSets,
    seed: int,
    blocks: Mapping[str, NDArray[np.int64]] | None = None,
    exchanges: int = EXCHANGED_CLIPS,
) -> list[Held]:
    """Return what clips of two sets do over time unlike each other, as findings with their samples.

    Freezes and loops come first: clips with these are left out where looks are explained. A look that follows from a
    clearer one is left out: what gets brighter gets paler.

    Args:
        sets: embeddings, "gen" and "ref".
        measured: what `measure_sets` returns for these sets; nothing is found without whole clips.
        seed: random seed of the exchanges and resamples.
        blocks: block of each sample of paired sets, by label; exchanges keep to blocks.
        exchanges: number of exchanges.
    """
    courses = align_courses(sets, measured)
    if not courses:
        return []
    table, columns = columns_of(COLUMNS, {label: Measured(each.rows, each.table) for label, each in courses.items()})
    rows = {label: each.rows for label, each in courses.items()}
    exchanged = exchange_columns(table, sets, rows, seed, blocks, exchanges) if columns else None
    if exchanged is None:
        return []
    z = exchanged.z
    critical = float(np.quantile(np.abs(z[1:]).max(1), 1 - BESIDE_ALPHA))
    p_values = step_down(z[0], z[1:].astype(np.float32))
    looked = {label: len(each.rows) for label, each in measured[1].items()}
    tested = _TestedClips(sets, courses, columns, p_values, np.abs(z[0]), critical, seed, looked)
    events = [event for place, event in enumerate(EVENTS) if tested.p_value(place) <= BESIDE_ALPHA]
    found = [_hold_event(event, tested) for event in events]
    if events:
        left = {label: ~np.any([each.has(event) for event in events], 0) for label, each in courses.items()}
        rest = exchange_columns(
            {label: table[label][mask] for label, mask in left.items()}, sets,
            {label: rows[label][mask] for label, mask in left.items()}, seed, blocks, 0,
        )  # fmt: skip
        of_rest = np.zeros(len(columns)) if rest is None else np.abs(rest.z[0])
        kept = {label: each.only(left[label]) for label, each in courses.items()}
        tested = replace(tested, courses=kept, z=of_rest)
    return [*found, *(_hold_look(place, tested) for place in _clear_looks(tested))]


def _clear_looks(tested: _TestedClips) -> list[int]:
    """Return the place in `COLUMNS` of each look that drifts by itself, where it is clearest."""
    best: dict[str, tuple[float, int]] = {}
    for column, p, z in zip(tested.columns, tested.p_values, tested.z, strict=True):
        if column.place >= len(EVENTS) and p <= BESIDE_ALPHA and z >= tested.critical:
            best[column.trait.name] = max(best.get(column.trait.name, (0.0, 0)), (float(z), column.place))
    effects = {place: _effect(place, tested.courses) for _, place in best.values()}
    chosen: list[int] = []
    for place in sorted(effects, key=lambda place: -effects[place]):
        follows = any(
            COLUMNS[place].name in COLUMNS[cause].brings or effects[place] < STRONG * effects[cause] for cause in chosen
        )
        chosen += [] if follows else [place]
    return chosen


def _effect(place: int, courses: Mapping[str, Courses]) -> float:
    """Return by how much the change of a look differs on average, in spreads of both sets: unlike z, unbounded."""
    gen, ref = (courses[label].table[:, place] for label in ("gen", "ref"))
    return float(abs(gen.mean() - ref.mean()) / max(np.sqrt((gen.var() + ref.var()) / 2), 1e-6))


def _hold_event(event: str, tested: _TestedClips) -> Held:
    """Describe freezes, or loops, which clips of one set have more often."""
    place, has = EVENTS.index(event), {label: each.has(event) for label, each in tested.courses.items()}
    own = "gen" if has["gen"].mean() >= has["ref"].mean() else "ref"
    order = {label: mask.astype(float) for label, mask in has.items()}
    clips = tested.courses[own].only(has[own])
    starts = np.array([run.start for run in clips.events[event]], float)
    frames = np.array([_weighted_median(starts, weights) for weights in _weights(clips, tested.seed)])
    period = int(np.median(clips.periods)) if event == LOOPING else None
    name = _name_freeze(clips) if event == FROZEN else event
    explained = Explained(COLUMNS[place], 0.0, False, own, name, order, 0.5)
    course = {label: each.going_on(event) for label, each in tested.courses.items()}
    return _hold(explained, tested, tested.p_value(place), frames, course, period)


def _name_freeze(clips: Courses) -> str:
    """Return how clips stand still: frozen, cut to black, or some of both."""
    light = clips.values[:, :, COURSE.index("brightness")] > BLACK
    still = np.array([[run.start <= frame < run.stop for frame in clips.frames] for run in clips.events[FROZEN]], bool)
    is_black = (~light & still).sum(1) > 0.9 * still.sum(1)  # a frame at the end may be between two
    share = float((is_black & (light & ~still).any(1)).mean())
    # 0.1: part of the clips that stand still from which they are said to be of two sorts.
    return FREEZES[1] if share > 0.9 else FREEZES[2] if share >= 0.1 else FROZEN


def _hold_look(place: int, tested: _TestedClips) -> Held:
    """Describe a look that drifts in clips of one set: from where their mean curve bends away from the other set's."""
    look, both = COLUMNS[place], tested.courses
    changes = {label: each.table[:, place] for label, each in both.items()}
    own = "gen" if abs(changes["gen"].mean()) >= abs(changes["ref"].mean()) else "ref"
    side = 1 if changes[own].mean() > changes[OTHER[own]].mean() else -1
    order = {label: side * of_set for label, of_set in changes.items()}
    name, threshold = DRIFTS[look.name][side > 0], threshold_of(order[own], order[OTHER[own]])
    explained = Explained(look, 0.0, False, own, name, order, threshold)
    number = COURSE.index(look.name)
    # Clips are chosen by their change, which dates it too early: where most clips drift, none is left out.
    has = explained.has[own] | (explained.has[own].mean() > MOST)
    drifting, others = (
        (weights / weights.sum(1, keepdims=True)) @ clips.values[:, :, number]
        for clips in (both[own].only(has), both[OTHER[own]])
        for weights in [_weights(clips, tested.seed)]
    )
    seconds = np.linspace(0, both[own].seconds, INSTANTS)[find_bend(drifting - others)]
    least = min(tested.p_value(at) for at, trait in enumerate(COLUMNS) if trait is look)
    course = {label: each.parts[:, :, number].mean(0) for label, each in both.items()}
    return _hold(explained, tested, least, seconds * both[own].rate, course)


def _weights(clips: Courses, seed: int) -> Array:
    """Return weights of clips, (1 + `RESAMPLED_CLIPS`, n): all once, and then resampled by their units."""
    units, own = np.unique(clips.units, return_inverse=True)
    count = len(units)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), RESAMPLED_CLIPS)
    return np.concatenate([np.ones((1, len(own))), drawn[:, own]])


def _weighted_median(values: Array, weights: Array) -> float:
    return float(np.median(np.repeat(values, weights.astype(int))))


def _hold(
    explained: Explained,
    tested: _TestedClips,
    p_value: float,
    frames: Array,
    course: Mapping[str, Array],
    period: int | None = None,
) -> Held:
    """Return a drift with its samples; `frames` has its first frame, and the first frames of resamples."""
    own, both = explained.more_in, tested.courses
    units = {label: np.unique(each.units, return_inverse=True)[1] for label, each in both.items()}
    shares, interval = explained.estimate(units)
    ends = np.quantile(frames[1:], [(1 - RESAMPLED_PART) / 2, (1 + RESAMPLED_PART) / 2])
    first = round(float(frames[0]))
    members: Has = {}
    examples: dict[str, tuple[str, ...]] = {}
    for label, clips in both.items():
        has, order = explained.has[label], explained.order[label]
        members[label] = np.zeros(tested.looked[label], bool)
        members[label][clips.places[has]] = True
        shown = np.argsort(-order, kind="stable") if label == own else np.argsort(np.abs(order - np.median(order)))
        examples[label] = tested.sets[label].ids_at(clips.rows[shown[:EXAMPLES]])
    assert explained.name is not None
    finding = Finding(
        explained.name, "drift", False, shares["gen"], shares["ref"], p_value, ids=examples[own],
        share_interval=interval, first_frame=first, period=period,
        first_frame_interval=(min(first, int(np.floor(ends[0]))), max(first, int(np.ceil(ends[1])))),
        course=tuple(zip(*(each.tolist() for each in (both[own].middles, course["gen"], course["ref"])), strict=True)),
    )  # fmt: skip
    return Held(finding, members, explained.name, explained.trait, None, examples)
