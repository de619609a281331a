"""HDF5 of other programs as arrays by name: numbers that are mapped, and columns of their rows.

HDF5 interprets the file; `hdf5` refuses links, storage in other files and foreign filters before it reads a number.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError, FincEvalError
from finc_eval.core.files.hdf5 import Group, datasets_in, opened, words_of
from finc_eval.core.memory import check_decoded, check_list
from finc_eval.core.words import join_words

DECODED_TOGETHER = 1 << 24  # bytes of rows that are decoded at once, unless the chunks of the file have more


def hdf5_arrays(path: Path, choose: Callable[[Mapping[str, tuple[int, ...]]], str]) -> dict[str, NDArray[Any]]:
    """Return the embeddings in a file, and the arrays of one dimension that have an entry for each of their rows.

    `choose` gets the shapes of all arrays of numbers that have two dimensions, and returns the name of the embeddings.
    If there are none it gets all shapes, and refuses them. An array is known by its last name, and by its whole path if
    others have the same.
    """
    try:
        with open_file(path) as file, opened(file) as hdf5:
            datasets = _by_name(datasets_in(hdf5))
            numbers = {
                name: tuple(dataset.shape)
                for name, dataset in datasets.items()
                if dataset.shape and dataset.dtype.kind in "biuf"
            }
            tables = {name: shape for name, shape in numbers.items() if len(shape) == 2}
            if datasets and not numbers:
                raise DataError(_say_no_numbers(datasets, path))
            chosen = choose(tables or numbers)
            n = tables[chosen][0]
            beside = {
                name: _column(dataset, f"{name} of {path}")
                for name, dataset in datasets.items()
                if dataset.shape == (n,)
            }
            rows = _rows(datasets[chosen], file.fileno(), f"{chosen} of {path}")
            return {chosen: rows, **{name: column for name, column in beside.items() if column is not None}}
    except (FincEvalError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"{path} cannot be read ({words_of(error)}): repair it, or save it again") from error


def _say_no_numbers(datasets: Mapping[str, Group], path: Path) -> str:
    """Return the sentence on a file whose arrays are of texts, records or complex numbers."""
    shown = [f"{name} ({dataset.dtype}, shape {dataset.shape})" for name, dataset in islice(datasets.items(), 3)]
    more = [f"{len(datasets) - 3} more"] if len(datasets) > 3 else []
    return f"{path} has no array of numbers, only {join_words([*shown, *more])}: save one array of shape (n, d)"


def _by_name(datasets: Mapping[str, Group]) -> dict[str, Group]:
    """Return arrays by their last names, or by their paths where several have the same last name."""
    short = [path.rpartition("/")[2] for path in datasets]
    return {
        name if short.count(name) == 1 else path: dataset
        for (path, dataset), name in zip(datasets.items(), short, strict=True)
    }


def _column(dataset: Group, where: str) -> NDArray[Any] | None:
    """Read an array of one dimension as numbers or texts; None for anything else, such as records."""
    if dataset.dtype.kind not in "biufSO":
        return None
    check_list(len(dataset), where, "entries")
    check_decoded(dataset.size * dataset.dtype.itemsize, where)
    if dataset.dtype.kind in "biuf":
        return np.asarray(dataset[:])
    try:
        return np.asarray(dataset.asstr("utf-8", "surrogateescape")[:], object)
    except TypeError:  # objects that are not texts
        return None


def _rows(dataset: Group, descriptor: int, where: str) -> NDArray[Any]:
    """Return embeddings: mapped where they lie in one piece as floats, and else decoded once into a temporary file."""
    n, dim = dataset.shape
    kind = dataset.dtype if dataset.dtype.kind == "f" and dataset.dtype.itemsize in (2, 4, 8) else np.dtype(np.float32)
    offset = dataset.id.get_offset() if dataset.chunks is None and kind == dataset.dtype and kind.isnative else None
    if offset is not None and offset + dataset.size * kind.itemsize <= os.fstat(descriptor).st_size:
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return np.memmap(file, kind, "c", offset, (n, dim))
    kind = kind.newbyteorder("=")
    together = max(1, DECODED_TOGETHER // max(dim * 8, 1))
    if dataset.chunks is not None:  # a chunk is decoded whole, and those side by side only once
        together = -(-together // dataset.chunks[0]) * dataset.chunks[0]
    check_decoded(min(together, n) * dim * 8, where)
    with tempfile.TemporaryFile() as file:  # has no name: nobody else opens it, and the map alone keeps it
        for start in range(0, n, together):
            file.write(np.ascontiguousarray(dataset[start : start + together], kind).tobytes())
        file.flush()
        return np.memmap(file, kind, "c", shape=(n, dim)) if n * dim else np.empty((n, dim), kind)
