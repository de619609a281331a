"""`GroupCounts`: how many samples groups have, in bounded memory, as a sum over workers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MOST_GROUPS = 4096
"""Groups that are counted: 64 kB. Of more groups, those with the smallest hashes are a random sample, and Σ m² is an
estimate: of 100 000 groups of 1 to 9 samples, its standard deviation is 1 % (tests/engines/test_summing.py)."""


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """Numbers of samples of the groups with the smallest hashes; each is exact, over all workers.

    A group among the smallest of all is among the smallest of each worker that has it, so no sample of it is lost.
    """

    n: int = 0  # samples in all groups
    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))  # of the groups, ascending
    counts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # samples of each group

    @classmethod
    def of(cls, groups: NDArray[np.uint64]) -> GroupCounts:
        """Count samples by the hashes of their groups."""
        hashes, counts = np.unique(groups, return_counts=True)
        return cls(len(groups), hashes[:MOST_GROUPS], counts[:MOST_GROUPS])

    def __add__(self, other: GroupCounts) -> GroupCounts:
        hashes, group = np.unique(np.concatenate([self.hashes, other.hashes]), return_inverse=True)
        counts = np.bincount(group, np.concatenate([self.counts, other.counts]), len(hashes)).astype(np.int64)
        return GroupCounts(self.n + other.n, hashes[:MOST_GROUPS], counts[:MOST_GROUPS])

    @property
    def squared_sizes(self) -> int:
        """Σ m² over all groups of m samples, by the ratio Σ m² / Σ m of the groups that are counted."""
        counted = int(self.counts.sum())
        return round(self.n * int((self.counts**2).sum()) / counted) if counted else 0
