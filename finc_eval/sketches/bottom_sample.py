"""The bottom-k sample of a set: a uniform sample that merges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import send
from finc_eval.embeddings.base import IdsAt
from finc_eval.numerics.folds import without_fold

SAMPLE_SIZE = 2000
"""Samples that a sketch keeps, unless another number is asked for."""


RowsAt = Callable[[NDArray[np.int64]], torch.Tensor]
"""Function from indices of samples to their rows, (m,) → (m, d)."""


class BottomSample:
    """The `capacity` samples with the smallest id hashes: a uniform sample that merges and never depends on order.

    Args:
        dim: number of entries of an embedding.
        capacity: number of samples to keep at most.

    Attributes:
        keys: id hashes, ascending but for the last bit, shape (m,).
        ids: sample ids.
    """

    def __init__(self, dim: int, capacity: int) -> None:
        self.capacity = capacity
        self.keys: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.ids: list[str] = []
        self._rows = torch.empty(0, dim)

    @property
    def rows(self) -> torch.Tensor:
        """Embeddings, shape (m, d), on the CPU. Those that lie on a GPU are copied once, when they are asked for."""
        self._rows = self._rows.cpu()
        return self._rows

    def update(self, keys: NDArray[np.uint64], ids_at: IdsAt, rows_at: RowsAt) -> None:
        """Offer samples; those with the smallest hashes stay, in order of hash."""
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
        ids, keys, rows = ids_at(offered), keys[offered], rows_at(offered)
        all_keys = np.concatenate([self.keys, keys])
        all_ids = [*self.ids, *ids]
        kept = _in_order(without_fold(all_keys), all_ids)[: self.capacity]
        joined = torch.cat([send(self._rows, rows.device), rows.detach().float()])
        self._rows = joined[send(torch.from_numpy(kept), rows.device)]
        self.keys = all_keys[kept]
        self.ids = [all_ids[i] for i in kept]

    def __add__(self, other: BottomSample) -> BottomSample:
        total = BottomSample(self.rows.shape[1], min(self.capacity, other.capacity))
        for part in (self, other):
            total.update(part.keys, choose_ids(part.ids), rows_among(part.rows))
        return total


def _in_order(hashes: NDArray[np.uint64], ids: Sequence[str]) -> NDArray[np.int64]:
    """Return the order of samples by hash, and of equal hashes by id."""
    order = hashes.argsort(kind="stable")
    equal = hashes[order[1:]] == hashes[order[:-1]]
    # Texts take longer to sort than numbers, and hashes are hardly ever equal.
    return np.lexsort((np.array(ids), hashes)) if equal.any() else order


def choose_ids(ids: Sequence[str]) -> IdsAt:
    """Return the function from indices to these ids."""
    return lambda indices: [ids[index] for index in indices.tolist()]


def rows_among(rows: torch.Tensor) -> RowsAt:
    """Return the function from indices to these rows."""
    return lambda indices: rows[send(torch.from_numpy(indices), rows.device)]
