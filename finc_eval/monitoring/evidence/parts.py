"""`Parts`: pictures with a part that hardly any picture of the reference has, by ridge regression of their cells.

The numbers of a picture are the means of the three highest and of the three lowest windows of each number of its cells.
With the mean and the covariance C of the bag, and the mean of the past, the score of a picture x is

    β·x,   β = (C + λ·tr(C)/D·I)⁻¹ · (mean of the past − mean of the bag).

All samples of the bag are treated alike; see `finc_eval.monitoring.evidence.asked`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from finc_eval.embeddings.base import Embeddings
from finc_eval.local_evidence.find import LEAST_UNITS
from finc_eval.monitoring.evidence.asked import Asked, Mask
from finc_eval.monitoring.exchange import Array, Counts

MOST_PICTURES = 500
"""Pictures of the reference that are kept, and asked about: with them, writing in 15 % of 64 photographs has an alarm
at evaluation 2 to 5 in six of six runs, and an evaluation takes 20 ms."""

RIDGE = 1.0
"""λ. Evaluations of 64 photographs, of which 15 % have writing or 10 % a patch of one color: the median alarm of six
runs comes at evaluation 5.5 and 9.5 with .1, at 3 and 6 with 1, and at 3 and 8 with 10. There are as many numbers as
pictures, and a small λ fits those of the bag."""

OUTER = 3  # highest windows, and lowest, as in `finc_eval.local_evidence.cell_scores`


def summarize_cells(samples: Embeddings, rows: Counts) -> tuple[NDArray[np.float32], Counts]:
    """Return the numbers of the pictures that have cells, shape (m, k), and their places among `rows`, shape (m,)."""
    cells = samples.cells
    if cells is None or not len(own := cells.take(rows)):
        return np.empty((0, 0), np.float32), np.empty(0, np.int64)
    ordered = np.partition(own.values, (OUTER - 1, -OUTER), 1)
    ends = [part.mean(1, dtype=np.float32) for part in (ordered[:, -OUTER:], ordered[:, :OUTER])]
    return np.concatenate(ends, 1), own.rows


@dataclass(frozen=True, eq=False)
class Parts(Asked):
    """Classifiers by the cells of pictures."""

    name: ClassVar[str] = "parts"
    is_near: ClassVar[bool] = False

    @classmethod
    def of(cls, reference: Embeddings, place: int, seed: int) -> Self | None:
        """Begin with pictures of the reference, at random; None if hardly any has cells."""
        numbers, _ = summarize_cells(reference, np.random.default_rng([seed, 5]).permutation(reference.n)[:4000])
        kept = numbers[:MOST_PICTURES]
        if len(kept) < LEAST_UNITS:
            return None
        return cls.begun(kept, np.float32(1) / np.maximum(kept.std(0), np.float32(1)), place)

    @cached_property
    def _products(self) -> dict[int, NDArray[np.float32]]:
        """Sum of x·xᵀ over the samples of each block."""
        blocks = {int(number): self.rows[self.block == number] for number in np.unique(self.block)}
        return {number: rows.T @ rows for number, rows in blocks.items()}

    def _scores(self, bag: Mask, past: Mask) -> Array:
        rows = self.rows[bag]
        middle, earlier = rows.mean(0), self.rows[past].mean(0)
        blocks = np.unique(self.block[bag]).tolist()
        spread = sum((self._products[block] for block in blocks[1:]), self._products[blocks[0]].copy())
        spread = spread / np.float32(len(rows)) - np.outer(middle, middle)
        spread.flat[:: len(spread) + 1] += max(RIDGE * np.trace(spread) / len(spread), 1e-9)
        return np.asarray(rows @ cho_solve(cho_factor(spread), earlier - middle), np.float64)

    def _near_with(self, rows: NDArray[np.float32], new: NDArray[np.float32], block: Counts, near: Array) -> Array:
        return np.empty((len(rows) + len(new), 0))
