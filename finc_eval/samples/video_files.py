"""Sets of clips: windows of video files, of folders of frames, and of arrays.

A clip's id is that of its video, "a/b.mp4", and with several windows in a video the window's number, "a/b.mp4#3".
"""

from __future__ import annotations

import hashlib
import io
import itertools
import re
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from finc_eval.core.errors import FincEvalError
from finc_eval.samples.clips import Clip, gathered, window_indices
from finc_eval.samples.files import (
    HASH_CHUNK,
    VIDEO_SUFFIXES,
    annotations_of,
    files_in,
    is_hidden,
    open_zip,
    read_member,
)
from finc_eval.samples.images import IMAGE_SUFFIXES, decode
from finc_eval.samples.in_memory import check_dtype, is_tensor
from finc_eval.samples.metadata import Annotations
from finc_eval.samples.rows import NpzSource
from finc_eval.samples.source import (
    THREADS,
    Pixels,
    RandomAccessSource,
    Sample,
    Source,
    ahead,
    failure_digest,
    pixels_digest,
    reason,
)
from finc_eval.samples.traits import Traits, is_gray
from finc_eval.samples.video import read_windows

CLIP_SUFFIXES = VIDEO_SUFFIXES | {".gif"}
FRAME_SUFFIXES = IMAGE_SUFFIXES - CLIP_SUFFIXES

Item = TypeVar("Item")


def open_clips(source: Any, clip: Clip) -> Source | None:
    """Open a set of clips.

    Args:
        source: a folder or .zip of videos, at any depth, or else of folders of images, each of them the frames of one
            video in natural order (frame2 before frame10); a single video file; a uint8 array or tensor of shape
            (n, frames, height, width, 3), or an .npz with one. Images that lie among videos are no clips. Labels and
            prompts of videos are those of images: by folder, or in a metadata.csv of which file_name is the video.
        clip: which frames of a video are a clip. Folders of frames and arrays count as being at `clip.fps` already.

    Returns:
        None where `source` is something else, or a folder or .zip that holds nothing of the kind.

    Raises:
        FincEvalError: it cannot be read, or is an array of another shape or type.
    """
    if is_tensor(source):
        source = source.detach().cpu().numpy()
    if isinstance(source, np.ndarray):
        return _ArrayClips(source, clip) if source.ndim == 5 else None
    if not isinstance(source, str | Path):
        return None
    path = Path(source).expanduser()
    suffix = path.suffix.lower()
    if path.is_dir():
        return _open_files(_FolderFiles(path), clip)
    if not path.is_file():
        return None
    if suffix == ".zip":
        return _open_files(_ZipFiles(path), clip)
    if suffix == ".npz":
        return _NpzClips(path, clip)
    if suffix in CLIP_SUFFIXES:
        return _VideoFiles(_OneFile(path), [path.name], clip, {})
    return None


class _ClipSource(RandomAccessSource):
    """Windows of videos: sample v · windows + w is window w of video v."""

    def __init__(
        self,
        name: str,
        videos: list[str],
        clip: Clip,
        ignored: dict[str, int],
        annotations: Annotations,
    ) -> None:
        labels, prompts = (_repeated(of_videos, clip) for of_videos in annotations)
        super().__init__(name, _clip_ids(videos, clip), ignored, labels, prompts)
        self._clip = clip

    @abstractmethod
    def _windows(self, video: int, windows: Sequence[int]) -> Iterator[tuple[Pixels, Traits]]:
        """Yield the windows of one video with these increasing numbers."""

    @abstractmethod
    def _video_content(self, video: int) -> bytes:
        """Return a digest of one video's bytes."""

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        return _side_by_side(self._of_video, _by_video(numbers, self._clip))

    def sample(self, number: int) -> Sample:
        (place,) = _by_video([number], self._clip)
        return next(self._of_video(place))

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        groups = list(_by_video(numbers, self._clip))
        digests = ahead(self._content_or_failure, [video for video, _ in groups])
        for digest, (_, windows) in zip(digests, groups, strict=True):
            yield from itertools.repeat(digest, len(windows))

    def content(self, number: int) -> bytes:
        return self._content_or_failure(number // self._clip.windows)

    def _of_video(self, place: tuple[int, list[int]]) -> Iterator[Sample]:
        video, windows = place
        return _samples(self.ids, self._clip, video, windows, self._windows(video, windows))

    def _content_or_failure(self, video: int) -> bytes:
        try:
            return self._video_content(video)
        except MemoryError:
            raise
        except Exception as error:  # as zipfile's readers do
            return failure_digest(reason(error))


class _VideoFiles(_ClipSource):
    """Windows of encoded videos in a folder or zip."""

    kind = "videos"

    def __init__(self, files: _Files, videos: list[str], clip: Clip, ignored: dict[str, int]) -> None:
        super().__init__(files.name, videos, clip, ignored, _annotations(files, videos))
        self._files = files
        self._videos = videos

    def _windows(self, video: int, windows: Sequence[int]) -> Iterator[tuple[Pixels, Traits]]:
        with self._files.open(self._videos[video]) as stream:
            yield from read_windows(stream, self._clip, windows)

    def _video_content(self, video: int) -> bytes:
        with self._files.open(self._videos[video]) as stream:
            return _file_digest(stream)


class _FrameFolders(_ClipSource):
    """Windows of videos that lie as folders of frames in a folder or zip."""

    kind = "frames"

    def __init__(self, files: _Files, frames: dict[str, list[str]], clip: Clip, ignored: dict[str, int]) -> None:
        videos = list(frames)
        super().__init__(files.name, videos, clip, ignored, _annotations(files, videos))
        self._files = files
        self._frames = list(frames.values())

    def _windows(self, video: int, windows: Sequence[int]) -> Iterator[tuple[Pixels, Traits]]:
        names = self._frames[video]
        plan = window_indices(len(names), None, self._clip)[list(windows)]
        traits: list[Traits] = []

        def frames() -> Iterator[tuple[int, Pixels]]:
            for number in np.unique(plan).tolist():
                with self._files.open(names[number]) as stream:
                    pixels, encoding = decode(stream)
                traits.append(encoding)
                yield number, pixels

        for pixels in gathered(plan, frames()):
            yield pixels, traits[0]

    def _video_content(self, video: int) -> bytes:
        digest = hashlib.blake2b(digest_size=32)
        for name in self._frames[video]:
            with self._files.open(name) as stream:
                digest.update(_file_digest(stream))
        return digest.digest()


class _ArrayClips(_ClipSource):
    """Windows of the rows of an array, (n, frames, height, width, 3) uint8."""

    kind = "array"

    def __init__(self, array: npt.NDArray[np.uint8], clip: Clip) -> None:
        _check_clips(array.shape, array.dtype, "the array")
        super().__init__("array", [str(row) for row in range(len(array))], clip, {}, Annotations(None, None))
        self._array = array

    def _windows(self, video: int, windows: Sequence[int]) -> Iterator[tuple[Pixels, Traits]]:
        return _windows_of_row(self._array[video], self._clip, windows)

    def _video_content(self, video: int) -> bytes:
        return pixels_digest(self._array[video])


class _NpzClips(NpzSource):
    """Windows of the rows of an array in an npz file, (n, frames, height, width, 3) uint8, streamed."""

    def __init__(self, path: Path, clip: Clip) -> None:
        super().__init__(path)
        self.ids = _clip_ids(self.ids, clip)
        self.labels = _repeated(self.labels, clip)
        self._clip = clip

    def _check(self, shape: tuple[int, ...], dtype: np.dtype[Any], who: str) -> None:
        _check_clips(shape, dtype, who)

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        groups = list(_by_video(numbers, self._clip))
        rows = self._rows([video for video, _ in groups])
        for (video, windows), row in zip(groups, rows, strict=True):
            yield from _samples(self.ids, self._clip, video, windows, _windows_of_row(row, self._clip, windows))

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        groups = list(_by_video(numbers, self._clip))
        rows = self._rows([video for video, _ in groups])
        for (_, windows), row in zip(groups, rows, strict=True):
            yield from itertools.repeat(pixels_digest(row), len(windows))


def _check_clips(shape: tuple[int, ...], dtype: np.dtype[Any], who: str) -> None:
    """Refuse arrays that are not n videos, and say how to turn them into such."""
    found = f"{who} has shape {shape} and dtype {dtype}"
    check_dtype(dtype, found)
    if len(shape) != 5 or shape[4] != 3:
        how = "reshape it"
        if len(shape) == 5 and 3 in shape[1:3]:
            how = f"pass x.transpose(0, {'2, 3, 4, 1' if shape[1] == 3 else '1, 3, 4, 2'})"
        elif len(shape) in (3, 4):
            how = "images need an extractor for images (finc-eval extractors list)"
        raise FincEvalError(f"{found}, but clips must be (n, frames, height, width, 3): {how}")
    if 0 in shape:
        raise FincEvalError(f"{found}: it holds no pixels")


class _Files(Protocol):
    """Files by their relative paths with forward slashes, wherever they lie."""

    name: str

    def names(self) -> Iterable[str]: ...

    def open(self, name: str) -> IO[bytes]: ...


class _FolderFiles:
    def __init__(self, root: Path) -> None:
        self.name = str(root.resolve())

    def names(self) -> Iterable[str]:
        return files_in(Path(self.name))

    def open(self, name: str) -> IO[bytes]:
        return Path(self.name, name).open("rb")


class _ZipFiles:
    def __init__(self, path: Path) -> None:
        self.name = str(path.resolve())
        self._zip = open_zip(path)

    def names(self) -> Iterable[str]:
        infos = self._zip.infolist()
        return {info.filename for info in infos if not info.is_dir() and not is_hidden(PurePosixPath(info.filename))}

    def open(self, name: str) -> IO[bytes]:
        # Demuxers jump about, for which a compressed member would be unpacked over and over. This also checks its sum.
        return io.BytesIO(read_member(self._zip, name))


class _OneFile:
    def __init__(self, path: Path) -> None:
        self.name = str(path.resolve())

    def names(self) -> Iterable[str]:
        return [Path(self.name).name]

    def open(self, name: str) -> IO[bytes]:
        if name not in self.names():
            raise FileNotFoundError(name)
        return Path(self.name).open("rb")


def _open_files(files: _Files, clip: Clip) -> Source | None:
    """Sort out what is a clip: the videos, or else the folders that hold images."""
    by_suffix: dict[str, list[str]] = {}
    for name in files.names():
        by_suffix.setdefault(PurePosixPath(name).suffix.lower(), []).append(name)
    for suffixes in (CLIP_SUFFIXES, FRAME_SUFFIXES):
        chosen = [name for suffix in suffixes for name in by_suffix.get(suffix, ())]
        ignored = {suffix or "no suffix": len(by_suffix[suffix]) for suffix in sorted(set(by_suffix) - suffixes)}
        if chosen and suffixes is CLIP_SUFFIXES:
            return _VideoFiles(files, sorted(chosen), clip, ignored)
        if chosen:
            return _FrameFolders(files, _folders(chosen, PurePosixPath(files.name).stem), clip, ignored)
    return None


def _annotations(files: _Files, videos: list[str]) -> Annotations:
    """Labels and prompts of videos, as those of images: in metadata.csv and its like, or by folder."""

    def read(name: str) -> bytes:
        with files.open(name) as stream:
            return stream.read()

    return annotations_of(videos, Path(files.name), read)


def _folders(frames: list[str], root: str) -> dict[str, list[str]]:
    """Gather frames by the folder they lie in, in natural order; those at the top belong to the clip `root`."""
    folders: dict[str, list[str]] = {}
    for name in sorted(frames, key=_natural):
        folders.setdefault(name.rpartition("/")[0] or root, []).append(name)
    return dict(sorted(folders.items()))


def _natural(name: str) -> tuple[list[tuple[str, int]], str]:
    """Sort key by which frame2 comes before frame10."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)], name


def _windows_of_row(row: Pixels, clip: Clip, windows: Sequence[int]) -> Iterator[tuple[Pixels, Traits]]:
    height, width = row.shape[1:3]
    for indices in window_indices(len(row), None, clip)[list(windows)]:
        pixels = row[indices]
        yield pixels, Traits("array", "RGB", width, height, all(map(is_gray, pixels)))


def _clip_ids(videos: Iterable[str], clip: Clip) -> list[str]:
    if clip.windows == 1:
        return list(videos)
    return [f"{video}#{window}" for video in videos for window in range(clip.windows)]


def _repeated(values: Sequence[str] | None, clip: Clip) -> list[str] | None:
    """Give every window what belongs to its video."""
    return None if values is None else [value for value in values for _ in range(clip.windows)]


def _by_video(numbers: Iterable[int], clip: Clip) -> Iterator[tuple[int, list[int]]]:
    """Turn increasing sample numbers into (video, its windows)."""
    places = (divmod(number, clip.windows) for number in numbers)
    for video, group in itertools.groupby(places, key=lambda place: place[0]):
        yield video, [window for _, window in group]


def _samples(
    ids: Sequence[str], clip: Clip, video: int, windows: Sequence[int], made: Iterator[tuple[Pixels, Traits]]
) -> Iterator[Sample]:
    """Name the windows of one video; those that cannot be made carry the reason."""
    names = iter([ids[video * clip.windows + window] for window in windows])
    try:
        for pixels, traits in made:
            yield Sample(next(names), pixels, None, traits)
    except MemoryError:
        raise
    except Exception as error:  # decoders raise almost anything on damaged bytes
        yield from (Sample(name, None, reason(error)) for name in names)


def _file_digest(stream: IO[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    while chunk := stream.read(HASH_CHUNK):
        digest.update(chunk)
    return digest.digest()


def _side_by_side(read: Callable[[Item], Iterator[Sample]], items: Iterable[Item]) -> Generator[Sample, None, None]:
    """Chain `read` over items, some of which are begun in threads while the first is used up.

    Each of them is a sample ahead, not more: the windows of a long video would fill the memory.
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
