"""Windows of WebP and PNG files of several frames, decoded by Pillow."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import IO

import numpy as np
from PIL import Image

from finc_eval.core.memory import DECODED, excess, max_decoded, readable
from finc_eval.samples.clips import Clip, DecodedWindow, gather, plan_windows, unmerge
from finc_eval.samples.encoding import Encoding, is_gray
from finc_eval.samples.images import FixedSettings, take_pixels
from finc_eval.samples.source import COPIES, Pixels
from finc_eval.samples.whole.course import MAX_COURSE, Seconds, join_course, shrink

MAX_UNPACKING = 100_000
"""Bytes of pixels for a byte of a file. A black picture that never changes has about 60,000 in H.264."""

MAX_ANIMATION_FRAMES = 30_000  # libwebp looks for each frame from the first on: 20,000 take 1.8 s, 40,000 take 7.0 s
ANIMATION_SUFFIXES = frozenset({".webp", ".png", ".apng"})  # suffixes of files that are images, or animations

MIN_DELAY, UNSTATED_DELAY = 0.01, 0.1
"""Seconds that a frame lasts at least, and one that states 0, as FFmpeg reads GIFs and browsers show all animations."""


Begin = Callable[[int], None]
"""A call as a frame begins, with its number of pixels: the process of a clip has a limit of time for each frame."""


def is_animation(stream: IO[bytes]) -> bool:
    """Return whether a file is a WebP or PNG of several frames (RFC 9649, flag A; PNG third edition, acTL)."""
    stream.seek(0)
    # 4096: bytes in which a PNG says that it has several frames: its chunk acTL comes before the first of them.
    head = stream.read(4096)
    stream.seek(0)
    if head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X":
        return bool(head[20] & 2)
    return head[:8] == b"\x89PNG\r\n\x1a\n" and b"acTL" in head.partition(b"IDAT")[0]


def decode_animation(
    stream: IO[bytes], clip: Clip, windows: Sequence[int], begin: Begin, *, with_course: bool = False
) -> Iterator[DecodedWindow]:
    """Decode windows of a WebP or PNG of several frames; see `read_windows`."""
    with FixedSettings(), Image.open(stream, formats=("WEBP", "PNG")) as image:
        name, mode, (width, height) = image.format or "WEBP", image.mode, image.size
        count = int(getattr(image, "n_frames", 1))
    take_pixels(width, height)
    check_length(count, 3 * count * width * height, stream)
    if count > MAX_ANIMATION_FRAMES:
        raise ValueError(f"{count:,} frames, above the {MAX_ANIMATION_FRAMES:,} of an animation: save it as a video")
    delays, small = list[float](), list[Pixels]()
    for pixels, delay in _frames(stream, count, frozenset(range(MAX_COURSE * with_course)), begin):
        delays.append(delay)
        small += [] if pixels is None else [shrink(pixels)]
    shown: Seconds = np.append(0.0, np.cumsum(delays))
    course = join_course(small, None, shown, is_merged=True) if with_course else None
    chosen = unmerge(clip, shown)
    plan = plan_windows(count, chosen.fps, chosen, shown, windows)
    if phrase := excess(COPIES * clip.frames * 3 * width * height):
        raise ValueError(f"a window of {phrase}")
    DECODED.take(COPIES * clip.frames * 3 * width * height)
    wanted = frozenset(plan.indices.ravel().tolist())
    shortest = unmerge(Clip(1, 1, 1, "hold"), shown).fps or 1.0

    def frames() -> Generator[tuple[int, Pixels], None, None]:
        with closing(_frames(stream, count, wanted, begin)) as decoded:
            yield from ((number, pixels) for number, (pixels, _) in enumerate(decoded) if pixels is not None)

    for pixels, times in zip(gather(plan.indices, frames()), plan.times, strict=True):
        gray, seconds = all(map(is_gray, pixels)), float(shown[-1])
        encoding = Encoding(
            *(name, mode if mode in ("RGB", "L") else "RGB", width, height, gray),
            fps=shortest,
            frames=max(1, round(seconds * shortest)),
            seconds=seconds,
        )
        yield DecodedWindow(pixels, times, encoding, course)


def check_length(frames: int, size: int, stream: IO[bytes]) -> None:
    """Raise ValueError for a small file of so many large frames that decoding would take hours."""
    # 16: times FINC_EVAL_MAX_DECODED that the frames of any file may take, one after the other.
    if size > max(16 * max_decoded(), MAX_UNPACKING * stream.seek(0, os.SEEK_END)):
        raise ValueError(f"a small file claims {frames:,} frames of {readable(size)}: cut the video, or scale it down")


def _frames(
    stream: IO[bytes], count: int, wanted: frozenset[int], begin: Begin
) -> Generator[tuple[Pixels | None, float], None, None]:
    """Yield the pixels of each wanted frame, and the seconds that every frame is shown."""
    stream.seek(0)
    with FixedSettings():
        opened = Image.open(stream, formats=("WEBP", "PNG"))
    with opened as image:
        for number in range(count):
            begin(image.width * image.height)
            with FixedSettings():
                image.seek(number)
                image.load()
                pixels = np.asarray(image.convert("RGB")) if number in wanted else None
            delay = float(image.info.get("duration") or 0) / 1000
            yield pixels, max(MIN_DELAY, delay or UNSTATED_DELAY)
