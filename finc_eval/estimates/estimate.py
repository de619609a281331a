"""`Estimate`: a number from samples, with the influence that each independent unit has on it."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from finc_eval.embeddings.base import Embeddings
from finc_eval.numerics.inference import student_quantile

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number from samples, without its bias, and what its error comes from.

    The influence of a unit is what it adds to the error, to first order. Influences of one set sum to 0. The error of a
    difference of two estimates from the same units follows from the difference of their influences.
    """

    value: float  # number of the samples as they are
    unbiased: float  # number without the bias of finite sets; it may be beyond what is possible, such as below 0
    interval: tuple[float, float]  # 95 % interval around the unbiased number
    influences: tuple[Array, ...]  # influence of each independent unit, (units,), of each set that was sampled

    @classmethod
    def of(cls, unbiased: float, influences: tuple[Array, ...], value: float | None = None) -> Estimate:
        """Return an estimate whose interval is symmetric; `value` is with its bias, if it has any."""
        half = cls(unbiased, unbiased, (unbiased, unbiased), influences).half
        return cls(unbiased if value is None else value, unbiased, (unbiased - half, unbiased + half), influences)

    @property
    def variances(self) -> tuple[float, ...]:
        """Variance from the sampling of each set."""
        return tuple(float(one @ one) * len(one) / (len(one) - 1) for one in self.influences)

    @property
    def standard_error(self) -> float:
        """Standard error of the unbiased number."""
        return sqrt(sum(self.variances))

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the standard error, by Welch and Satterthwaite; infinite for no error."""
        parts = list(zip(self.variances, self.influences, strict=True))
        spread = sum(variance**2 / (len(one) - 1) for variance, one in parts)
        return sum(variance for variance, _ in parts) ** 2 / spread if spread else float("inf")

    @property
    def half(self) -> float:
        """Half-width of the 95 % interval by Student's t."""
        return student_quantile(self.degrees) * self.standard_error


def difference(new: Estimate, old: Estimate, factor: float = 1.0) -> Estimate:
    """Return new − factor·old, of two estimates from the same units: what both errors share cancels."""
    pairs = zip(new.influences, old.influences, strict=True)
    influences = tuple(own - factor * other for own, other in pairs)
    return Estimate.of(new.unbiased - factor * old.unbiased, influences, new.value - factor * old.value)


def units_of(embeddings: Embeddings) -> NDArray[np.int64] | None:
    """Return the number of each sample's group, shape (n,); None if the samples are independent."""
    groups = embeddings.group_hashes()
    return None if groups is None else np.unique(groups, return_inverse=True)[1]


def unit_influences(of_samples: Array, units: NDArray[np.int64] | None) -> Array:
    """Return the influence of each unit on a mean of n samples, from the derivative by the weight of each, (n,)."""
    own = (of_samples - of_samples.mean()) / len(of_samples)
    return own if units is None else np.bincount(units, own).astype(float)


def block_influences(without: Array) -> Array:
    """Return the influence of each block, from the values without each block in turn (Tukey 1958)."""
    return np.asarray((without.mean() - without) * (len(without) - 1) / len(without))
