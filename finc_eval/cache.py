"""The embedding cache: one HDF5 file per set and extractor, that knows what it was made of.

`cache_writer` makes them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import h5py
import numpy as np
import numpy.typing as npt

from finc_eval.errors import FincEvalError
from finc_eval.storage import PROGRAM

WHOLE, PARTIAL = "embeddings", "unfinished embeddings"
SCHEMA = 1
DTYPE = "float32"
BLOCK_BYTES = 1 << 18
ID_BLOCK, ID_BLOCKS = 4096, 64

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Identity:
    """What a cache is made of.

    Attributes:
        extractor: the card's name.
        card_digest: the card's digest.
        manifest_digest: the digest of the set's manifest.
        source: absolute path of the set, or "array".
        ignored: files of the set that are no images, counted by suffix.
    """

    extractor: str
    card_digest: str
    manifest_digest: str
    source: str
    ignored: dict[str, int]

    @property
    def key(self) -> str:
        """SHA-256 (hex) of what decides the rows. Names and places are no part of it."""
        return hashlib.sha256(json.dumps([self.manifest_digest, self.card_digest, DTYPE, SCHEMA]).encode()).hexdigest()


class EmbeddingCache:
    """A whole embedding cache, open for reading.

    Attributes:
        path: the file.
        key: digest of what decides the rows.
        n: number of embeddings.
        dim: length of an embedding.
        extractor: name of the card; `card_digest` is its digest.
        manifest_digest: digest of the samples' manifest.
        source: absolute path the samples were read from, or "array".
        ignored: files of the set that are no images, counted by suffix.
        failures: (id, reason) of every sample that could not be read.

    Raises:
        FincEvalError: the file is missing, unfinished, damaged, or no embedding cache.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = _open(self.path)
        try:
            attributes = self._file.attrs
            self.key = str(attributes["key"])
            self.extractor = str(attributes["extractor"])
            self.card_digest = str(attributes["card_digest"])
            self.manifest_digest = str(attributes["manifest_digest"])
            (self.source,) = _strings(self._file["source"])
            self.ignored: dict[str, int] = json.loads(attributes["ignored"])
            self._embeddings = self._file["embeddings"]
            # Of the dataset alone: a cycle through `self` would keep the file open.
            names = self._file["ids"]
            self._id_block = lru_cache(ID_BLOCKS)(lambda b: _strings(names, slice(b * ID_BLOCK, (b + 1) * ID_BLOCK)))
            self.n, self.dim = map(int, self._embeddings.shape)
            self.failures: list[tuple[str, str]] = list(
                zip(
                    _strings(self._file["failures/ids"]),
                    _strings(self._file["failures/reasons"]),
                    strict=True,
                )
            )
        except (KeyError, OSError, ValueError) as error:
            self.close()
            raise _damaged(self.path) from error

    @property
    def digest(self) -> str:
        """The key: what tells two caches apart."""
        return self.key

    @cached_property
    def ids(self) -> list[str]:
        """The samples' ids, one per row."""
        return _strings(self._file["ids"])

    def ids_between(self, start: int, stop: int) -> list[str]:
        """The ids of consecutive samples, read from the file."""
        return _strings(self._file["ids"], slice(start, stop))

    def ids_at(self, indices: npt.NDArray[np.int64]) -> tuple[str, ...]:
        """The ids of the samples at these indices, read from the file in blocks, of which some are kept."""
        return tuple(self._id_block(index // ID_BLOCK)[index % ID_BLOCK] for index in indices.tolist())

    @cached_property
    def content(self) -> npt.NDArray[np.uint64]:
        """(n,) uint64: a digest of each decoded image; equal for exact copies, within and across sets."""
        return cast("npt.NDArray[np.uint64]", self._file["content"][:])

    def batches(self, size: int) -> Iterator[Floats]:
        """Yield the rows in order, `size` at a time: (b, dim) float32."""
        for start in range(0, self.n, size):
            yield self._embeddings[start : start + size].astype(np.float32, copy=False)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int | slice | npt.NDArray[Any] | Sequence[int]) -> Floats:
        """Return the rows `index` names, as numpy would: in its order, repeats and negatives included."""
        if isinstance(index, slice) and index.step in (None, 1):
            return cast(Floats, self._embeddings[index].astype(np.float32, copy=False))
        rows = np.arange(self.n)[index]
        result = np.empty((*rows.shape, self.dim), np.float32)
        # HDF5 is slow at lists of single rows, so whole blocks are read.
        size = block_rows(self.dim)
        for block in np.unique(rows // size):
            inside = rows // size == block
            result[inside] = self._embeddings[block * size : (block + 1) * size][rows[inside] - block * size]
        return result

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an EmbeddingCache is read from its file: it cannot become an array without a copy")
        return np.asarray(self._embeddings[:], dtype)

    def __repr__(self) -> str:
        failures = f", failures={len(self.failures)}" if self.failures else ""
        return f"EmbeddingCache({str(self.path)!r}, n={self.n}, dim={self.dim}, {self.extractor!r}{failures})"

    def close(self) -> None:
        """Close the file; the rows cannot be read any more."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _open(path: Path) -> h5py.File:
    """Open a file that says that it is a whole cache."""
    if not path.exists():
        raise FincEvalError(f"{path} does not exist: make it with finc-eval extract")
    if path.is_dir() or not h5py.is_hdf5(path):
        raise FincEvalError(f"{path} is no finc-eval embedding cache: make one with finc-eval extract")
    try:
        file = h5py.File(path, "r")
        program, kind, schema = (file.attrs.get(name) for name in ("program", "kind", "schema"))
    except (OSError, RuntimeError) as error:
        raise _damaged(path) from error
    if (program, kind, schema) == (PROGRAM, WHOLE, SCHEMA):
        return file
    file.close()
    if program == PROGRAM and kind == PARTIAL:
        raise FincEvalError(f"{path} is unfinished: run the same finc-eval extract again to resume it")
    if program == PROGRAM and kind == WHOLE:
        raise FincEvalError(
            f"{path} has cache schema {schema} and this finc-eval reads {SCHEMA}: "
            "move it away and extract again, or use the finc-eval it was made with"
        )
    raise FincEvalError(f"{path} is no finc-eval embedding cache: make one with finc-eval extract")


def _damaged(path: Path) -> FincEvalError:
    return FincEvalError(f"{path} is cut short or damaged: delete it and run finc-eval extract again")


def block_rows(dim: int) -> int:
    """Rows that are read or written together, about 256 KiB."""
    return max(1, BLOCK_BYTES // (dim * np.dtype(DTYPE).itemsize))


def _strings(dataset: h5py.Dataset, part: slice = slice(None)) -> list[str]:
    return cast("list[str]", dataset.asstr("utf-8", "surrogateescape")[part].tolist())
