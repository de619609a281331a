"""Writing finc-eval's own files: `stored` says what is in them, and `hdf5` how it comes to the disk."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.digest import text_bytes, text_of
from finc_eval.core.errors import DataError
from finc_eval.core.files.hdf5 import (
    Group,
    Sink,
    as_text,
    blocks_of,
    content_digest,
    create_hdf5,
    new_dataset,
    set_text,
)
from finc_eval.core.files.stored import CHECKSUMS, DOCUMENTS, TEXT_BYTES, TEXT_ENDS, file_type
from finc_eval.core.places import out_path
from finc_eval.core.storage import PROGRAM, write_whole

ATTRIBUTE_BYTES = 3000  # bytes of an attribute at most: HDF5 keeps one of more than 4096 without a checksum of its own


def check_target(path: str | Path, type_name: str) -> None:
    """Raise DataError when `path` holds anything but a finc-eval file of this type, which would be overwritten."""
    if Path(path).exists() and file_type(path) != type_name:
        raise DataError(f"{path} already exists and is not a finc-eval {type_name}: choose another name")


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
    """Yield a new file at a temporary path; it is finished when the block ends well."""
    with Sink(path) as sink:
        with create_hdf5(sink) as hdf5:
            new = NewFile(hdf5, sink.check)
            yield new
            new.finish(type_name, layout)
        sink.check()


class NewFile:
    """A file that is being written; its `header` holds what is said besides the arrays, in plain JSON types."""

    def __init__(self, hdf5: Group, check: Callable[[], None]) -> None:
        self.header: dict[str, Any] = {}
        self._hdf5, self._check = hdf5, check
        self._arrays: dict[str, NewArray] = {}

    def array(self, name: str, values: ArrayLike) -> None:
        """Write an array of numbers, or of texts in bytes."""
        data = np.asarray(values)
        self.rows(name, data.shape, data.dtype.newbyteorder("<").str).append(data)

    def rows(self, name: str, shape: tuple[int, ...], dtype: str) -> NewArray:
        """Reserve the space of an array, whose rows are appended in their order."""
        self._check()
        self._arrays[name] = NewArray(self._hdf5, name, shape, np.dtype(dtype))
        return self._arrays[name]

    def texts(self, name: str, strings: Sequence[str]) -> None:
        """Write a list of texts. File names on Linux need not be valid UTF-8; their bytes are kept as they are."""
        encoded = [text_bytes(string) for string in strings]
        self.text_rows(name, TextSizes.of(encoded)).append(encoded)

    def text_rows(self, name: str, sizes: TextSizes) -> NewTexts:
        """Reserve the space of a list of texts of these sizes, which are appended in their order, as bytes."""
        if sizes.are_listed:
            return NewTexts(self.rows(name, (sizes.n,), f"|S{max(sizes.longest, 1)}"))
        data = self.rows(f"{name}/{TEXT_BYTES}", (sizes.total,), "|u1")
        return NewTexts(data, self.rows(f"{name}/{TEXT_ENDS}", (sizes.n,), "<i8"))

    def finish(self, type_name: str, layout: int) -> None:
        """Write the header and the checksums."""
        stated = {"program": PROGRAM, "type": type_name, "layout": layout, "version": version(PROGRAM), **self.header}
        attributes = {name: as_text(value) for name, value in sorted(stated.items())}
        for name in [name for name, text in attributes.items() if len(text) > ATTRIBUTE_BYTES]:
            self.array(f"{DOCUMENTS}{name}", np.array([json.dumps(stated[name], allow_nan=False).encode("ascii")]))
            del attributes[name]
        by_name = (self._arrays[name].checksums() for name in sorted(self._arrays))
        checksums = np.array([checksum for of_array in by_name for checksum in of_array], np.uint32)
        arrays = {name: (array.dtype, array.shape) for name, array in self._arrays.items()}
        NewArray(self._hdf5, CHECKSUMS, checksums.shape, np.dtype("<u4")).append(checksums)
        texts = {name: text_of(text) for name, text in attributes.items()}
        attributes["content"] = content_digest(texts, arrays, checksums).encode()
        for name, text in attributes.items():
            set_text(self._hdf5, name, text)


class NewArray:
    """An array that is being written, row by row."""

    def __init__(self, hdf5: Group, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.dtype, self.shape = dtype, shape
        self.together, self._count = blocks_of(dtype, shape)
        self._dataset = new_dataset(hdf5, name, shape, dtype)
        self._done, self._checksums, self._filled = 0, [0], 0

    def append(self, values: NDArray[Any]) -> None:
        """Append rows, or write the whole of an array without rows."""
        data = np.ascontiguousarray(values, self.dtype)
        if not data.size:
            return
        if self.shape:
            self._dataset[self._done : self._done + len(data)] = data.view(self._dataset.dtype)  # which knows UTF-8
        else:
            self._dataset[()] = data
        left = data.reshape(-1, *self.shape[1:])
        self._done += len(left)
        while len(left):
            part, left = left[: self.together - self._filled], left[self.together - self._filled :]
            self._checksums[-1] = zlib.crc32(part.reshape(-1).view(np.uint8).data, self._checksums[-1])
            self._filled += len(part)
            if self._filled == self.together:
                self._checksums.append(0)
                self._filled = 0

    def checksums(self) -> list[int]:
        """Return the checksum of each block of rows."""
        return self._checksums[: self._count]


class TextSizes(NamedTuple):
    """Sizes of the texts of a list, in bytes."""

    n: int  # number of texts
    longest: int  # bytes of the longest text
    total: int  # bytes of all texts
    padded: bool  # whether a text ends in NUL, which a text of fixed length cannot

    @classmethod
    def of(cls, encoded: Sequence[bytes]) -> TextSizes:
        """Measure texts."""
        lengths = [*map(len, encoded)]
        return cls(len(lengths), max(lengths, default=0), sum(lengths), any(text.endswith(b"\0") for text in encoded))

    def joined(self, other: TextSizes) -> TextSizes:
        """Return the sizes of the texts of both lists."""
        longest, padded = max(self.longest, other.longest), self.padded or other.padded
        return TextSizes(self.n + other.n, longest, self.total + other.total, padded)

    @property
    def are_listed(self) -> bool:
        """True if each text takes the bytes of the longest, as other programs read them best."""
        # 4096 bytes: above, the zeros behind the other texts take longer than the texts themselves.
        return self.longest <= 4096 and not self.padded


class NewTexts:
    """A list of texts that is being written: texts of one length, or the bytes of all with their ends."""

    def __init__(self, data: NewArray, ends: NewArray | None = None) -> None:
        self._data, self._ends, self._written = data, ends, 0
        self._waiting = list[bytes]()  # until there are as many as are compressed together

    def append(self, encoded: Sequence[bytes]) -> None:
        """Append texts."""
        if self._ends is not None:
            ends = self._written + np.cumsum([len(text) for text in encoded], dtype=np.int64)
            self._data.append(np.frombuffer(b"".join(encoded), np.uint8))
            self._ends.append(ends)
            self._written = int(ends[-1]) if len(ends) else self._written
            return
        self._written += len(encoded)
        self._waiting += encoded
        for start in range(0, len(self._waiting), step := self._data.together):
            part = self._waiting[start : start + step]
            if len(part) == step or self._written == self._data.shape[0]:
                self._data.append(np.array(part, self._data.dtype))
        whole = self._written == self._data.shape[0]
        self._waiting = [] if whole else self._waiting[len(self._waiting) // step * step :]
