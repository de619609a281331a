"""Reading a finc-eval file: nothing is believed before its checksum is right, and no more is read than the file has."""

from __future__ import annotations

import hashlib
import threading
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.digest import text_of
from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError, FincEvalError
from finc_eval.core.files.front import (
    BLOCK_BYTES,
    FIRST_BYTES,
    FRONT_BYTES,
    HDF5_SIGNATURE,
    MAX_HEADER_BYTES,
    Front,
    check_layout,
    front_of,
    wrong_type,
)
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.parsed import json_table
from finc_eval.core.files.writing import TEXT_BYTES, TEXT_ENDS, NewFile
from finc_eval.core.storage import PROGRAM

DTYPES = ("<f2", "<f4", "<f8", "<i2", "<i4", "<i8", "<u8", "|u1")  # types of numbers in files

AGAIN = "make it again"


@contextmanager
def existing_file(path: str | Path, type_name: str, layout: int, remedy: str = AGAIN) -> Iterator[StoredFile]:
    """Yield the file at `path`, if it is of this type and layout; what its content does wrong is one DataError."""
    with StoredFile(path, type_name, layout, remedy) as file, content_of(path, remedy):
        yield file


@contextmanager
def content_of(path: str | Path, remedy: str = AGAIN) -> Iterator[None]:
    """Turn whatever goes wrong while an object is made of the content of a file into one DataError about the file.

    A file that nobody damaged cannot fail here. One that was forged can hold anything, so that any error may come.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        words = str(error).splitlines() if isinstance(error, FincEvalError | ValueError) else []
        raise DataError(f"{path} is damaged ({words[0] if words else 'wrong content'}): {remedy}") from error


class StoredFile:
    """A file of finc-eval, open for reading.

    Attributes:
        path: path of the file.
        header: what the header says besides its arrays.
        arrays: entries of the arrays in the header, by name.

    Raises:
        DataError: it is missing, unreadable, of another type or layout, or damaged; the message ends with the remedy.
    """

    def __init__(self, path: str | Path, type_name: str, layout: int, remedy: str = AGAIN) -> None:
        self.path, self._remedy = on_disk(path), remedy
        self._one_reader = threading.Lock()
        try:
            self._file = open_file(self.path)
        except FileNotFoundError as error:
            raise DataError(f"{path} does not exist") from error
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror or error}): check the path") from error
        # A cache may live as long as what was made of it: who forgets to close it leaves no open file behind.
        weakref.finalize(self, self._file.close)
        try:
            self.header = self._checked_header(type_name, layout)
            self.arrays: dict[str, Any] = dict(self.header.pop("arrays"))
        except BaseException as error:
            self.close()
            if isinstance(error, OSError | KeyError | TypeError | ValueError):
                raise self.damaged("its header cannot be read") from error
            raise

    def _checked_header(self, type_name: str, layout: int) -> dict[str, Any]:
        start = self._file.read(FRONT_BYTES + len(HDF5_SIGNATURE))
        front = Front.of(start[:FRONT_BYTES])
        if front is None:
            raise self._without_front(start, type_name)
        if front.type_name != type_name:
            raise wrong_type(self.path, front.type_name, type_name)
        check_layout(self.path, type_name, front.layout, layout, self._remedy)
        self._size = self._file.seek(0, 2)
        if self._size != front.size:
            raise self.damaged(f"it has {self._size:,} of {front.size:,} bytes")
        if not (FRONT_BYTES <= front.start <= self._size and 0 <= front.length <= MAX_HEADER_BYTES):
            raise self.damaged("its front is wrong")
        text = self.bytes_at(front.start, front.length)
        if hashlib.sha256(text.data).hexdigest() != front.sha256:
            raise self.damaged("its header is not the one that was written")
        header = json_table(bytes(text), str(self.path))
        if (header.pop("program"), header.pop("type"), header.pop("layout")) != (PROGRAM, type_name, layout):
            raise self.damaged("its front and its header differ")
        return header

    def _without_front(self, start: bytes, type_name: str) -> DataError:
        if start.startswith(FIRST_BYTES) or HDF5_SIGNATURE in start[1:]:
            return self.damaged("its first bytes differ from what was written")
        if start.lstrip().startswith(b"{"):
            return DataError(f"{self.path} is JSON, and the {type_name} with its arrays is needed: pass its .h5 file")
        version = " of this version" if start.startswith(HDF5_SIGNATURE) else ""
        return DataError(
            f"{self.path} was not written by finc-eval{version}: a finc-eval file of the type {type_name!r} is needed "
            "here"
        )

    def damaged(self, what: str) -> DataError:
        """Return the error for a damaged file."""
        return DataError(f"{self.path} is damaged ({what}): {self._remedy}")

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the arrays and lists of texts whose names begin with a prefix, in their order."""
        names = (name.removesuffix(f"/{TEXT_BYTES}").removesuffix(f"/{TEXT_ENDS}") for name in self.arrays)
        return list(dict.fromkeys(name for name in names if name.startswith(prefix)))

    def rows(self, name: str, *shape: int | None, dtype: str = "<f4") -> StoredRows:
        """Return an array of this shape and type, whose rows are read when they are needed; None: any length."""
        found = self.stored(name)
        if (
            found.dtype.str != dtype
            or len(found.shape) != len(shape)
            or any(own is not None and own != one for own, one in zip(shape, found.shape, strict=True))
        ):
            raise self.damaged(f"{name} has the shape {found.shape} and the type {found.dtype}")
        return found

    def array(self, name: str, *shape: int | None, dtype: str = "<f4") -> NDArray[Any]:
        """Read an array whole; see `rows`."""
        return self.rows(name, *shape, dtype=dtype).whole()

    def texts(self, name: str, n: int | None = None) -> StoredTexts:
        """Return a list of texts, which are read when they are needed; `n` is its length."""
        return StoredTexts(
            self.rows(f"{name}/{TEXT_BYTES}", None, dtype="|u1"), self.rows(f"{name}/{TEXT_ENDS}", n, dtype="<i8")
        )

    def stored(self, name: str) -> StoredRows:
        """Return an array of any shape and type, whose rows are read when they are needed."""
        match self.arrays.get(name):
            case {"dtype": str(dtype), "shape": [*shape], "start": int(start), "crc32": [*checksums]} if (
                dtype in DTYPES
                and all(isinstance(one, int) and 0 <= one <= self._size for one in shape)
                and all(isinstance(one, int) for one in checksums)
            ):
                pass
            case None:
                raise self.damaged(f"it has no {name}")
            case _:
                raise self.damaged(f"the entry of {name} in its header is wrong")
        nbytes = prod(shape) * np.dtype(dtype).itemsize
        if not 0 <= start <= start + nbytes <= self._size or len(checksums) != -(-nbytes // BLOCK_BYTES):
            raise self.damaged(f"{name} is larger than the file")
        return StoredRows(self, name, np.dtype(dtype), tuple(shape), start, checksums)

    def bytes_at(self, start: int, length: int) -> NDArray[np.uint8]:
        """Read bytes that nothing is known about."""
        data = np.empty(min(length, self._size - start), np.uint8)
        try:
            with self._one_reader:
                self._file.seek(start)
                count = self._file.readinto(data.data) if len(data) else 0
        except OSError as error:
            raise self.damaged(f"it cannot be read: {error.strerror}") from error
        if count != length:
            raise self.damaged("it is cut short")
        return data

    def check(self) -> None:
        """Read all arrays and raise DataError if one is not what was written."""
        for name in self.arrays:
            found = self.stored(name)
            for start in range(0, found.nbytes, BLOCK_BYTES):
                found.bytes_between(start, min(start + BLOCK_BYTES, found.nbytes))

    def close(self) -> None:
        """Close the file; no more can be read."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(eq=False)
class StoredRows:
    """An array in a file, whose rows are read when they are needed; the checksum of each block is checked once."""

    file: StoredFile
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    checksums: list[int]

    def __post_init__(self) -> None:
        self.row_bytes = prod(self.shape[1:]) * self.dtype.itemsize
        self.nbytes = prod(self.shape) * self.dtype.itemsize
        self._right = np.zeros(len(self.checksums), bool)

    def __len__(self) -> int:
        return self.shape[0]

    def whole(self) -> NDArray[Any]:
        """Read the whole array."""
        return self.bytes_between(0, self.nbytes).view(self.dtype).reshape(self.shape)

    def between(self, start: int, stop: int) -> NDArray[Any]:
        """Read consecutive rows; what lies beyond the last row is left out."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        data = self.bytes_between(start * self.row_bytes, stop * self.row_bytes)
        return data.view(self.dtype).reshape(stop - start, *self.shape[1:])

    def bytes_between(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Read consecutive bytes, and check the blocks that they lie in."""
        first, last = start // BLOCK_BYTES, -(-stop // BLOCK_BYTES)
        if self._right[first:last].all():
            return self.file.bytes_at(self.start + start, stop - start)
        low, high = first * BLOCK_BYTES, min(last * BLOCK_BYTES, self.nbytes)
        data = self.file.bytes_at(self.start + low, high - low)
        for block in (first + np.flatnonzero(~self._right[first:last])).tolist():
            place = block * BLOCK_BYTES - low
            if zlib.crc32(data[place : place + BLOCK_BYTES].data) != self.checksums[block]:
                raise self.file.damaged(f"{self.name} is not what was written")
        self._right[first:last] = True
        return data[start - low : stop - low]


class StoredTexts:
    """A list of texts in a file, which are read when they are needed."""

    def __init__(self, utf8: StoredRows, ends: StoredRows) -> None:
        self._utf8, self._ends = utf8, ends

    def __len__(self) -> int:
        return len(self._ends)

    def between(self, start: int, stop: int) -> list[str]:
        """Read consecutive texts; what lies beyond the last one is left out."""
        return [text_of(text) for text in self.bytes_between(start, stop)]

    def bytes_between(self, start: int, stop: int) -> list[bytes]:
        """Read the bytes of consecutive texts."""
        start, stop, _ = slice(start, stop).indices(len(self))
        if stop <= start:
            return []
        ends = self._ends.between(max(start - 1, 0), stop).tolist()
        bounds = ends if start else [0, *ends]
        if bounds[0] < 0 or bounds[-1] > len(self._utf8) or bounds != sorted(bounds):
            raise self._utf8.file.damaged(f"{self._ends.name} is wrong")
        data = self._utf8.between(bounds[0], bounds[-1]).tobytes()
        first = bounds[0]
        return [data[low - first : high - first] for low, high in pairwise(bounds)]

    def all(self) -> list[str]:
        """Read all texts."""
        return self.between(0, len(self))


def header_of(path: str | Path) -> dict[str, Any] | None:
    """Read the header of a finc-eval file of any type, which it states as "type"; None for other and damaged files."""
    front = front_of(path)
    if front is None:
        return None
    try:
        with StoredFile(path, front.type_name, front.layout) as file:
            return {"type": front.type_name, **file.header}
    except DataError:
        return None


def copy_content(old: StoredFile, new: NewFile, without: Collection[str] = ()) -> None:
    """Copy the header and all arrays, block by block, but those under certain names."""
    new.header |= old.header
    for name in _names_without(old, without):
        stored = old.stored(name)
        rows = new.rows(name, stored.shape, stored.dtype.str)
        for block in _blocks(stored):
            rows.append(block)


def join_content(
    paths: Iterable[Path], opened: Callable[[Path], StoredFile], new: NewFile, without: Collection[str] = ()
) -> Iterator[int]:
    """Write all rows of the arrays of files, in their order, and yield the number written; not the header.

    One file is open at a time, and a block of it in memory. The paths are listed twice.
    """
    lengths, shapes = Counter[str](), dict[str, tuple[tuple[int, ...], str]]()
    first = None
    for path in paths:
        first = first or path
        with opened(path) as file, content_of(path):
            found = {name: file.stored(name) for name in _names_without(file, without)}
            own = {name: (rows.shape[1:], rows.dtype.str) for name, rows in found.items()}
            if own != (shapes := shapes or own):
                raise file.damaged(f"its arrays are not those of {first}")
            lengths.update({name: len(rows) for name, rows in found.items()})
    arrays = {name: new.rows(name, (lengths[name], *shape), dtype) for name, (shape, dtype) in shapes.items()}
    written = Counter[str]()
    for done, path in enumerate(paths, start=1):
        with opened(path) as file, content_of(path):
            for name, rows in arrays.items():
                stored = file.stored(name)
                # The ends of texts count from the first text of the file.
                before = written[f"{name.removesuffix(TEXT_ENDS)}{TEXT_BYTES}"] if name.endswith(f"/{TEXT_ENDS}") else 0
                for block in _blocks(stored):
                    rows.append(block + block.dtype.type(before) if before else block)
            written.update({name: len(file.stored(name)) for name in arrays})
        yield done


def _names_without(file: StoredFile, without: Collection[str]) -> list[str]:
    return [name for name in file.arrays if name not in without and name.rpartition("/")[0] not in without]


def _blocks(stored: StoredRows) -> Iterator[NDArray[Any]]:
    if not stored.shape:
        yield stored.whole()
        return
    size = max(1, BLOCK_BYTES // max(stored.row_bytes, 1))
    for start in range(0, len(stored), size):
        yield stored.between(start, start + size)
