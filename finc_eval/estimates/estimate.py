"""`Estimate`: a number from samples, with the sources of its error and the influence of each independent unit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np

from finc_eval.embeddings.base import Embeddings
from finc_eval.estimates.error_source import GEN, REF, Array, ErrorSource, Integers
from finc_eval.numerics.inference import DEFAULT_CONFIDENCE, student_quantile, student_tail


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number from samples, without its bias, and what its error comes from.

    The error of a difference of two estimates from the same units follows from the difference of their influences.
    """

    value: float  # number without the bias of finite sets; it may be beyond what is possible, such as below 0
    interval: tuple[float, float]  # 95 % interval around it
    sources: tuple[ErrorSource, ...]  # independent sources of its error, such as the sampling of each set
    least: float = 0.0  # variance that there is at least, where values that are all the same do not show it

    @classmethod
    def of(
        cls,
        value: float,
        sources: Sequence[ErrorSource | Array],
        *,
        least: float = 0.0,
        interval: tuple[float, float] | None = None,
    ) -> Estimate:
        """Return an estimate, whose interval is symmetric if none is given.

        An array is the influence of each unit of a set: first of the generated set, then of the reference, then of
        others.
        """
        names = (GEN, REF, *(f"set {place + 1}" for place in range(2, len(sources))))
        named = zip(names, sources, strict=False)
        made = tuple(
            one if isinstance(one, ErrorSource) else ErrorSource.of_units(one, name=name) for name, one in named
        )
        plain = cls(value, (value, value), made, least)
        return replace(plain, interval=plain.interval_at() if interval is None else interval)

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
        return cls.of(float(values.mean()), (ErrorSource.of_samples(values, units),), least=least)

    @classmethod
    def of_ratio(cls, sums: Array, sizes: Array | Integers) -> Estimate:
        """Estimate Σ sums / Σ sizes over units, (units,): a mean of samples that each unit has several of."""
        value = float(sums.sum() / sizes.sum())
        return cls.of(value, (ErrorSource.of_units((sums - sizes * value) / sizes.sum(), sizes),))

    @classmethod
    def of_blocks(cls, value: float, *without: Sequence[float] | Array) -> Estimate:
        """Estimate a number from its values without each block of each independent set in turn (Tukey 1958).

        Example:
            >>> import numpy as np
            >>> numbers = np.array([1.0, 2.0, 6.0])
            >>> found = Estimate.of_blocks(3.0, [np.delete(numbers, block).mean() for block in range(3)])
            >>> round(found.standard_error, 3), round(Estimate.of_mean(numbers).standard_error, 3)
            (1.528, 1.528)
        """
        return cls.of(value, [block_influences(np.asarray(one, float)) for one in without])

    @property
    def standard_error(self) -> float:
        """Standard error of the number."""
        return sqrt(max(sum(one.variance for one in self.sources), self.least))

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the standard error, by Welch and Satterthwaite; infinite for no error."""
        if any(one.degrees <= 0 for one in self.sources):
            return 0.0
        felt = [one for one in self.sources if one.variance]
        if not felt:
            return min((one.degrees for one in self.sources), default=inf) if self.least else inf
        if len(felt) == 1:
            return felt[0].degrees
        spread = sum(one.variance**2 / one.degrees for one in felt)
        return sum(one.variance for one in felt) ** 2 / spread if spread else inf

    @property
    def half(self) -> float:
        """Half-width of the 95 % interval by Student's t."""
        return self.half_at()

    @property
    def p_value(self) -> float:
        """Two-sided p-value of "it is 0" by Student's t: below 0.05 where the 95 % interval does not hold 0."""
        error = self.standard_error
        if not 0 < error < inf:
            return float(self.value == 0 or error == inf)
        return min(2 * student_tail(abs(self.value) / error, self.degrees), 1.0)

    @property
    def upper_p(self) -> float:
        """One-sided p-value of "it is not above 0" by Student's t."""
        error = self.standard_error
        if not 0 < error < inf:
            return float(self.value <= 0 or error == inf)
        return student_tail(self.value / error, self.degrees)

    def half_at(self, confidence: float = DEFAULT_CONFIDENCE, degrees: float | None = None) -> float:
        """Return the half-width of an interval by Student's t; infinite if a set has one unit.

        `degrees` of freedom are those of the error by default.
        """
        error = self.standard_error
        degrees = self.degrees if degrees is None else degrees
        return student_quantile(degrees, confidence) * error if error < inf else inf

    def interval_at(self, confidence: float = DEFAULT_CONFIDENCE, degrees: float | None = None) -> tuple[float, float]:
        """Return the symmetric interval around the number, by Student's t."""
        half = self.half_at(confidence, degrees)
        return self.value - half, self.value + half

    def within(self, low: float, high: float) -> tuple[float, float]:
        """Return the 95 % interval, cut off at the least and the largest value that there can be."""
        return max(self.interval[0], low), min(self.interval[1], high)

    def source(self, name: str) -> ErrorSource | None:
        """Return a source of the error by its name; None if it adds nothing."""
        return next((one for one in self.sources if one.name == name), None)

    def variance_of(self, *names: str) -> float:
        """Return the variance that some sources add."""
        return sum((one.variance for one in self.sources if one.name in names), 0.0)

    def times(self, factor: float) -> Estimate:
        """Return the number times a factor, such as 1 over a unit, with its error."""
        low, high = sorted((factor * self.interval[0], factor * self.interval[1]))
        sources = tuple(one.times(factor) for one in self.sources)
        return Estimate(factor * self.value, (low, high), sources, factor**2 * self.least)

    def at(self, value: float) -> Estimate:
        """Return another value with this error, such as one that is cut off at the least that there can be.

        An error that is the least that there is (`least`) becomes that of the sources.
        """
        variance = sum(one.variance for one in self.sources)
        factor = self.standard_error / sqrt(variance) if 0 < variance < self.least else 1.0
        return Estimate.of(value, tuple(one.times(factor) for one in self.sources), least=self.least)

    def as_known(self, shared: Collection[str] = (REF,)) -> Estimate:
        """Return the estimate with an error as if it were known, to be kept and compared with others.

        Few units know their own variance poorly: it is wider by the square of Student's quantile over the normal one.
        Of the units of `shared` sources the sums of few parts are kept, of all other sources the variance.
        """
        known = [one.widened(degrees=self.degrees) for one in self.sources]
        made = [
            one.summed() if one.name in shared else ErrorSource.of_variance(one.name, one.variance) for one in known
        ]
        return Estimate.of(self.value, made, least=self.least)


def difference(new: Estimate, old: Estimate, factor: float = 1.0, *, is_paired: bool = True) -> Estimate:
    """Return new − factor·old. Two estimates from the same units are paired: what both errors share cancels.

    Others count as if they shared no unit, not even of a common reference.
    """
    if is_paired:
        sources = tuple(own.minus(other, factor) for own, other in zip(new.sources, old.sources, strict=True))
    else:
        sources = (*new.sources, *(one.times(-factor) for one in old.sources))
    return Estimate.of(new.value - factor * old.value, sources)


def mean_of(estimates: Sequence[Estimate], shared: Collection[str] = ()) -> Estimate:
    """Return the mean of estimates, such as of training runs, which have the units of `shared` sources in common.

    The degrees of freedom of a source are the fewest of all: a caution.
    """
    count, sources = len(estimates), []
    for name in dict.fromkeys(source.name for one in estimates for source in one.sources):
        found = [source for one in estimates if (source := one.source(name)) is not None]
        parts = [one.parts / count for one in found]
        joined = np.sum(parts, axis=0) if name in shared else np.concatenate(parts)
        sources.append(ErrorSource(name, joined, min(one.degrees for one in found)))
    return Estimate.of(float(np.mean([one.value for one in estimates])), sources)


def units_of(embeddings: Embeddings, rows: Integers | None = None) -> Integers | None:
    """Return the number of each sample's group, shape (n,), or of those at some rows; None for independent samples."""
    groups = embeddings.group_hashes()
    if groups is None:
        return None
    return np.unique(groups if rows is None else groups[rows], return_inverse=True)[1]


def block_influences(without: Array) -> Array:
    """Return the influence of each block, from the values without each block in turn (Tukey 1958)."""
    return np.asarray((without.mean() - without) * (len(without) - 1) / len(without))
