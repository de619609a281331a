"""Sets of clips whose videos are the rows of one uint8 array: in memory, or streamed from an npz file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from finc_eval.core.errors import DataError
from finc_eval.samples.clip_source import (
    ClipSource,
    Window,
    clip_ids,
    decoded_windows,
    group_by_video,
    name_windows,
    repeat_by_window,
)
from finc_eval.samples.clips import Clip, window_indices
from finc_eval.samples.in_memory import check_dtype
from finc_eval.samples.rows import NpzSource
from finc_eval.samples.source import Pixels, Sample, pixels_digest
from finc_eval.samples.traits import Traits, is_gray


class ArrayClips(ClipSource):
    """Windows of the rows of an array, (n, frames, height, width, 3) uint8."""

    kind = "array"

    def __init__(self, array: npt.NDArray[np.uint8], clip: Clip) -> None:
        check_clips(array.shape, array.dtype, "the array")
        super().__init__("array", [str(row) for row in range(len(array))], clip, {})
        self._array = array

    def windows(self, video: int, windows: Sequence[int]) -> Iterator[Window]:
        # A copy, so that what is decoded is what was hashed, whatever happens to the array.
        return _windows_of_row(self._array[video].copy(), self._clip, windows)

    def window_contents(self, video: int, windows: Sequence[int]) -> list[bytes]:
        return [pixels_digest(self._array[video])] * len(windows)


class NpzClips(NpzSource):
    """Windows of the rows of an array in an npz file, (n, frames, height, width, 3) uint8, streamed."""

    def __init__(self, path: Path, clip: Clip) -> None:
        super().__init__(path)
        self.ids = clip_ids(self.ids, clip)
        self.labels = repeat_by_window(self.labels, clip)
        self._clip = clip

    def check_shape(self, shape: tuple[int, ...], dtype: np.dtype[Any], who: str) -> None:
        check_clips(shape, dtype, who)

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        groups = list(group_by_video(numbers, self._clip))
        rows = self.rows([video for video, _ in groups])
        for group, row in zip(groups, rows, strict=True):
            yield from name_windows(self.ids, self._clip, group, _windows_of_row(row, self._clip, group[1]))

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        groups = list(group_by_video(numbers, self._clip))
        rows = self.rows([video for video, _ in groups])
        for (_, windows), row in zip(groups, rows, strict=True):
            yield from itertools.repeat(pixels_digest(row), len(windows))


def check_clips(shape: tuple[int, ...], dtype: np.dtype[Any], who: str) -> None:
    """Raise DataError for an array that is not n videos, and say how to turn it into one."""
    found = f"{who} has shape {shape} and dtype {dtype}"
    check_dtype(dtype, found)
    if len(shape) != 5 or shape[4] != 3:
        how = "reshape it"
        if len(shape) == 5 and 3 in shape[1:3]:
            how = f"pass x.transpose(0, {'2, 3, 4, 1' if shape[1] == 3 else '1, 3, 4, 2'})"
        elif len(shape) in (3, 4):
            how = "images need an extractor for images (finc-eval doctor extractors list)"
        raise DataError(f"{found}, but clips must be (n, frames, height, width, 3): {how}")
    if 0 in shape:
        raise DataError(f"{found}: it holds no pixels")


def _windows_of_row(row: Pixels, clip: Clip, windows: Sequence[int]) -> Iterator[Window]:
    height, width = row.shape[1:3]

    def decoded() -> Iterator[tuple[Pixels, Traits]]:
        for indices in window_indices(len(row), None, clip)[list(windows)]:
            pixels = row[indices]
            yield pixels, Traits("array", "RGB", width, height, all(map(is_gray, pixels)))

    return decoded_windows(decoded(), [pixels_digest(row)] * len(windows))
