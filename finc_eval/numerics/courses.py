"""Clips over time, by their small frames: where they stand still or loop, and where a curve bends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Light = NDArray[np.float32] | Array  # brightness of frames

STILL, STILL_PART = 0.5, 0.1
"""Mean difference of two frames, in 1/255, up to which they are equal; and the part of the usual difference of the
clip, its 90th percentile, if that is less. Frozen frames differ by 0 in arrays, and by at most .3 in H.264 at its
default quality, where the refresh of a picture differs by more: a single such step is passed over."""

SURELY_STILL = 0.05  # mean difference, in 1/255, that no eye sees, whatever the clip does elsewhere

LEAST_RUN = 8  # frames that stand still, or come again, at least: a third of a second at 25 a second

LEAST_PERIOD = 4  # frames of the shortest loop: two are flicker, three a rhythm of frames

LOOPED = 1024  # first frames in which loops are looked for: their differences take 10 ms

RETURNED = 0.25
"""Part of the largest difference from a frame on the way up to which a later frame is the same again."""

MOVED = 1.0  # root mean square in 1/255 by which a clip moves away at least before it comes back


class Stretch(NamedTuple):
    """A run of frames: all from `start` to before `stop`. Without any, both are 0."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """Number of its frames."""
        return self.stop - self.start


class Loop(NamedTuple):
    """The frames of a clip that come again: each from `run.start` on is the one `period` frames before it."""

    run: Stretch
    period: int


NOTHING = Stretch(0, 0)


def find_still(light: Light) -> Stretch:
    """Return the longest run of frames, (t, pixels) of brightness in 1/255, that stand still.

    It begins with the frame that is held.

    Example:
        >>> moving = np.arange(0, 40.0)[:, None] * np.ones(4)
        >>> find_still(np.concatenate([moving, moving[-1:].repeat(20, 0)]))
        Stretch(start=39, stop=60)
    """
    if len(light) < 2:
        return NOTHING
    steps = np.abs(np.diff(light, axis=0)).mean(1)
    limit = max(SURELY_STILL, min(STILL, STILL_PART * float(np.quantile(steps, 0.9))))
    run = longest_run(steps <= limit)
    return Stretch(run.start, run.stop + 1) if run.length + 1 >= LEAST_RUN else NOTHING


def find_loop(light: Light) -> Loop | None:
    """Return the frames, (t, pixels) of brightness in 1/255, that come again after a period; None for hardly any.

    A frame has come again where it differs from the one a period before by at most `RETURNED` of the largest difference
    on the way. Of periods with nearly as many such frames, the shortest counts: what comes again after 16 frames does
    so after 32.

    Example:
        >>> steps = np.random.default_rng(0).normal(0, 20, (16, 64)).astype(np.float32)
        >>> find_loop(np.concatenate([steps] * 4))
        Loop(run=Stretch(start=16, stop=64), period=16)
    """
    frames = light[:LOOPED]
    lags = len(frames) // 2
    if lags < LEAST_PERIOD:
        return None
    apart = _differences_by_lag(frames, lags)
    on_the_way = np.fmax.accumulate(apart, axis=1)
    away, back = on_the_way[:, LEAST_PERIOD - 2 : -1], apart[:, LEAST_PERIOD - 1 :]
    again = (back <= RETURNED * away) & (away >= MOVED)
    periods = np.arange(LEAST_PERIOD, lags + 1)
    least = np.maximum(LEAST_RUN, periods // 2)
    # Half of the frames of a run at least are the same again: every second may be passed over.
    runs = {
        int(period): run
        for place, period in enumerate(periods)
        if again[:, place].sum() >= least[place] // 2 and (run := longest_run(again[:, place])).length >= least[place]
    }
    if not runs:
        return None
    most = max(run.length for run in runs.values())
    # 0.8: part of the frames of the longest run that a shorter period must have: the last period has no successor.
    shortest = min(period for period, run in runs.items() if run.length >= 0.8 * most)
    # A quarter of the period, or two frames: a slow clip has hardly moved on after these. The closest return counts.
    near = [period for period in runs if shortest <= period <= shortest + max(2, shortest // 4)]
    period = min(near, key=lambda each: float(apart[runs[each].start : runs[each].stop, each - 1].mean()))
    return Loop(Stretch(runs[period].start + period, runs[period].stop + period), period)


def _differences_by_lag(frames: Light, lags: int) -> Array:
    """Return the root mean square difference of each frame from those 1 … lags later, (t, lags); NaN beyond the end."""
    count, pixels = frames.shape
    centered = frames - frames.mean(0)
    squares = (centered**2).sum(1, dtype=np.float64)
    square = squares[:, None] + squares - 2.0 * (centered @ centered.T)
    root = np.sqrt(np.maximum(square, 0) / pixels)
    later = np.arange(count)[:, None] + np.arange(1, lags + 1)
    return np.where(later < count, root[np.arange(count)[:, None], np.minimum(later, count - 1)], np.nan)


def longest_run(has: NDArray[np.bool_]) -> Stretch:
    """Return the longest run of True in flags, (t,); a single False between two True is passed over.

    Example:
        >>> longest_run(np.array([True, False, False, True, False, True, True, False]))
        Stretch(start=3, stop=7)
    """
    bridged = has.copy()
    bridged[1:-1] |= has[:-2] & has[2:]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], bridged, [False]]).astype(np.int8)))
    if not len(edges):
        return NOTHING
    starts, stops = edges[::2], edges[1::2]
    best = int(np.argmax(stops - starts))
    return Stretch(int(starts[best]), int(stops[best]))


def find_bend(curves: Array) -> NDArray[np.int64]:
    """Return the place from which each curve leaves its level, shape (r,): the best of all hinges and steps.

    A hinge is level and then straight, and a step is level twice; the one with the least squared error counts.

    Args:
        curves: values at equally spaced instants, shape (r, g), g ≥ 4.

    Example:
        >>> find_bend(np.stack([np.maximum(0, np.arange(50.0) - 20), np.arange(50.0) >= 30]))
        array([20, 30])
    """
    count = curves.shape[1]
    place = np.arange(count)
    starts = place[: count - 2]
    hinges = np.maximum(place - starts[:, None], 0.0)
    steps = (place >= starts[1:, None]).astype(float)
    shapes = np.concatenate([hinges, steps])
    shapes -= shapes.mean(1, keepdims=True)
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    explained = ((curves - curves.mean(1, keepdims=True)) @ shapes.T) ** 2
    return np.asarray(np.concatenate([starts, starts[1:]])[explained.argmax(1)])
