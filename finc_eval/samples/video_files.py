"""Sets of clips in files: windows of encoded videos, or of folders of frames. `open_clips` opens any set of clips."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from finc_eval.core.doors.reading import opened
from finc_eval.core.memory import excess
from finc_eval.core.remote.urls import is_url, place_of
from finc_eval.samples.clip_rows import ArrayClips, NpzClips
from finc_eval.samples.clip_source import ClipSource, Window, decoded_windows
from finc_eval.samples.clips import Clip, FrameIndices, gathered, window_indices
from finc_eval.samples.files import VIDEO_SUFFIXES, Files, FolderFiles, Settled, UrlFiles, ZipFiles, metadata_of, whole
from finc_eval.samples.images import IMAGE_SUFFIXES, decode
from finc_eval.samples.in_memory import is_tensor, tensor_values
from finc_eval.samples.source import COPIES, NOT_OF_THE_SAMPLE, Pixels, Source, bytes_digest, failure_digest, reason
from finc_eval.samples.tar import BRACES
from finc_eval.samples.traits import Traits
from finc_eval.samples.video import read_windows

CLIP_SUFFIXES = VIDEO_SUFFIXES | {".gif"}
FRAME_SUFFIXES = IMAGE_SUFFIXES - CLIP_SUFFIXES


def open_clips(source: Any, clip: Clip) -> Source | None:
    """Open a set of clips.

    Args:
        source: one of
            a folder or .zip of videos at any depth; images among the videos are ignored;
            a folder or .zip of folders of images, each with the frames of one video in natural order (frame2 before
            frame10);
            a single video file;
            a uint8 array or tensor of shape (n, frames, height, width, 3), or an .npz with one.
            Labels and prompts of videos are found as those of images: by folder, or in a metadata.csv whose file_name
            is the video.
        clip: choice of the frames of a clip. Folders of frames and arrays count as having the rate `clip.fps`.

    Returns:
        The set; None for anything else, and for a folder or .zip without videos and frames.
    """
    if is_tensor(source):
        source = tensor_values(source, "the tensor")
    if isinstance(source, np.ndarray):
        return ArrayClips(source, clip) if source.ndim == 5 else None
    if not isinstance(source, str | Path):
        return None
    if is_url(source):
        return None if BRACES.search(str(source)) else _open_files(UrlFiles(str(source)), clip)
    path = Path(source).expanduser()
    suffix = path.suffix.lower()
    if path.is_dir():
        return _open_files(FolderFiles(path), clip)
    if not path.exists():
        return None
    if suffix == ".zip":
        return _open_files(ZipFiles(path), clip)
    if suffix == ".npz":
        return NpzClips(path, clip)
    if suffix in CLIP_SUFFIXES:
        return VideoFiles(_OneFile(path), [path.name], clip, {})
    return None


class VideoFiles(ClipSource):
    """Windows of encoded videos in a folder or zip."""

    kind = "videos"

    def __init__(self, files: Files, videos: list[str], clip: Clip, ignored: dict[str, int]) -> None:
        super().__init__(files.name, videos, clip, ignored, metadata_of(files, videos))
        self._files = files
        self._videos = videos

    def windows(self, video: int, windows: Sequence[int]) -> Iterator[Window]:
        with self._files.open(self._videos[video]) as stream:
            file = Settled(stream)
            contents = (file.content() for _ in windows)
            yield from decoded_windows(read_windows(file.stream, self._clip, windows), contents)

    def window_contents(self, video: int, windows: Sequence[int]) -> list[bytes]:
        with self._files.open(self._videos[video]) as stream:
            return [Settled(stream).content()] * len(windows)


class FrameFolders(ClipSource):
    """Windows of videos that are stored as folders of frames in a folder or zip."""

    kind = "frames"

    def __init__(self, files: Files, frames: dict[str, list[str]], clip: Clip, ignored: dict[str, int]) -> None:
        """Take the frames of each video by its id."""
        videos = list(frames)
        super().__init__(files.name, videos, clip, ignored, metadata_of(files, videos))
        self._files = files
        self._frames = list(frames.values())

    def windows(self, video: int, windows: Sequence[int]) -> Iterator[Window]:
        names, plan = self._frames[video], self._plan(video, windows)
        seen: dict[int, bytes] = {}

        def decoded() -> Iterator[tuple[Pixels, Traits]]:
            traits: list[Traits] = []

            def frames() -> Iterator[tuple[int, Pixels]]:
                for number in np.unique(plan).tolist():
                    with self._files.open(names[number]) as stream:
                        data = whole(stream)
                    seen[number] = bytes_digest(data)
                    pixels, encoding = decode(io.BytesIO(data))
                    if phrase := excess(COPIES * self._clip.frames * pixels.nbytes):
                        raise ValueError(f"a window of {phrase}")
                    traits.append(encoding)
                    yield number, pixels

            for pixels in gathered(plan, frames()):
                yield pixels, traits[0]

        return decoded_windows(decoded(), self._digests(names, plan, seen))

    def window_contents(self, video: int, windows: Sequence[int]) -> list[bytes]:
        return list(self._digests(self._frames[video], self._plan(video, windows), {}))

    def _plan(self, video: int, windows: Sequence[int]) -> FrameIndices:
        return window_indices(len(self._frames[video]), None, self._clip)[list(windows)]

    def _digests(self, names: Sequence[str], plan: FrameIndices, seen: dict[int, bytes]) -> Iterator[bytes]:
        """Yield the digest of each window: that of the digests of its frames, of which some are known."""
        for row in plan.tolist():
            for number in row:
                if number not in seen:
                    seen[number] = self._frame_content(names[number])
            yield bytes_digest(b"".join(seen[number] for number in row))

    def _frame_content(self, name: str) -> bytes:
        try:
            with self._files.open(name) as stream:
                return bytes_digest(whole(stream))
        except NOT_OF_THE_SAMPLE:
            raise
        except Exception as error:  # zipfile's readers raise almost anything on damaged bytes
            return failure_digest(reason(error))


class _OneFile:
    """A single file, in the form of a folder without other files: its folder's metadata are not read."""

    kind = "file"

    def __init__(self, path: Path) -> None:
        self.name = place_of(path)

    def names(self) -> Iterable[str]:
        return [Path(self.name).name]

    def size(self, name: str) -> int:
        if name not in self.names():
            raise FileNotFoundError(name)
        return Path(self.name).stat().st_size

    def open(self, name: str) -> IO[bytes]:
        if name not in self.names():
            raise FileNotFoundError(name)
        return opened(Path(self.name))


def _open_files(files: Files, clip: Clip) -> Source | None:
    """Open the videos among the files; without any, the folders of frames; None without either."""
    by_suffix: dict[str, list[str]] = {}
    for name in files.names():
        by_suffix.setdefault(PurePosixPath(name).suffix.lower(), []).append(name)

    def divide(suffixes: frozenset[str]) -> tuple[list[str], dict[str, int]]:
        chosen = [name for suffix in suffixes for name in by_suffix.get(suffix, ())]
        others = sorted(set(by_suffix) - suffixes)
        return chosen, {suffix or "no suffix": len(by_suffix[suffix]) for suffix in others}

    videos, ignored = divide(CLIP_SUFFIXES)
    if videos:
        return VideoFiles(files, sorted(videos), clip, ignored)
    frames, ignored = divide(FRAME_SUFFIXES)
    if frames:
        return FrameFolders(files, _by_folder(frames, PurePosixPath(files.name).stem), clip, ignored)
    return None


def _by_folder(frames: list[str], root: str) -> dict[str, list[str]]:
    """Gather frames by their folder, in natural order; those at the top belong to the video `root`."""
    folders: dict[str, list[str]] = {}
    for name in sorted(frames, key=_natural):
        folders.setdefault(name.rpartition("/")[0] or root, []).append(name)
    return dict(sorted(folders.items()))


def _natural(name: str) -> tuple[list[tuple[str, int, str]], str]:
    """Return a sort key under which frame2 comes before frame10."""
    parts = re.findall(r"([^0-9]*)0*([0-9]*)", name)
    return [(text, len(digits), digits) for text, digits in parts], name
