"""`Estimate`: a number of one model, with what its error shares with those of other models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.numerics.inference import normal_interval

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate for one model against a reference.

    The error has two independent parts. That of the model's own set is known by its variance, that of the reference by
    the influence of each of its units, which tells how the errors of two models go together.

    Attributes:
        value: the estimate.
        own_variance: variance from the sampling of the model's set.
        ref_influence: vector whose product with that of another model is the covariance of the two from the sampling
            of the reference; one entry per independent unit of the reference, or per kind. None where the estimate
            shares nothing with others.
    """

    value: float
    own_variance: float
    ref_influence: Array | None = None

    @property
    def variance(self) -> float:
        """Variance of the estimate from the sampling of both sets."""
        shared = 0.0 if self.ref_influence is None else float(self.ref_influence @ self.ref_influence)
        return self.own_variance + shared

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of this estimate alone."""
        return normal_interval(self.value, self.variance**0.5)


def joint_covariance(estimates: Sequence[Estimate]) -> Array:
    """Return the covariance of estimates of models against one reference, shape (p, p)."""
    covariance = np.diag([one.own_variance for one in estimates]).astype(float)
    places = [place for place, one in enumerate(estimates) if one.ref_influence is not None]
    if places:
        influences = np.stack([one.ref_influence for one in estimates if one.ref_influence is not None])
        covariance[np.ix_(places, places)] += influences @ influences.T
    return covariance


def unit_sums(influence: Array, groups: NDArray[np.uint64] | None) -> Array:
    """Return the summed influence of each group of samples, which are not independent; without groups, of each sample.

    Args:
        influence: influence of each sample, shape (n,).
        groups: hash of the group of each sample, shape (n,).
    """
    if groups is None:
        return influence
    _, unit = np.unique(groups, return_inverse=True)
    return np.bincount(unit, influence).astype(float)
