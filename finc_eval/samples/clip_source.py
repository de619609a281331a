"""Sets whose samples are windows of videos: sample v · windows + w is window w of video v.

The id of a clip is that of its video, "a/b.mp4"; where a video has several windows, their number follows: "a/b.mp4#3".
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from finc_eval.samples.clips import Clip
from finc_eval.samples.metadata import Metadata
from finc_eval.samples.source import THREADS, Pixels, RandomAccessSource, Sample, ahead, failure_digest, reason
from finc_eval.samples.traits import Traits

Item = TypeVar("Item")


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
    def windows(self, video: int, windows: Sequence[int]) -> Iterator[tuple[Pixels, Traits]]:
        """Yield the windows of one video with these increasing numbers."""

    @abstractmethod
    def video_content(self, video: int) -> bytes:
        """Return a digest of one video's bytes."""

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        return _interleaved(self._clips, group_by_video(numbers, self._clip))

    def sample(self, number: int) -> Sample:
        (group,) = group_by_video([number], self._clip)
        return next(self._clips(group))

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        groups = list(group_by_video(numbers, self._clip))
        digests = ahead(self._content_or_failure, [video for video, _ in groups])
        for digest, (_, windows) in zip(digests, groups, strict=True):
            yield from itertools.repeat(digest, len(windows))

    def content(self, number: int) -> bytes:
        return self._content_or_failure(number // self._clip.windows)

    def _clips(self, group: tuple[int, list[int]]) -> Iterator[Sample]:
        return name_windows(self.ids, self._clip, group, self.windows(*group))

    def _content_or_failure(self, video: int) -> bytes:
        try:
            return self.video_content(video)
        except MemoryError:
            raise
        except Exception as error:  # zipfile's readers raise almost anything on damaged bytes
            return failure_digest(reason(error))


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


def name_windows(
    ids: Sequence[str], clip: Clip, group: tuple[int, list[int]], windows: Iterator[tuple[Pixels, Traits]]
) -> Iterator[Sample]:
    """Yield the windows of one video as samples; after an error, the rest of them as failures with its reason."""
    video, numbers = group
    names = iter([ids[video * clip.windows + number] for number in numbers])
    try:
        for pixels, traits in windows:
            yield Sample(next(names), pixels, None, traits)
    except MemoryError:
        raise
    except Exception as error:  # decoders raise almost anything on damaged bytes
        yield from (Sample(name, None, reason(error)) for name in names)


def _interleaved(read: Callable[[Item], Iterator[Sample]], items: Iterable[Item]) -> Generator[Sample, None, None]:
    """Chain `read` over the items, while threads begin the next items.

    Each of these is one sample ahead, not more: the windows of a long video would fill the memory.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        begun: deque[tuple[Iterator[Sample], Future[Sample | None]]] = deque()

        def first() -> Iterator[Sample]:
            samples, waiting = begun.popleft()
            while (sample := waiting.result()) is not None:
                waiting = pool.submit(next, samples, None)
                yield sample

        try:
            for item in items:
                samples = read(item)
                begun.append((samples, pool.submit(next, samples, None)))
                if len(begun) > THREADS:
                    yield from first()
            while begun:
                yield from first()
        finally:
            for _, waiting in begun:
                waiting.cancel()
