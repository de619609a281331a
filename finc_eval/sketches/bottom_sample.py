"""The bottom-k sample of a set: a uniform sample that merges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray


class BottomSample:
    """The `capacity` samples with the smallest id hashes: a uniform sample that merges and never depends on order."""

    def __init__(self, dim: int, capacity: int) -> None:
        self.capacity = capacity
        self.keys: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.ids: list[str] = []
        self.rows = torch.empty(0, dim)

    def update(self, keys: NDArray[np.uint64], ids: Sequence[str], rows: torch.Tensor) -> None:
        """Offer samples; those with the smallest hashes stay, in order of hash."""
        # The lowest bit decides the fold, so the order is by the others: both folds are sampled alike.
        if len(self.keys) == self.capacity:
            offered = np.flatnonzero(keys >> 1 < (self.keys[-1] >> 1)) if self.capacity else np.empty(0, np.int64)
            if not len(offered):
                return
            ids = [ids[int(i)] for i in offered]
            keys, rows = keys[offered], rows[torch.from_numpy(offered).to(rows.device)]
        all_keys = np.concatenate([self.keys, keys])
        all_ids = [*self.ids, *ids]
        kept = np.lexsort((np.array(all_ids), all_keys >> 1))[: self.capacity]
        self.rows = torch.cat([self.rows, rows.detach().float().cpu()])[torch.from_numpy(kept)]
        self.keys = all_keys[kept]
        self.ids = [all_ids[i] for i in kept]
