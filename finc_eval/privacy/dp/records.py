"""The records of a set that may not be shown: counted, identified, and never refused for what one of them holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.core.run import BATCH_SIZE
from finc_eval.embeddings.base import ARRAY_SPACE
from finc_eval.embeddings.cache import EmbeddingCache

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Records:
    """A set of records, read in batches.

    `Embeddings` refuse rows that are not finite. Here that would tell of one record, so such rows are handed on, and
    samples that could not be read are rows of NaN: a set has as many records as its owner counts in it.

    Attributes:
        m: how many records.
        dim: entries of an embedding.
        space: the extractor, as name@digest.
        identities: digests of the set: of its samples where they are known, of its embeddings, and of the content of
            all samples in any order, which outlives new names and folders.
        content: digests of the records' content, in any order.
        labels: their classes, None for a record without; None where the set has none.
        rows: the embeddings from one row to another, shape (b, d).
    """

    m: int
    dim: int
    space: str
    identities: tuple[str, ...]
    content: NDArray[np.uint64]
    labels: tuple[str | None, ...] | None
    rows: Callable[[int, int], torch.Tensor]

    def batches(self, size: int = BATCH_SIZE) -> Iterator[tuple[int, torch.Tensor]]:
        """All records in order: (index of the first, rows)."""
        for start in range(0, self.m, size):
            yield start, self.rows(start, min(start + size, self.m))

    def some(self, count: int) -> torch.Tensor:
        """At most so many rows, evenly spread over the set."""
        step = -(-self.m // count)
        return torch.cat([rows[-start % step :: step] for start, rows in self.batches()])


def opened_records(source: object, name: str) -> Records:
    """The records in an array or tensor of shape (n, d), an `EmbeddingCache`, or the path of one.

    Raises:
        FincEvalError: it is none of these, or empty.
    """
    if isinstance(source, str | Path):
        source = EmbeddingCache(source)
    return _of_cache(source) if isinstance(source, EmbeddingCache) else _of_array(source, name)


def _of_cache(cache: EmbeddingCache) -> Records:
    unread = len(cache.failures)
    labels = None if cache.labels is None else (*cache.labels, *[None] * unread)

    def rows(start: int, stop: int) -> torch.Tensor:
        found = torch.from_numpy(cache[start : min(stop, cache.n)])
        missing = stop - start - len(found)
        return torch.cat([found, found.new_full((missing, cache.dim), torch.nan)]) if missing else found

    return Records(
        m=cache.n + unread,
        dim=cache.dim,
        space=f"{cache.extractor}@{cache.extractor_digest[:8]}",
        identities=(cache.manifest_digest, cache.key, _of_contents(cache.content)),
        content=cache.content,
        labels=labels,
        rows=rows,
    )


def _of_array(source: object, name: str) -> Records:
    if not isinstance(source, torch.Tensor):
        try:
            source = torch.from_numpy(np.array(source))
        except (TypeError, ValueError) as error:
            raise FincEvalError(
                f"{name} must be an array of embeddings, a cache or a path of one, got {type(source).__name__}"
            ) from error
    array = source.detach().cpu()
    if array.ndim != 2 or 0 in array.shape or not array.dtype.is_floating_point:
        raise FincEvalError(
            f"{name} must be floating-point embeddings of shape (n, d), got {array.dtype} of shape {tuple(array.shape)}"
        )
    values = array.float().contiguous().numpy()
    whole = hashlib.sha256(str(values.shape).encode())
    whole.update(values.data)
    digests = b"".join(hashlib.blake2b(row.data, digest_size=8).digest() for row in values)
    content = np.frombuffer(digests, "<u8").astype(np.uint64)
    return Records(
        m=len(array),
        dim=array.shape[1],
        space=f"{ARRAY_SPACE}{array.shape[1]}",
        identities=(whole.hexdigest(), _of_contents(content)),
        content=content,
        labels=None,
        rows=lambda start, stop: array[start:stop],
    )


def _of_contents(content: NDArray[np.uint64]) -> str:
    return hashlib.sha256(np.sort(content).astype("<u8").tobytes()).hexdigest()
