"""`ErrorSource`: a source of the error of estimates, such as the sampling of one set, with its degrees of freedom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from finc_eval.numerics.inference import DEFAULT_CONFIDENCE, normal_quantile, student_quantile

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

GEN, REF, TRAINING = "gen", "ref", "training"
"""Names of sources: the sampling of a generated set, of the reference, and the training of a generator once more."""

MAX_PARTS = 1024
"""Parts that are kept of a source at most. A covariance from 1,024 parts has an error of 4 %, whatever the number of
units, and the memory of a board does not grow with it."""


@dataclass(frozen=True, eq=False)
class ErrorSource:
    """A source of the error of an estimate, independent of its other sources.

    Each part is what one independent unit, or a sum of units, adds to the error, to first order. The squares of all
    parts add up to the variance. The products with the parts of another estimate, from the same units, add up to the
    covariance of both. A source whose units are not at hand has one part.
    """

    name: str
    parts: Array  # (b,)
    degrees: float = inf  # degrees of freedom of the variance; infinite if it is known, 0 for a single unit

    @classmethod
    def of_units(cls, influences: Array, sizes: Array | Integers | None = None, *, name: str = GEN) -> ErrorSource:
        """Return the error from the influence of each independent unit, (units,), whose sum is 0.

        `sizes` has the number of samples of each unit, if the units are averaged by it (`of_uneven_units`).
        """
        count = len(influences) if sizes is None else int(np.count_nonzero(sizes))
        if count < 2:
            return cls(name, influences, 0.0)
        if sizes is None or np.ptp(sizes) == 0:
            return cls(name, influences * sqrt(count / (count - 1)), count - 1.0)
        factor, degrees = of_uneven_units(sizes)
        return cls(name, influences * sqrt(factor), degrees)

    @classmethod
    def of_samples(cls, of_samples: Array, units: Integers | None, count: int = 0, *, name: str = GEN) -> ErrorSource:
        """Return the error of a mean of n samples, from the derivative of the number by the weight of each, (n,).

        Samples with the same number in `units`, (n,), are one unit. There are at least `count` units.
        """
        sizes = None if units is None else np.bincount(units, minlength=count)
        return cls.of_units(unit_influences(of_samples, units, count), sizes, name=name)

    @classmethod
    def of_variance(cls, name: str, variance: float, degrees: float = inf) -> ErrorSource:
        """Return a source with a known variance and unknown influences."""
        return cls(name, np.array([sqrt(variance)]), degrees)

    @property
    def variance(self) -> float:
        """Variance that it adds; infinite for a single unit."""
        return float(self.parts @ self.parts) if self.degrees > 0 else inf

    def times(self, factor: float) -> ErrorSource:
        """Return the source of the error of a number times a factor."""
        return replace(self, parts=factor * self.parts)

    def minus(self, other: ErrorSource, factor: float = 1.0) -> ErrorSource:
        """Return the source of the error of a number minus `factor` times another one, from the same units."""
        return ErrorSource(self.name, self.parts - factor * other.parts, min(self.degrees, other.degrees))

    def widened(self, confidence: float = DEFAULT_CONFIDENCE, degrees: float | None = None) -> ErrorSource:
        """Return the source as if its variance were known: wider by Student's quantile over the normal one."""
        degrees = self.degrees if degrees is None else degrees
        factor = student_quantile(degrees, confidence) / normal_quantile(confidence)
        return ErrorSource(self.name, factor * self.parts)

    def summed(self) -> ErrorSource:
        """Return sums over at most `MAX_PARTS` random parts of the units, always the same parts.

        Units are independent and their influence has mean 0, so that products of sums over parts have the expectation
        of the products over units. With all sums adding to 0, they are too small by one part in as many as there are.
        """
        if len(self.parts) <= MAX_PARTS:
            return self
        part = np.random.default_rng(0).permutation(len(self.parts)) % MAX_PARTS
        return replace(self, parts=np.bincount(part, self.parts) * (MAX_PARTS / (MAX_PARTS - 1)) ** 0.5)

    def padded(self, count: int) -> ErrorSource:
        """Return the source with more parts, which add nothing: `count` in all."""
        return replace(self, parts=np.pad(self.parts, (0, count - len(self.parts))))


def of_uneven_units(sizes: Array | Integers) -> tuple[float, float]:
    """Return the factor that makes Σ I² the variance of a mean, and its degrees of freedom, from sizes of units.

    I = w·(x − Σ w·x) are the influences of two or more units, of mean x and of weight w = size / Σ sizes. Where x are
    independent and normal, of one variance, Σ I² is a quadratic form with a known mean and variance: the factor takes
    its bias away, and the degrees are those of the χ² law with both (Bell and McCaffrey 2002). G units of one size have
    the factor G / (G − 1) and G − 1 degrees. If the means of large units vary less, the error is too large: a caution.

    Example:
        >>> import numpy as np
        >>> of_uneven_units(np.full(4, 7))
        (1.3333333333333333, 3.0)
        >>> factor, degrees = of_uneven_units(np.array([12, 12, 2, 2, 2, 2]))
        >>> round(factor, 2), round(degrees, 1)
        (1.72, 1.5)
    """
    w = np.asarray(sizes, float) / np.sum(sizes)
    second, third, fourth, fifth = (float((w**power).sum()) for power in (2, 3, 4, 5))
    mean = float((w**2 * ((1 - w) ** 2 + second - w**2)).sum())
    if w.max() > 0.999:  # one unit is nearly all, and the sums below cancel
        return second / mean, 1.0
    half_variance = second**4 + 2 * fourth * second + 2 * third**2 - 4 * second**2 * third
    half_variance += (1 + 2 * second) * fourth - 4 * fifth
    return second / mean, mean**2 / half_variance


def unit_influences(of_samples: Array, units: Integers | None, count: int = 0) -> Array:
    """Return the influence of each unit on a mean of n samples, from the derivative by the weight of each, (n,).

    There are at least `count` units; those that have none of these samples have no influence.
    """
    own = (of_samples - of_samples.mean()) / len(of_samples)
    return own if units is None else np.bincount(units, own, count).astype(float)
