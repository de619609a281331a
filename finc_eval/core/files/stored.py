"""finc-eval's own files: HDF5 that any tool reads and copies, in which every number and every text has a checksum.

What the header says is in attributes of the root, each a text of fixed length: JSON, if it is not a text. What is too
long for an attribute is below `documents/`. `checksums` has a CRC-32 for each block of rows of each array, in the order
of the names of the arrays. `content` is the SHA-256 of all attributes, shapes and checksums: any copy is right, and
whatever else was changed is found.
"""

from __future__ import annotations

import os
import weakref
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.digest import text_of
from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError, FincEvalError, first_line
from finc_eval.core.files.file_types import check_layout, wrong_type
from finc_eval.core.files.hdf5 import (
    MAX_GROUPS,
    SIGNATURE,
    Group,
    Raw,
    beginning,
    blocks_of,
    content_digest,
    datasets_in,
    only_group,
    open_hdf5,
    opened,
    raw_of,
    text_in,
    value_of,
    words_of,
)
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.parsed import parse_json
from finc_eval.core.memory import check_decoded
from finc_eval.core.storage import PROGRAM

if TYPE_CHECKING:
    from finc_eval.core.files.earlier import Front

DTYPES = ("<f2", "<f4", "<f8", "<i2", "<i4", "<i8", "<u8", "|i1", "|u1")  # types of numbers in files; texts are "|S"
STATED = ("program", "type", "layout", "version", "content")  # attributes that are not of the header
CHECKSUMS, DOCUMENTS = "checksums", "documents/"
TEXT_BYTES, TEXT_ENDS = "utf8", "ends"  # arrays of a list of longer texts: bytes of all texts, and where each ends

EARLIER = b'{"program"'  # first bytes of a file of the version before, which is read for one more release
AGAIN = "make it again"


def _front(start: bytes) -> Front | None:
    from finc_eval.core.files.earlier import Front  # rarely needed

    return Front.of(start)


class Stated(NamedTuple):
    """Type and layout that a file of finc-eval states."""

    type_name: str
    layout: Any

    @classmethod
    def of(cls, root: Group) -> Stated:
        """Read what the root of a file says."""
        return cls(text_in(root.attrs["type"]), value_of(text_in(root.attrs["layout"]), "the layout"))


def _own_root(hdf5: Group) -> Group | None:
    """Return the root of a file of ours; None for a file of another program.

    A program may have copied the root to a group, which is then all that the file has.
    """
    root: Group | None = hdf5
    for _ in range(MAX_GROUPS):  # a group may hold itself
        if root is None or "program" in root.attrs:
            break
        root = only_group(root)
    program = None if root is None else root.attrs.get("program")
    return root if isinstance(program, str | bytes) and text_in(program) == PROGRAM else None


def stated_in(path: str | Path) -> Stated | None:
    """Read what a file of ours states; None for other files, and for those that cannot be read."""
    start = beginning(path)
    if start.startswith(EARLIER):
        front = _front(start)
        return None if front is None else Stated(front.type_name, front.layout)
    if not start.startswith(SIGNATURE):
        return None
    try:
        with open_hdf5(on_disk(path)) as hdf5:
            root = _own_root(hdf5)
            return None if root is None else Stated.of(root)
    except Exception:  # of HDF5, about damage: whoever opens the file says so
        return None


def file_type(path: str | Path) -> str | None:
    """Return the type of a finc-eval file, such as "embeddings", "sketch" or "comparison"; None for other files."""
    stated = stated_in(path)
    return None if stated is None else stated.type_name


def is_stored(path: str | Path) -> bool:
    """Return whether a file is one of finc-eval or an HDF5 file, however damaged: messages should be about that."""
    start = beginning(path)
    return start.startswith(EARLIER) or SIGNATURE in start


def is_foreign(path: str | Path) -> bool:
    """Return whether a file is HDF5 of another program; what cannot be opened may be of anybody, and is not."""
    start = beginning(path)
    if start.startswith(EARLIER) or SIGNATURE not in start:
        return False
    try:
        with open_hdf5(on_disk(path)) as hdf5:
            return _own_root(hdf5) is None
    except Exception:
        return False


def check_type(source: object, name: str, *allowed: str) -> None:
    """Raise DataError if a set is a file or a result of finc-eval of a type that cannot be one.

    The message advises the first allowed type. `name` is what it calls an object.
    """
    if isinstance(source, str | Path):
        name, type_name = str(source), file_type(source)
    else:
        type_name = getattr(type(source), "type_name", None)
    if isinstance(type_name, str) and type_name not in allowed:
        raise wrong_type(name, type_name, allowed[0])


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
        why = first_line(error) if isinstance(error, FincEvalError | ValueError) else "wrong content"
        raise DataError(f"{path} is damaged ({why}): {remedy}") from error


Content = tuple[str, dict[str, Any], dict[str, "StoredRows"]]  # version, header, and arrays by name


class StoredFile:
    """A file of finc-eval, open for reading.

    Attributes:
        path: path of the file.
        version: version of finc-eval that wrote it.
        header: what the header says besides its arrays.
        arrays: the arrays, by name, in the order in which they were written.

    Raises:
        DataError: it is missing, unreadable, of another type or layout, or damaged; the message ends with the remedy.
    """

    def __init__(self, path: str | Path, type_name: str, layout: int, remedy: str = AGAIN) -> None:
        self.path, self._remedy = on_disk(path), remedy
        try:
            file = open_file(self.path)
        except FileNotFoundError as error:
            raise DataError(f"{path} does not exist") from error
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror or error}): check the path") from error
        held = ExitStack()
        held.enter_context(file)
        # A cache may live as long as what was made of it: who forgets to close it leaves no open file behind.
        self._closing = weakref.finalize(self, held.close)
        self.size = os.fstat(file.fileno()).st_size
        try:
            self.version, self.header, self.arrays = self._read(file, held, type_name, layout)
        except Exception as error:
            self.close()
            if isinstance(error, FincEvalError | MemoryError):
                raise
            raise self.damaged(words_of(error)) from error

    def _read(self, file: IO[bytes], held: ExitStack, type_name: str, layout: int) -> Content:
        start = file.read(512)
        if start.startswith(EARLIER):
            front = _front(start)
            if front is None:
                raise ValueError("its first bytes differ from what was written")
            self._check_stated(Stated(front.type_name, front.layout), type_name, layout)
            header, old = front.content(file)
            arrays = {name: StoredRows(self, name, rows) for name, rows in old.items()}
            return str(header.pop("version", "")), header, arrays
        root = _own_root(held.enter_context(opened(file))) if start.startswith(SIGNATURE) else None
        if root is None:
            raise self._foreign(start, type_name)
        self._check_stated(Stated.of(root), type_name, layout)
        known = {name: text_in(value) for name, value in root.attrs.items()}
        arrays = self._checked(known, {name: raw_of(dataset) for name, dataset in datasets_in(root).items()})
        header = {name: value_of(text, str(self.path)) for name, text in known.items() if name not in STATED}
        for name in [name for name in arrays if name.startswith(DOCUMENTS)]:
            (text,) = arrays.pop(name).whole().tolist()
            header[name.removeprefix(DOCUMENTS)] = parse_json(text, str(self.path))
        return known["version"], header, arrays

    def _check_stated(self, stated: Stated, type_name: str, layout: int) -> None:
        if stated.type_name != type_name:
            raise wrong_type(self.path, stated.type_name, type_name)
        check_layout(self.path, type_name, stated.layout, layout, self._remedy)

    def _checked(self, known: Mapping[str, str], raw: dict[str, Raw]) -> dict[str, StoredRows]:
        """Return the arrays with their checksums; ValueError if anything but their rows is not what was written."""
        sums = raw.pop(CHECKSUMS)
        counts = [blocks_of(raw[name].dtype, raw[name].shape)[1] for name in sorted(raw)]
        if sums.dtype.str != "<u4" or sums.shape != (sum(counts),):
            raise ValueError("its checksums are not those of its arrays")
        check_decoded(4 * sum(counts), str(self.path))
        checksums = sums.read(0, sum(counts))
        if known["content"] != content_digest(known, {name: (x.dtype, x.shape) for name, x in raw.items()}, checksums):
            raise ValueError("its header is not what was written")
        of_each = dict(zip(sorted(raw), np.split(checksums, np.cumsum(counts)[:-1].astype(int)), strict=False))
        return {name: StoredRows(self, name, dataset, of_each[name]) for name, dataset in raw.items()}

    def _foreign(self, start: bytes, type_name: str) -> DataError:
        if start.lstrip().startswith(b"{"):
            return DataError(f"{self.path} is JSON, and the {type_name} with its arrays is needed: pass its .h5 file")
        return DataError(
            f"{self.path} was not written by finc-eval: a finc-eval file of the type {type_name!r} is needed here"
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
        rows = self.stored(name)
        if (
            rows.dtype.str != dtype
            or len(rows.shape) != len(shape)
            or any(length is not None and length != wanted for length, wanted in zip(shape, rows.shape, strict=True))
        ):
            raise self.damaged(f"{name} has the shape {rows.shape} and the type {rows.dtype}")
        return rows

    def array(self, name: str, *shape: int | None, dtype: str = "<f4") -> NDArray[Any]:
        """Read an array whole; see `rows`."""
        return self.rows(name, *shape, dtype=dtype).whole()

    def texts(self, name: str, n: int | None = None) -> StoredTexts:
        """Return a list of texts, which are read when they are needed; `n` is its length."""
        if (array := self.arrays.get(name)) is not None and array.dtype.kind == "S":
            return StoredTexts(self.rows(name, n, dtype=array.dtype.str))
        data, ends = f"{name}/{TEXT_BYTES}", f"{name}/{TEXT_ENDS}"
        return StoredTexts(self.rows(data, None, dtype="|u1"), self.rows(ends, n, dtype="<i8"))

    def stored(self, name: str) -> StoredRows:
        """Return an array of any shape and type, whose rows are read when they are needed."""
        array = self.arrays.get(name)
        if array is None:
            raise self.damaged(f"it has no {name}")
        if array.dtype.str not in DTYPES and array.dtype.kind != "S":
            raise self.damaged(f"{name} has the type {array.dtype}")
        return array

    def check(self) -> None:
        """Read all arrays and raise DataError if one is not what was written."""
        for array in self.arrays.values():
            for _ in array.blocks():
                pass

    def close(self) -> None:
        """Close the file; no more can be read."""
        self._closing()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class StoredRows:
    """An array in a file, whose rows are read when they are needed; the checksum of each block is checked once."""

    def __init__(self, file: StoredFile, name: str, raw: Raw, checksums: NDArray[np.uint32] | None = None) -> None:
        self.file, self.name, self._raw, self._checksums = file, name, raw, checksums
        self.dtype, self.shape = raw.dtype, raw.shape
        self.row_bytes = prod(self.shape[1:]) * self.dtype.itemsize
        self.together, count = blocks_of(self.dtype, self.shape)
        # The reader of an earlier layout checks what it reads.
        self._right = np.full(count, checksums is None)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def whole(self) -> NDArray[Any]:
        """Read the whole array."""
        return self.between(0, len(self)).reshape(self.shape)

    def between(self, start: int, stop: int) -> NDArray[Any]:
        """Read consecutive rows; what lies beyond the last row is left out."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        first, last = start // self.together, -(-stop // self.together)
        if self._right[first:last].all():
            return self._read(start, stop)
        low = first * self.together
        data = self._read(low, min(last * self.together, len(self)))
        for block in (first + np.flatnonzero(~self._right[first:last])).tolist():
            rows = data[block * self.together - low :][: self.together]
            if self._checksums is None or zlib.crc32(rows.reshape(-1).view(np.uint8).data) != self._checksums[block]:
                raise self.file.damaged(f"{self.name} is not what was written")
        self._right[first:last] = True
        return data[start - low : stop - low]

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        if (size := (stop - start) * self.row_bytes) > self.file.size:
            check_decoded(size, f"{self.name} of {self.file.path}")
        try:
            return self._raw.read(start, stop)
        except (OSError, RuntimeError, KeyError) as error:
            raise self.file.damaged(f"{self.name} cannot be read") from error

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Yield all rows in order, a block at a time."""
        return (self.between(start, start + self.together) for start in range(0, len(self), self.together))


class StoredTexts:
    """A list of texts in a file, which are read when they are needed."""

    def __init__(self, data: StoredRows, ends: StoredRows | None = None) -> None:
        self._data, self._ends = data, ends

    def __len__(self) -> int:
        return len(self._data if self._ends is None else self._ends)

    def between(self, start: int, stop: int) -> list[str]:
        """Read consecutive texts; what lies beyond the last text is left out."""
        return [text_of(text) for text in self.bytes_between(start, stop)]

    def bytes_between(self, start: int, stop: int) -> list[bytes]:
        """Read the bytes of consecutive texts."""
        start, stop, _ = slice(start, stop).indices(len(self))
        if stop <= start:
            return []
        if self._ends is None:
            step = self._data.together  # each text takes as many bytes as the longest, and all of them may be too many
            parts = (self._data.between(first, min(first + step, stop)) for first in range(start, stop, step))
            return [text for part in parts for text in part.tolist()]
        ends = self._ends.between(max(start - 1, 0), stop).tolist()
        bounds = ends if start else [0, *ends]
        if bounds[0] < 0 or bounds[-1] > len(self._data) or bounds != sorted(bounds):
            raise self._data.file.damaged(f"{self._ends.name} is wrong")
        data = self._data.between(bounds[0], bounds[-1]).tobytes()
        return [data[low - bounds[0] : high - bounds[0]] for low, high in pairwise(bounds)]

    def all(self) -> list[str]:
        """Read all texts."""
        return self.between(0, len(self))


def header_of(path: str | Path) -> dict[str, Any] | None:
    """Read the header of a finc-eval file of any type, which it states as "type"; None for other and damaged files."""
    stated = stated_in(path)
    if stated is None:
        return None
    try:
        with StoredFile(path, stated.type_name, stated.layout) as file:
            return {"type": stated.type_name, **file.header}
    except DataError:
        return None
