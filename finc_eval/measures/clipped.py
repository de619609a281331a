"""Clipped density and clipped coverage (Salvy, Talbot and Thirion, ICLR 2026, arXiv 2507.01761).

Both read as the share of good samples that would have the same value: 0.8 of a set of which a fifth is bad. Balls of
the reference reach to the k-th neighbor; for the density no farther than the median ball, so that outliers have none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.distance_blocks import blocks, blocks_within
from finc_eval.embeddings.search.neighbors import check_enough, radii
from finc_eval.estimates.of_statistic import Statistic
from finc_eval.measures.inputs import of_statistic
from finc_eval.measures.precision_recall import ball_notes

K = 5  # neighbor that a ball reaches to, the default of the authors' code

Counts = NDArray[np.int64]


class ReferenceBalls:
    """The balls of a reference, and how often its own samples lie in the clipped balls of the others."""

    def __init__(self, ref: Embeddings, k: int = K, run: Run | None = None) -> None:
        check_enough(ref, k)
        self.ref, self._k, self._device = ref, k, Run.of(run).torch_device
        self._radii = radii(ref, k, self._device).squared
        self._clipped = np.minimum(self._radii, np.median(self._radii))
        counts = np.zeros(ref.n, np.int64)
        for block in blocks_within(ref, self._device):
            rows, _ = block.within(column_radii=self._clipped[block.columns], closed=True)
            counts[block.rows] += np.bincount(rows, minlength=len(block.x.rows))
        self._usual = np.minimum(counts / k, 1).mean()

    def density_and_coverage(self, gen: Embeddings) -> tuple[float, float]:
        """Return the clipped density and the clipped coverage of a generated set.

        The density is above 1 where samples lie nearer to the reference than its own: the metric is 1 there.
        """
        of_gen, of_ref = np.zeros(gen.n, np.int64), np.zeros(self.ref.n, np.int64)
        for block in blocks(gen, self.ref, self._device):
            rows, _ = block.within(column_radii=self._clipped[block.columns], closed=True)
            of_gen[block.rows] += np.bincount(rows, minlength=len(block.x.rows))
            _, columns = block.within(column_radii=self._radii[block.columns])
            of_ref[block.columns] += np.bincount(columns, minlength=len(block.y.rows))
        density = np.minimum(of_gen / self._k, 1).mean() / self._usual
        usual = expected_coverage(gen.n, self.ref.n, self._k)
        coverage = np.searchsorted(usual, np.minimum(of_ref, self._k).mean() / self._k) / len(usual)
        return float(density), float(coverage)


def expected_coverage(n: int, m: int, k: int) -> NDArray[np.float64]:
    """Return the mean of min(j, k)/k, with j of 0 … n samples of the reference's law in a ball, shape (n + 1,).

    The mass of a ball to the k-th of m − 1 others has the law Beta(k, m − k), so j has a beta-binomial law. As in the
    authors' code, fewer samples than k count as none.
    """
    size, j = np.arange(n + 1.0)[:, None], np.arange(k)
    with np.errstate(invalid="ignore"):
        choices = gammaln(size + 1) - gammaln(j + 1) - gammaln(size - j + 1)
        mass = np.exp(choices + betaln(k + j, m - k + size - j) - betaln(k, m - k))
    return np.where(size[:, 0] < k, 0.0, 1 - (mass * (k - j)).sum(1) / k)


def _clipped(gen: Embeddings, ref: Embeddings, run: Run) -> Statistic:
    whole = ReferenceBalls(ref, run=run)

    def statistic(gen: Embeddings, part: Embeddings) -> dict[str, float]:
        density, coverage = (whole if part is ref else ReferenceBalls(part, run=run)).density_and_coverage(gen)
        return {"clipped_density": density, "clipped_coverage": coverage}

    return statistic


METRICS = (
    of_statistic(
        "clipped",
        "clipped density and coverage: the share of good samples that would have the same value",
        _clipped,
        higher_is_better=True,
        bounds=(0.0, 1.0),
        notes=ball_notes,
        depends_on_groups=lambda key: key == "clipped_coverage",
        k=K,
    ),
)
