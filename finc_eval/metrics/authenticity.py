"""AuthPct (Alaa et al., ICML 2022, arXiv 2102.08921): how many generated samples are no copies of training samples.

Of each generated sample, the nearest training sample is asked whether it has a neighbor in its own set that is nearer
still: if so, the generated sample lies as far from the training set as training samples from each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.signature import Signature
from finc_eval.embeddings.neighbors import check_enough, kth_distances, nearest, pair
from finc_eval.metrics.score import wilson


@dataclass(frozen=True, eq=False)
class Authenticity:
    """Distances that decide which generated samples are authentic.

    Attributes:
        distances: distance of each generated sample to its nearest training sample, shape (n,); 0 for exact copies.
        spacings: distance of that training sample to its nearest neighbor in the training set, shape (n,).
        nearest: index of that training sample, shape (n,).
        signature: pins everything that changes the number save the generated set.
    """

    distances: NDArray[np.float64]
    spacings: NDArray[np.float64]
    nearest: NDArray[np.int64] | None = None
    signature: Signature | None = None

    @property
    def authentic(self) -> NDArray[np.bool_]:
        """Authentic samples, as a mask of shape (n,). An exact copy is never authentic."""
        return self.distances > self.spacings

    @property
    def percent(self) -> float:
        """Percentage of authentic samples.

        A perfect generator reads as fresh real samples do, which is 50 to 70 and has to be measured. Copies read
        lower. Samples far from all training samples, bad ones included, read higher.
        """
        return 100 * float(self.authentic.mean())

    @property
    def copies(self) -> int:
        """How many have the very embedding of a training sample."""
        return int((self.distances == 0).sum())

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Wilson's interval, in percent, for fresh generated samples and the same training set."""
        low, high = wilson(self.percent / 100, len(self.authentic), level)
        return 100 * low, 100 * high


def authpct(gen: object, train: object) -> Authenticity:
    """AuthPct as dgm-eval computes it; the authors of FLD take 50 off it.

    A sample x is authentic if d(x, t) > d(t, t'), t being the training sample nearest to x and t' the one nearest to t.
    A training set that has copies of itself, t' = t, is blind to near copies of those: remove its duplicates first.

    Args:
        gen: embeddings of the generated set: array or tensor (n, d), `EmbeddingCache` or the path of one.
        train: those of the training set, likewise.

    Raises:
        FincEvalError: fewer than two training samples, unlike dimensions or extractors, or a row that is not finite.
    """
    x, y = pair(gen, train, ("gen", "train"))
    check_enough(y, 1)
    found = nearest(x, y, 1)
    distances, indices = found.distances[:, 0], found.indices[:, 0]
    spacings = kth_distances(y, 1)[indices]
    fields = (("n", f"{x.n}/{y.n}"), ("fx", y.space), ("v", version("finc-eval")))
    return Authenticity(
        nearest=indices,
        distances=distances,
        spacings=spacings,
        signature=Signature("authpct", fields),
    )
