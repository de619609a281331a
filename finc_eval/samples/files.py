"""Sets in which every sample is an encoded image file: folders and zips."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from finc_eval.core.errors import FincEvalError
from finc_eval.samples.images import IMAGE_SUFFIXES, decode
from finc_eval.samples.metadata import ANNOTATION_FILES, Annotations, beside, of_folders
from finc_eval.samples.source import DAMAGED, RandomAccessSource, Sample, failure_digest, reason

HASH_CHUNK = 1 << 20
LARGEST_MEMBER = 1 << 30

VIDEO_SUFFIXES = frozenset({".mp4", ".avi", ".mkv", ".webm", ".mov", ".m4v"})


class FileSource(RandomAccessSource):
    """A set in which every sample is an encoded file."""

    @abstractmethod
    def open(self, number: int) -> IO[bytes]:
        """Open the file of one sample."""

    def sample(self, number: int) -> Sample:
        name = self.ids[number]
        try:
            with self.open(number) as stream:
                pixels, traits = decode(stream)
        except MemoryError:
            raise
        except Exception as error:  # Pillow's readers raise almost anything on damaged bytes
            return Sample(name, None, reason(error))
        return Sample(name, pixels, None, traits)

    def content(self, number: int) -> bytes:
        digest = hashlib.blake2b(digest_size=32)
        try:
            with self.open(number) as stream:
                while chunk := stream.read(HASH_CHUNK):
                    digest.update(chunk)
        except MemoryError:
            raise
        except Exception as error:  # as zipfile's readers do
            return failure_digest(reason(error))
        return digest.digest()


class FolderSource(FileSource):
    """The images in a folder and the folders in it; ids are relative paths with forward slashes."""

    kind = "folder"

    def __init__(self, path: Path, ids: list[str], ignored: dict[str, int]) -> None:
        """Take the images that `sort_out` found in a folder."""
        self._root = path.resolve()
        annotations = annotations_of(ids, path, lambda name: (self._root / name).read_bytes())
        super().__init__(str(self._root), ids, ignored, *annotations)

    def open(self, number: int) -> IO[bytes]:
        return (self._root / self.ids[number]).open("rb")


class ZipSource(FileSource):
    """The images in a zip file, at any depth; ids are member names."""

    kind = "zip"

    def __init__(self, path: Path) -> None:
        self._zip = open_zip(path)
        names = {info.filename for info in self._zip.infolist() if not info.is_dir()}
        ids, ignored = sort_out(name for name in names if not is_hidden(PurePosixPath(name)))
        if not ids:
            raise no_images(path, ignored)
        annotations = annotations_of(ids, path, lambda name: read_member(self._zip, name))
        super().__init__(str(path.resolve()), ids, ignored, *annotations)

    def open(self, number: int) -> IO[bytes]:
        return io.BytesIO(read_member(self._zip, self.ids[number]))


def files_in(folder: Path, parents: frozenset[str] = frozenset(), prefix: str = "") -> Iterator[str]:
    """Yield relative paths of all files not hidden; links to folders are followed, but not in circles.

    Links that lead nowhere are files that cannot be read; pipes, sockets and devices, which may never end, are none.
    """
    real = os.path.realpath(folder)
    if real in parents:
        return
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        raise FincEvalError(f"{folder} cannot be listed: {reason(error)}") from error
    for entry in entries:
        if is_hidden(PurePosixPath(entry.name)):
            continue
        try:
            is_folder = entry.is_dir()
            is_special = not is_folder and not entry.is_file() and Path(entry.path).exists()
        except OSError:  # a link in a circle, or to where nobody may look
            is_folder = is_special = False
        if is_folder:
            yield from files_in(Path(entry.path), parents | {real}, f"{prefix}{entry.name}/")
        elif not is_special:
            yield prefix + entry.name


def sort_out(names: Iterable[str]) -> tuple[list[str], dict[str, int]]:
    """Divide file names into sorted image ids and a count, by suffix, of everything else."""
    ids, ignored = [], Counter[str]()
    for name in names:
        suffix = PurePosixPath(name).suffix.lower()
        if suffix in IMAGE_SUFFIXES:
            ids.append(name)
        else:
            ignored[suffix or "no suffix"] += 1
    return sorted(ids), dict(sorted(ignored.items()))


def is_hidden(path: PurePosixPath) -> bool:
    """Whether systems put such files beside those of the user."""
    return any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def no_images(path: Path, ignored: dict[str, int]) -> FincEvalError:
    """Say what a set without images holds."""
    if ignored and set(ignored) <= VIDEO_SUFFIXES:
        return FincEvalError(
            f"{path} holds {sum(ignored.values())} videos and no images: choose an extractor for clips "
            "(finc-eval extractors list)"
        )
    seen = ", ".join(f"{count} x {suffix}" for suffix, count in ignored.items())
    holds = f"holds no images, only other files ({seen})" if seen else "holds nothing"
    return FincEvalError(f"{path} {holds}: images end in {', '.join(sorted(IMAGE_SUFFIXES))}")


def open_zip(path: Path) -> zipfile.ZipFile:
    """Open a zip file, or say why not."""
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise FincEvalError(
            f"{path} cannot be read as a {path.suffix.lower()} file ({reason(error)}): "
            "it may be cut short or of another kind; copy or save it again"
        ) from error


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a member of a zip file, whole: that is faster than piece by piece, and its sum is checked.

    Raises:
        ValueError: it says that it is larger than `LARGEST_MEMBER`, as members made to fill the memory do.
    """
    size = archive.getinfo(name).file_size
    if size > LARGEST_MEMBER:
        raise ValueError(f"{size} bytes are too many for one file of a zip")
    return archive.read(name)


def annotations_of(ids: Sequence[str], path: Path, read: Callable[[str], bytes]) -> Annotations:
    """Find labels and prompts in the root of a set, or take the folders for labels.

    Args:
        ids: the set's ids, or those of its videos.
        path: of the set, for messages.
        read: returns the content of a file by its name in the root; raises FileNotFoundError or KeyError for none.

    Raises:
        FincEvalError: there is such a file, and it cannot be read or speaks of some samples only.
    """
    for name in ANNOTATION_FILES:
        try:
            data = read(name)
        except (FileNotFoundError, KeyError):
            continue
        except DAMAGED as error:
            raise FincEvalError(
                f"{path}/{name} cannot be read ({reason(error)}): repair it, or take it away"
            ) from error
        if found := beside(name, data, ids, f"{path}/{name}"):
            # StyleGAN's tool spreads unlabeled images over numbered folders, which are no classes.
            by_folder = None if name == "dataset.json" else of_folders(ids)
            return Annotations(found.labels or by_folder, found.prompts)
    return Annotations(of_folders(ids), None)
