"""Private records: counted and identified, and never refused because of what one of them holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.run import BATCH_SIZE
from finc_eval.embeddings.array_files import is_array_file, read_arrays
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.keys import byte_hashes
from finc_eval.embeddings.opening import unmerged_error
from finc_eval.embeddings.space import ARRAY_SPACE, space_named
from finc_eval.privacy.dp.population import Hashes, Identity, RowViews


@dataclass(frozen=True, eq=False)
class Records:
    """A set of private records, read in batches.

    `Embeddings` refuse rows that are not finite. Here a refusal would reveal something about one record, so such rows
    are kept. Samples that could not be read become rows of NaN, so the set has as many records as its owner counts.
    """

    m: int
    dim: int
    space: str  # extractor of the embeddings, as name@digest
    # digests of the set: of its files if they are known, of its embeddings, and of the content of all samples in any
    # order. The last one survives new names and folders.
    identities: tuple[str, ...]
    content: Hashes  # digests of the content of each record, in any order
    # class of each record, None for a record without one; None if the set has no classes
    labels: tuple[str | None, ...] | None
    # function that returns the embeddings from one row to another, shape (b, d)
    rows: Callable[[int, int], torch.Tensor]
    windows: int = 1  # largest number of records of one video; 1 for images and embeddings alone

    def batches(self, size: int = BATCH_SIZE) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield all records in order, as (index of the first, rows)."""
        for start in range(0, self.m, size):
            yield start, self.rows(start, min(start + size, self.m))

    def evenly_spread(self, count: int) -> torch.Tensor:
        """Return at most `count` rows, evenly spread over the set."""
        step = -(-self.m // count)
        return torch.cat([rows[-start % step :: step] for start, rows in self.batches()])

    def identity(self, rows: RowViews) -> Identity:
        """Return what identifies the set in a ledger; `rows` has seen all its rows."""
        return Identity(self.identities, (self.content, *rows.views()))


def open_records(source: object, name: str) -> Records:
    """Open the records of an array or tensor of shape (n, d), of an `EmbeddingCache`, or of a file of embeddings."""
    if isinstance(source, str | Path) and is_array_file(source):
        rows, _, columns = read_arrays(source)
        found = _array_records(rows if isinstance(rows, torch.Tensor) else torch.from_numpy(rows), str(source))
        return replace(found, labels=tuple(columns["label"]) if "label" in columns else None)
    if isinstance(source, str | Path):
        source = EmbeddingCache(source)
    if isinstance(source, EmbeddingCache) and source.shard is not None:
        raise unmerged_error(str(source.path), source.shard)
    return _cached_records(source) if isinstance(source, EmbeddingCache) else _array_records(source, name)


def _cached_records(cache: EmbeddingCache) -> Records:
    unread = len(cache.failures)
    labels = None if cache.labels is None else (*cache.labels, *[None] * unread)

    def rows(start: int, stop: int) -> torch.Tensor:
        found = torch.from_numpy(cache[start : min(stop, cache.n)])
        missing = stop - start - len(found)
        return torch.cat([found, found.new_full((missing, cache.dim), torch.nan)]) if missing else found

    return Records(
        m=cache.n + unread,
        dim=cache.dim,
        space=space_named(cache.extractor, cache.extractor_digest),
        identities=(cache.manifest_digest, cache.key, _content_digest(cache.content)),
        content=cache.content,
        labels=labels,
        rows=rows,
        windows=1 if cache.clip is None else cache.clip.windows,
    )


def _array_records(source: object, name: str) -> Records:
    if not isinstance(source, torch.Tensor):
        try:
            source = torch.from_numpy(np.array(source))
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"{name} must be an array of embeddings, a cache or its path, got {type(source).__name__}"
            ) from error
    array = source.detach().cpu()
    if array.ndim != 2 or 0 in array.shape or not array.dtype.is_floating_point:
        raise DataError(
            f"{name} must be floating-point embeddings of shape (n, d), got {array.dtype} of shape {tuple(array.shape)}"
        )
    identity = PassingIdentity(*array.shape)
    for start in range(0, len(array), BATCH_SIZE):
        identity.add(array[start : start + BATCH_SIZE])
    return Records(
        m=len(array),
        dim=array.shape[1],
        space=f"{ARRAY_SPACE}{array.shape[1]}",
        identities=identity.digests(),
        content=identity.content(),
        labels=None,
        rows=lambda start, stop: array[start:stop],
    )


class PassingIdentity:
    """Digests and views of records that are seen once, in batches: the same as for an array of them."""

    def __init__(self, m: int, dim: int) -> None:
        self._sha = hashlib.sha256(str((m, dim)).encode())
        self._content: list[Hashes] = []

    def add(self, rows: torch.Tensor) -> None:
        """Add the next records, shape (b, dim)."""
        values = rows.detach().cpu().float().contiguous().numpy()
        self._sha.update(values.data)
        self._content.append(byte_hashes([row.tobytes() for row in values]))

    def content(self) -> Hashes:
        """Return the digest of the content of each record."""
        return np.concatenate(self._content)

    def digests(self) -> tuple[str, str]:
        """Return the digest of all records, and the digest of their contents in any order."""
        return self._sha.hexdigest(), _content_digest(self.content())

    def identity(self, rows: RowViews) -> Identity:
        """Return what identifies the records in a ledger; `rows` has seen all of them."""
        return Identity(self.digests(), (self.content(), *rows.views()))


def _content_digest(content: Hashes) -> str:
    return sha256_of(np.sort(content).astype("<u8"))
