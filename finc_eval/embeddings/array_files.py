"""Files of embeddings that other programs write: .npy, .npz, .pt, .safetensors, .parquet and HDF5."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from errno import EFAULT
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError
from finc_eval.core.files.csv_text import check_cells
from finc_eval.core.files.npz import NpzFile, map_array
from finc_eval.core.files.parquet import parquet_pieces, parquet_schema
from finc_eval.core.files.stored import is_foreign
from finc_eval.core.files.tensors import (
    TENSOR_SUFFIXES,
    Shapes,
    find_labels,
    in_short,
    refuse_layers,
    refuse_means,
    tensors_in,
)
from finc_eval.core.memory import check_decoded, check_list
from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.numerics.arrays import Pair, count_of, from_sums, is_plain, pair_in
from finc_eval.samples.rows import holds_images
from finc_eval.samples.source import readable

PREFERRED = ("embeddings", "features", "feats", "arr_0")  # names of the embeddings in a file of several arrays
IDS = ("ids", "id", "file_name")  # names of the array of ids, next to the embeddings

SINGULAR = {"labels": "label", "prompts": "prompt", "groups": "group"}
"""Names of columns as finc-eval has them, by names that arrays often have."""

STATISTICS = ("mu", "sigma")  # names of a mean and a covariance in the files of most tools

HDF5_SUFFIXES = (".h5", ".hdf5", ".hdf", ".he5")
"""Suffixes of files that are never samples, even where they are damaged: the message should be about the damage."""

Rows = NDArray[Any] | torch.Tensor

Arrays = Mapping[str, Any]  # arrays of a file by name; arrays of one dimension describe the samples


def is_array_file(path: str | Path) -> bool:
    """Return whether a file may hold embeddings of another program.

    An .npz of integers holds images; a mean beside a covariance is the statistics of a Fréchet distance. HDF5 is of
    another program if it does not say that it is of finc-eval.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in HDF5_SUFFIXES:
        return is_foreign(path)
    if suffix not in READERS or not path.exists() or path.is_dir() or holds_images(path) or holds_statistics(path):
        return False
    if suffix != ".npz":
        return True
    try:
        file = NpzFile(path)
        headers = map(file.header, file.names)
        return any(len(header.shape) == 2 and header.dtype.kind == "f" for header in headers)
    except DataError:
        return False


def holds_statistics(path: str | Path) -> bool:
    """Return whether this file is one of statistics: a mean and a covariance, without embeddings or images."""
    return _statistics(Path(path), alone=True) is not None and not holds_images(Path(path))


def read_moments(path: str | Path) -> tuple[NDArray[Any], NDArray[Any], int | None] | None:
    """Read the mean, the covariance and the number of samples, if it is known, in a file; None if it holds none."""
    statistics = _statistics(Path(path))
    if statistics is None:
        return None
    pair, shapes, read = statistics
    mean, covariance, n = read(pair.mean), read(pair.covariance), count_of(pair, shapes, read)
    if pair.are_sums:
        return *from_sums(pair, mean.reshape(-1), covariance, n, str(path)), n
    mean = mean.reshape(-1) if mean.shape == (1, len(covariance)) else mean
    return mean, covariance, n if n and n > 1 else None


Read = Callable[[str], NDArray[Any]]  # function that reads an array of a file by its name


def _statistics(path: Path, *, alone: bool = False) -> tuple[Pair, Shapes, Read] | None:
    """Return the statistics in a file, or None if it has none or is damaged; `alone`: skip those next to embeddings."""
    suffix = path.suffix.lower()
    if suffix not in (".npz", *TENSOR_SUFFIXES) or not path.is_file():
        return None
    shapes: Shapes
    read: Read
    try:
        if suffix == ".npz":
            file = NpzFile(path)
            shapes, read = (
                {
                    name: header.shape
                    for name, header in ((name, file.header(name)) for name in file.names)
                    if header.dtype.kind == "f" or name in STATISTICS or max(header.shape, default=1) == 1
                },
                file.array,
            )
        else:
            arrays = READERS[suffix](path)
            shapes, read = ({n: tuple(a.shape) for n, a in arrays.items()}, lambda name: arrays[name].double().numpy())
    except Exception:  # whoever opens the file as embeddings or samples says what is wrong with it
        return None
    beside = any(len(shapes.get(name, ())) == 2 and shapes[name][0] != shapes[name][1] for name in PREFERRED)
    pair = None if alone and beside else pair_in(shapes, read, str(path))
    # Beside embeddings, a vector and a matrix are of them only by their names.
    return None if pair is None or (beside and not pair.is_named) else (pair, shapes, read)


class StoredArrays(EmbeddingSet):
    """Embeddings that stay in the file that another program wrote, which may not change as long as they are read.

    The kernel copies rows out of the mapped file (`_copy`): the operating system kills a process that itself touches a
    part of the file which another program has cut off.
    """

    def __init__(self, path: str | Path) -> None:
        self._path, self._state = Path(path), _state(Path(path))
        rows, ids, columns = read_arrays(path)
        super().__init__(rows, ids, columns or None, name=str(path))
        self.title = self._path.stem

    def _taken(self, rows: slice | torch.Tensor) -> torch.Tensor:
        self._check_unchanged()
        try:
            copied = _copy(self._rows, rows)
        except OSError as error:
            if error.errno != EFAULT:
                raise
            raise self._changed() from error
        self._check_unchanged()
        return copied

    def _check_unchanged(self) -> None:
        if _state(self._path) != self._state:
            raise self._changed()

    def _changed(self) -> DataError:
        return DataError(
            f"{self._path} changed while it was read: run the same command again when nothing changes it any more"
        )


def _copy(mapped: torch.Tensor, rows: slice | torch.Tensor) -> torch.Tensor:
    """Copy rows of a mapped file; OSError EFAULT if the file no longer has them all.

    A write of mapped memory fails where it was cut off, without a signal. Rows that lie column by column are touched.
    """
    numbers = range(len(mapped))[rows] if isinstance(rows, slice) else rows.tolist()
    if mapped.stride(1) != 1 or not numbers or not hasattr(os, "memfd_create"):
        return mapped[rows].clone()
    data = mapped.view(torch.uint8).numpy()
    pieces = [data[rows]] if isinstance(rows, slice) and mapped.is_contiguous() else [data[row] for row in numbers]
    with os.fdopen(os.memfd_create("rows"), "w+b", buffering=0) as file:
        for piece in pieces:
            left = piece.data.cast("B")
            while left:
                left = left[file.write(left) :]
        copied = np.memmap(file, np.uint8, "c", shape=(len(numbers), data.shape[1]))
    return torch.from_numpy(copied).view(mapped.dtype)


def _state(path: Path) -> tuple[int, ...] | None:
    """Return file, size and time of the last change; None without a file."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def read_arrays(path: str | Path) -> tuple[Rows, list[str] | None, dict[str, list[str]]]:
    """Read the embeddings in a file that another program wrote, with their ids and columns.

    Files of .npy, .npz (uncompressed), .pt, .safetensors and HDF5 are mapped, and their rows are read when they are
    needed; other files are read whole, if they are not larger than FINC_EVAL_MAX_DECODED allows. The embeddings are the
    array of two dimensions: the only one, or the one called embeddings, features, feats or arr_0. Arrays of one
    dimension and n entries are columns of metadata; ids, id or file_name names the samples. A .parquet table has the
    embeddings as a column of lists, or as all its columns of floats.
    """
    path = Path(path)
    with readable(path):
        arrays = READERS[path.suffix.lower()](path)
    rows: Rows = arrays[_embeddings({name: tuple(np.shape(array)) for name, array in arrays.items()}, path)]
    # 16: bytes that are kept of each row: the hash of its id, while it is sorted.
    check_list(len(rows), str(path), "rows", 16)
    beside = {name: array for name, array in arrays.items() if np.ndim(array) == 1 and len(array) == len(rows)}
    check_cells(len(beside), len(rows), str(path))
    ids = next((beside.pop(name) for name in IDS if name in beside), None)
    columns = {SINGULAR.get(name, name): _texts(column.tolist()) for name, column in beside.items()}
    name, labels = find_labels(beside, len(rows))
    if name is not None and labels is not None:
        columns.pop(name, None)
        columns["label"] = _texts(labels)
    return rows, None if ids is None else _texts(ids.tolist()), columns


def _embeddings(shapes: Shapes, path: Path) -> str:
    """Return the name of the array of embeddings, by the shapes of all."""
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    chosen = next((name for name in PREFERRED if name in matrices), matrices[0] if len(matrices) == 1 else None)
    if chosen not in PREFERRED:
        refuse_means(shapes, str(path))
        refuse_layers(chosen, shapes, str(path))
    if chosen is None:
        raise DataError(
            f"{path} holds {in_short(shapes) or 'nothing'}: save one array of shape (n, d), or call it embeddings"
        )
    return chosen


def _texts(values: list[Any]) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]


def _npy(path: Path) -> Arrays:
    with open_file(path) as file:
        return {"arr_0": map_array(file, path)}


def _npz(path: Path) -> Arrays:
    file = NpzFile(path)
    shapes = {name: file.header(name).shape for name in file.names}
    rows = _embeddings(shapes, path)
    # Others are not read: each that is mapped takes one of the files that may be open.
    beside = {name: file.array(name) for name, shape in shapes.items() if shape == shapes[rows][:1]}
    return {rows: file.mapped(rows), **beside}


def _plain_tensors(path: Path) -> Arrays:
    tensors = tensors_in(path)
    for name, tensor in tensors.items():
        if not is_plain(tensor):
            raise DataError(f"{path}: the tensor {name} is not one of plain numbers: save a dense tensor of floats")
    return tensors


def _parquet(path: Path) -> Arrays:
    from pyarrow import types

    schema, rows = parquet_schema(path)
    are_lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    lists = [field.name for field in schema if any(is_one(field.type) for is_one in are_lists)]
    numbers = [field.name for field in schema if types.is_floating(field.type)]
    arrays: dict[str, NDArray[Any]] = {}
    entries, start = None, 0
    for piece in parquet_pieces(path):
        for name in schema.names:
            if name not in numbers:
                column = piece.column(name)
                part = _matrix(column) if name in lists else column.to_numpy(zero_copy_only=False)
                arrays[name] = _filled(arrays.get(name), start, part, rows, path)
        if numbers and not lists:
            columns = [piece.column(name).to_numpy(zero_copy_only=False) for name in numbers]
            entries = _filled(entries, start, np.stack(columns, 1), rows, path)
        start += len(piece)
    if start != rows:
        raise ValueError(f"{start:,} of {rows:,} rows are there")
    return arrays if entries is None else arrays | {"embeddings": entries}


def _matrix(column: Any) -> NDArray[Any]:
    """Return lists of the same length as the rows of an array; ValueError for several lengths."""
    values = column.flatten().to_numpy(zero_copy_only=False)
    if column.null_count or len(column.value_lengths().unique()) > 1:
        raise ValueError("its lists have several lengths, or one is missing")
    matrix: NDArray[Any] = values.reshape(len(column), -1)
    return matrix


def _filled(matrix: NDArray[Any] | None, start: int, part: NDArray[Any], rows: int, path: Path) -> NDArray[Any]:
    """Return a column of so many rows with a part put in from row `start` on; it is made with the first part."""
    if matrix is None:
        check_decoded(rows * part.nbytes // len(part), str(path))
        matrix = np.empty((rows, *part.shape[1:]), part.dtype)
    if part.shape[1:] != matrix.shape[1:]:
        raise ValueError("its lists have several lengths")
    if part.dtype != matrix.dtype:  # a column of whole numbers becomes floats where later values are missing
        matrix = matrix.astype(np.result_type(matrix, part))
    matrix[start : start + len(part)] = part
    return matrix


def _hdf5(path: Path) -> Arrays:
    from finc_eval.core.files.foreign_hdf5 import hdf5_arrays  # few sets are in such files

    return hdf5_arrays(path, lambda shapes: _embeddings(shapes, path))


READERS: dict[str, Callable[[Path], Arrays]] = {
    ".npy": _npy,
    ".npz": _npz,
    **dict.fromkeys(TENSOR_SUFFIXES, _plain_tensors),
    ".parquet": _parquet,
    **dict.fromkeys(HDF5_SUFFIXES, _hdf5),
}
