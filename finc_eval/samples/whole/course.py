"""`ClipCourse`, small frames of a whole video, of which it is measured how a clip changes over time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels = npt.NDArray[np.uint8]
Seconds = npt.NDArray[np.float64]

ASSUMED_FPS = 25.0
"""Frame rate of clips that do not state one, as arrays and folders of frames, where the card states none either."""

ROUNDED_SECONDS = 0.0005  # error of a presentation time: Matroska, FLV and ASF round to milliseconds

COURSE_SIDE = 32  # side in pixels of the small frames of a whole video

MAX_COURSE = 2048
"""First frames of a video that are made small: 82 seconds at 25 a second, in 6 MB."""


class ClipCourse(NamedTuple):
    """Small frames of a whole video, whatever windows of it are samples."""

    frames: Pixels  # (t, 32, 32, 3) uint8 RGB, at most `MAX_COURSE`
    times: Seconds  # instants in seconds at which they are shown, (t,)


def shrink(pixels: Pixels) -> Pixels:
    """Return a frame, (height, width, 3), as a small frame of a course, (32, 32, 3)."""
    return np.asarray(Image.fromarray(pixels).resize((COURSE_SIDE, COURSE_SIDE), Image.Resampling.BOX))


def join_course(
    small: Sequence[Pixels], rate: Fraction | float | None, shown: Seconds | None = None, *, is_merged: bool = False
) -> ClipCourse:
    """Join the small frames of a video.

    Args:
        small: first frames of the video, (32, 32, 3) each.
        rate: frames a second; None for a video that states none.
        shown: instants at which all frames begin, and at which the last frame ends; None: evenly spaced.
        is_merged: whether equal frames in sequence are one, as in an animation: they are shown at its shortest delay.
    """
    frames = np.stack(small)
    if shown is None:
        return ClipCourse(frames, np.asarray(np.arange(len(frames)) / float(rate or ASSUMED_FPS), np.float64))
    if not is_merged:
        return ClipCourse(frames, shown[: len(frames)])
    step = float(np.diff(shown).min().round(4))
    times = np.arange(min(MAX_COURSE, max(1, round(float(shown[len(frames)]) / step))), dtype=np.float64) * step
    return ClipCourse(frames[np.searchsorted(shown[: len(frames)], times + ROUNDED_SECONDS, side="right") - 1], times)


def shrink_all(pixels: Pixels, fps: float | None = None) -> ClipCourse:
    """Return the course of a video in memory, (frames, height, width, 3), which counts as having the rate `fps`."""
    return join_course([shrink(frame) for frame in pixels[:MAX_COURSE]], fps)
