"""Sets whose samples are windows of videos: sample v · windows + w is window w of video v.

The id of a clip is that of its video, "a/b.mp4"; where a video has several windows, their number follows: "a/b.mp4#3".
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from finc_eval.samples.clips import Clip
from finc_eval.samples.metadata import Metadata
from finc_eval.samples.source import (
    NOT_OF_THE_SAMPLE,
    THREADS,
    Pixels,
    RandomAccessSource,
    Result,
    Sample,
    ahead,
    counted,
    failure_digest,
    reason,
)
from finc_eval.samples.traits import Traits

Item = TypeVar("Item")


class Window(NamedTuple):
    """One window of a video, with the digest of the bytes that decide it, or the reason why it cannot be read."""

    pixels: Pixels | None
    traits: Traits | None
    content: bytes
    error: str | None = None


class ClipSource(RandomAccessSource):
    """Windows of videos that can be read in any order."""

    def __init__(
        self, name: str, videos: list[str], clip: Clip, ignored: dict[str, int], metadata: Metadata | None = None
    ) -> None:
        """Name the clips."""
        labels, prompts, columns = metadata or Metadata(None, None)
        labels, prompts = repeat_by_window(labels, clip), repeat_by_window(prompts, clip)
        of_windows = {column: repeat_by_window(values, clip) or [] for column, values in columns.items()}
        super().__init__(name, clip_ids(videos, clip), ignored, labels, prompts, of_windows)
        self._clip = clip

    @abstractmethod
    def windows(self, video: int, windows: Sequence[int]) -> Iterator[Window]:
        """Yield the windows of one video with these increasing numbers, also those that cannot be decoded.

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
        return _interleaved(self._clips, group_by_video(numbers, self._clip), function, threads)

    def sample(self, number: int) -> Sample:
        (group,) = group_by_video([number], self._clip)
        return next(self._clips(group))

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        return itertools.chain.from_iterable(ahead(counted(self._contents), group_by_video(numbers, self._clip)))

    def content(self, number: int) -> bytes:
        (group,) = group_by_video([number], self._clip)
        (found,) = self._contents(group)
        return found

    def _clips(self, group: tuple[int, list[int]]) -> Iterator[Sample]:
        return name_windows(self.ids, self._clip, group, self.windows(*group))

    def _contents(self, group: tuple[int, list[int]]) -> list[bytes]:
        try:
            return self.window_contents(*group)
        except NOT_OF_THE_SAMPLE:
            raise
        except Exception as error:  # zipfile's readers raise almost anything on damaged bytes
            return [failure_digest(reason(error))] * len(group[1])


def clip_ids(videos: Iterable[str], clip: Clip) -> list[str]:
    """Return the ids of all clips of the videos."""
    if clip.windows == 1:
        return list(videos)
    return [f"{video}#{window}" for video in videos for window in range(clip.windows)]


def repeat_by_window(values: Sequence[str] | None, clip: Clip) -> list[str] | None:
    """Give every window the value of its video."""
    return None if values is None else [value for value in values for _ in range(clip.windows)]


def group_by_video(numbers: Iterable[int], clip: Clip) -> Iterator[tuple[int, list[int]]]:
    """Turn increasing sample numbers into pairs of a video and its windows."""
    places = (divmod(number, clip.windows) for number in numbers)
    for video, group in itertools.groupby(places, key=lambda place: place[0]):
        yield video, [window for _, window in group]


def decoded_windows(decoded: Iterator[tuple[Pixels, Traits]], contents: Iterable[bytes]) -> Iterator[Window]:
    """Yield decoded windows with the digests of their bytes; after an error, the rest of them as failures.

    Args:
        decoded: pixels and encoding of each window.
        contents: digest of each window, which is asked for when the window has been decoded.
    """
    waiting = iter(contents)
    try:
        for pixels, traits in decoded:
            yield Window(pixels, traits, next(waiting))
    except NOT_OF_THE_SAMPLE:
        raise
    except Exception as error:  # decoders raise almost anything on damaged bytes
        yield from (Window(None, None, content, reason(error)) for content in waiting)


def name_windows(
    ids: Sequence[str], clip: Clip, group: tuple[int, list[int]], windows: Iterator[Window]
) -> Iterator[Sample]:
    """Yield the windows of one video as samples; all are failures if it cannot be opened."""
    video, numbers = group
    names = iter([ids[video * clip.windows + number] for number in numbers])
    try:
        for window in windows:
            yield Sample(next(names), window.pixels, window.error, window.traits, window.content)
    except NOT_OF_THE_SAMPLE:
        raise
    except Exception as error:  # zipfile's readers raise almost anything on damaged bytes
        failure = failure_digest(reason(error))
        yield from (Sample(name, None, reason(error), content=failure) for name in names)


def _interleaved(
    read: Callable[[Item], Iterator[Sample]], items: Iterable[Item], function: Callable[[Sample], Result], threads: int
) -> Generator[Result, None, None]:
    """Chain `function` of the samples that `read` yields for each item, while threads begin the next items.

    Each of these is one sample ahead, not more: the windows of a long video would fill the memory.
    """

    def step(samples: Iterator[Sample]) -> list[Result]:
        return [function(sample) for sample in itertools.islice(samples, 1)]

    following = counted(step)
    with ThreadPoolExecutor(threads) as pool:
        begun: deque[tuple[Iterator[Sample], Future[list[Result]]]] = deque()

        def first() -> Iterator[Result]:
            samples, waiting = begun.popleft()
            while found := waiting.result():
                waiting = pool.submit(following, samples)
                yield from found

        try:
            for item in items:
                samples = read(item)
                begun.append((samples, pool.submit(following, samples)))
                if len(begun) > threads:
                    yield from first()
            while begun:
                yield from first()
        finally:
            for _, waiting in begun:
                waiting.cancel()
