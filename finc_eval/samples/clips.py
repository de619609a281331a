"""Which frames of a video are a sample: the arithmetic of a card's clip policy, which knows nothing of files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from finc_eval.samples.source import Pixels

Indices = npt.NDArray[np.int64]

FINEST_RATE = 10_000
"""Rates are taken as fractions with at most this denominator: 29.97002997 is 30000/1001."""


def window_indices(n: int, fps: Fraction | float | None, clip: Clip) -> Indices:
    """Return the numbers of the frames that each window of a video takes.

    With `clip.fps`, a video of n frames and duration n / fps is first read at the instants k / clip.fps that lie in it,
    k = 0 … m − 1, m = ⌈n · clip.fps / fps⌉, taking for each the frame shown then, ⌊k · fps / clip.fps⌋; without it
    m = n. Frames count as evenly spaced at `fps`, also where their own times vary.

    A window spans S = (frames − 1) · stride + 1 of these m. Window w of W starts at ⌊w · (m − S) / (W − 1)⌋, so that
    the first begins the video and the last ends it; a single window starts at ⌊(m − S) / 2⌋, in the middle. Windows
    overlap, and may coincide, where the video is shorter than W · S. Where m < S, all of them start at 0 and
    `clip.short` says how they go on.

    Args:
        n: frames in the video.
        fps: its frames a second; where None, its frames count as being at `clip.fps` already.
        clip: the policy.

    Returns:
        (windows, frames) numbers in 0 … n − 1; the last numbers of the windows never decrease.

    Raises:
        ValueError: there are no frames, or too few and `clip.short` is "refuse".
    """
    if n < 1:
        raise ValueError("a video without frames")
    resampled = clip.fps is not None and fps is not None
    ratio = _rate(fps) / _rate(clip.fps) if clip.fps is not None and fps is not None else Fraction(1)
    m = -(-n * ratio.denominator // ratio.numerator)
    span = (clip.frames - 1) * clip.stride + 1
    if m < span and clip.short == "refuse":
        rate = f" at {clip.fps:g} frames a second" if resampled else ""
        raise ValueError(f"too short: {m} frames{rate}, and a window spans {span}")
    room = max(0, m - span)
    w = np.arange(clip.windows)
    starts = w * room // (clip.windows - 1) if clip.windows > 1 else w + room // 2
    instants = starts[:, None] + clip.stride * np.arange(clip.frames)
    # Only a video that is too short has instants beyond its end.
    instants = instants % m if clip.short == "loop" else instants.clip(max=m - 1)
    return instants * ratio.numerator // ratio.denominator


def gathered(plan: Indices, frames: Iterable[tuple[int, Pixels]]) -> Iterator[Pixels]:
    """Put windows together from frames that come in order, and keep no frame longer than it is needed.

    Args:
        plan: as `window_indices` returns it.
        frames: (number, (height, width, 3) pixels) with increasing numbers, all those that `plan` names; others may be
            among them.

    Yields:
        The windows in order, (frames, height, width, 3) each. Ends early where the frames do, and takes none after
        the last that is needed.

    Raises:
        ValueError: the frames of a window differ in size.
    """
    last_use = {int(number): window for window, row in enumerate(plan) for number in row}
    ends = plan.max(axis=1)
    kept: dict[int, Pixels] = {}
    made = 0
    for number, pixels in frames:
        if number in last_use:
            kept[number] = pixels
        while made < len(plan) and ends[made] == number:
            yield _stacked([kept[int(wanted)] for wanted in plan[made]])
            made += 1
            for old in [old for old in kept if last_use[old] < made]:
                del kept[old]
        if made == len(plan):
            return


def _stacked(frames: list[Pixels]) -> Pixels:
    sizes = dict.fromkeys(f"{frame.shape[1]}x{frame.shape[0]}" for frame in frames)
    if len(sizes) > 1:
        raise ValueError(f"frames of unlike sizes: {', '.join(list(sizes)[:3])}")
    return np.stack(frames)


def _rate(fps: Fraction | float) -> Fraction:
    return Fraction(fps).limit_denominator(FINEST_RATE)


@dataclasses.dataclass(frozen=True)
class Clip:
    """Which frames of a video are a sample.

    Attributes:
        frames: frames in a window.
        stride: a window takes every `stride`-th frame.
        windows: windows in a video, spread evenly from its first frame to its last.
        fps: frames a second to which the video is brought first, by taking for each instant the frame shown then; None
            takes the frames as they are stored.
        short: what becomes of a video with fewer frames than a window spans: "loop" starts it again, "hold" repeats
            its last frame, "refuse" makes it a failure.
    """

    frames: int
    stride: int
    windows: int
    short: Literal["loop", "hold", "refuse"]
    fps: float | None = None
