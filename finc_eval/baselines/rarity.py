"""Rarity score (Han et al., ICLR 2023, arXiv 2206.08549): how sparse the reference is where a generated sample lies."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import FincEvalError
from finc_eval.core.signature import Signature
from finc_eval.embeddings.neighbors import Key, Smallest, blocks, check_enough, pair, squared_radii

DEPTH = Key(lambda squared, radii: squared.clamp_min(0).sqrt_().sub_(radii.sqrt()), 1)
"""How far outside a ball a point lies."""


@dataclass(frozen=True, eq=False)
class Rarity:
    """The Rarity score of every generated sample.

    The paper gives no score to samples outside every ball. Here they have a distance to the manifold, the union of the
    balls, and rank above all samples inside, by that distance.

    Attributes:
        inside: which samples lie in at least one ball of the reference, its surface excluded, shape (n,).
        scores: the smallest radius of a ball that contains the sample; NaN outside every ball, shape (n,).
        distances: to the manifold, min over all balls of distance − radius; 0 inside, shape (n,).
        k: whose distance is the radius, the sample itself not counted.
        signature: pins everything that changes the scores save the generated set.
    """

    inside: NDArray[np.bool_]
    scores: NDArray[np.float64]
    distances: NDArray[np.float64]
    k: int
    signature: Signature

    @property
    def outside(self) -> int:
        """How many samples lie outside every ball."""
        return int((~self.inside).sum())

    @property
    def order(self) -> NDArray[np.int64]:
        """The samples, most novel first: those outside by distance, then those inside by score; of equals the first."""
        return np.lexsort((np.arange(len(self.inside)), -self._levels(), self.inside))

    def novel(self, *, threshold: float | None = None, share: float | None = None) -> NDArray[np.int64]:
        """The samples found novel, most novel first.

        Args:
            threshold: those outside every ball, and those inside whose score exceeds this; infinity leaves those
                outside only.
            share: or this share of all samples, the most novel ones.

        Raises:
            FincEvalError: unless exactly one is given, the share between 0 and 1.
        """
        if (threshold is None) == (share is None):
            raise FincEvalError("what counts as novel needs a threshold or a share: pass exactly one of them")
        order = self.order
        if threshold is not None:
            return order[~self.inside[order] | (self._levels()[order] > threshold)]
        if share is None or not 0 < share <= 1:
            raise FincEvalError(f"share must lie between 0 and 1, got {share}")
        return order[: max(round(share * len(order)), 1)]

    def _levels(self) -> NDArray[np.float64]:
        return np.where(self.inside, self.scores, self.distances)


def rarity(gen: object, ref: object, *, k: int = 3) -> Rarity:
    """Score every generated sample by the smallest ball of the reference that contains it.

    Args:
        gen: embeddings of the generated set: array or tensor (n, d), `EmbeddingCache` or the path of one.
        ref: the reference set, likewise; it needs more than k samples.
        k: how many neighbors a ball reaches to.

    Raises:
        FincEvalError: too few reference samples, unlike dimensions or extractors, or a row that is not finite.
    """
    x, y = pair(gen, ref, ("gen", "ref"))
    check_enough(y, k)
    radii = squared_radii(y, k)
    smallest = np.full(x.n, np.inf)
    nearest = Smallest(x.n, 1, DEPTH, radii)
    for block in blocks(x, y):
        rows, columns = block.within(column_radii=radii[block.columns])
        np.minimum.at(smallest[block.rows], rows, radii[block.columns][columns])
        nearest.update(block)
    inside = np.isfinite(smallest)
    fields = (("n", f"{x.n}/{y.n}"), ("fx", y.space), ("neighbors", str(k)), ("v", version("finc-eval")))
    return Rarity(
        inside=inside,
        scores=np.where(inside, np.sqrt(smallest), np.nan),
        distances=np.where(inside, 0.0, nearest.keys[:, 0].clip(min=0)),
        k=k,
        signature=Signature("rarity", fields),
    )
