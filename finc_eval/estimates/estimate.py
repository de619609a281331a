"""`Estimate`: a number from samples, with the influence that each independent unit has on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from finc_eval.embeddings.base import Embeddings
from finc_eval.numerics.inference import DEFAULT_CONFIDENCE, student_quantile

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    least: float = 0.0  # variance that there is at least, where values that are all the same do not show it

    @classmethod
    def of(
        cls, unbiased: float, influences: tuple[Array, ...], value: float | None = None, *, least: float = 0.0
    ) -> Estimate:
        """Return an estimate whose interval is symmetric; `value` is with its bias, if it has any."""
        plain = cls(unbiased if value is None else value, unbiased, (unbiased, unbiased), influences, least)
        return replace(plain, interval=plain.interval_at())

    @classmethod
    def of_mean(cls, values: Array, units: Integers | None = None, *, least: float = 0.0) -> Estimate:
        """Estimate the mean of n samples, `values` (n,); samples with the same number in `units`, (n,), are one unit.

        Units are numbered from 0, without gaps. Without `units`, each sample is a unit.

        Example:
            >>> import numpy as np
            >>> found = Estimate.of_mean(np.array([1.0, 2.0, 3.0, 6.0]), np.array([0, 0, 1, 1]))
            >>> found.value, round(found.standard_error, 3)
            (3.0, 1.5)
        """
        return cls.of(float(values.mean()), (unit_influences(values, units),), least=least)

    @classmethod
    def of_ratio(cls, sums: Array, sizes: Array | Integers) -> Estimate:
        """Estimate Σ sums / Σ sizes over units, (units,): a mean of samples that each unit has several of."""
        value = float(sums.sum() / sizes.sum())
        return cls.of(value, ((sums - sizes * value) / sizes.sum(),))

    @property
    def variances(self) -> tuple[float, ...]:
        """Variance from the sampling of each set; infinite for a set of one unit."""
        return tuple(float(one @ one) * len(one) / (len(one) - 1) if len(one) > 1 else inf for one in self.influences)

    @property
    def standard_error(self) -> float:
        """Standard error of the unbiased number."""
        return sqrt(max(sum(self.variances), self.least))

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the standard error, by Welch and Satterthwaite; infinite for no error."""
        if any(len(one) < 2 for one in self.influences):
            return 0.0
        parts = list(zip(self.variances, self.influences, strict=True))
        spread = sum(variance**2 / (len(one) - 1) for variance, one in parts)
        if len(parts) == 1:
            return len(parts[0][1]) - 1.0 if spread or self.least else inf
        return sum(variance for variance, _ in parts) ** 2 / spread if spread else inf

    @property
    def half(self) -> float:
        """Half-width of the 95 % interval by Student's t."""
        return self.half_at()

    def half_at(self, confidence: float = DEFAULT_CONFIDENCE) -> float:
        """Return the half-width of an interval by Student's t; infinite if a set has one unit."""
        error = self.standard_error
        return student_quantile(self.degrees, confidence) * error if error < inf else inf

    def interval_at(self, confidence: float = DEFAULT_CONFIDENCE) -> tuple[float, float]:
        """Return the symmetric interval around the unbiased number, by Student's t."""
        half = self.half_at(confidence)
        return self.unbiased - half, self.unbiased + half

    def within(self, low: float, high: float) -> tuple[float, float]:
        """Return the 95 % interval, cut off at the least and the largest value that there can be."""
        return max(self.interval[0], low), min(self.interval[1], high)


def difference(new: Estimate, old: Estimate, factor: float = 1.0) -> Estimate:
    """Return new − factor·old, of two estimates from the same units: what both errors share cancels."""
    pairs = zip(new.influences, old.influences, strict=True)
    influences = tuple(own - factor * other for own, other in pairs)
    return Estimate.of(new.unbiased - factor * old.unbiased, influences, new.value - factor * old.value)


def units_of(embeddings: Embeddings) -> Integers | None:
    """Return the number of each sample's group, shape (n,); None if the samples are independent."""
    groups = embeddings.group_hashes()
    return None if groups is None else np.unique(groups, return_inverse=True)[1]


def unit_influences(of_samples: Array, units: Integers | None, count: int = 0) -> Array:
    """Return the influence of each unit on a mean of n samples, from the derivative by the weight of each, (n,).

    There are at least `count` units; those that have none of these samples have no influence.
    """
    own = (of_samples - of_samples.mean()) / len(of_samples)
    return own if units is None else np.bincount(units, own, count).astype(float)


def block_influences(without: Array) -> Array:
    """Return the influence of each block, from the values without each block in turn (Tukey 1958)."""
    return np.asarray((without.mean() - without) * (len(without) - 1) / len(without))
