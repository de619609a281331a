"""Writing a finc-eval file: an HDF5 file with a front, and a header with the place and the checksums of each array."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.digest import text_bytes
from finc_eval.core.doors import create_file
from finc_eval.core.files.front import BLOCK_BYTES, FRONT_BYTES, Front, check_target
from finc_eval.core.places import out_path
from finc_eval.core.storage import PROGRAM, write_whole

if TYPE_CHECKING:
    import h5py
    from typing_extensions import Buffer


class Sink(io.FileIO):
    """A new file whose first failure is kept and raised by `check`; what comes after it is thrown away."""

    def __init__(self, path: Path) -> None:
        with create_file(path) as file:
            super().__init__(os.dup(file.fileno()), "r+b")
        self._error: OSError | None = None

    def check(self) -> None:
        """Raise the error of the first write that failed, if there is one."""
        if self._error is not None:
            raise self._error

    def write(self, data: Buffer, /) -> int:
        """Write all of the data, unless something failed before."""
        left = memoryview(data).cast("B")
        size = len(left)
        try:
            while self._error is None and left:
                left = left[super().write(left) :]
        except OSError as error:
            self._error = error
        return size

    def readinto(self, buffer: Buffer, /) -> int:
        """Read into all of the buffer; what was thrown away is zeros."""
        into = memoryview(buffer).cast("B")
        done = super().readinto(into)
        into[done:] = bytes(len(into) - done)
        return len(into)

    def truncate(self, size: int | None = None, /) -> int:
        """Set the length of the file."""
        try:
            if self._error is None:
                return super().truncate(size)
        except OSError as error:
            self._error = error
        return self.tell() if size is None else size


HEADER = "header"  # dataset of the header: fixed bytes, JSON
TEXT_BYTES, TEXT_ENDS = "utf8", "ends"  # datasets of a list of texts: their bytes in a row, and where each text ends


@contextmanager
def new_file(
    path: str | Path, type_name: str, layout: int, check: Callable[[Path], None] | None = None
) -> Iterator[NewFile]:
    """Yield a new file of this type, which appears at `path` only when it is whole, and `check` has read it."""
    path = out_path(path)
    check_target(path, type_name)
    with write_whole(path) as temporary:
        with fill_file(temporary, type_name, layout) as file:
            yield file
        if check is not None:
            check(temporary)


@contextmanager
def fill_file(path: Path, type_name: str, layout: int) -> Iterator[NewFile]:
    """Yield a new file at a temporary path; it gets its header and its front when the block ends well."""
    import h5py  # a fifth of a second of import, which readers do not need

    with Sink(path) as sink:
        with h5py.File(sink, "w", userblock_size=FRONT_BYTES) as hdf5:
            new = NewFile(hdf5, sink.check)
            yield new
            arrays = {name: one.described() for name, one in new.arrays.items()}
            content = {"program": PROGRAM, "type": type_name, "layout": layout, **new.header, "arrays": arrays}
            header = json.dumps(content, allow_nan=False).encode("ascii")
            dataset = hdf5.create_dataset(HEADER, data=np.bytes_(header))
            hdf5.flush()
            start = int(dataset.id.get_offset())
        size, digest = sink.seek(0, os.SEEK_END), hashlib.sha256(header).hexdigest()
        sink.seek(0)
        sink.write(Front(type_name, layout, size, start, len(header), digest).encoded())
        sink.check()


class NewFile:
    """A file that is being written; its `header` holds what is said besides the arrays, in plain JSON types."""

    def __init__(self, hdf5: h5py.File, check: Callable[[], None]) -> None:
        self.header: dict[str, Any] = {}
        self._hdf5, self._check = hdf5, check
        self.arrays: dict[str, NewArray] = {}

    def array(self, name: str, values: ArrayLike) -> None:
        """Write an array of numbers."""
        data = np.asarray(values)
        self.rows(name, data.shape, data.dtype.newbyteorder("<").str).append(data)

    def rows(self, name: str, shape: tuple[int, ...], dtype: str) -> NewArray:
        """Reserve the space of an array, whose rows are appended in their order."""
        self._check()
        self.arrays[name] = NewArray(self._hdf5, name, shape, np.dtype(dtype))
        return self.arrays[name]

    def texts(self, name: str, strings: Sequence[str]) -> None:
        """Write a list of texts. File names on Linux need not be valid UTF-8; their bytes are kept as they are."""
        encoded = [text_bytes(string) for string in strings]
        self.array(f"{name}/{TEXT_BYTES}", np.frombuffer(b"".join(encoded), np.uint8))
        self.array(f"{name}/{TEXT_ENDS}", np.cumsum([len(one) for one in encoded], dtype=np.int64))


class NewArray:
    """An array that is being written, row by row."""

    def __init__(self, hdf5: h5py.File, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        import h5py

        # Contiguous, with all its space from the start: chunks that cannot be written make HDF5 crash at exit.
        layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        layout.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        self._dataset = hdf5.create_dataset(name, shape, dtype, dcpl=layout, track_times=False)
        self._done, self._checksums, self._filled = 0, [0], 0

    def append(self, values: NDArray[Any]) -> None:
        """Append rows, or write the whole of an array without rows."""
        data = np.ascontiguousarray(values, self._dataset.dtype)
        if self._dataset.shape == ():
            self._dataset[()] = data
        elif data.size:
            self._dataset[self._done : self._done + len(data)] = data
            self._done += len(data)
        left = data.reshape(-1).data.cast("B") if data.size else memoryview(b"")
        while left:
            part, left = left[: BLOCK_BYTES - self._filled], left[BLOCK_BYTES - self._filled :]
            self._checksums[-1] = zlib.crc32(part, self._checksums[-1])
            self._filled += len(part)
            if self._filled == BLOCK_BYTES:
                self._checksums.append(0)
                self._filled = 0

    def described(self) -> dict[str, Any]:
        """Return the entry of the array in the header."""
        checksums = self._checksums if self._filled else self._checksums[:-1]
        return {
            "dtype": self._dataset.dtype.str,
            "shape": list(self._dataset.shape),
            "start": int(self._dataset.id.get_offset() or 0) if checksums else 0,
            "crc32": checksums,
        }
