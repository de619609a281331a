"""One face for everything that holds embeddings: arrays, tensors and caches, read batch by batch."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.core.prefetch import prefetched
from finc_eval.embeddings.cache import EmbeddingCache

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

BATCH_SIZE = 2048
"""Rows per matrix product: large enough to run at full speed, small enough to bound the memory."""

WINDOW = re.compile(r"#\d+$")
"""What ends the id of a window of a video."""

ARRAY_SPACE = "array-"
"""Prefix of the space of embeddings whose extractor is unknown."""


@dataclass(frozen=True)
class Batch:
    """Consecutive embeddings of a set.

    Attributes:
        start: the index of the first row in its set.
        ids: the sample ids, one a row.
        keys: their hashes (`sample_keys`), shape (b,).
        rows: shape (b, d), float32, finite.
    """

    start: int
    ids: list[str]
    keys: NDArray[np.uint64]
    rows: torch.Tensor


class Embeddings(ABC):
    """The embeddings of a set, read in batches; nothing of the size of the set is held.

    Attributes:
        n: how many rows.
        dim: entries per row.
        name: what messages call the set.
        space: the extractor, as name@digest.
    """

    n: int
    dim: int
    name: str
    space: str

    @property
    @abstractmethod
    def digest(self) -> str:
        """What tells two sets apart."""

    @abstractmethod
    def ids_between(self, start: int, stop: int) -> list[str]:
        """The sample ids of consecutive rows."""

    @abstractmethod
    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        """The sample ids of these rows."""

    @abstractmethod
    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """These rows: (m, d), float32, finite."""

    @abstractmethod
    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]: ...

    def batches(self, size: int = BATCH_SIZE) -> Iterator[Batch]:
        """All rows in order; the next batch is read while the caller works on one."""
        return prefetched(self._batches(size))

    def id_hashes(self, size: int = 16 * BATCH_SIZE) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """The hashes of all ids, as (index of the first, hashes), without reading a row."""
        for start in range(0, self.n, size):
            yield start, sample_keys(self.ids_between(start, min(start + size, self.n)))

    def _batches(self, size: int) -> Iterator[Batch]:
        start = 0
        for rows in self._rows_in_order(size):
            ids = self.ids_between(start, start + len(rows))
            yield Batch(start, ids, sample_keys(ids), rows)
            start += len(rows)


class ArrayEmbeddings(Embeddings):
    """Embeddings held in an array or tensor of shape (n, d); the ids are the row numbers."""

    def __init__(self, array: ArrayLike | torch.Tensor, name: str = "embeddings") -> None:
        rows = array if isinstance(array, torch.Tensor) else _as_tensor(array, name)
        if rows.ndim != 2 or 0 in rows.shape:
            raise FincEvalError(f"{name} must be embeddings of shape (n, d), got shape {tuple(rows.shape)}")
        if not rows.dtype.is_floating_point:
            raise FincEvalError(f"{name} must be floating-point embeddings, got {rows.dtype}; images go to extract()")
        self._rows = rows
        self._digest: str | None = None
        self.n, self.dim = rows.shape
        self.name = name
        # Arrays say nothing of their extractor: any two of one dimension are taken to agree.
        self.space = f"{ARRAY_SPACE}{self.dim}"

    @property
    def digest(self) -> str:
        """SHA-256 of shape and float32 values; known after any pass over all rows."""
        if self._digest is None:
            for _ in self._rows_in_order(BATCH_SIZE):
                pass
        return cast(str, self._digest)

    def ids_between(self, start: int, stop: int) -> list[str]:
        """The row numbers."""
        return [str(index) for index in range(start, stop)]

    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        """The row numbers."""
        return tuple(str(index) for index in indices)

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """These rows, checked to be finite."""
        return self._finite(self._rows[torch.from_numpy(indices).to(self._rows.device)], indices)

    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]:
        sha = hashlib.sha256(str(tuple(self._rows.shape)).encode())
        for start in range(0, self.n, size):
            rows = self._finite(self._rows[start : start + size], range(start, self.n))
            sha.update(rows.cpu().contiguous().numpy().data)
            yield rows
        self._digest = sha.hexdigest()

    def _finite(self, rows: torch.Tensor, numbers: Sequence[int] | NDArray[np.int64]) -> torch.Tensor:
        rows = rows.detach().float()
        # A row's sum is finite if no entry is NaN or Inf, unless it overflows, and seventy times as fast to look at.
        if not rows.sum(1).isfinite().all() and not (finite := rows.isfinite().all(1)).all():
            row = numbers[int((~finite).nonzero()[0])]
            raise FincEvalError(f"{self.name}: the embedding in row {row} is not finite (NaN or Inf): leave it out")
        return rows


class CachedEmbeddings(Embeddings):
    """Embeddings read from an `EmbeddingCache`; the ids are those of its samples."""

    def __init__(self, cache: EmbeddingCache) -> None:
        self.cache = cache
        self.n = cache.n
        self.dim = cache.dim
        self.name = str(cache.path)
        self.space = f"{cache.extractor}@{cache.extractor_digest[:8]}"

    @property
    def digest(self) -> str:
        """The cache's key."""
        return self.cache.digest

    def ids_between(self, start: int, stop: int) -> list[str]:
        """The ids of consecutive samples."""
        return self.cache.ids_between(start, stop)

    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        """The ids of the samples at these indices."""
        return self.cache.ids_at(indices)

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """These rows."""
        return torch.from_numpy(self.cache[indices])

    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]:
        return (torch.from_numpy(rows) for rows in self.cache.batches(size))


class Subset(Embeddings):
    """Some rows of a set, and of those all entries or some.

    Args:
        source: the set.
        rows: which of its rows, in what order.
        entries: which entries of an embedding; all when left out.
        name: what messages call it; as the set when left out.
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
        """That of the set."""
        return self.source.digest

    def ids_between(self, start: int, stop: int) -> list[str]:
        """The ids of consecutive rows."""
        return list(self.source.ids_at(self.rows[start:stop]))

    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        """The ids of these rows."""
        return self.source.ids_at(self.rows[indices])

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """These rows."""
        rows = self.source.rows_at(self.rows[indices])
        return rows if self.entries is None else rows[:, torch.from_numpy(self.entries).to(rows.device)]

    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]:
        return (self.rows_at(np.arange(start, min(start + size, self.n))) for start in range(0, self.n, size))


def as_embeddings(source: object, name: str = "embeddings") -> Embeddings:
    """The embeddings in an array, tensor, cache or cache file, whatever the caller has.

    Args:
        source: array-like or tensor of shape (n, d), an `EmbeddingCache`, or the path of one.
        name: what messages call an array.

    Raises:
        FincEvalError: when it is none of these, or holds no embeddings.
    """
    if isinstance(source, Embeddings):
        return source
    if isinstance(source, str | Path):
        return CachedEmbeddings(EmbeddingCache(source))
    if isinstance(source, EmbeddingCache):
        return CachedEmbeddings(source)
    return ArrayEmbeddings(source, name)  # type: ignore[arg-type]  # anything else must be an array


def check_same_space(mine: str, space: str, others: str, other_space: str) -> None:
    """Raise FincEvalError unless two sets can be compared; bare arrays say nothing, and are believed.

    Args:
        mine: what to call the one set.
        space: the extractor of its embeddings, as name@digest.
        others: what to call the other.
        other_space: its space.
    """
    if space != other_space and not any(s.startswith(ARRAY_SPACE) for s in (space, other_space)):
        raise FincEvalError(
            f"{mine} was embedded with {space}, {others} with {other_space}: extract one of them again, with the "
            "same extractor"
        )


def sample_keys(ids: Sequence[str]) -> NDArray[np.uint64]:
    """A 64-bit BLAKE2b hash of each id: it assigns folds and draws samples whatever the order or batching.

    The lowest bit, which is the fold, comes from the hash of the video of a window ("clip.mp4" of "clip.mp4#3"): the
    windows of a video are alike, and no half of a set may learn from the other.
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
        raise FincEvalError(
            f"{name} must be an array of embeddings, a cache or a path of one, got {type(array).__name__}"
        ) from error
