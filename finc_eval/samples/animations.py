"""Animations that FFmpeg does not read: WebP and PNG files of several frames, with the times at which each is shown.

Pillow composes the frames, and turns them into RGB as it does with images; alpha is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import IO

import numpy as np
from PIL import Image

from finc_eval.core.memory import DECODED, excess, max_decoded, readable
from finc_eval.samples.clips import Clip, DecodedWindow, FrameIndices, Seconds, gather, plan_windows, unmerge
from finc_eval.samples.images import FixedSettings, take_pixels
from finc_eval.samples.source import COPIES, Pixels
from finc_eval.samples.traits import Traits, is_gray

ANIMATION_SUFFIXES = frozenset({".webp", ".png", ".apng"})
"""Suffixes of files that are images, or animations."""

HEAD_BYTES = 4096
"""Bytes in which a PNG says that it has several frames: its chunk acTL comes before the first of them."""

MIN_DELAY, UNSTATED_DELAY = 0.01, 0.1
"""Seconds that a frame lasts at least, and one that states 0, as FFmpeg reads GIFs and browsers show all animations."""

MAX_UNPACKING = 100_000
"""Bytes of pixels for a byte of a file. A black picture that never changes has about 60,000 in H.264."""

MAX_STILL_SETS = 16
"""Times FINC_EVAL_MAX_DECODED that the frames of any file may take, one after the other."""


def is_animation(stream: IO[bytes]) -> bool:
    """Return whether a file is a WebP or PNG of several frames (RFC 9649, flag A; PNG third edition, acTL)."""
    stream.seek(0)
    head = stream.read(HEAD_BYTES)
    stream.seek(0)
    if head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X":
        return bool(head[20] & 2)
    return head[:8] == b"\x89PNG\r\n\x1a\n" and b"acTL" in head.partition(b"IDAT")[0]


def decode_animation(stream: IO[bytes], clip: Clip, windows: Sequence[int]) -> Iterator[DecodedWindow]:
    """Decode windows of an animation; see `finc_eval.samples.video.read_windows`."""
    with FixedSettings(), Image.open(stream, formats=("WEBP", "PNG")) as image:
        name, mode, (width, height) = image.format or "WEBP", image.mode, image.size
        count = int(getattr(image, "n_frames", 1))
    take_pixels(width, height)
    check_length(count, 3 * count * width * height, stream)
    delays = np.array([delay for _, delay in _frames(stream, count, frozenset())])
    shown: Seconds = np.append(0.0, np.cumsum(delays))
    chosen = unmerge(clip, shown)
    plan = plan_windows(count, None if chosen.fps is None else chosen.fps, chosen, shown)
    if phrase := excess(COPIES * clip.frames * 3 * width * height):
        raise ValueError(f"a window of {phrase}")
    DECODED.take(COPIES * clip.frames * 3 * width * height)
    indices: FrameIndices = plan.indices[list(windows)]
    wanted = frozenset(indices.ravel().tolist())
    shortest = unmerge(Clip(1, 1, 1, "hold"), shown).fps or 1.0

    def frames() -> Generator[tuple[int, Pixels], None, None]:
        with closing(_frames(stream, count, wanted)) as found:
            yield from ((number, pixels) for number, (pixels, _) in enumerate(found) if pixels is not None)

    for pixels, times in zip(gather(indices, frames()), plan.times[list(windows)], strict=True):
        gray, seconds = all(map(is_gray, pixels)), float(shown[-1])
        traits = Traits(
            *(name, mode if mode in ("RGB", "L") else "RGB", width, height, gray),
            fps=shortest,
            frames=max(1, round(seconds * shortest)),
            seconds=seconds,
        )
        yield DecodedWindow(pixels, times, traits)


def check_length(frames: int, size: int, stream: IO[bytes]) -> None:
    """Raise ValueError for a small file of so many large frames that decoding would take hours."""
    if size > max(MAX_STILL_SETS * max_decoded(), MAX_UNPACKING * stream.seek(0, os.SEEK_END)):
        raise ValueError(f"{frames:,} frames of {readable(size)} in a small file: cut it, or make its frames smaller")


def _frames(
    stream: IO[bytes], count: int, wanted: frozenset[int]
) -> Generator[tuple[Pixels | None, float], None, None]:
    """Yield the pixels of each wanted frame, and the seconds that every frame is shown."""
    stream.seek(0)
    with FixedSettings():
        opened = Image.open(stream, formats=("WEBP", "PNG"))
    with opened as image:
        for number in range(count):
            with FixedSettings():
                image.seek(number)
                image.load()
                pixels = np.asarray(image.convert("RGB")) if number in wanted else None
            delay = float(image.info.get("duration") or 0) / 1000
            yield pixels, max(MIN_DELAY, delay or UNSTATED_DELAY)
