"""Arrays in .npz files, read a block at a time or mapped, since numpy.load maps none and reads each array whole."""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.files.archives import DAMAGED, open_member, open_zip_file, place_of_member
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.stated import check_stated
from finc_eval.core.memory import check_decoded

BLOCK_BYTES = 1 << 20  # bytes of an array that are read at once

NPY_HEADERS = {
    (1, 0): (struct.Struct("<H"), np.lib.format.read_array_header_1_0),
    (2, 0): (struct.Struct("<I"), np.lib.format.read_array_header_2_0),
}
"""Length of the header of an array and its reader, by the version of the format. Version 3 only differs for named
fields, which samples do not have."""

MAX_NPY_HEADER_BYTES = 1 << 16  # bytes of the header of an array


class Header(NamedTuple):
    """Shape, order and type of an array in a file."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


class NpzFile:
    """The arrays of an .npz file, by name."""

    def __init__(self, path: str | Path) -> None:
        """Open the file."""
        self.path = on_disk(path)
        try:
            self._zip = open_zip_file(self.path)
        except FileNotFoundError as error:
            raise DataError(f"{path} does not exist") from error
        except DAMAGED as error:
            raise DataError(f"{path} cannot be read as an .npz ({error}): save it again with numpy.savez") from error
        arrays = (info for info in self._zip.infolist() if info.filename.endswith(".npy"))
        self._members = {info.filename.removesuffix(".npy"): info for info in arrays}
        self.names = list(self._members)
        self._held: dict[str, int] = {}

    def header(self, name: str) -> Header:
        """Return the header of an array, which nothing is checked of."""
        with self._member(name) as stream:
            return npy_header(stream, f"{self.path}: {stream.name}")

    def array(self, name: str) -> NDArray[Any]:
        """Read a whole array; DataError if it is damaged, or larger than what is decoded at once."""
        with self.opened(name) as (stream, header):
            self._held[name] = header.size
            with_others = ", with those before it," if len(self._held) > 1 else ""
            check_decoded(sum(self._held.values()), f"{self.path}: the array {name}{with_others}")
            values = _values(stream, math.prod(header.shape), header.dtype)
            _verify_end(stream)
        return values.reshape(header.shape, order="F" if header.by_columns else "C")

    def mapped(self, name: str) -> NDArray[Any]:
        """Map an array that is stored uncompressed, after its checksum was verified; read any other whole."""
        info = self._members[name]
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            return self.array(name)
        with self.opened(name) as (stream, header):
            if not header.size:
                return np.empty(header.shape, header.dtype)
            for _ in blocks(stream, math.prod(header.shape), header.dtype):
                pass
            _verify_end(stream)
        file: IO[bytes] = self._zip.fp  # type: ignore[assignment]  # it is open
        file.seek(place_of_member(self._zip, info))
        return map_array(file, self.path)

    def rows(self, name: str) -> NpzRows:
        """Return the rows of an array, to be read in order."""
        return NpzRows(self, name)

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[IO[bytes], Header]]:
        """Yield an array that is open at its first value, and its header; damaged bytes become a DataError."""
        with self._member(name) as stream:
            header = npy_header(stream, f"{self.path}: {stream.name}")
            refuse_objects(header, f"{self.path}: {stream.name}")
            if header.size > (size := self._members[name].file_size):
                raise ValueError(f"{size} bytes for the shape {header.shape}")
            yield stream, header

    @contextmanager
    def _member(self, name: str) -> Iterator[IO[bytes]]:
        info = self._members[name]
        try:
            with open_member(self._zip, info) as stream:
                yield stream
        except DAMAGED as error:
            raise DataError(
                f"{self.path} is damaged ({info.filename}: {str(error) or 'cut short'}): save it again"
            ) from error


class NpzRows:
    """The rows of an array in an .npz file, with its `shape` and `dtype`, read in order."""

    def __init__(self, file: NpzFile, name: str) -> None:
        with file.opened(name) as (_, header):
            pass
        if header.by_columns and len(header.shape) > 1:
            raise DataError(f"{file.path}: {name} is stored in Fortran order: save np.ascontiguousarray({name})")
        self.shape, self.dtype = header.shape, header.dtype
        self._row = header._replace(shape=header.shape[1:])
        check_stated("array of numpy", self._row, f"{file.path}: each row of {name}, of shape {self._row.shape},")
        self._file, self._name = file, name

    def __len__(self) -> int:
        return self.shape[0]

    def at(self, numbers: Iterable[int]) -> Iterator[NDArray[Any]]:
        """Yield the rows with these increasing numbers."""
        following = 0
        with self._file.opened(self._name) as (stream, _):
            for number in numbers:
                stream.seek((number - following) * self._row.size, os.SEEK_CUR)
                following = number + 1
                yield _values(stream, math.prod(self._row.shape), self.dtype).reshape(self._row.shape)

    def batches(self, size: int) -> Iterator[NDArray[Any]]:
        """Yield all rows in order, at most `size` at a time."""
        with self._file.opened(self._name) as (stream, _):
            values = math.prod(self._row.shape)
            for start in range(0, len(self), size):
                count = min(size, len(self) - start)
                yield _values(stream, count * values, self.dtype).reshape(count, *self._row.shape)
            _verify_end(stream)


def blocks(stream: IO[bytes], n: int, dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """Yield the n values that follow in a stream, a block at a time; EOFError if there are fewer."""
    size = max(1, BLOCK_BYTES // max(1, dtype.itemsize))
    for start in range(0, n, size):
        count = min(size, n - start)
        data = stream.read(count * dtype.itemsize)
        if len(data) != count * dtype.itemsize:
            raise EOFError("cut short")
        yield np.frombuffer(data, dtype) if dtype.itemsize else np.empty(count, dtype)


def _values(stream: IO[bytes], n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Read the n values that follow in a stream."""
    values, end = np.empty(n, dtype), 0
    for block in blocks(stream, n, dtype):
        values[end : end + len(block)] = block
        end += len(block)
    return values


def _verify_end(stream: IO[bytes]) -> None:
    if stream.read(1):
        raise ValueError("bytes follow the array")


def map_array(file: IO[bytes], path: Path) -> NDArray[Any]:
    """Map the array that follows in a file, with its header; ValueError if it is empty or longer than the file."""
    header = npy_header(file, str(path))
    refuse_objects(header, str(path))
    order: Literal["F", "C"] = "F" if header.by_columns else "C"
    # Copy on write: torch takes no array that it must not change.
    return np.memmap(file, header.dtype, "c", file.tell(), header.shape, order)


def refuse_objects(header: Header, where: str) -> None:
    """Raise DataError for an array of Python objects, such as the dictionary that numpy.save makes an array of."""
    if header.dtype.hasobject and not header.shape:
        raise DataError(
            f"{where} holds one Python object, such as a dictionary of mu and sigma, and reading it could run code: "
            "save its arrays by numpy.savez(path, mu=…, sigma=…)"
        )
    if header.dtype.hasobject:
        raise DataError(f"{where} holds Python objects, which are not read: save numbers or texts, not dtype object")


def npy_header(stream: IO[bytes], where: str) -> Header:
    """Read the header of an array, and leave the stream at the first row; DataError for a damaged header."""
    try:
        length, read = NPY_HEADERS[np.lib.format.read_magic(stream)]
        stated = stream.read(length.size)
        (size,) = length.unpack(stated)
        if size > MAX_NPY_HEADER_BYTES:
            raise DataError(f"{where} has a header of {size:,} bytes, above {MAX_NPY_HEADER_BYTES:,}: save it again")
        header = Header(*read(io.BytesIO(stated + stream.read(size))))
        if min(header.shape, default=0) < 0 or not header.dtype.itemsize:
            raise ValueError("a length is negative, or its values have no bytes")
        return header
    except DataError:
        raise
    except Exception as error:  # the header is Python text, and damaged text may be anything
        raise DataError(f"{where} cannot be read (not an array of numpy): save it again") from error
