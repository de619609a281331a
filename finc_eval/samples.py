"""Sets of images: folders, zips, npz files and arrays, all read as one stream of RGB images in a fixed order.

`open_source(x)` finds out what `x` is; the `Source` it returns knows its samples' ids, decodes them a few
ahead, and has a `manifest` that changes when, and only when, a sample does.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import os
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from finc_eval.errors import FincEvalError
from finc_eval.progress import Progress, silent

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"})
HASH_CHUNK = 1 << 20
PROGRESS_EVERY = 256
THREADS = min(16, os.cpu_count() or 1)
DAMAGED = (OSError, EOFError, ValueError, RuntimeError, zlib.error, zipfile.BadZipFile)

RGB = npt.NDArray[np.uint8]
Samples = str | Path | npt.NDArray[Any]
"""What `open_source` takes: the path of a folder, .zip or .npz, or a uint8 array."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Sample:
    """One image of a set, or the reason why there is none.

    Attributes:
        id: the sample's name within its set.
        image: (height, width, 3) uint8 RGB; None where the sample cannot be read.
        error: a short phrase saying why it cannot be read; None where it can.
    """

    id: str
    image: RGB | None
    error: str | None = None


@dataclass(frozen=True)
class Manifest:
    """What a set consists of, wherever it lies.

    Attributes:
        kind: "folder", "zip", "npz" or "array".
        n: number of samples.
        digest: SHA-256 (hex) over the (id, content digest) pairs in id order.
        ignored: files that are no images, counted by suffix.
    """

    kind: str
    n: int
    digest: str
    ignored: dict[str, int]


class Source(ABC):
    """A set of images.

    Attributes:
        kind: "folder", "zip", "npz" or "array".
        name: absolute path, or "array".
        ids: the samples' ids: sorted names, or row numbers.
        ignored: files that are no images, counted by suffix.
    """

    kind: ClassVar[str]

    def __init__(self, name: str, ids: list[str], ignored: dict[str, int]) -> None:
        self.name = name
        self.ids = ids
        self.ignored = ignored

    @abstractmethod
    def images(self, start: int = 0) -> Iterator[Sample]:
        """Yield every sample from number `start` on, in the order of `ids`, whether readable or not."""

    @abstractmethod
    def read(self, ids: Iterable[str]) -> dict[str, RGB]:
        """Return a few images by id; ids that are missing or unreadable are left out."""

    @abstractmethod
    def _contents(self) -> Iterator[bytes]:
        """Yield a digest of each sample's bytes, in the order of `ids`."""

    def manifest(self, progress: Progress = silent) -> Manifest:
        """Read every byte of the set once and say what it consists of."""
        total, digest = len(self.ids), hashlib.sha256()
        for done, (name, content) in enumerate(zip(self.ids, self._contents(), strict=True), start=1):
            # No id holds a NUL and contents have one length, so no two sets spell the same bytes.
            digest.update(_utf8(name) + b"\0" + content)
            if done % PROGRESS_EVERY == 0 or done == total:
                progress("check samples", done, total)
        return Manifest(self.kind, total, digest.hexdigest(), self.ignored)


def open_source(source: Samples) -> Source:
    """Open a folder, .zip or .npz of images by its path, or an array.

    Args:
        source: a folder (read recursively), a .zip of image files, an .npz with a uint8 array of images, or
            such an array: (n, height, width, 3), (n, height, width, 1) or (n, height, width).

    Raises:
        FincEvalError: the path is missing, holds no images, or is of a kind that cannot be read.
    """
    if isinstance(source, np.ndarray):
        _check_rows(source.shape, source.dtype, "the array")
        return ArraySource(source)
    if not isinstance(source, str | Path):
        raise FincEvalError(
            f"samples must be a path or a numpy array, got {type(source).__name__}: "
            "turn it into a uint8 array of shape (n, height, width, 3)"
        )
    path = Path(source).expanduser()
    if not path.exists():
        raise FincEvalError(f"{path} does not exist{_close_match(path)}")
    if path.is_dir():
        return FolderSource(path)
    suffix = path.suffix.lower()
    if suffix == ".zip":
        return ZipSource(path)
    if suffix == ".npz":
        return NpzSource(path)
    if suffix in IMAGE_SUFFIXES:
        raise FincEvalError(f"{path} is a single image: pass the folder that holds the set")
    raise FincEvalError(f"{path} is no set of images: pass a folder, a .zip, an .npz or a numpy array")


def fingerprint(image: RGB) -> int:
    """Return a 64-bit BLAKE2b digest of an image's shape and pixels: equal for exact copies."""
    digest = hashlib.blake2b(repr(image.shape).encode(), digest_size=8)
    digest.update(np.ascontiguousarray(image).data)
    return int.from_bytes(digest.digest(), "little")


def ahead(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
    """Map `function` over `items` in threads, in order, working at most a small window ahead."""
    with ThreadPoolExecutor(THREADS) as pool:
        window: deque[Future[Result]] = deque()
        try:
            for item in items:
                window.append(pool.submit(function, item))
                if len(window) == 4 * THREADS:
                    yield window.popleft().result()
            while window:
                yield window.popleft().result()
        finally:
            for future in window:
                future.cancel()


class _FileSource(Source):
    """A set in which every sample is an encoded file."""

    @abstractmethod
    def _open(self, name: str) -> IO[bytes]:
        """Open the file of one sample."""

    def images(self, start: int = 0) -> Iterator[Sample]:
        return ahead(self._sample, itertools.islice(self.ids, start, None))

    def read(self, ids: Iterable[str]) -> dict[str, RGB]:
        known = set(self.ids)
        samples = ahead(self._sample, [name for name in ids if name in known])
        return {sample.id: sample.image for sample in samples if sample.image is not None}

    def _contents(self) -> Iterator[bytes]:
        return ahead(self._content, self.ids)

    def _sample(self, name: str) -> Sample:
        try:
            with self._open(name) as stream:
                image = _decode(stream)
                # Pillow stops where the picture ends; a zip checks its sum where the file ends.
                while stream.read(HASH_CHUNK):
                    pass
        except MemoryError:
            raise
        except Exception as error:  # Pillow's readers raise almost anything on damaged bytes
            return Sample(name, None, _reason(error))
        return Sample(name, image)

    def _content(self, name: str) -> bytes:
        digest = hashlib.blake2b(digest_size=32)
        try:
            with self._open(name) as stream:
                while chunk := stream.read(HASH_CHUNK):
                    digest.update(chunk)
        except MemoryError:
            raise
        except Exception as error:  # as zipfile's readers do
            return hashlib.blake2b(b"unreadable: " + _utf8(_reason(error)), digest_size=32).digest()
        return digest.digest()


class FolderSource(_FileSource):
    """The images in a folder and the folders in it; ids are relative paths with forward slashes."""

    kind = "folder"

    def __init__(self, path: Path) -> None:
        self._root = path.resolve()
        ids, ignored = _sort_out(_files(self._root))
        if not ids:
            raise _no_images(path, ignored)
        super().__init__(str(self._root), ids, ignored)

    def _open(self, name: str) -> IO[bytes]:
        return (self._root / name).open("rb")


class ZipSource(_FileSource):
    """The images in a zip file, at any depth; ids are member names."""

    kind = "zip"

    def __init__(self, path: Path) -> None:
        self._archive = _open_zip(path)
        names = {info.filename for info in self._archive.infolist() if not info.is_dir()}
        ids, ignored = _sort_out(name for name in names if not _is_hidden(PurePosixPath(name)))
        if not ids:
            raise _no_images(path, ignored)
        super().__init__(str(path.resolve()), ids, ignored)

    def _open(self, name: str) -> IO[bytes]:
        return self._archive.open(name)


class _RowSource(Source):
    """A set whose samples are the rows of one uint8 array."""

    def __init__(self, name: str, n: int) -> None:
        super().__init__(name, [str(row) for row in range(n)], {})

    @abstractmethod
    def _rows(self, start: int) -> Iterator[RGB]:
        """Yield the rows from number `start` on, as stored: (height, width[, 1 or 3]) uint8."""

    def images(self, start: int = 0) -> Iterator[Sample]:
        for number, row in enumerate(self._rows(start), start):
            yield Sample(str(number), _rgb(row))

    def read(self, ids: Iterable[str]) -> dict[str, RGB]:
        wanted = set(ids) & set(self.ids)
        last = max(map(int, wanted), default=-1)
        first = min(map(int, wanted), default=0)
        rows = enumerate(itertools.islice(self._rows(first), last + 1 - first), first)
        return {str(number): _rgb(row) for number, row in rows if str(number) in wanted}

    def _contents(self) -> Iterator[bytes]:
        for row in self._rows(0):
            # The shape belongs to the content: 28x28 and 14x56 pixels may be the same bytes.
            digest = hashlib.blake2b(repr(row.shape).encode(), digest_size=32)
            digest.update(np.ascontiguousarray(row).data)
            yield digest.digest()


class ArraySource(_RowSource):
    """The rows of an array in memory."""

    kind = "array"

    def __init__(self, array: npt.NDArray[np.uint8]) -> None:
        super().__init__("array", len(array))
        self._array = array

    def _rows(self, start: int) -> Iterator[RGB]:
        return iter(self._array[start:])


class NpzSource(_RowSource):
    """The rows of one array in an npz file, streamed: the array is never held whole."""

    kind = "npz"

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._archive = _open_zip(path)
        members = [info.filename for info in self._archive.infolist() if info.filename.endswith(".npy")]
        keys = [member.removesuffix(".npy") for member in members]
        chosen = [key for key in ("arr_0", "images") if key in keys] or (keys if len(keys) == 1 else [])
        if not chosen:
            raise FincEvalError(
                f"{path} holds the arrays {', '.join(keys) or '(none)'}: name the images arr_0 or images"
            )
        self._member = f"{chosen[0]}.npy"
        with self._archive.open(self._member) as stream:
            shape, dtype = self._header(stream)
        _check_rows(shape, dtype, f"{path}, array {chosen[0]},")
        self._shape = shape
        super().__init__(str(self._path), shape[0])

    def _header(self, stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Read the npy header and leave `stream` at the first row."""
        try:
            version = np.lib.format.read_magic(stream)
            # Version 3 only differs for named fields, which images do not have.
            read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape, by_columns, dtype = read[version](stream)
        except (KeyError, *DAMAGED) as error:
            raise FincEvalError(f"{self._path}: {self._member} is no readable npy array: save it again") from error
        if by_columns and len(shape) > 1 and dtype == np.uint8:
            raise FincEvalError(
                f"{self._path}: {self._member} is stored in Fortran order and cannot be streamed: "
                "save np.ascontiguousarray(images)"
            )
        return shape, dtype

    def _rows(self, start: int) -> Iterator[RGB]:
        n, *row_shape = self._shape
        size = int(np.prod(row_shape))
        with self._archive.open(self._member) as stream:
            self._header(stream)
            try:
                stream.seek(start * size, os.SEEK_CUR)
                for _ in range(start, n):
                    data = stream.read(size)
                    if len(data) != size:
                        raise EOFError
                    yield np.frombuffer(data, np.uint8).reshape(row_shape)
            except DAMAGED as error:
                raise FincEvalError(f"{self._path} is damaged: save it again") from error


def _decode(stream: IO[bytes]) -> RGB:
    """Decode one image file to upright (height, width, 3) uint8 RGB; a transparent one loses its alpha."""
    with Image.open(stream) as image:
        # Pillow itself only warns up to twice its limit.
        if Image.MAX_IMAGE_PIXELS is not None and image.width * image.height > Image.MAX_IMAGE_PIXELS:
            raise Image.DecompressionBombError(f"{image.width}x{image.height} pixels are too many")
        if image.mode in ("I", "F"):
            raise ValueError(f"mode {image.mode} has no 8-bit range")
        upright = ImageOps.exif_transpose(image)
        if upright.mode.startswith("I;16"):
            # Pillow's own conversion clips at 255, which turns 16-bit greys white.
            return _rgb((np.asarray(upright) >> 8).astype(np.uint8))
        return np.asarray(upright.convert("RGB"))


def _rgb(row: RGB) -> RGB:
    """Turn (height, width), (height, width, 1) or (height, width, 3) into (height, width, 3)."""
    if row.ndim == 2:
        row = row[..., None]
    return np.repeat(row, 3, axis=2) if row.shape[2] == 1 else row


def _check_rows(shape: tuple[int, ...], dtype: np.dtype[Any], who: str) -> None:
    """Refuse arrays that are not n images, and say how to turn them into such."""
    found = f"{who} has shape {shape} and dtype {dtype}"
    if dtype != np.uint8:
        how = (
            "if its range is 0 to 1, pass (255 * x).round().clip(0, 255).astype(np.uint8)"
            if dtype.kind == "f"
            else "pass 8-bit images as np.uint8"
        )
        raise FincEvalError(f"{found}, but images must be uint8: {how}")
    is_grey = len(shape) == 3
    if not is_grey and not (len(shape) == 4 and shape[3] in (1, 3)):
        how = "pass x.transpose(0, 2, 3, 1)" if len(shape) == 4 and shape[1] in (1, 3) else "reshape it"
        raise FincEvalError(f"{found}, but images must be (n, height, width, 3) or (n, height, width): {how}")
    if 0 in shape:
        raise FincEvalError(f"{found}: it holds no pixels")


def _files(folder: Path, parents: frozenset[str] = frozenset(), prefix: str = "") -> Iterator[str]:
    """Yield relative paths of all files not hidden; links to folders are followed, but not in circles."""
    real = os.path.realpath(folder)
    if real in parents:
        return
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        raise FincEvalError(f"{folder} cannot be listed: {_reason(error)}") from error
    for entry in entries:
        if _is_hidden(PurePosixPath(entry.name)):
            continue
        if entry.is_dir():
            yield from _files(Path(entry.path), parents | {real}, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name


def _sort_out(names: Iterable[str]) -> tuple[list[str], dict[str, int]]:
    """Divide file names into sorted image ids and a count, by suffix, of everything else."""
    ids, ignored = [], Counter[str]()
    for name in names:
        suffix = PurePosixPath(name).suffix.lower()
        if suffix in IMAGE_SUFFIXES:
            ids.append(name)
        else:
            ignored[suffix or "no suffix"] += 1
    return sorted(ids), dict(sorted(ignored.items()))


def _is_hidden(path: PurePosixPath) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def _no_images(path: Path, ignored: dict[str, int]) -> FincEvalError:
    seen = ", ".join(f"{count} x {suffix}" for suffix, count in ignored.items())
    holds = f"only other files ({seen})" if seen else "nothing"
    return FincEvalError(f"{path} holds no images, {holds}: images end in {', '.join(sorted(IMAGE_SUFFIXES))}")


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise FincEvalError(
            f"{path} cannot be read as a {path.suffix.lower()} file ({_reason(error)}): "
            "it may be cut short or of another kind; copy or save it again"
        ) from error


def _close_match(path: Path) -> str:
    if not path.parent.is_dir():
        return f", nor does the folder {path.parent}"
    matches = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1)
    return f": did you mean {path.parent / matches[0]}?" if matches else ": check the path"


def _reason(error: Exception) -> str:
    """Say in one short phrase, free of paths, why something cannot be read."""
    if isinstance(error, UnidentifiedImageError):
        return "no image that can be recognised"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return (str(error).splitlines() or [""])[0][:120] or type(error).__name__


def _utf8(name: str) -> bytes:
    # File names on Linux need not be valid UTF-8; Python then carries their bytes as surrogates.
    return name.encode("utf-8", "surrogateescape")
