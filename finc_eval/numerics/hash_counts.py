"""`HashCounts`: how many samples share each hash, in bounded memory, as a sum over workers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

MOST_HASHES = 4096
"""Hashes that are counted: 64 kB. Of more hashes, the smallest are a random sample, and Σ m² is an estimate: of 100 000
groups of 1 to 9 samples, its standard deviation is 1 % (tests/numerics/test_hash_counts.py)."""

LARGE = 0.01
"""Part of the counted samples from which a hash is added as it is. 600 of 12 000 samples had one hash, which was
counted, and 10 469 different hashes were estimated where there are 11 401."""

LARGEST = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class HashCounts:
    """Numbers of samples by the hash of their group, or of their embedding; those of the smallest hashes are kept.

    Each number that is kept is exact, over all workers: a hash among the smallest of all is among the smallest of each
    worker that has it. Sets keep the same hashes: what they share is seen.

    Attributes:
        n: number of samples, of all hashes.
        hashes: smallest hashes, ascending, shape (m,).
        counts: number of samples of each of these, shape (m,).
        most: number of hashes that are kept; None: all.
    """

    n: int = 0
    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    counts: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    most: int | None = MOST_HASHES

    @classmethod
    def of(cls, hashes: NDArray[np.uint64], most: int | None = MOST_HASHES) -> HashCounts:
        """Count samples by their hashes, shape (n,), which are even: each of their bits is a fair coin.

        Example:
            >>> import numpy as np
            >>> HashCounts.of(np.array([3, 7, 3], np.uint64)).counts.tolist()
            [2, 1]
        """
        values, counts = np.unique(hashes, return_counts=True)
        return cls(len(hashes), values[:most], counts[:most], most)

    def __add__(self, other: HashCounts) -> HashCounts:
        values, own, others = self.beside(other)
        most = min((kept.most for kept in (self, other) if kept.most is not None), default=None)
        return HashCounts(self.n + other.n, values[:most], (own + others)[:most], most)

    @property
    def is_whole(self) -> bool:
        """True if no hash was left out."""
        return int(self.counts.sum()) == self.n

    @property
    def squared_sizes(self) -> int:
        """Σ m² over all groups of m samples; see `_sum_of_all`."""
        return self._sum_of_all(self.counts**2)

    @property
    def distinct(self) -> int:
        """Number of different hashes; see `_sum_of_all`."""
        return self._sum_of_all(np.ones_like(self.counts))

    def _sum_of_all(self, values: Counts) -> int:
        """Estimate the sum over all hashes from values of those that are counted, shape (m,).

        It is the ratio of these sums to their samples, times all samples (Cochran 1977, 6.3). Hashes of many samples
        are added as they are.
        """
        large = self.counts > LARGE * self.counts.sum()
        counted, left = int(self.counts[~large].sum()), self.n - int(self.counts[large].sum())
        return int(values[large].sum()) + (round(left * int(values[~large].sum()) / counted) if counted else 0)

    def beside(self, other: HashCounts) -> tuple[NDArray[np.uint64], Counts, Counts]:
        """Return the hashes of either that both would have kept, ascending, and the numbers of samples of both."""
        limit = min(LARGEST if kept.is_whole else kept.hashes[-1] for kept in (self, other))
        parts = [np.searchsorted(kept.hashes, limit, side="right") for kept in (self, other)]
        values = np.union1d(self.hashes[: parts[0]], other.hashes[: parts[1]])
        found = []
        for kept, part in zip((self, other), parts, strict=True):
            counts = np.zeros(len(values), np.int64)
            counts[np.searchsorted(values, kept.hashes[:part])] = kept.counts[:part]
            found.append(counts)
        return values, found[0], found[1]


def drawable(own: Counts, others: Counts) -> tuple[Counts, Counts]:
    """Return the numbers of samples of two sets by value without the values of most samples, if these exceed 10⁹.

    numpy draws parts of fewer samples; what is left out depends on both sets together alone.
    """
    order = np.argsort(own + others, kind="stable")
    kept = np.sort(order[np.cumsum((own + others)[order]) < 10**9])
    return own[kept], others[kept]
