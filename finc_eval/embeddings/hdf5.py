"""Strings and contiguous arrays in HDF5 files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import h5py


def read_strings(dataset: h5py.Dataset, part: slice = slice(None)) -> list[str]:
    """Read the strings that `write_strings` wrote."""
    return cast("list[str]", dataset.asstr("utf-8", "surrogateescape")[part].tolist())


def write_strings(group: h5py.Group, name: str, strings: Sequence[str]) -> None:
    """Write strings as a dataset of this name."""
    # File names on Linux need not be valid UTF-8; their bytes are kept as they are.
    data = [string.encode("utf-8", "surrogateescape") for string in strings]
    group.create_dataset(name, (len(data),), h5py.string_dtype(), data=data or None)


def contiguous_dataset(file: h5py.File, name: str, shape: tuple[int, ...], dtype: str) -> h5py.Dataset:
    """Create a dataset that has all its space in the file from the start."""
    # Contiguous, not chunked: a disk that fills up while chunks are cached makes HDF5 crash at exit.
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    return file.create_dataset(name, shape, dtype, dcpl=layout, track_times=False)
