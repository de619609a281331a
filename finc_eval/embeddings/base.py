"""One interface for everything that holds embeddings: arrays, tensors and caches, read batch by batch."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.digest import array_bytes
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.prefetch import prefetched
from finc_eval.core.run import BATCH_SIZE
from finc_eval.embeddings.cache import EmbeddingCache

WINDOW = re.compile(r"#\d+$")
"""End of the id of a window of a video: "#3" in "clip.mp4#3"."""

ARRAY_SPACE = "array-"
"""Prefix of the space of embeddings whose extractor is unknown."""


@dataclass(frozen=True)
class Batch:
    """Consecutive embeddings of a set.

    Attributes:
        start: index of the first row in its set.
        ids: ids of the samples, one per row.
        keys: hashes of the ids (`sample_keys`), shape (b,).
        rows: embeddings, shape (b, d), float32, finite.
    """

    start: int
    ids: list[str]
    keys: NDArray[np.uint64]
    rows: torch.Tensor


class Embeddings(ABC):
    """Embeddings of a set, read in batches; nothing of the size of the set is held.

    Attributes:
        n: number of rows.
        dim: number of entries of a row.
        name: name of the set in messages.
        space: the extractor, as name@digest; embeddings of one space can be compared.
    """

    n: int
    dim: int
    name: str
    space: str

    @property
    @abstractmethod
    def digest(self) -> str:
        """Digest that tells two sets apart."""

    @abstractmethod
    def ids_between(self, start: int, stop: int) -> list[str]:
        """Return the sample ids of consecutive rows."""

    @abstractmethod
    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the sample ids of these rows."""

    @abstractmethod
    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """Return these rows: (m, d), float32, finite."""

    @abstractmethod
    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]: ...

    def batches(self, size: int = BATCH_SIZE) -> Iterator[Batch]:
        """Yield all rows in order; the next batch is read while the caller works on one."""
        return prefetched(self._batches(size))

    def id_hashes(
        self, size: int = 16 * BATCH_SIZE, *, by_video: bool = False
    ) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """Yield the hashes of all ids, as (index of the first, hashes), without reading a row.

        With `by_video`, all windows of a video have the hash of the video.
        """
        for start in range(0, self.n, size):
            ids = self.ids_between(start, min(start + size, self.n))
            yield start, sample_keys([WINDOW.sub("", name) for name in ids] if by_video else ids)

    def _batches(self, size: int) -> Iterator[Batch]:
        start = 0
        for rows in self._rows_in_order(size):
            ids = self.ids_between(start, start + len(rows))
            yield Batch(start, ids, sample_keys(ids), rows)
            start += len(rows)


class ArrayEmbeddings(Embeddings):
    """Embeddings in an array or tensor of shape (n, d); the ids are the row numbers."""

    def __init__(self, array: ArrayLike | torch.Tensor, name: str = "embeddings") -> None:
        rows = array if isinstance(array, torch.Tensor) else _as_tensor(array, name)
        if rows.ndim != 2 or 0 in rows.shape:
            raise UsageError(f"{name} must be embeddings of shape (n, d), got shape {tuple(rows.shape)}")
        if not rows.dtype.is_floating_point:
            raise UsageError(f"{name} must be floating-point embeddings, got {rows.dtype}; images go to extract()")
        self._rows = rows
        self._digest: str | None = None
        self.n, self.dim = rows.shape
        self.name = name
        # Arrays do not name their extractor: any two of the same dimension are taken to be comparable.
        self.space = f"{ARRAY_SPACE}{self.dim}"

    @property
    def digest(self) -> str:
        """SHA-256 of shape and float32 values, computed by any pass over all rows."""
        if self._digest is None:
            for _ in self._rows_in_order(BATCH_SIZE):
                pass
        return cast(str, self._digest)

    def ids_between(self, start: int, stop: int) -> list[str]:
        """Return the row numbers."""
        return [str(index) for index in range(start, stop)]

    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the row numbers."""
        return tuple(str(index) for index in indices)

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """Return these rows, checked to be finite."""
        return self._finite(self._rows[torch.from_numpy(indices).to(self._rows.device)], indices)

    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]:
        sha = hashlib.sha256(str(tuple(self._rows.shape)).encode())
        for start in range(0, self.n, size):
            rows = self._finite(self._rows[start : start + size], range(start, self.n))
            sha.update(array_bytes(rows))
            yield rows
        self._digest = sha.hexdigest()

    def _finite(self, rows: torch.Tensor, numbers: Sequence[int] | NDArray[np.int64]) -> torch.Tensor:
        rows = rows.detach().float()
        # If a row's sum is finite, so are its entries, and the sum is seventy times as fast to check.
        if not rows.sum(1).isfinite().all() and not (finite := rows.isfinite().all(1)).all():
            row = numbers[int((~finite).nonzero()[0])]
            raise DataError(f"{self.name}: the embedding in row {row} is not finite (NaN or Inf): leave it out")
        return rows


class CachedEmbeddings(Embeddings):
    """Embeddings in an `EmbeddingCache`, with the ids of its samples."""

    def __init__(self, cache: EmbeddingCache) -> None:
        self.cache = cache
        self.n = cache.n
        self.dim = cache.dim
        self.name = str(cache.path)
        self.space = f"{cache.extractor}@{cache.extractor_digest[:8]}"

    @property
    def digest(self) -> str:
        """Key of the cache."""
        return self.cache.key

    def ids_between(self, start: int, stop: int) -> list[str]:
        """Return the ids of consecutive samples."""
        return self.cache.ids_between(start, stop)

    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the ids of the samples at these indices."""
        return self.cache.ids_at(indices)

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """Return these rows."""
        return torch.from_numpy(self.cache[indices])

    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]:
        return (torch.from_numpy(rows) for rows in self.cache.batches(size))


class Subset(Embeddings):
    """Embeddings of some samples of a set, with all their entries or some.

    Args:
        source: the set.
        rows: indices of its rows, in any order.
        entries: indices of the entries of an embedding; default: all.
        name: name in messages; default: the name of the set.
    """

    def __init__(
        self,
        source: Embeddings,
        rows: NDArray[np.int64],
        entries: NDArray[np.int64] | None = None,
        name: str | None = None,
    ) -> None:
        self.source, self.rows, self.entries = source, rows, entries
        self.n, self.dim = len(rows), source.dim if entries is None else len(entries)
        self.name, self.space = name or source.name, source.space

    @property
    def digest(self) -> str:
        """Digest of the underlying set."""
        return self.source.digest

    def ids_between(self, start: int, stop: int) -> list[str]:
        """Return the ids of consecutive rows."""
        return list(self.source.ids_at(self.rows[start:stop]))

    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the ids of these rows."""
        return self.source.ids_at(self.rows[indices])

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """Return these rows."""
        rows = self.source.rows_at(self.rows[indices])
        return rows if self.entries is None else rows[:, torch.from_numpy(self.entries).to(rows.device)]

    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]:
        return (self.rows_at(np.arange(start, min(start + size, self.n))) for start in range(0, self.n, size))


def as_embeddings(source: object, name: str = "embeddings") -> Embeddings:
    """Open the embeddings in an array, a tensor, a cache or the path of a cache.

    Args:
        source: array-like or tensor of shape (n, d), `EmbeddingCache`, or the path of one.
        name: name of an array in messages.
    """
    if isinstance(source, Embeddings):
        return source
    if isinstance(source, str | Path):
        return CachedEmbeddings(EmbeddingCache(source))
    if isinstance(source, EmbeddingCache):
        return CachedEmbeddings(source)
    return ArrayEmbeddings(source, name)  # type: ignore[arg-type]  # anything else must be an array


def check_same_space(name: str, space: str, other: str, other_space: str) -> None:
    """Raise IncompatibleError unless two sets have the same extractor; arrays do not name theirs, and always pass."""
    if space != other_space and not any(s.startswith(ARRAY_SPACE) for s in (space, other_space)):
        raise IncompatibleError(
            f"{name} was embedded with {space}, {other} with {other_space}: extract one of them again, with the "
            "same extractor"
        )


class InSpace(Protocol):
    """A set, its statistics or its sketch, from embeddings of one extractor."""

    @property
    def space(self) -> str:
        """Extractor, as name@digest."""

    @property
    def dim(self) -> int:
        """Number of entries of an embedding."""


def check_alike(name: str, one: InSpace, other_name: str, other: InSpace) -> None:
    """Raise IncompatibleError unless two sets have the same extractor and dimension."""
    check_same_space(name, one.space, other_name, other.space)
    if one.dim != other.dim:
        raise IncompatibleError(
            f"{name} has {one.dim} entries per embedding and {other_name} {other.dim}: extract both with the same "
            "extractor"
        )


def sample_keys(ids: Sequence[str]) -> NDArray[np.uint64]:
    """Return a 64-bit BLAKE2b hash of each id, which assigns folds and draws samples in any order and batching.

    The lowest bit is the fold. For a window of a video it is a hash of the video ("clip.mp4" for "clip.mp4#3"): the
    windows of a video are alike, and one half of a set must not learn from the other.
    """
    keys = _hashes(ids)
    if any("#" in name for name in ids):
        videos = _hashes([WINDOW.sub("", name) for name in ids])
        keys = (keys & ~np.uint64(1)) | (videos & np.uint64(1))
    return keys


def _hashes(names: Sequence[str]) -> NDArray[np.uint64]:
    digests = b"".join(hashlib.blake2b(i.encode("utf-8", "surrogateescape"), digest_size=8).digest() for i in names)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _as_tensor(array: ArrayLike, name: str) -> torch.Tensor:
    try:
        values = np.asarray(array)
        return torch.from_numpy(values if values.flags.writeable else values.copy())
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{name} must be an array of embeddings, a cache or a path of one, got {type(array).__name__}"
        ) from error
