"""Two folds of a set, by the keys of the samples, and the samples of the smallest keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import Place, send
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings, IdsAt
from finc_eval.embeddings.columns import texts
from finc_eval.embeddings.keys import even_row_hashes, hash_rows, mix_bits
from finc_eval.numerics.arrays import fold_of, without_fold
from finc_eval.numerics.hash_counts import HashCounts

Rows = tuple[torch.Tensor, torch.Tensor]  # rows of samples, and their indices in the set
Columns = Mapping[str, Sequence[Any]]  # values of samples by the name of a column, each (n,)
FAR = 100.0  # median distances from the middle of a set at which a sample is so far away that it is probably broken
HASHES_TOGETHER = 1 << 20  # hashes of rows that are counted together: 8 MB
EMPTY: Columns = MappingProxyType({})
SAMPLE_SIZE = 2000  # samples that a sketch keeps, unless another number is asked for


@dataclass(frozen=True, eq=False)
class FoldChunk:
    """Embeddings of one fold of a set."""

    fold: int
    rows: torch.Tensor
    index: torch.Tensor


def fold_chunks(embeddings: Embeddings, run: Run, place: Place, stage: str) -> Iterator[FoldChunk]:
    """Yield all embeddings of a set in chunks of one fold and one size, so that all matrix products have one shape.

    Libraries keep compiled code for every shape they meet: with the uneven folds of every batch that is megabytes a
    batch, and a memory that grows with the number of samples. Only the last chunks of each fold are not full.
    """
    waiting: tuple[list[Rows], list[Rows]] = ([], [])
    for batch in embeddings.batches(run.portion, place):
        folds = fold_of(batch.keys)
        # An order, as the host knows it: for a mask, it would wait for the device to count.
        order = send(torch.from_numpy(folds.argsort(kind="stable")), batch.rows.device)
        ends = [len(folds) - int(folds.sum())]
        parts = zip(batch.rows[order].tensor_split(ends), (order + batch.start).tensor_split(ends), strict=True)
        for fold, (held, part) in enumerate(zip(waiting, parts, strict=True)):
            held.append(part)
            if sum(len(rows) for rows, _ in held) >= run.portion:
                chunks = list(zip(*(torch.split(fold, run.portion) for fold in _join(held)), strict=True))
                held[:] = [chunks.pop()] if len(chunks[-1][0]) < run.portion else []
                yield from (FoldChunk(fold, *chunk) for chunk in chunks)
        run.progress(stage, batch.start + len(batch.rows), embeddings.n)
    for fold, held in enumerate(waiting):
        if sum(len(rows) for rows, _ in held):
            yield FoldChunk(fold, *_join(held))


def _join(parts: Sequence[Rows]) -> Rows:
    rows, index = zip(*parts, strict=True)
    return torch.cat(rows), torch.cat(index)


@dataclass(frozen=True)
class Far:
    """The far samples of a set."""

    count: int
    farthest: int
    distance: float  # its distance from the middle, in median distances


class FarSamples:
    """Looks for far samples in one pass over a set, on its device.

    A random sample of the set, (m, d) on the CPU, gives its middle and the unit of length.
    """

    def __init__(self, sample: torch.Tensor, device: torch.device) -> None:
        rows = sample.double()
        self._middle = rows.median(0).values
        self._typical = float(torch.linalg.vector_norm(rows - self._middle, dim=1).median())
        self._center = send(self._middle.float(), device)
        self._count = torch.zeros((), dtype=torch.long, device=device)
        self._largest = torch.zeros((), device=device)
        self._farthest = torch.zeros((), dtype=torch.long, device=device)

    def update(self, chunk: FoldChunk) -> None:
        """Look at the samples of a chunk."""
        # In units of the median distance first: the squares of others might not fit into float32.
        distances = torch.linalg.vector_norm((chunk.rows - self._center) / self._typical, dim=1)
        self._count += (distances > FAR).sum()
        largest, row = distances.max(0)
        self._farthest = torch.where(largest > self._largest, chunk.index.take(row), self._farthest)
        self._largest = torch.maximum(largest, self._largest)

    def result(self, embeddings: Embeddings) -> Far | None:
        """Return the far samples of the set, None if it has none or half of its samples are equal."""
        if not (self._typical and int(self._count)):
            return None
        farthest = int(self._farthest)
        row = embeddings.rows_at(np.array([farthest]))[0].double().cpu()
        distance = float(torch.linalg.vector_norm(row - self._middle)) / self._typical
        return Far(int(self._count), farthest, distance)


def no_columns(_: NDArray[np.int64]) -> Columns:
    """Return no columns of any samples."""
    return EMPTY


def columns_of_rows(embeddings: Embeddings, rows: NDArray[np.int64]) -> Columns:
    """Return all columns of the samples with these indices, read a portion of the set at a time."""
    if not embeddings.columns:
        return EMPTY
    ids = embeddings.ids_at(rows)
    known = embeddings.metadata_of({*ids})
    return {name: [known[sample_id][1].get(name, "") for sample_id in ids] for name in embeddings.columns}


class RowCounter:
    """Counts equal embeddings as they stream by, on their device: hashes come to the host a million at a time."""

    def __init__(self) -> None:
        self._hashes: list[torch.Tensor] = []
        self._counts = HashCounts()

    def update(self, rows: torch.Tensor) -> None:
        """Count rows, shape (n, d)."""
        self._hashes.append(hash_rows(rows))
        if sum(map(len, self._hashes)) >= HASHES_TOGETHER:
            self._counts, self._hashes = self.result(), []

    def result(self) -> HashCounts:
        """Return the numbers of all rows so far."""
        if not self._hashes:
            return self._counts
        return self._counts + HashCounts.of(mix_bits(torch.cat(self._hashes).cpu().numpy().view(np.uint64)))


class BottomSample:
    """The `capacity` samples with the smallest id hashes: a uniform sample that merges and never depends on order.

    It has their `ids`, their `columns` of metadata as texts, and their hashes as `keys`, (m,), ascending but for the
    last bit.
    """

    def __init__(self, dim: int, capacity: int) -> None:
        self.capacity = capacity
        self.keys: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.ids: list[str] = []
        self.columns: dict[str, list[str]] = {}
        self._rows = torch.empty(0, dim)

    @property
    def rows(self) -> torch.Tensor:
        """Embeddings, shape (m, d), on the CPU. Those that lie on a GPU are copied once, when they are asked for."""
        self._rows = self._rows.cpu()
        return self._rows

    def add(self, keys: NDArray[np.uint64], ids: Sequence[str], rows: torch.Tensor, columns: Columns = EMPTY) -> None:
        """Offer samples that are at hand: keys (n,), rows (n, d) and columns; see `update`."""
        self.update(
            keys,
            lambda chosen: [ids[index] for index in chosen.tolist()],
            lambda chosen: rows[send(torch.from_numpy(chosen), rows.device)],
            lambda chosen: {
                name: texts([values[row] for row in chosen.tolist()], name) for name, values in columns.items()
            },
        )

    def update(
        self,
        keys: NDArray[np.uint64],
        ids_at: IdsAt,
        rows_at: Callable[[NDArray[np.int64]], torch.Tensor],
        columns_at: Callable[[NDArray[np.int64]], Columns] = no_columns,
    ) -> None:
        """Offer samples by their keys, shape (n,); those with the smallest hashes stay, in order of hash."""
        # The lowest bit decides the fold, so the order is by the others: both folds are sampled alike.
        offered = np.arange(len(keys))
        if not self.capacity:
            offered = offered[:0]
        elif len(self.keys) == self.capacity:
            offered = np.flatnonzero(without_fold(keys) < without_fold(self.keys[-1:]))
        elif len(keys) > self.capacity:
            smallest = np.partition(without_fold(keys), self.capacity - 1)[self.capacity - 1]
            offered = np.flatnonzero(without_fold(keys) <= smallest)
        if not len(offered):
            return
        ids, keys, rows, columns = ids_at(offered), keys[offered], rows_at(offered), columns_at(offered)
        all_keys = np.concatenate([self.keys, keys])
        all_ids = [*self.ids, *ids]
        hashes = without_fold(all_keys)
        order = hashes.argsort(kind="stable")
        joined = torch.cat([send(self._rows, rows.device), rows.detach().float()])
        # By hash, and equal hashes by id and embedding. Texts take longer to sort, and hashes are hardly ever equal.
        if (hashes[order[1:]] == hashes[order[:-1]]).any():
            order = np.lexsort((even_row_hashes(joined), np.array(all_ids), hashes))
        kept = order[: self.capacity]
        self._rows = joined[send(torch.from_numpy(kept), rows.device)]
        self.keys = all_keys[kept]
        self.ids = [all_ids[i] for i in kept]
        both = {
            name: [*self.columns.get(name, [""] * (len(all_ids) - len(ids))), *columns.get(name, [""] * len(ids))]
            for name in sorted({*self.columns, *columns})
        }
        self.columns = {name: [values[i] for i in kept] for name, values in both.items()}

    def __add__(self, other: BottomSample) -> BottomSample:
        total = BottomSample(self.rows.shape[1], min(self.capacity, other.capacity))
        for part in (self, other):
            total.add(part.keys, part.ids, part.rows, part.columns)
        return total
