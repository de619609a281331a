"""Evidence on shares: how much of its share a kind has lost, and how much a kind has gained, from exact counts.

Counts of grouped samples are effective ones, divided by their design effect, and need not be whole. Where replicates
show how much a new training of the same model moves shares (`retraining`), Student's bound on the plain scale comes
next to the exact bound of sampling, and the wider of both counts.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, inf, isfinite, sqrt
from typing import ClassVar, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv, gammaincc, gammaincinv, ndtr, ndtri

from finc_eval.gates.evidence import LimitEvidence, Side
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import ALPHA, POWER, mover, share_bound, upper_quantile
from finc_eval.numerics.thresholds import smallest, smallest_between

SIDES: tuple[Side, Side] = ("low", "high")

SHARE_PART = 0.1
"""Part of a bound's error that the share of the baseline may spend, where its ratio to the new one has the rest."""

NODES = [float(ndtri((place + 0.5) / 8)) for place in range(8)]
"""Quantiles of the normal law of equal weight, instead of an integral over it."""

MOST_MEMBERS = 1e7  # members of a kind beyond which nothing is sought


@dataclass(frozen=True)
class TwoCounts:
    """Counts of a kind in the new release and in its baseline.

    An `Estimate` has influences and symmetric errors. Counts have exact bounds, also of kinds with few members or none.

    Attributes:
        members, size: effective number of samples of the kind and of all samples in the new release.
        old_members, old_size: the same of the baseline; of several replicates, of all together.
    """

    members: float
    size: float
    old_members: float
    old_size: float
    # variance that training once more adds, in parts of p·(1 − p) at a share p; 0 without replicates
    training: float = 0.0
    degrees: float = inf  # degrees of freedom of that variance; infinite without replicates

    @property
    def share(self) -> float:
        """Share of the new release."""
        return self.members / self.size

    @property
    def old_share(self) -> float:
        """Share of the baseline."""
        return self.old_members / self.old_size

    def times(self, factor: float) -> tuple[float, float, float, float]:
        """Return both counts and sizes, multiplied by a factor."""
        return self.members * factor, self.size * factor, self.old_members * factor, self.old_size * factor

    def half(self, level: float, factor: float = 1.0) -> float:
        """Return how far Student's bound is from the difference of both shares; 0 without replicates.

        The law of a retrained share is not known. So the difference is measured in parts of the larger share: there,
        the smaller one can fall to 0 within a few standard errors, and no law takes it further. The standard error is
        that of the baseline's share, or where the new release has more, of the share of all samples together.
        """
        if not isfinite(self.degrees):
            return 0.0
        together = (self.members + self.old_members + 0.5) / (self.size + self.old_size + 1)
        share = min(max(self.old_share, together), 1.0)
        variance = (1 - share) / share * ((1 / self.size + 1 / self.old_size) / factor + self.training)
        return upper_quantile(level, self.degrees) * sqrt(variance) * max(self.share, self.old_share)


@dataclass(frozen=True, kw_only=True)
class TwoShares(LimitEvidence):
    """Evidence from the counts of a kind in the new release and in its baseline."""

    unchanged: float | None = 0.0
    counts: TwoCounts

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the wider bound: from the counts, or with replicates from how much their shares differ."""
        by_counts, by_training = self._by_counts(side, level, factor), self._by_training(side, level, factor)
        return min(by_counts, by_training) if side == "low" else max(by_counts, by_training)

    def half(self, level: float, factor: float = 1.0) -> float:
        """Return how far Student's bound is from the value; 0 without replicates."""
        return self.counts.half(level, factor)

    def with_members(self, members: float) -> Self:
        """Return the evidence on a release with this many members."""
        counts = replace(self.counts, members=members)
        return replace(self, counts=counts, value=self._value(counts))

    def without_change(self) -> Self:
        """Return the evidence on a release that has as large a share as the baseline."""
        return self.with_members(self.counts.old_share * self.counts.size)

    @abstractmethod
    def _value(self, counts: TwoCounts) -> float:
        """Return the estimate from counts."""

    def _by_training(self, side: Side, level: float, factor: float) -> float:
        """Return Student's bound, of sampling and of training; the value itself without replicates."""
        half = self.half(level, factor)
        return self.value - half if side == "low" else self.value + half

    @abstractmethod
    def _by_counts(self, side: Side, level: float, factor: float) -> float:
        """Return the exact bound, of sampling alone."""


@dataclass(frozen=True, kw_only=True)
class LostShare(TwoShares):
    """Part of its share that a kind has lost, (old − new) / max(old, least).

    If a kind is rarer than `least` in the baseline, its loss counts in parts of `least`: nothing can be lost of
    what was hardly there. The ratio of the shares is bounded by the conditional binomial test (Przyborowski and
    Wilenski 1940), which is exact for rare kinds and conservative for others.
    """

    most: ClassVar[float] = 1.0
    least: float  # smallest share of the baseline that a loss is a part of

    @classmethod
    def value_of(cls, share: float, old_share: float, least: float) -> float:
        """Return the loss from two shares."""
        return (old_share - share) / max(old_share, least)

    def _value(self, counts: TwoCounts) -> float:
        return self.value_of(counts.share, counts.old_share, self.least)

    def half(self, level: float, factor: float = 1.0) -> float:
        """Return how far Student's bound is from the loss."""
        return self.counts.half(level, factor) / max(self.counts.old_share, self.least)

    def _by_counts(self, side: Side, level: float, factor: float) -> float:
        """Return the bound from the bounds of the ratio and of the baseline's share."""
        k, n, old, m = self.counts.times(factor)
        rest = level * SHARE_PART
        low, high = (min(1.0, float(share_bound(old, m, end, rest)) / self.least) for end in SIDES)
        if side == "high":
            left = 1 - ratio_bound(k, n, old, m, "low", level - rest)
            return left * high if left > 0 else left * low
        left = 1 - ratio_bound(k, n, old, m, "high", level - rest)
        return left * low if left > 0 else max(left * high, -float(share_bound(k, n, "high", rest)) / self.least)

    def detectable(self, level: float) -> float | None:
        """Return the loss that is called a regression with probability 0.8; None if not even a lost kind is."""
        # The baseline also varies: its count is taken at several points of its law.
        spread = sqrt(1 / (self.counts.old_members + 0.5))
        counts = [self._most_regressed(self.counts.old_members * exp(node * spread), level) for node in NODES]

        def power(mean: float) -> float:
            return float(gammaincc(np.array(counts) + 1, mean)[np.array(counts) >= 0].sum()) / len(NODES)

        if power(0.0) < POWER:
            return None
        mean = float(brentq(lambda mean: power(mean) - POWER, 0.0, 2 * max(counts) + 10))
        gone = self.with_members(0.0)
        found = max(self.with_members(mean).value, self.margin + gone.half(level) + gone.half(1 - POWER))
        return found if found <= gone.value else None

    def _most_regressed(self, old: float, level: float) -> int:
        """Return the most members with which the release is a regression against this many; −1 if there are none."""
        of_old = min(1.0, float(share_bound(old, self.counts.old_size, "low", level * SHARE_PART)) / self.least)
        if of_old <= self.margin:
            return -1
        ratio = 1 - self.margin / of_old
        most = ratio * self.counts.size / (ratio * self.counts.size + self.counts.old_size)
        k = np.arange(int(ratio * old * self.counts.size / self.counts.old_size) + 1.0)
        # P(count ≤ k), of the binomial law of the two counts' sum at the margin.
        reached = 1 - betainc(k + 1, max(old, np.finfo(float).tiny), most)
        return int((reached <= level * (1 - SHARE_PART)).sum()) - 1


@lru_cache(maxsize=64)
def members_to_hold(lose: float, kinds: int) -> float:
    """Return from how many members on kinds that have lost nothing are shown not to have lost this part.

    With probability 0.95 all of them are: each count of a release and of its baseline varies.
    """
    rarely = float(ndtr(ndtri(level_of_each(ALPHA, kinds)) / sqrt(2)))  # both counts are as far off as that together

    def is_shown(mean: float) -> bool:
        counts = TwoCounts(float(gammaincinv(mean, rarely)), 1e9, float(gammaincinv(mean + 1, 1 - rarely)), 1e9)
        return _loss(lose, counts).bound("high", ALPHA) <= lose

    return smallest(is_shown, MOST_MEMBERS) or MOST_MEMBERS


@lru_cache(maxsize=64)
def members_to_lose(lose: float, level: float) -> float:
    """Return from how many members on a kind that is lost whole is called a regression with probability 0.8."""

    def is_seen(mean: float) -> bool:
        return _loss(lose, TwoCounts(mean, 1e9, mean, 1e9)).detectable(level) is not None

    return smallest(is_seen, MOST_MEMBERS) or MOST_MEMBERS


def _loss(lose: float, counts: TwoCounts) -> LostShare:
    return LostShare(name="", value=0.0, margin=lose, least=1e-12, counts=counts)


@dataclass(frozen=True, kw_only=True)
class GainedShare(TwoShares):
    """Share of a kind in the new release minus that in the baseline, in parts of all samples.

    Its exact bounds join the two exact intervals (MOVER). The noise of training grows with the share.
    So in Student's upper bound it is that of the geometric mean of two shares: of the larger one that was seen, and of
    the one that the bound allows (false passes of benchmarks/gate_retraining.py; without that up to 7.5 %).
    """

    def _value(self, counts: TwoCounts) -> float:
        return counts.share - counts.old_share

    def _by_counts(self, side: Side, level: float, factor: float) -> float:
        """Return the exact bound of the difference."""
        k, n, old, m = self.counts.times(factor)
        place = SIDES.index(side)  # each end has the bound of the new share on its side, and of the old on the other
        new, before = float(share_bound(k, n, side, level)), float(share_bound(old, m, SIDES[1 - place], level))
        return float(mover((new, k / n, new), (before, old / m, before))[place])

    def _by_training(self, side: Side, level: float, factor: float) -> float:
        """Return Student's bound: upwards the u² − old with u² = new + half · u / √larger."""
        half, old = self.half(level, factor), self.counts.old_share
        if side == "low" or not half:
            return super()._by_training(side, level, factor)
        share = max(self.value + old, 0.0)
        slope = half / sqrt(max(self.counts.share, old))
        return ((slope + sqrt(slope**2 + 4 * share)) / 2) ** 2 - old

    def detectable(self, level: float) -> float | None:
        """Return the gain that is called a regression with probability 0.8; None if no share would be."""
        if not self._is_regression(self.counts.size, level):
            return None
        fewest = smallest_between(lambda members: self._is_regression(members, level), 0.0, self.counts.size)
        # P(Poisson(mean) ≥ count) is the power.
        count = float(int(fewest) + 1)
        mean = float(gammaincinv(count, POWER))
        of_old = (self.counts.old_members + 0.5) * (self.counts.size / self.counts.old_size) ** 2 / mean
        beside = of_old + self.counts.training * self.counts.size
        mean = float(gammaincinv(count, power_beside(beside)))
        return whole_of(mean / self.counts.size - self.counts.old_share, self.part)

    def _is_regression(self, members: float, level: float) -> bool:
        return self.with_members(members).bound("low", level) > self.margin


@dataclass(frozen=True, kw_only=True)
class Unseen(LimitEvidence):
    """Limit on a share that so few samples cannot show, so that it may be anything."""

    value: float = 0.0
    enough: float  # factor on the number of samples of the generators from which on it could be seen

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return 0 or 1; with enough samples, the value."""
        return 1.0 if side == "high" and factor < self.enough else self.value


def whole_of(found: float, part: float) -> float | None:
    """Return the share of a kind whose found part this is; None if there cannot be so much."""
    return found / part if found <= part else None


def power_beside(beside: float) -> float:
    """Return the power that one variance must leave for another that is this many times as large."""
    return float(ndtr(ndtri(POWER) * sqrt(1 + beside)))


def ratio_bound(k: float, n: float, old: float, m: float, side: Side, level: float) -> float:
    """Return a bound of the ratio of two shares, k/n over old/m, from the binomial law of k given k + old."""
    if side == "low":
        part = float(betaincinv(k, old + 1, level)) if k > 0 else 0.0
    else:
        part = float(betaincinv(k + 1, old, 1 - level)) if old > 0 else 1.0
    return inf if part >= 1 else part / (1 - part) * m / n
