"""Sets of clips in files: windows of encoded videos, or of folders of frames; and how sets of clips are opened."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from statistics import median
from typing import IO, Any

import numpy as np
from PIL import Image

from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError
from finc_eval.core.memory import excess
from finc_eval.core.places import is_url
from finc_eval.core.words import plural
from finc_eval.samples.animations.decode import ANIMATION_SUFFIXES, is_animation
from finc_eval.samples.clip_source import ClipSource, RowClips, check_clips, decode_windows
from finc_eval.samples.clips import Clip, ClipPlan, DecodedWindow, FrameIndices, gather, plan_windows
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.files import (
    BY_NAME,
    VIDEO_SUFFIXES,
    Files,
    FolderFiles,
    Settled,
    UrlFiles,
    ZipFiles,
    metadata_of,
    whole,
    whole_or_reason,
)
from finc_eval.samples.images import IMAGE_SUFFIXES, decode
from finc_eval.samples.metadata import METADATA_FILES
from finc_eval.samples.reading import BRACES, EVERYTHING, Reading
from finc_eval.samples.rows import ArraySource, NpzSource, is_tensor, tensor_values
from finc_eval.samples.source import COPIES, NOT_OF_THE_SAMPLE, Pixels, Sample, Source, content_digest
from finc_eval.samples.video_process import read_windows
from finc_eval.samples.whole.course import MAX_COURSE, ClipCourse, join_course, shrink

CLIP_SUFFIXES = VIDEO_SUFFIXES | {".gif"}
FRAME_SUFFIXES = IMAGE_SUFFIXES - CLIP_SUFFIXES

NUMBER = re.compile(r"([0-9]{1,18})")  # number in the name of a frame


def open_rows_of_clips(source: Any, clip: Clip, reading: Reading = EVERYTHING) -> Source | None:
    """Open a uint8 array or tensor of shape (n, frames, height, width, 3); None for other numbers of dimensions."""
    if is_tensor(source):
        source = tensor_values(source, "the tensor")
    reading.refuse("the array")
    if source.ndim != 5:
        return None
    check_clips(source.shape, source.dtype, "the array")
    # Copies, so that what is decoded is what was hashed, whatever happens to the array.
    return RowClips(ArraySource(source), lambda numbers: (source[number].copy() for number in numbers), clip)


def open_url_of_clips(text: str, clip: Clip, reading: Reading = EVERYTHING) -> Source | None:
    """Open the URL of a folder as `open_path_of_clips` opens folders; None for a pattern."""
    return _open_files(UrlFiles(text), clip, reading) if is_url(text) and not BRACES.search(text) else None


def open_path_of_clips(path: Path, clip: Clip, reading: Reading = EVERYTHING) -> Source | None:
    """Open a set of clips; None for any other file, and for a folder or .zip without videos and frames.

    `path` is one of
        a folder or .zip of videos at any depth, GIF and animated WebP and PNG among them; images among the videos are
        ignored;
        a folder or .zip of folders of images, each with the frames of one video in natural order (frame2 before
        frame10); one whose numbers have gaps is a failure;
        a single video file;
        an .npz with a uint8 array of shape (n, frames, height, width, 3).
    Labels and prompts of videos are found as for images: by folder, or in a metadata.csv whose file_name is the video.
    Folders of frames and arrays count as having the rate `clip.fps`.
    """
    suffix = path.suffix.lower()
    if path.is_dir():
        return _open_files(FolderFiles(path), clip, reading)
    if suffix == ".zip":
        return _open_files(ZipFiles(path), clip, reading)
    if suffix not in CLIP_SUFFIXES | ANIMATION_SUFFIXES | {".npz"}:
        return None
    reading.refuse(str(path))
    if suffix != ".npz":
        return VideoFiles(_OneFile(path), [path.name], clip, {})
    array = NpzSource(path, check=check_clips)
    return RowClips(array, array.rows.at, clip)


class VideoFiles(ClipSource):
    """Windows of encoded videos in a folder or zip."""

    kind = "videos"

    def __init__(self, files: Files, videos: list[str], clip: Clip, ignored: dict[str, int]) -> None:
        super().__init__(files.name, videos, clip, ignored, metadata_of(files, videos))
        self._files = files
        self._videos = videos

    def windows(self, video: int, windows: Sequence[int], names: Sequence[str]) -> Iterator[Sample]:
        with self._files.open(self._videos[video]) as stream:
            file = Settled(stream)
            contents = (file.content() for _ in windows)
            decoded = read_windows(file.stream, self._clip, windows, with_course=self._has_courses)
            yield from decode_windows(names, decoded, contents)

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

    def windows(self, video: int, windows: Sequence[int], names: Sequence[str]) -> Iterator[Sample]:
        files, plan = self._frames[video], self._plan(video, windows)
        course = self._course(files) if self._has_courses else None
        seen: dict[int, bytes] = {}

        def decoded() -> Iterator[DecodedWindow]:
            encodings: list[Encoding] = []

            def frames() -> Iterator[tuple[int, Pixels]]:
                for number in np.unique(plan.indices).tolist():
                    with self._files.open(files[number]) as stream:
                        data = whole(stream)
                    seen[number] = content_digest(data)
                    pixels, encoding = decode(io.BytesIO(data))
                    if phrase := excess(COPIES * self._clip.frames * pixels.nbytes):
                        raise ValueError(f"a window of {phrase}")
                    encodings.append(encoding)
                    yield number, pixels

            for pixels, times in zip(gather(plan.indices, frames()), plan.times, strict=False):
                yield DecodedWindow(pixels, times, replace(encodings[0], frames=len(files)), course)

        yield from decode_windows(names, decoded(), self._digests(files, plan.indices, seen))

    def _course(self, files: Sequence[str]) -> ClipCourse | None:
        """Read the frames of a video once more, one at a time, as small frames; None if one of them is damaged."""
        small = []
        try:
            for name in files[:MAX_COURSE]:
                with self._files.open(name) as stream:
                    small.append(shrink(decode(io.BytesIO(whole(stream)))[0]))
        except NOT_OF_THE_SAMPLE:
            raise
        except Exception:  # decoders raise almost anything on damaged bytes; the windows may have none of these frames
            return None
        return join_course(small, self._clip.fps)

    def window_contents(self, video: int, windows: Sequence[int]) -> list[bytes]:
        return list(self._digests(self._frames[video], self._plan(video, windows).indices, {}))

    def _plan(self, video: int, windows: Sequence[int]) -> ClipPlan:
        """Choose the frames of some windows; ValueError where a step between frames is unlike the others."""
        series = list(_find_series(self._frames[video]).values())
        numbers = sorted(number for number, _ in series[0])
        steps = [after - before for before, after in pairwise(numbers)]
        if len(series) == 1 and len(steps) > 1:
            usual = max(1, int(median(steps)))
            if gaps := [number for number, step in enumerate(steps) if step >= 2 * usual]:
                raise ValueError(
                    f"frames are missing between {numbers[gaps[0]]} and {numbers[gaps[0] + 1]}: restore them, or "
                    "renumber the others"
                )
        return plan_windows(len(self._frames[video]), None, self._clip, windows=windows)

    def _digests(self, names: Sequence[str], plan: FrameIndices, seen: dict[int, bytes]) -> Iterator[bytes]:
        """Yield the digest of each window, made of the digests of its frames; some of them are known."""
        for row in plan.tolist():
            for number in row:
                if number not in seen:
                    seen[number] = content_digest(whole_or_reason(partial(self._files.open, names[number])))
            yield content_digest(b"".join(seen[number] for number in row))


class _OneFile(FolderFiles):
    """A single file, in the form of a folder without other files: its folder's metadata are not read."""

    kind = "file"

    def size(self, name: str) -> int:
        if name != Path(self.name).name:
            raise FileNotFoundError(name)
        return Path(self.name).stat().st_size

    def open(self, name: str) -> IO[bytes]:
        self.size(name)  # FileNotFoundError for another name
        return open_file(Path(self.name))


def _open_files(files: Files, clip: Clip, reading: Reading) -> Source | None:
    """Open the videos among the files; without any, the folders of frames; None without either."""
    every = [name for name in files.names() if name not in METADATA_FILES]
    names = [name for name in every if reading.takes(name)]
    by_name = {BY_NAME: len(every) - len(names)} if len(names) < len(every) else {}
    animated = _find_animations(files, names)
    by_suffix: dict[str, list[str]] = {}
    for name in names:
        by_suffix.setdefault(PurePosixPath(name).suffix.lower(), []).append(name)

    def ignored(chosen: Iterable[str]) -> dict[str, int]:
        others = Counter(PurePosixPath(name).suffix.lower() or "no suffix" for name in set(names).difference(chosen))
        return dict(sorted({**others, **by_name}.items()))

    videos = sorted([name for suffix in CLIP_SUFFIXES for name in by_suffix.get(suffix, ())] + animated)
    frames = [name for suffix in FRAME_SUFFIXES for name in by_suffix.get(suffix, ()) if name not in set(animated)]
    if videos:
        folders = {name.rpartition("/")[0] for name in frames}
        if sequences := [folder for folder in folders if sum(name.rpartition("/")[0] == folder for name in frames) > 1]:
            warnings.warn(
                f"{files.name} holds {plural(len(videos), 'video')}, and {plural(len(frames), 'image')} in "
                f"{plural(len(sequences), 'folder')}, which are left out: if they are the frames of videos, pass them "
                "as a set of their own",
                stacklevel=2,
            )
        return VideoFiles(files, videos, clip, ignored(videos))
    if frames:
        frames_of: dict[str, list[str]] = {}
        for name in sorted(frames, key=_natural):
            frames_of.setdefault(name.rpartition("/")[0] or PurePosixPath(files.name).stem, []).append(name)
        for folder, inside in sorted(frames_of.items()):
            _check_one_video(folder, inside)
        _refuse_photographs(files, frames_of)
        return FrameFolders(files, dict(sorted(frames_of.items())), clip, ignored(frames))
    return None


def _find_animations(files: Files, names: Sequence[str]) -> list[str]:
    """Return the WebP and PNG files of folders in which the first of them is an animation."""
    animations: list[str] = []
    groups: dict[tuple[str, str], list[str]] = {}
    for name in sorted(names):
        suffix = PurePosixPath(name).suffix.lower()
        if suffix in ANIMATION_SUFFIXES:
            groups.setdefault((name.rpartition("/")[0], suffix), []).append(name)
    for group in groups.values():
        try:
            with files.open(group[0]) as stream:
                animations += group if is_animation(stream) else []
        except NOT_OF_THE_SAMPLE:
            raise
        except Exception:  # zipfile's readers raise almost anything on damaged bytes
            continue
    return animations


def _check_one_video(folder: str, frames: Sequence[str]) -> None:
    """Raise DataError for a folder whose files are not the frames of one video, each of them once."""
    series = _find_series(frames)
    twice = [
        (before, after)
        for inside in series.values()
        for (first, before), (second, after) in pairwise(sorted(inside))
        if first == second
    ]
    if twice:
        before, after = (PurePosixPath(name).name for name in twice[0])
        raise DataError(
            f"the folder {folder} holds {plural(len(twice), 'frame')} more than once, such as {before} and {after}: "
            "keep one file for each frame"
        )
    if 1 < len(series) < len(frames):
        shown = ", ".join(f"{name} ({plural(len(inside), 'file')})" for name, inside in list(series.items())[:3])
        raise DataError(
            f"the folder {folder} holds {len(series)} series of files ({shown}): give each video a "
            "folder of its own, or choose a series by its names, as include does (--include on the command line)"
        )


FRAMES_SEEN = 16  # frames of a folder that are looked at, one after the other, in each of the first folders
MOST_CHANGE = 0.8
"""Part of the difference of any two frames up to which those differ that follow one another, by medians. 11 videos have
.25 to .48, 58 series of 16 photographs .86 to 1.07."""
LEAST_DIFFERENCE = 8  # of 255: in a video that stands still, frames differ by noise alone
THUMBNAIL = (16, 16)


def _refuse_photographs(files: Files, frames_of: Mapping[str, Sequence[str]]) -> None:
    """Raise DataError if images follow one another no more alike than any two, as photographs with numbers do."""
    folders = [inside for inside in frames_of.values() if len(inside) >= FRAMES_SEEN // 2][:3]
    try:
        alike = [_are_photographs(files, inside[:FRAMES_SEEN]) for inside in folders]
    except NOT_OF_THE_SAMPLE:
        raise
    except Exception:  # what cannot be decoded is said where it is read
        return
    if alike and all(alike):
        raise DataError(
            f"{files.name} holds images that follow one another no more alike than any two of them, as photographs do, "
            "and the extractor takes clips: choose an extractor for images (finc-eval doctor extractors list), or pass "
            "the frames of each video as a file or an array"
        )


def _are_photographs(files: Files, frames: Sequence[str]) -> bool:
    thumbnails = []
    for name in frames:
        with files.open(name) as stream:
            pixels, _ = decode(io.BytesIO(whole(stream)))
        small = Image.fromarray(pixels).convert("L").resize(THUMBNAIL, Image.Resampling.BOX)
        thumbnails.append(np.asarray(small, float).ravel())
    flat = np.array(thumbnails)
    differences = np.linalg.norm(flat[:, None] - flat, axis=2) / math.sqrt(math.prod(THUMBNAIL))
    following, any_two = np.median(np.diag(differences, 1)), np.median(differences[np.triu_indices(len(frames), 1)])
    return bool(any_two > LEAST_DIFFERENCE and following > MOST_CHANGE * any_two)


def _find_series(frames: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
    """Gather frames by their names without their number, with which they are listed.

    That is the last number in which names with the same text differ: 8 of "frame_0008_left2". Without any, it is 0.
    """
    by_text: dict[tuple[str, ...], list[tuple[list[str], str]]] = {}
    for name in frames:
        pieces = NUMBER.split(PurePosixPath(name).stem)
        by_text.setdefault(tuple(pieces[::2]), []).append((pieces, name))
    series: dict[str, list[tuple[int, str]]] = {}
    for alike in by_text.values():
        columns = list(zip(*(pieces for pieces, _ in alike), strict=True))
        column = max((column for column in range(1, len(columns), 2) if len(set(columns[column])) > 1), default=None)
        for pieces, name in alike:
            number = "0" if column is None else pieces[column]
            shown = pieces if column is None else [*pieces[:column], "*", *pieces[column + 1 :]]
            series.setdefault("".join(shown), []).append((int(number), name))
    return series


def _natural(name: str) -> tuple[list[tuple[str, int, str]], str]:
    """Return a sort key under which frame2 comes before frame10."""
    parts = re.findall(r"([^0-9]*)0*([0-9]*)", name)
    return [(text, len(digits), digits) for text, digits in parts], name
