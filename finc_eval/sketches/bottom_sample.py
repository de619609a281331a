"""The bottom-k sample of a set: a uniform sample that merges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

SAMPLE_SIZE = 2000
"""Samples that a sketch keeps, unless another number is asked for."""


class BottomSample:
    """The `capacity` samples with the smallest id hashes: a uniform sample that merges and never depends on order.

    Args:
        dim: number of entries of an embedding.
        capacity: number of samples to keep at most.

    Attributes:
        keys: id hashes, ascending but for the last bit, shape (m,).
        ids: sample ids.
        rows: embeddings, shape (m, d), on the CPU.
    """

    def __init__(self, dim: int, capacity: int) -> None:
        self.capacity = capacity
        self.keys: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.ids: list[str] = []
        self.rows = torch.empty(0, dim)

    def update(self, keys: NDArray[np.uint64], read_ids: Callable[[], Sequence[str]], rows: torch.Tensor) -> None:
        """Offer samples; those with the smallest hashes stay, in order of hash. Ids are read only if some may stay."""
        # The lowest bit decides the fold, so the order is by the others: both folds are sampled alike.
        offered = np.arange(len(keys))
        if len(self.keys) == self.capacity:
            offered = np.flatnonzero(keys >> 1 < (self.keys[-1] >> 1)) if self.capacity else offered[:0]
        elif len(keys) > self.capacity:
            smallest = np.partition(keys >> 1, self.capacity - 1)[self.capacity - 1]
            offered = np.flatnonzero(keys >> 1 <= smallest)
        if not len(offered):
            return
        ids = read_ids()
        keys, rows = keys[offered], rows[torch.from_numpy(offered).to(rows.device)]
        all_keys = np.concatenate([self.keys, keys])
        all_ids = [*self.ids, *(ids[i] for i in offered.tolist())]
        kept = np.lexsort((np.array(all_ids), all_keys >> 1))[: self.capacity]
        self.rows = torch.cat([self.rows, rows.detach().float().cpu()])[torch.from_numpy(kept)]
        self.keys = all_keys[kept]
        self.ids = [all_ids[i] for i in kept]

    def __add__(self, other: BottomSample) -> BottomSample:
        total = BottomSample(self.rows.shape[1], min(self.capacity, other.capacity))
        for part in (self, other):
            total.update(part.keys, partial(tuple, part.ids), part.rows)
        return total
