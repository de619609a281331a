"""`Tally`: how many samples of a set are of each kind, and how much they inform: all that tests and shares need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from finc_eval.numerics.design_effects import MIN_INDEPENDENT

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EffectiveCounts:
    """Effective numbers of samples of each kind, for tests of all kinds together.

    Attributes:
        members: numbers of samples, all divided by one mean design effect, shape (kinds,).
        spread: variance of each share over the variance for as many independent samples, shape (kinds,) or 1 for all.
        samples: number of samples that are counted.
    """

    members: Array
    spread: Array
    samples: float

    @classmethod
    def of(cls, counts: EffectiveCounts | ArrayLike) -> EffectiveCounts:
        """Take plain numbers of samples as independent."""
        if isinstance(counts, EffectiveCounts):
            return counts
        members = np.asarray(counts, float)
        return cls(members, np.ones(()), float(members.sum()))

    @property
    def n(self) -> float:
        """Effective number of samples."""
        return float(self.members.sum())

    def __add__(self, other: EffectiveCounts) -> EffectiveCounts:
        n = self.n + other.n
        spread = (self.n * self.spread + other.n * other.spread) / n
        return EffectiveCounts(self.members + other.members, spread, self.samples + other.samples)

    def __mul__(self, factor: float) -> EffectiveCounts:
        return EffectiveCounts(self.members * factor, self.spread, self.samples * factor)


@dataclass(frozen=True, eq=False)
class Tally:
    """Numbers of samples of a set by kind.

    Attributes:
        n: number of samples.
        members: number of samples of each kind, shape (t,).
        effects: factor by which the samples of each kind inform less than independent samples, shape (t,).
        even: that factor if all kinds came in groups of the same sizes, shape (t,).
        within: number of samples in groups that are not larger than the largest with a member of the kind, shape (t,).
    """

    n: int
    members: NDArray[np.int64]
    effects: Array
    even: Array
    within: Array

    @property
    def cautious(self) -> Array:
        """Design effects for intervals: a kind that by chance has only small groups is not taken for independent."""
        return np.maximum(self.effects, self.even)

    @property
    def is_testable(self) -> bool:
        """True if the set has enough independent samples for tests to hold."""
        return bool(self.n >= MIN_INDEPENDENT * self.even.max())

    def at(self, kinds: NDArray[np.int64]) -> Tally:
        """Return the tally of some kinds."""
        effects, even, within = (one[kinds] for one in (self.effects, self.even, self.within))
        return Tally(self.n, self.members[kinds], effects, even, within)

    def units(self) -> tuple[Array, Array]:
        """Return effective numbers of members, and of samples, for the test of each kind by itself."""
        return self.members / self.effects, self.n / self.effects

    def effective(self) -> EffectiveCounts:
        """Return effective numbers of samples of each kind; the kinds do not overlap.

        All are divided by one mean design effect, as in Rao and Scott's first-order correction (1981): by the effect
        of the one kind that has all samples.
        """
        effects, there = self.cautious, self.members > 0
        weights = 1 - self.members[there] / self.n
        mean = max(float(np.average(effects[there], weights=weights if weights.any() else None)), 1.0)
        return EffectiveCounts(self.members / mean, effects / mean, float(self.n))

    @classmethod
    def pooled(cls, tallies: Sequence[Tally]) -> Tally:
        """Return the tally of several sets together, with the mean of their effects by size."""
        n = np.array([one.n for one in tallies])
        members, within = (np.sum([getattr(one, name) for one in tallies], axis=0) for name in ("members", "within"))
        effects, even = (
            np.average([getattr(one, name) for one in tallies], axis=0, weights=n) for name in ("effects", "even")
        )
        return cls(int(n.sum()), members, effects, even, within)
