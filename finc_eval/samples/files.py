"""Files in a folder or a zip, and the sets in which each file is an image."""

from __future__ import annotations

import hashlib
import io
import os
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from posixpath import basename, dirname, splitext
from typing import IO, NamedTuple

from finc_eval.core.doors import at_most, open_file, open_unbuffered
from finc_eval.core.errors import DataError
from finc_eval.core.files.archives import DAMAGED, open_member, open_zip_file
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.stated import check_stated
from finc_eval.core.memory import BYTES_PER_TEXT_BYTE, ENCODED, excess, max_decoded, readable
from finc_eval.core.places import place_of, url_of
from finc_eval.core.remote.mirror import files_below
from finc_eval.samples.clips import CLIPS
from finc_eval.samples.encoding import OVERVIEW, grid_shape
from finc_eval.samples.images import IMAGE_SUFFIXES, SIGNATURE_BYTES, SIGNATURES, decode_image, size_of
from finc_eval.samples.metadata import FOLDER_FILES, METADATA_FILES, Metadata, find_metadata
from finc_eval.samples.reading import EVERYTHING, Reading
from finc_eval.samples.source import DIGEST_BYTES, NOT_OF_THE_SAMPLE, RandomAccessSource, Sample, content_digest, reason

FILE_COPIES = 2  # times its size that a file takes while it is unpacked into memory
MAX_BYTES_IN_MEMORY = 64 << 20  # bytes of a video up to which it is decoded from memory

MAX_LINKED = 1000
"""Links to folders behind other such links that are followed: 8 folders linked with each other have 100,000 ways."""

FOLLOW_LINKS = "FINC_EVAL_FOLLOW_LINKS"  # environment variable that lets links in a folder of samples lead out of it

VIDEO_SUFFIXES = frozenset({".mp4", ".avi", ".mkv", ".webm", ".mov", ".m4v", ".3gp", ".flv"}) | frozenset(
    {".mpg", ".mpeg", ".ts", ".wmv", ".ogv"}
)

OTHER_SUFFIXES = VIDEO_SUFFIXES | {".csv", ".json", ".jsonl", ".txt", ".npy", ".npz", ".tar", ".zip", ".pt", ".h5"}
"""Suffixes of files that are never images."""

BACKUPS = re.compile(r"[~#]$|\.(?:bak|orig|old|tmp|part|crdownload|sw[op])$|_original$", re.IGNORECASE)
"""Ends of the names that editors and programs give to copies of a file."""

BY_NAME = "left out by name"  # name of the files that patterns of the user leave out, in counts of what is not a sample

IN_FOLDERS = {name: f"{name} in a subfolder" for name in FOLDER_FILES}  # names of tables that were not read, in counts

GRIDS, SHEETS = "pictures beside a folder of samples", "grids of samples"  # names of overviews, in counts

MAX_SUFFIXES = 8  # suffixes of other files that a message names


class FolderFiles:
    """Files in a folder and in its subfolders, without hidden files, by their relative paths with forward slashes."""

    kind = "folder"

    def __init__(self, path: Path) -> None:
        self.name = place_of(path)

    def names(self) -> Iterable[str]:
        return files_in(Path(self.name))

    def open(self, name: str) -> IO[bytes]:
        return open_unbuffered(os.path.join(self.name, name))  # noqa: PTH118 (a Path for each image takes long)

    def size(self, name: str) -> int:
        return Path(self.name, name).stat().st_size


class UrlFiles:
    """Files in a remote folder and below it; each is copied to the local disk when it is opened."""

    kind = "folder"

    def __init__(self, url: str) -> None:
        self.name = place_of(url)
        self._url = str(url_of(url)).rstrip("/")
        self._sizes = files_below(self._url)

    def names(self) -> Iterable[str]:
        return [name for name in self._sizes if not is_hidden(name)]

    def open(self, name: str) -> IO[bytes]:
        self.size(name)  # KeyError if it is missing, without a request
        return open_file(on_disk(f"{self._url}/{name}"))

    def size(self, name: str) -> int:
        return self._sizes[name]


class ZipFiles:
    """Members of a zip file, at any depth."""

    kind = "zip"

    def __init__(self, path: Path) -> None:
        self.name = place_of(path)
        try:
            self._zip = open_zip_file(path)
        except DAMAGED as error:
            raise DataError(
                f"{path} cannot be read as a {path.suffix.lower()} file ({reason(error)}): "
                "it may be cut short or of another type; copy or save it again"
            ) from error

    def names(self) -> Iterable[str]:
        names = {info.filename for info in self._zip.infolist() if not info.filename.endswith("/")}
        return {name for name in names if name and not is_hidden(name)}  # a damaged archive may have one without a name

    def open(self, name: str) -> IO[bytes]:
        size = self.size(name)
        refuse_excess(size)
        with open_member(self._zip, self._zip.getinfo(name)) as member:
            # No more is unpacked than the archive states. At the end, the checksum is verified.
            data = member.read(size + 1)
        if len(data) != size:
            raise EOFError(f"{len(data):,} of {size:,} bytes are there")
        return io.BytesIO(data)

    def size(self, name: str) -> int:
        return self._zip.getinfo(name).file_size


Files = FolderFiles | UrlFiles | ZipFiles  # files by name; a missing file raises FileNotFoundError or KeyError


class FileSource(RandomAccessSource):
    """A set in which every sample is an encoded image file."""

    @abstractmethod
    def open(self, number: int) -> IO[bytes]:
        """Open the file of one sample."""

    def sample(self, number: int) -> Sample:
        return decode_image(self.ids[number], whole_or_reason(lambda: self.open(number)), self.reading)

    def content(self, number: int) -> bytes:
        return content_digest(whole_or_reason(lambda: self.open(number)))


class ImageFiles(FileSource):
    """The images in a folder or zip, at any depth; ids are relative paths with forward slashes."""

    def __init__(self, files: Files, ids: list[str], ignored: dict[str, int]) -> None:
        """Take the images among the files, as `sort_out` found them."""
        self.kind = files.kind
        self._files = files
        labels, prompts, columns, unmatched, from_folders = metadata_of(files, ids)
        unused = {what: n for what, n in ignored.items() if not (from_folders and what in IN_FOLDERS.values())}
        super().__init__(files.name, ids, {**unused, **unmatched}, labels, prompts, columns)

    def open(self, number: int) -> IO[bytes]:
        return self._files.open(self.ids[number])


def metadata_of(files: Files, ids: Sequence[str]) -> Metadata:
    """Find the labels and prompts of samples, or of videos, that lie in these files."""

    def read(name: str, most: int | None = None, /) -> bytes:
        if most is None:
            check_stated("table of texts", files.size(name), f"{files.name}/{name}")
        with files.open(name) as stream:
            return at_most(stream, max_decoded() // BYTES_PER_TEXT_BYTE) if most is None else stream.read(most)

    return find_metadata(ids, files.name, read)


def files_in(folder: Path) -> Iterator[str]:
    """Yield the relative paths of all files that are not hidden; links to places in the folder are followed.

    Whoever made the folder chose where its links lead. So a link that leaves the folder is refused, unless the user
    asked to follow such links; one to a folder that holds the set is never followed. A link to nowhere is a file that
    cannot be read. Pipes, sockets and devices, which may never end, are left out.
    """
    root = str(folder.resolve())
    bounds = None if os.environ.get(FOLLOW_LINKS, "0") not in ("", "0") else root
    nested = count(1)
    levels = [_Level(_entries_of(folder), "", root, False)]
    while levels:
        entries, prefix, real, linked = levels[-1]
        if (entry := next(entries, None)) is None:
            levels.pop()
            continue
        name, is_link = f"{prefix}{entry.name}", entry.is_symlink()
        is_folder, is_special, target = _look_up(entry)
        if target is not None and bounds is not None and not _is_in(target, bounds):
            raise DataError(
                f"{folder} has the link {name:.100}, which leads out of it, to {target}: name that place yourself, "
                f"or set {FOLLOW_LINKS}=1 if you trust the folder"
            )
        if is_folder:
            if linked and is_link and next(nested) > MAX_LINKED:
                raise DataError(
                    f"{folder} has endless links within links, such as {name[:100]}: replace them by the files"
                )
            # Without links, no folder holds the one in which it lies, which need not be looked up at each depth.
            if target is None or not any(_is_in(level.real, target) for level in levels):
                real_path = target or f"{real}/{entry.name}"
                levels.append(_Level(_entries_of(entry.path), f"{name}/", real_path, linked or is_link))
        elif not is_special:
            yield name


class _Level(NamedTuple):
    """A folder whose files are being listed, below another folder."""

    entries: Iterator[os.DirEntry[str]]
    prefix: str  # of the names of its files
    real: str  # its path without links
    linked: bool  # whether a link led there


def _entries_of(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """List what is in a folder, but for what is hidden."""
    try:
        return iter([entry for entry in os.scandir(folder) if not is_hidden(entry.name)])
    except OSError as error:
        raise DataError(f"{folder} cannot be listed: {reason(error)}") from error


def _look_up(entry: os.DirEntry[str]) -> tuple[bool, bool, str | None]:
    """Return whether it is a folder, whether it is neither that nor a file, and where it leads if it is a link."""
    try:
        is_folder = entry.is_dir()
        is_special = not is_folder and not entry.is_file() and Path(entry.path).exists()
        is_target = entry.is_symlink() and not is_special
        return is_folder, is_special, str(Path(entry.path).resolve(strict=True)) if is_target else None
    except (OSError, RuntimeError):  # a link in a circle, to nowhere, or to a place without permission
        return False, False, None


def _is_in(path: str, folder: str) -> bool:
    """Return whether a place is a folder, or below it: absolute paths without links."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def sort_out(
    files: Files, names: Iterable[str] | None = None, reading: Reading = EVERYTHING
) -> tuple[list[str], dict[str, int]]:
    """Divide files into the sorted ids of images and a count, by suffix, of everything else.

    A file on the local disk whose suffix is not one of images is known by its first bytes. Overviews are not samples:
    GenEval keeps grid.png beside its folder samples/, txt2img.py grid-0000.png, and others among the samples.
    """
    ids, ignored = [], Counter[str]()
    for name in (names := list(files.names() if names is None else names)):
        if name in METADATA_FILES:
            continue
        suffix = splitext(name)[1].lower()
        if not reading.takes(name):
            ignored[BY_NAME] += 1
        elif suffix in IMAGE_SUFFIXES or (not is_other(suffix) and _is_image(files, name)):
            ids.append(name)
        else:
            ignored[IN_FOLDERS.get(basename(name), suffix or "no suffix")] += 1
    folders = {name: dirname(name) for name in ids}
    drawn = {dirname(folder) for folder in folders.values() if basename(folder) == "samples"}
    prompts = drawn & {dirname(name) for name in names if basename(name) == "metadata.jsonl"}
    called = {name for name in ids if not reading.include and OVERVIEW.search(basename(name))}
    beside = {name for name, folder in folders.items() if folder in prompts or (folder in drawn and name in called)}
    sheets = _sheets(files, [name for name in ids if name not in beside], called - beside)
    ignored += Counter({GRIDS: len(beside), SHEETS: len(sheets)})
    return sorted({*ids} - beside - sheets), dict(sorted(ignored.items()))


def _sheets(files: Files, ids: Sequence[str], named: set[str]) -> set[str]:
    """Return the pictures, of those that are called overviews, that are made of whole samples: all others are alike."""
    others = [name for name in ids if name not in named]
    if not named or len(named) > len(others) or isinstance(files, UrlFiles):
        return set()

    def size(name: str) -> tuple[int, int]:
        with suppress(DataError, *DAMAGED), files.open(name) as stream:
            return size_of(stream)
        return 0, 0

    # Some 64 samples show whether all have one size.
    sample, *unlike = {size(name) for name in others[:: max(1, len(others) // 64)]}
    return set() if unlike else {name for name in named if grid_shape(size(name), sample)}


def is_other(suffix: str) -> bool:
    """Return whether files with a suffix are left out, even if they begin as images do."""
    return suffix in OTHER_SUFFIXES or BACKUPS.search(suffix) is not None


def _is_image(files: Files, name: str) -> bool:
    """Return whether a local file begins as an image does."""
    if isinstance(files, UrlFiles):
        return False
    try:
        with files.open(name) as stream:
            return SIGNATURES.match(stream.read(SIGNATURE_BYTES)) is not None
    except Exception:  # zipfile's readers raise almost anything on damaged bytes
        return False


def is_hidden(path: str) -> bool:
    """Return whether operating systems add such a file to the user's files."""
    return any(part in ("__MACOSX", "@eaDir", "lost+found") or part[:1] == "." != part for part in path.split("/"))


class NoImagesError(DataError):
    """A set without images, which says what it holds instead; `as_videos` is the sentence for one without videos."""

    def __init__(self, name: str, ignored: Mapping[str, int]) -> None:
        def holds(what: str) -> str:
            return f"{name} holds " + (f"no {what}, only other files ({in_short(ignored)})" if ignored else "nothing")

        none_chosen = f"{name} holds no {{}} that the patterns choose ({in_short(ignored)}): correct the patterns"
        self.as_videos = f"{holds('videos')}: videos end in {', '.join(sorted(VIDEO_SUFFIXES | {'.gif'}))}"
        ways = f"{holds('images')}: images end in {', '.join(sorted(IMAGE_SUFFIXES))}"
        if ignored and set(ignored) <= VIDEO_SUFFIXES:
            ways = f"{name} holds no images, but videos ({in_short(ignored)}): {CLIPS}"
        if BY_NAME in ignored:
            ways, self.as_videos = none_chosen.format("images"), none_chosen.format("videos or frames")
        super().__init__(ways)


def in_short(ignored: Mapping[str, int]) -> str:
    """Return files by suffix as a message has them, the most frequent first: "3 x .csv, 1 x .txt and 9 others"."""
    by_last = Counter[str]()
    for suffix, times in ignored.items():
        by_last[suffix if len(ignored) <= MAX_SUFFIXES or suffix[0] != "." else suffix[suffix.rfind(".") :]] += times
    named = by_last.most_common(MAX_SUFFIXES)
    others = sum(by_last.values()) - sum(times for _, times in named)
    return ", ".join(f"{times} x {suffix}" for suffix, times in named) + (f" and {others} others" if others else "")


def refuse_excess(size: int) -> None:
    """Raise ValueError for a file that is too large to be held in memory; otherwise wait until there is room for it."""
    if phrase := excess(FILE_COPIES * size):
        raise ValueError(f"a file of {readable(size)}, which takes {phrase}")
    ENCODED.take(FILE_COPIES * size)


def whole(stream: IO[bytes]) -> bytes:
    """Return all bytes of an image file."""
    if isinstance(stream, io.BytesIO):
        return stream.getvalue()
    size = os.fstat(stream.fileno()).st_size
    refuse_excess(size)
    return at_most(stream, max_decoded() // FILE_COPIES, size)  # it may grow, or have stated too little


def whole_or_reason(open_one: Callable[[], IO[bytes]]) -> bytes | str:
    """Return all bytes of an image file, or a text that says why it cannot be read."""
    try:
        with open_one() as stream:
            return whole(stream)
    except NOT_OF_THE_SAMPLE:
        raise
    except Exception as error:  # zipfile's readers raise almost anything on damaged bytes
        return reason(error)


def bytes_at(path: Path, offset: int, size: int) -> bytes:
    """Return bytes of a file by their place."""
    with open_file(path) as file:
        file.seek(offset)
        data = file.read(size)
    if len(data) != size:
        raise EOFError("the file is cut short")
    return data


class Settled:
    """A file that does not change unnoticed while it is decoded: it is in memory, or it is watched if it is large."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self._before: tuple[int, int, int] | None = None
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        if isinstance(stream, io.BytesIO) or size <= MAX_BYTES_IN_MEMORY:
            data = whole(stream)
            self.stream, self._digest = io.BytesIO(data), content_digest(data)
        else:
            self._before = _state(stream)
            digest = partial(hashlib.blake2b, digest_size=DIGEST_BYTES)
            self._digest = hashlib.file_digest(stream, digest).digest()  # type: ignore[arg-type]

    def content(self) -> bytes:
        """Return the content digest of all that was read so far, which changes if the file has changed."""
        same = self._before is None or self._before == _state(self.stream)
        return self._digest if same else content_digest("changed while it was read")


def _state(stream: IO[bytes]) -> tuple[int, int, int]:
    state = os.fstat(stream.fileno())
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns
