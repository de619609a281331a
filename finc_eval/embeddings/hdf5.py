"""Strings and contiguous arrays in HDF5 files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import quote, unquote

import h5py

COLUMNS = "metadata"
"""Group of the columns of metadata."""

OLDEST_COLUMNS = {"label": "labels", "prompt": "prompts"}
"""Columns that a cache has had from the start, outside of the group, and their datasets."""


def read_strings(dataset: h5py.Dataset, part: slice = slice(None)) -> list[str]:
    """Read the strings that `write_strings` wrote."""
    return cast("list[str]", dataset.asstr("utf-8", "surrogateescape")[part].tolist())


def write_strings(group: h5py.Group, name: str, strings: Sequence[str]) -> None:
    """Write strings as a dataset of this name."""
    # File names on Linux need not be valid UTF-8; their bytes are kept as they are.
    data = [string.encode("utf-8", "surrogateescape") for string in strings]
    group.create_dataset(name, (len(data),), h5py.string_dtype(), data=data or None)


def title_in(file: h5py.File) -> str:
    """Return the title of the set in a sketch, or the name of the file where it does not state one."""
    return read_strings(file["name"])[0] if "name" in file else Path(file.filename).stem


def write_columns(file: h5py.File, columns: Mapping[str, Sequence[str]]) -> None:
    """Write columns of metadata, in place of those of the same names."""
    group = file[COLUMNS] if COLUMNS in file else file.create_group(COLUMNS, track_order=True)
    for name, strings in columns.items():
        # HDF5 reads "/" and "." in a name as a path.
        dataset = quote(name, safe=" ").replace(".", "%2E")
        if dataset in group:
            del group[dataset]
        write_strings(group, dataset, strings)


def column_datasets(file: h5py.File) -> dict[str, str]:
    """Return the path of the dataset of each column, by its name."""
    found = {name: dataset for name, dataset in OLDEST_COLUMNS.items() if dataset in file}
    return found | {unquote(dataset): f"{COLUMNS}/{dataset}" for dataset in file.get(COLUMNS, ())}


def contiguous_dataset(file: h5py.File, name: str, shape: tuple[int, ...], dtype: str) -> h5py.Dataset:
    """Create a dataset that has all its space in the file from the start."""
    # Contiguous, not chunked: a disk that fills up while chunks are cached makes HDF5 crash at exit.
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    return file.create_dataset(name, shape, dtype, dcpl=layout, track_times=False)
