"""Private records and tables: counted and identified, and never refused because of what one record holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.run import BATCH_SIZE
from finc_eval.embeddings.array_files import is_array_file, read_arrays
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.keys import byte_hashes
from finc_eval.embeddings.opening import unmerged_error
from finc_eval.embeddings.recipe import ARRAY_SPACE, space_named
from finc_eval.private.dp.population import Hashes, PopulationIdentity, RowViews, mix
from finc_eval.private.dp.public_values import distinct, number_of


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
    # order. The last digest survives new names and folders.
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

    def identity(self, rows: RowViews) -> PopulationIdentity:
        """Return what identifies the set in a ledger; `rows` has seen all its rows."""
        return PopulationIdentity(self.identities, (self.content, *rows.views()))


def open_records(source: object, name: str) -> Records:
    """Open the records of an array or tensor of shape (n, d), of an `EmbeddingCache`, or of a file of embeddings."""
    if isinstance(source, str | Path) and is_array_file(source):
        array, _, columns = read_arrays(source)
        records = _array_records(array if isinstance(array, torch.Tensor) else torch.from_numpy(array), str(source))
        return replace(records, labels=tuple(columns["label"]) if "label" in columns else None)
    if isinstance(source, str | Path):
        source = EmbeddingCache(source)
    if not isinstance(source, EmbeddingCache):
        return _array_records(source, name)
    cache, unread = source, len(source.failures)
    if cache.shard is not None:
        raise unmerged_error(str(cache.path), cache.shard)

    def rows(start: int, stop: int) -> torch.Tensor:
        part = torch.from_numpy(cache[start : min(stop, cache.n)])
        missing = stop - start - len(part)
        return torch.cat([part, part.new_full((missing, cache.dim), torch.nan)]) if missing else part

    return Records(
        m=cache.n + unread,
        dim=cache.dim,
        space=space_named(cache.extractor, cache.extractor_digest),
        identities=(cache.manifest_digest, cache.key, _content_digest(cache.content)),
        content=cache.content,
        labels=None if cache.labels is None else (*cache.labels, *[None] * unread),
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


def _content_digest(content: Hashes) -> str:
    return sha256_of(np.sort(content).astype("<u8"))


def table_identity(columns: Mapping[str, NDArray[Any]]) -> PopulationIdentity:
    """Return what identifies a table in a ledger: digests, and views that small changes leave as they are.

    The first digest is of all columns and records, in any order. The others are of single columns, without their
    names: of the values in any order, if at least 20 differ, and of the values in the order of the records.
    So a release that has a column in common with an earlier release adds to what the earlier release has spent. Row
    numbers, and an order in which equal values lie together or take turns, identify nothing.

    The first view is of the records, whatever the names and the order of the columns; the others are of the columns
    that have a digest of their own in any order. Numbers have three digits in them.

    A number is the same number in every type and file: 18, 18.0 and "18".
    """
    coded = {name: _code(columns[name]) for name in sorted(columns)}
    codes = np.stack([places for _, places in coded.values()], 1)
    records = codes[np.lexsort(codes.T[::-1])].astype("<i8")
    digests = [
        sha256_of("table", *(line for name, (known, _) in coded.items() for line in _lines([name, *known])), records)
    ]
    views = [_round(values)[codes] for values, codes in coded.values()]
    telling = [sum(views[1:], views[0])]
    for (values, codes), view in zip(coded.values(), views, strict=True):
        counts = np.bincount(codes, minlength=len(values))
        # 20: fewer different values, such as yes and no, are in other tables as often as in this one.
        if len(values) >= 20 and not _are_row_numbers(values, counts):
            telling.append(view)
            digests.append(sha256_of("values", *_lines(values), counts.astype("<i8")))
        if len(values) > 1 and not _is_regular(codes, len(values)):
            digests.append(sha256_of("order", *_lines(values), codes.astype("<i8")))
    return PopulationIdentity(tuple(digests), tuple(telling))


def _round(values: list[str]) -> Hashes:
    """Return a number for each value, the same for numbers that agree in three digits."""
    numbers = [number_of(value) for value in values]
    texts = [value if number is None else f"{number + 0.0:.3g}" for value, number in zip(values, numbers, strict=True)]
    return mix(byte_hashes([text.encode("utf-8", "replace") for text in texts]))


def _code(column: NDArray[Any]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different values of a column, in order, and the place of each record's value among them."""
    written, places = distinct(column)
    canonical = [text if (number := number_of(text)) is None else repr(number) for text in written]
    values = sorted(set(canonical))
    rank = {value: rank for rank, value in enumerate(values)}
    return values, np.array([rank[value] for value in canonical], np.int64)[places]


def _lines(values: list[str]) -> list[str]:
    return [f"{len(value)}:{value}" for value in [str(len(values)), *values]]


def _are_row_numbers(values: list[str], counts: NDArray[np.int64]) -> bool:
    """Return whether the values, with counts (v,), are whole numbers, each once, and few are left out between them."""
    numbers = [number_of(value) for value in values]
    if counts.max() > 1 or None in numbers:
        return False
    places = np.array(numbers, dtype=np.float64)
    # 2: whole numbers that a column of row numbers spans at most, for each of them: some rows may have been removed.
    return bool((places % 1 == 0).all() and np.ptp(places) < 2 * len(places))


def _is_regular(codes: NDArray[np.int64], count: int) -> bool:
    """Return whether equal values lie together, or all values take turns, from the code of each record, shape (n,)."""
    in_blocks = 1 + int((np.diff(codes) != 0).sum()) == count
    return in_blocks or bool((codes[count:] == codes[:-count]).all())
