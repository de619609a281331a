"""Own files of the version before: 512 bytes that say what the file is, a header of JSON, and arrays of known place.

They are read for one more release, without HDF5, and each part is checked.
"""

from __future__ import annotations

import hashlib
import threading
import zlib
from dataclasses import dataclass
from math import prod
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.files.hdf5 import Raw
from finc_eval.core.files.parsed import json_table

CHECKED_BYTES = 1 << 18  # bytes of an array that share a checksum


@dataclass(frozen=True)
class Front:
    """The first line of a file: its type and layout, its length, and place, length and digest of its header."""

    type_name: str
    layout: int
    size: int
    start: int
    length: int
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> Front | None:
        """Read the first bytes of a file; None if they are damaged."""
        try:
            front = json_table(data[:512].decode("ascii"))
            (start, length), texts = front["header"], (str(front["type"]), str(front["sha256"]))
            return cls(texts[0], int(front["layout"]), int(front["size"]), int(start), int(length), texts[1])
        except (DataError, ValueError, KeyError, TypeError):
            return None

    def content(self, file: IO[bytes]) -> tuple[dict[str, Any], dict[str, Raw]]:
        """Return the header of an open file, and its arrays by name; ValueError for another header than was written."""
        if (size := file.seek(0, 2)) != self.size or not 0 <= self.start <= self.start + self.length <= size:
            raise ValueError(f"it has {size:,} of {self.size:,} bytes")
        file.seek(self.start)
        text = file.read(self.length)
        if hashlib.sha256(text).hexdigest() != self.sha256:
            raise ValueError("its header is not what was written")
        header, lock = json_table(text), threading.Lock()
        arrays = header.pop("arrays")
        for name in ("program", "type", "layout"):
            header.pop(name, None)
        # Columns of metadata have got a plainer name.
        return header, {
            f"columns/{name.removeprefix('metadata/')}" if name.startswith("metadata/") else name: _raw(
                file, lock, name, array, size
            )
            for name, array in arrays.items()
        }


def _raw(file: IO[bytes], lock: threading.Lock, name: str, entry: dict[str, Any], size: int) -> Raw:
    """Return an array by its entry in the header, which has its type, shape, place and checksums."""
    dtype, shape, sums = np.dtype(entry["dtype"]), tuple(map(int, entry["shape"])), entry["crc32"]
    offset, row = int(entry["start"]), prod(shape[1:]) * dtype.itemsize
    nbytes = prod(shape) * dtype.itemsize
    if dtype.hasobject or min((0, *shape)) or not 0 <= offset <= offset + nbytes <= size:
        raise ValueError(f"{name} is larger than the file")
    if len(sums) != -(-nbytes // CHECKED_BYTES):
        raise ValueError(f"the checksums of {name} are wrong")

    def read(start: int, stop: int) -> NDArray[Any]:
        low = start * row // CHECKED_BYTES * CHECKED_BYTES
        high = min(-(-stop * row // CHECKED_BYTES) * CHECKED_BYTES, nbytes)
        with lock:
            file.seek(offset + low)
            data = file.read(high - low)
        for first in range(0, high - low, CHECKED_BYTES):
            if zlib.crc32(data[first : first + CHECKED_BYTES]) != sums[(low + first) // CHECKED_BYTES]:
                raise OSError(f"{name} is not what was written")
        some = np.frombuffer(data, np.uint8)[start * row - low : stop * row - low].copy()
        rows: NDArray[Any] = some.view(dtype).reshape(stop - start, *shape[1:])
        return rows

    return Raw(dtype, shape, read)
