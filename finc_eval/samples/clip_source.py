"""Sets whose samples are windows of videos, as of arrays: sample v · windows + w is window w of video v.

The id of a clip is that of its video, "a/b.mp4"; where a video has several windows, their number follows: "a/b.mp4#3".
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from typing import Any

import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.core.memory import check_list
from finc_eval.core.words import plural
from finc_eval.samples.clips import Clip, DecodedWindow, plan_windows
from finc_eval.samples.encoding import Encoding, is_gray
from finc_eval.samples.metadata import Metadata
from finc_eval.samples.reading import EVERYTHING
from finc_eval.samples.rows import ArraySource, NpzSource, check_dtype
from finc_eval.samples.source import (
    NOT_OF_THE_SAMPLE,
    THREADS,
    Pixels,
    Result,
    Sample,
    Source,
    ahead,
    content_digest,
    count_decoding,
    pixels_digest,
    reason,
)
from finc_eval.samples.whole.course import ClipCourse, shrink_all


class ClipSource(Source):
    """Windows of videos that can be read in any order."""

    def __init__(self, name: str, videos: list[str], clip: Clip, ignored: dict[str, int], metadata: Metadata) -> None:
        """Name the clips."""
        labels, prompts, columns, unmatched, _ = metadata
        labels, prompts = repeat_by_window(labels, clip), repeat_by_window(prompts, clip)
        of_windows = {column: repeat_by_window(values, clip) or [] for column, values in columns.items()}
        super().__init__(name, clip_ids(videos, clip), {**ignored, **unmatched}, labels, prompts, of_windows)
        self._clip, self._has_courses = clip, False

    def with_courses(self) -> ClipSource:
        """Return the same clips, which come with small frames of their whole videos."""
        found = copy(self)
        found._has_courses = True
        return found

    @abstractmethod
    def windows(self, video: int, windows: Sequence[int], names: Sequence[str]) -> Iterator[Sample]:
        """Yield the windows of one video with these increasing numbers and ids, also those that cannot be decoded.

        It raises an error only for a file that cannot be read, and `window_contents` then raises the same.
        """

    @abstractmethod
    def window_contents(self, video: int, windows: Sequence[int]) -> list[bytes]:
        """Return a digest of the bytes that decide each of these windows."""

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        return self.mapped(lambda sample: sample, numbers)

    def mapped(
        self, function: Callable[[Sample], Result], numbers: Sequence[int], threads: int = THREADS
    ) -> Generator[Result, None, None]:
        """Yield `function` of the windows in order, while threads begin the next videos.

        Each of these is one window ahead, not more: the windows of a long video would fill the memory.
        """

        def step(clips: Iterator[Sample]) -> list[Result]:
            return [function(clip) for clip in itertools.islice(clips, 1)]

        following = count_decoding(step)
        with ThreadPoolExecutor(threads) as pool:
            begun: deque[tuple[Iterator[Sample], Future[list[Result]]]] = deque()

            def first() -> Iterator[Result]:
                clips, waiting = begun.popleft()
                while windows := waiting.result():
                    waiting = pool.submit(following, clips)
                    yield from windows

            try:
                for group in group_by_video(numbers, self._clip):
                    clips = self._clips(group)
                    begun.append((clips, pool.submit(following, clips)))
                    if len(begun) > threads:
                        yield from first()
                while begun:
                    yield from first()
            finally:
                for _, waiting in begun:
                    waiting.cancel()

    def sample(self, number: int) -> Sample:
        (group,) = group_by_video([number], self._clip)
        return next(self._clips(group))

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        return itertools.chain.from_iterable(ahead(count_decoding(self._contents), group_by_video(numbers, self._clip)))

    def _clips(self, group: tuple[int, list[int]]) -> Iterator[Sample]:
        """Yield windows of one video; all are failures if it cannot be opened."""
        names = names_of(self.ids, self._clip, group)
        waiting = iter(names)
        try:
            for sample in self.windows(*group, names):
                next(waiting)
                yield sample
        except NOT_OF_THE_SAMPLE:
            raise
        except Exception as error:  # zipfile's readers raise almost anything on damaged bytes
            failure = content_digest(reason(error))
            yield from (Sample(name, None, reason(error), content=failure) for name in waiting)

    def _contents(self, group: tuple[int, list[int]]) -> list[bytes]:
        try:
            return self.window_contents(*group)
        except NOT_OF_THE_SAMPLE:
            raise
        except Exception as error:  # zipfile's readers raise almost anything on damaged bytes
            return [content_digest(reason(error))] * len(group[1])


def clip_ids(videos: Iterable[str], clip: Clip) -> list[str]:
    """Return the ids of all clips of the videos."""
    videos = list(videos)
    if clip.windows == 1:
        return videos
    check_list(len(videos) * clip.windows, f"{plural(len(videos), 'video')} of {clip.windows:,} windows", "clips")
    return [f"{video}#{window}" for video in videos for window in range(clip.windows)]


def repeat_by_window(values: Sequence[str] | None, clip: Clip) -> list[str] | None:
    """Give every window the value of its video."""
    return None if values is None else [value for value in values for _ in range(clip.windows)]


def group_by_video(numbers: Iterable[int], clip: Clip) -> Iterator[tuple[int, list[int]]]:
    """Turn increasing sample numbers into pairs of a video and its windows."""
    places = (divmod(number, clip.windows) for number in numbers)
    for video, group in itertools.groupby(places, key=lambda window: window[0]):
        yield video, [window for _, window in group]


def names_of(ids: Sequence[str], clip: Clip, group: tuple[int, list[int]]) -> list[str]:
    """Return the ids of some windows of a video."""
    video, numbers = group
    return [ids[video * clip.windows + number] for number in numbers]


def decode_windows(
    names: Sequence[str], decoded: Iterator[DecodedWindow], contents: Iterable[bytes]
) -> Iterator[Sample]:
    """Yield decoded windows with the digests of their bytes; after an error, the rest of them as failures.

    The digest of a window is asked for when the window has been decoded.
    """
    waiting = zip(names, contents, strict=False)
    try:
        for window in decoded:
            name, content = next(waiting)
            yield Sample(name, window.pixels, None, window.encoding, content, window.times, window.course)
    except NOT_OF_THE_SAMPLE:
        raise
    except Exception as error:  # decoders raise almost anything on damaged bytes
        yield from (Sample(name, None, reason(error), content=content) for name, content in waiting)


class RowClips(Source):
    """Windows of the rows of an array, (n, frames, height, width, 3) uint8: in memory, or streamed from an npz file."""

    def __init__(
        self, array: ArraySource | NpzSource, rows: Callable[[Sequence[int]], Iterator[Pixels]], clip: Clip
    ) -> None:
        """Take an array; `rows` yields its rows by their increasing numbers."""
        super().__init__(array.name, clip_ids(array.ids, clip), {}, repeat_by_window(array.labels, clip))
        self.kind, self._rows, self._clip, self._has_courses = array.kind, rows, clip, False

    def with_courses(self) -> RowClips:
        """Return the same clips, which come with small frames of their whole rows."""
        found = copy(self)
        found._has_courses = True
        return found

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        groups = list(group_by_video(numbers, self._clip))
        for group, row in zip(groups, self._rows([video for video, _ in groups]), strict=True):
            names = names_of(self.ids, self._clip, group)
            course = shrink_all(row, self._clip.fps) if self._has_courses else None
            yield from windows_of_row(names, row, self._clip, group[1], pixels_digest(row), course)

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        groups = list(group_by_video(numbers, self._clip))
        for (_, windows), row in zip(groups, self._rows([video for video, _ in groups]), strict=True):
            yield from itertools.repeat(pixels_digest(row), len(windows))


def check_clips(shape: tuple[int, ...], dtype: np.dtype[Any], who: str) -> None:
    """Raise DataError for an array that is not n videos, and say how to turn it into one."""
    check_dtype(dtype, shape, who, None, EVERYTHING)
    what_it_is = f"{who} has shape {shape} and dtype {dtype}"
    if len(shape) != 5 or shape[4] != 3:
        how = "reshape it"
        if len(shape) == 5 and 3 in shape[1:3]:
            how = f"pass x.transpose(0, {'2, 3, 4, 1' if shape[1] == 3 else '1, 3, 4, 2'})"
        elif len(shape) in (3, 4):
            how = "images need an extractor for images (finc-eval doctor extractors list)"
        raise DataError(f"{what_it_is}, but clips must be (n, frames, height, width, 3): {how}")
    if 0 in shape:
        raise DataError(f"{what_it_is}: it holds no pixels")


def windows_of_row(
    names: Sequence[str],
    row: Pixels,
    clip: Clip,
    windows: Sequence[int],
    content: bytes,
    course: ClipCourse | None = None,
) -> Iterator[Sample]:
    """Yield windows of one video, (frames, height, width, 3), with these ids, the digest of its pixels, its course."""
    height, width = row.shape[1:3]

    def decoded() -> Iterator[DecodedWindow]:
        for indices, times in zip(*plan_windows(len(row), None, clip, windows=windows), strict=True):
            pixels = row[indices]
            encoding = Encoding("array", "RGB", width, height, all(map(is_gray, pixels)), frames=len(row))
            yield DecodedWindow(pixels, times, encoding, course)

    return decode_windows(names, decoded(), [content] * len(windows))
