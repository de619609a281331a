"""Clips of two sets over the same time: the courses of their looks, and where they stand still or come again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.embeddings.base import Embeddings
from finc_eval.findings.finding import FROZEN
from finc_eval.naming.measured import Measured, MeasuredSets
from finc_eval.naming.traits import MeasuredCourse
from finc_eval.numerics.courses import LEAST_RUN, NOTHING, Stretch
from finc_eval.numerics.exchanges import unit_numbers
from finc_eval.samples.clips import video_of

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LOOPING = "looping"
EVENTS = (FROZEN, LOOPING)
"""Names of what happens in a clip: it stands still, or its frames come again."""

LASTING = 0.8  # share of the clips of each set that last as long as clips are compared: 2 of 10 may be shorter

PARTS_OF_TIME = 12  # equal parts of a clip's time; each part is compared with the first part

INSTANTS = 128  # instants of a curve, at which it may bend

LEAST_FRAMES = 2 * LEAST_RUN  # frames that clips are compared in, at least

OF_CLIP = 0.1  # part of the compared time that a freeze or a loop lasts at least: 10 frames of 100


@dataclass(frozen=True, eq=False)
class Courses:
    """Clips of a set over the compared time.

    Attributes:
        places: places of the clips among the samples of `looked_rows`, (n,).
        rows: their rows in the set, (n,).
        units: number of what is independent, such as a group of clips, of each clip, (n,).
        values: traits of `COURSE` at equally spaced instants, (n, `INSTANTS`, 6).
        events: frames in which each of `EVENTS` happens, of each clip; `NOTHING` for hardly any.
        periods: period of the loop of each clip in frames, 0 without any, (n,).
        rate: frames a second, the median of all clips.
        seconds: the compared time.
    """

    places: NDArray[np.int64]
    rows: NDArray[np.int64]
    units: NDArray[np.int64]
    values: Array
    events: dict[str, list[Stretch]]
    periods: NDArray[np.int64]
    rate: float
    seconds: float

    def has(self, event: str) -> Mask:
        """Mark the clips in which something happens, (n,)."""
        return np.array([run.length > 0 for run in self.events[event]], bool)

    @property
    def parts(self) -> Array:
        """Mean of each look in each part of the time, (n, 12, 6)."""
        parts = np.array_split(self.values, PARTS_OF_TIME, axis=1)
        return np.stack([np.asarray(part.mean(1), np.float64) for part in parts], 1)

    @property
    def middles(self) -> Array:
        """Middle of each part of the time in seconds, (12,)."""
        return np.asarray((np.arange(PARTS_OF_TIME) + 0.5) * (self.seconds / PARTS_OF_TIME))

    @property
    def frames(self) -> Array:
        """Frame of each of `INSTANTS`, (INSTANTS,)."""
        return np.asarray(np.linspace(0, self.seconds, INSTANTS) * self.rate)

    def going_on(self, event: str) -> Array:
        """Return the share of clips in which something goes on in the middle of each part of the time, (12,)."""
        frames = self.middles * self.rate
        goes_on = np.array([[run.start <= frame < run.stop for frame in frames] for run in self.events[event]])
        return np.asarray(goes_on.mean(0), np.float64)

    @property
    def table(self) -> Array:
        """Each of `EVENTS`, and the change of each look since the first part of the time, (n, 2 + 11 · 6)."""
        changes = (self.parts[:, 1:] - self.parts[:, :1]).reshape(len(self.rows), -1)
        return np.concatenate([*(self.has(event)[:, None] for event in EVENTS), changes], 1)

    def only(self, mask: Mask) -> Courses:
        """Return some of the clips, by a mask, (n,)."""
        events = {
            event: [run for run, kept in zip(runs, mask, strict=True) if kept] for event, runs in self.events.items()
        }
        return replace(
            self,
            places=self.places[mask],
            rows=self.rows[mask],
            units=self.units[mask],
            values=self.values[mask],
            events=events,
            periods=self.periods[mask],
        )


def align_courses(sets: Mapping[str, Embeddings], measured: MeasuredSets) -> dict[str, Courses]:
    """Return the clips of two sets over the time that `LASTING` of the clips of each set last.

    Of windows of a video, the first counts. Empty where a set has no whole clips, or these are too short.

    Args:
        sets: embeddings, by label.
        measured: what `measure_sets` returns for these sets.
    """
    clips = {label: _clips(sets[label], each) for label, each in measured[1].items()}
    if len(clips) < 2 or not all(clips.values()):
        return {}
    seconds = min(
        float(np.quantile([clip.times[-1] for clip in of_set.values()], 1 - LASTING, method="lower"))
        for of_set in clips.values()
    )
    found = {label: _align(sets[label], measured[1][label].rows, of_set, seconds) for label, of_set in clips.items()}
    aligned = {label: each for label, each in found.items() if each is not None}
    return aligned if len(aligned) == len(found) else {}


def _clips(samples: Embeddings, measured: Measured) -> dict[int, MeasuredCourse]:
    """Return the whole clips of a set, each once, by the place of the sample among the samples looked at."""
    if measured.pictures is None:
        return {}
    first: dict[str, int] = {}
    for place, name in enumerate(samples.ids_at(measured.rows)):
        first.setdefault(video_of(name), place)
    courses = ((place, measured.pictures.courses[place]) for place in first.values())
    return {place: course for place, course in courses if course is not None}


def _align(
    samples: Embeddings, rows: NDArray[np.int64], clips: Mapping[int, MeasuredCourse], seconds: float
) -> Courses | None:
    """Return the clips that last so long, up to this time; None if it has too few frames."""
    lasting = {place: clip for place, clip in clips.items() if clip.times[-1] >= seconds}
    counts = [int(np.searchsorted(clip.times, seconds, side="right")) for clip in lasting.values()]
    if np.median(counts) < LEAST_FRAMES or seconds <= 0:
        return None
    instants = np.linspace(0, seconds, INSTANTS)
    values = [
        np.stack([np.interp(instants, clip.times, trait) for trait in clip.values.T], 1) for clip in lasting.values()
    ]
    events: dict[str, list[Stretch]] = {event: [] for event in EVENTS}
    for clip, count in zip(lasting.values(), counts, strict=True):
        runs = {FROZEN: clip.still, LOOPING: NOTHING if clip.loop is None else clip.loop.run}
        for event, run in runs.items():
            seen = Stretch(run.start, min(run.stop, count))
            events[event].append(seen if seen.length >= max(LEAST_RUN, OF_CLIP * count) else NOTHING)
    places = np.array([*lasting], np.int64)
    return Courses(
        places,
        rows[places],
        unit_numbers(samples.unit_keys()[rows[places]]),
        np.stack(values),
        events,
        np.array([0 if clip.loop is None else clip.loop.period for clip in lasting.values()], np.int64),
        float(np.median([(len(clip.times) - 1) / clip.times[-1] for clip in lasting.values()])),
        seconds,
    )
