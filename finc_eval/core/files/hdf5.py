"""The door of HDF5: h5py opens and makes files here alone, and nothing in a file leads out of it.

Trusted is the library itself, which interprets what a file holds. Links, storage in other files and foreign filters are
refused before anything is read. A full disk is noticed by `Sink`: HDF5 would end the process at its exit.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.digest import text_bytes, text_of
from finc_eval.core.doors import NotAFileError, create_file, open_file
from finc_eval.core.errors import DataError, first_line
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.parsed import parse_json
from finc_eval.core.words import join_words

if TYPE_CHECKING:
    import h5py
    from typing_extensions import Buffer

SIGNATURE = b"\x89HDF\r\n\x1a\n"

BLOCK_BYTES = 1 << 18  # bytes of the rows that share a checksum at most, unless a row has more

FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 4: "szip", 6: "scale-offset", 32000: "lzf"}
"""Filters by their numbers: those of HDF5, and the one that h5py brings. HDF5 would load others as programs."""

MAX_GROUPS, MAX_OBJECTS = 8, 100_000  # groups within each other, and arrays and groups of a file, at most

CUT = re.compile(r"truncated file: eof = ([0-9]+), .*stored_eof = ([0-9]+)")  # words of HDF5 about a file that was cut

# Texts of attributes that are JSON.
IS_JSON = re.compile(r'[\[{"].*|-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|null|true|false', re.DOTALL)

EMPTY = "shape"  # attribute of an array without entries


Group = Any  # group or file of h5py, which states no types


Shape = tuple[np.dtype[Any], tuple[int, ...]]  # type and shape of an array


class Raw(NamedTuple):
    """An array in a file: its type, its shape, and the function that reads its rows from one to another."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    read: Callable[[int, int], NDArray[Any]]


def beginning(path: str | Path) -> bytes:
    """Return the first bytes of a file, as many as show its signature; none for what is not a file."""
    try:
        with open_file(on_disk(path)) as file:
            # 512: bytes that some programs, such as MATLAB, write before it.
            return file.read(512 + len(SIGNATURE))
    except PermissionError as error:  # nobody knows what it is: it must not pass for a file of another kind
        raise DataError(f"{path} cannot be read (permission denied): check who may read it") from error
    except (OSError, NotAFileError):
        return b""


def opened(file: IO[bytes]) -> h5py.File:
    """Open HDF5 that is in an open file; whatever is wrong with it may raise any error."""
    import h5py  # most commands do without

    # 3 << 24: bytes of decoded chunks that are kept, for a copy by h5repack, whose chunks have 1 << 25: batch by batch,
    # each would be decoded several times.
    return h5py.File(file, "r", rdcc_nbytes=3 << 24)


@contextmanager
def open_hdf5(path: str | Path) -> Iterator[h5py.File]:
    """Yield an HDF5 file that is open for reading, as `opened` does."""
    with open_file(path) as file, opened(file) as hdf5:
        yield hdf5


def words_of(error: Exception) -> str:
    """Return what an error of reading HDF5 means, for a message."""
    if isinstance(error, ValueError) and not str(error).startswith("Unable"):
        return first_line(error)
    cut = CUT.search(str(error))
    return f"it has {int(cut[1]):,} of {int(cut[2]):,} bytes" if cut else "HDF5 cannot read it"


def datasets_in(group: h5py.Group) -> dict[str, h5py.Dataset]:
    """Return the arrays in a group and the groups below it, by their paths, in the order in which they were written.

    ValueError for a link, and for an array in another file or behind a foreign filter. Nothing of an array is read.
    """
    import h5py

    found, objects = dict[str, h5py.Dataset](), 0
    waiting = [("", iter(group), group)]
    while waiting:
        folder, names, parent = waiting[-1]
        if (name := next(names, None)) is None:
            waiting.pop()
            continue
        path, objects = f"{folder}{name}", objects + 1
        if not _is_own(parent, name):
            raise ValueError(f"{path} is a link, which is not followed")
        node = parent[name]
        if isinstance(node, h5py.Dataset):
            _check_storage(path, node)
            found[path] = node
        elif isinstance(node, h5py.Group):
            waiting.append((f"{path}/", iter(node), node))
        if len(waiting) > MAX_GROUPS or objects > MAX_OBJECTS:
            raise ValueError(f"it has more than {MAX_GROUPS} groups within each other, or {MAX_OBJECTS:,} arrays")
    return found


def _is_own(group: Group, name: str) -> bool:
    """Return whether a name in a group is of the thing itself, and not of a link to another place."""
    import h5py

    return bool(group.id.links.get_info(text_bytes(name)).type == h5py.h5l.TYPE_HARD)


def _check_storage(name: str, dataset: h5py.Dataset) -> None:
    import h5py

    made = dataset.id.get_create_plist()
    codes = {made.get_filter(number)[0] for number in range(made.get_nfilters())}
    if made.get_layout() == h5py.h5d.VIRTUAL or made.get_external_count():
        raise ValueError(f"{name} lies in another file, which is not read")
    if foreign := codes - set(FILTERS):
        raise ValueError(f"{name} has the filter {min(foreign)}, and only {join_words([*FILTERS.values()])} are read")


def only_group(group: h5py.Group) -> h5py.Group | None:
    """Return the group that is all that a group holds; None if there is none."""
    import h5py

    names = list(group)
    if len(names) != 1 or not _is_own(group, names[0]):
        return None
    found = group[names[0]]
    return found if isinstance(found, h5py.Group) else None


def raw_of(dataset: h5py.Dataset) -> Raw:
    """Return an array whose rows are read as they are stored; an array without rows has one, which is itself."""
    shape = dataset.shape or tuple(int(side) for side in dataset.attrs.get(EMPTY, ()))
    if dataset.shape is None and not shape:  # a copy without the attribute: most lists that may be empty are of texts
        shape = (0,)

    def read(start: int, stop: int) -> NDArray[Any]:
        # The type of a text knows that it is UTF-8: HDF5 converts nothing.
        found = np.empty((stop - start, *shape[1:]), dataset.dtype)
        if shape and found.size:
            dataset.read_direct(found, np.s_[start:stop])
        elif not shape:
            found[0] = dataset[()]
        return found

    return Raw(dataset.dtype, shape, read)


def blocks_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[int, int]:
    """Return how many rows of an array share a checksum, and the number of its checksums."""
    rows, size = shape[0] if shape else 1, prod(shape[1:]) * dtype.itemsize
    together = max(1, BLOCK_BYTES // max(size, 1))
    return together, -(-rows // together) if size else 0


def content_digest(attributes: Mapping[str, str], arrays: Mapping[str, Shape], checksums: NDArray[np.uint32]) -> str:
    """Return the digest of a file: of its attributes, of types and shapes of its arrays, and of their checksums."""
    shapes = sorted((name, dtype.str, shape) for name, (dtype, shape) in arrays.items())
    known = json.dumps([sorted((name, text) for name, text in attributes.items() if name != "content"), shapes])
    return hashlib.sha256(known.encode() + checksums.astype("<u4").tobytes()).hexdigest()


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


def create_hdf5(sink: Sink) -> h5py.File:
    """Make HDF5 in a file: each structure has a checksum (version 1.10), and the same content has the same bytes."""
    import h5py

    access, made = h5py.h5p.create(h5py.h5p.FILE_ACCESS), h5py.h5p.create(h5py.h5p.FILE_CREATE)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, sink)
    _in_order(made)
    return h5py.File(h5py.h5f.create(b"finc-eval", h5py.h5f.ACC_TRUNC, fcpl=made, fapl=access))


def _in_order(made: Any) -> None:
    """Ask for a group that lists what it holds in the order of writing, and that has no times."""
    import h5py

    made.set_obj_track_times(False)
    made.set_link_creation_order(h5py.h5p.CRT_ORDER_TRACKED | h5py.h5p.CRT_ORDER_INDEXED)


def new_dataset(root: h5py.Group, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> h5py.Dataset:
    """Reserve an array in a group that is being written; texts are compressed, block by block.

    Numbers lie in one piece, with all their space from the start.
    """
    import h5py

    *groups, last = name.split("/")
    parent = root.id
    for group in (group.encode() for group in groups):
        if group not in parent:
            made = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
            _in_order(made)
            h5py.h5g.create(parent, group, gcpl=made)
        parent = h5py.h5g.open(parent, group)
    made, access = h5py.h5p.create(h5py.h5p.DATASET_CREATE), h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
    access.set_chunk_cache(0, 0, 0.0)  # texts are written at once: their order in the file is the order of writing
    made.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    made.set_obj_track_times(False)
    kind = dtype
    if dtype.kind == "S":
        kind = h5py.string_dtype("utf-8", dtype.itemsize)
        if all(shape) and shape:
            made.set_chunk((min(blocks_of(dtype, shape)[0], shape[0]), *shape[1:]))
            made.set_deflate(1)  # most of them is zeros: what is not needed of a fixed length
    else:
        made.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    space = h5py.h5s.create_simple(shape) if all(shape) and shape else h5py.h5s.create(_space_of(shape))
    dataset = h5py.Dataset(
        h5py.h5d.create(parent, last.encode(), h5py.h5t.py_create(kind, logical=True), space, made, dapl=access)
    )
    if not all(shape):
        dataset.attrs.create(EMPTY, np.array(shape, np.int64))
    return dataset


def _space_of(shape: tuple[int, ...]) -> int:
    """Return the space of a number, or of nothing: h5repack cannot compress an array without entries."""
    import h5py

    return int(h5py.h5s.NULL if shape else h5py.h5s.SCALAR)


def set_text(root: h5py.Group, name: str, text: bytes) -> None:
    """Set an attribute to a text of fixed length: h5py itself would put it where HDF5 has no checksum."""
    import h5py

    root.attrs.create(name, np.array(text, h5py.string_dtype("utf-8", len(text))))


def as_text(value: Any) -> bytes:
    """Return a value of plain JSON types as an attribute has it: a text as it is, unless it could be taken for JSON."""
    if isinstance(value, str) and value and "\0" not in value and not IS_JSON.fullmatch(value):
        encoded = text_bytes(value)
        if text_of(encoded) == value:
            return encoded
    return json.dumps(value, allow_nan=False).encode("ascii")


def text_in(value: object) -> str:
    """Return the text of an attribute; a program that copies a file may have made it one of variable length."""
    if not isinstance(value, str | bytes):
        raise ValueError("an attribute is not a text")
    return value if isinstance(value, str) else text_of(bytes(value))


def value_of(text: str, where: str) -> Any:
    """Return the value that `as_text` wrote."""
    return parse_json(text, where) if IS_JSON.fullmatch(text) else text
