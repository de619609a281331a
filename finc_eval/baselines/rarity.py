"""Rarity score (Han et al., ICLR 2023, arXiv 2206.08549): sparsity of the reference around a generated sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.opening import open_pair
from finc_eval.embeddings.search.distance_blocks import Key, Smallest, blocks
from finc_eval.embeddings.search.neighbors import check_enough, index_signature, radii
from finc_eval.numerics.names import SearchIndex

DISTANCE_TO_BALL = Key(lambda squared, radii: squared.clamp_min(0).sqrt_().sub_(radii.sqrt()), 1)
"""Distance of a point to the surface of a ball; negative inside."""


@dataclass(frozen=True, eq=False)
class RarityScores:
    """The Rarity score of every generated sample.

    The paper does not score samples outside every ball. Here they rank above all samples inside, by their distance to
    the manifold, which is the union of the balls.

    Attributes:
        inside: whether a sample lies in at least one ball of the reference, surfaces excluded, shape (n,).
        scores: smallest radius of a ball that contains the sample, shape (n,); NaN outside every ball.
        distances: distance to the manifold, min over all balls of distance − radius, shape (n,); 0 inside.
        k: number of the neighbor whose distance is a ball's radius; the sample itself does not count.
        signature: everything that changes the scores, except the generated set.
        recall: share of the exact neighbors that were found for the radii; None if all are exact.
    """

    inside: NDArray[np.bool_]
    scores: NDArray[np.float64]
    distances: NDArray[np.float64]
    k: int
    signature: Signature
    recall: float | None = None

    @property
    def outside(self) -> int:
        """Number of samples outside every ball."""
        return int((~self.inside).sum())

    @property
    def order(self) -> NDArray[np.int64]:
        """All samples, most novel first: outside by distance, then inside by score; equal samples in their order."""
        levels = np.where(self.inside, self.scores, self.distances)
        return np.lexsort((np.arange(len(levels)), -levels, self.inside))


def rarity(
    gen: object, ref: object, *, k: int = 3, run: Run | None = None, index: SearchIndex = "exact"
) -> RarityScores:
    """Score every generated sample by the smallest ball of the reference that contains it.

    Sets are embeddings (n, d) or their file; a ball reaches to the k-th neighbor. With the index "auto", radii are by
    approximate neighbors in a very large reference; which balls contain a sample is exact.
    """
    x, y = open_pair(gen, ref, names=("gen", "ref"))
    check_enough(y, k)
    device = Run.of(run).torch_device
    balls = radii(y, k, device, index)
    squared = balls.squared
    smallest = np.full(x.n, np.inf)
    nearest = Smallest(x.n, 1, DISTANCE_TO_BALL, squared)
    for block in blocks(x, y, device):
        rows, columns = block.within(column_radii=squared[block.columns])
        np.minimum.at(smallest[block.rows], rows, squared[block.columns][columns])
        nearest.update(block)
    inside = np.isfinite(smallest)
    return RarityScores(
        inside=inside,
        scores=np.where(inside, np.sqrt(smallest), np.nan),
        distances=np.where(inside, 0.0, nearest.keys[:, 0].clip(min=0)),
        k=k,
        signature=Signature.of("rarity", (x.n, y.n), y.space, ("neighbors", str(k)), *index_signature(balls.recall)),
        recall=balls.recall,
    )
