"""Difference of two sets: the total variation between their shares of kinds, without the part that chance makes.

The plain total variation ½ Σ |pⱼ − qⱼ| of two samples is never 0, and overstates the total variation of their laws. In
units of the standard error σⱼ, a difference dⱼ = μⱼ·σⱼ is observed as |z| with mean m(μ) = 2φ(μ) + μ·(2Φ(μ) − 1) ≥ |μ|.
The difference bends at μ = 0. So it cannot be an `Estimate`, whose error comes from the influence of each sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from finc_eval.core.errors import check_seed
from finc_eval.core.record import Record
from finc_eval.numerics.blocks import WithinBlocks
from finc_eval.numerics.families import smallest_p
from finc_eval.numerics.inference import DEFAULT_CONFIDENCE, normal_quantile
from finc_eval.partitions.tests import EffectiveCounts

Array = NDArray[np.float64]

PERMUTATIONS = 1999
"""Permutations of the labels of the sets behind the p-value: a p of .05 has a standard error of .005."""

EM_STEPS = 100
"""Steps from an even start towards the likeliest distribution of the differences. With 10 of 50 kinds that differ by 4
standard errors, the estimate of the sum of 40 is 56, 53, 49 on average with 25, 100, 1000, and varies by 5, 5, 7."""

CERTAIN, NEAR_POINTS = 4.0, 14
"""True differences, in standard errors, that are thought possible: so many of either sign up to `CERTAIN`, and what is
observed beyond it. With 7 or 28 points, or up to 3 or 6 errors, the estimate changes by at most 2 %."""


MIN_EFFECTIVE = 6
"""Effective samples (`EffectiveCounts.n`) that each set must have for the difference to be tested. Where a set of
groups of unlike sizes has fewer, two sets of one law had p ≤ .05 in 7 to 32 % of simulated runs; from 6 on, in 4 %."""


HALVES_VARIANCE = 1.64
"""Largest variance, over all true differences, of what halves of the samples show of a kind (`_estimate`), in units of
its squared standard error."""


@dataclass(frozen=True)
class Difference(Record):
    """Difference between two sets.

    Attributes:
        value: total variation between their shares of kinds, in [0, 1], without the part that chance makes: the share
            of one set that would have to change to make them alike.
        interval: interval of it, at 95 % unless another confidence was asked for.
        p_value: p-value of "the sets have one law", by permutation; None if the groups of a set give too few
            independent samples to test it.
    """

    value: float
    interval: tuple[float, float]
    p_value: float | None


def total_variation(
    first: EffectiveCounts | ArrayLike,
    second: EffectiveCounts | ArrayLike,
    seed: int = 0,
    confidence: float = DEFAULT_CONFIDENCE,
    *,
    is_design: bool = False,
) -> Difference:
    """Estimate the total variation ½ Σ |pⱼ − qⱼ| between two sets, from their counts of kinds.

    The estimate is by empirical Bayes: the distribution of the true differences that makes the observed differences
    likeliest (Kiefer and Wolfowitz 1956), by EM, and each |dⱼ| by its mean given what was observed. It is multiplied by
    max(0, 1 − 2p), since sets whose p-value of "no difference" is above ½ differ less than two samples of one law
    usually do; and left as it is where nothing can be tested.

    The lower end of the interval is from the difference on one half of the samples of those kinds that are more
    frequent on the other half, averaged over all halves; it is 0 if p is unknown, or above half the error of the
    interval. The upper end is the largest total variation that leaves the plain one likely: given their sum, the mean
    of the observed |dⱼ| is smallest where all differences are equal, in standard errors, since m is convex. For grouped
    samples, it is the largest over variances between independent samples and the variances at hand, which are cautious:
    a variance that is too large would explain the plain one away. Numbers of samples have shape (kinds,), and are
    effective if samples are grouped. With `is_design`, a set has a fixed number of samples of each value of some
    column: its counts vary less than random counts, and the upper end is at least the plain total variation.
    """
    a, b = EffectiveCounts.of(first), EffectiveCounts.of(second)
    p_value = permutation_p_value(a, b, seed)
    is_seen = a.members + b.members > 0
    difference, variance, by_chance = (variances[is_seen] for variances in _variances(a, b))
    # A kind that is missing in one set by chance has a variance of nearly 0 there.
    error = np.sqrt(np.maximum(variance, by_chance))
    high = largest_variation(a, b, confidence, is_design=is_design)
    return _estimate(difference, error, p_value, high, confidence)


def paired_variation(within: WithinBlocks, confidence: float = DEFAULT_CONFIDENCE) -> list[Difference]:
    """Estimate the total variation ½ Σ |Dⱼ| of each contrast within blocks; see `total_variation`.

    The upper end is never below the plain total variation: samples of a design do not differ by chance between blocks.
    """
    estimates = []
    for row, p_value in enumerate(within.p_value().tolist()):
        there = within.shares.max(0) > 0
        difference, error = within.difference[row, there], np.sqrt(within.variance[row, there])
        plain = float(np.abs(difference).sum()) / 2
        high = _largest(plain, error, normal_quantile(confidence))
        high = min(max(plain, high, _unseen(within.samples, confidence)), 1.0)
        estimates.append(_estimate(difference, error, p_value, high, confidence))
    return estimates


def _estimate(difference: Array, error: Array, p_value: float | None, high: float, confidence: float) -> Difference:
    """Return the estimate from differences (t,) with standard errors (t,), and the upper end of its interval."""
    # 1e-9: standard error that every difference of shares has at least: squares of its inverse do not overflow.
    error = np.maximum(error, 1e-9)
    z = difference / error
    shrunk = 1.0 if p_value is None else max(0.0, 1 - 2 * p_value)
    value = float(error @ _posterior_mean(z)) / 2 * shrunk
    quantile = normal_quantile(confidence)
    # The mean of sign(z₁)·z₂ over the halves of the data with means z₁ and z₂, given their mean z. Its mean is
    # μ·(2Φ(μ/√2) − 1), which is never above |μ|, and 0 for μ = 0.
    halves = z * (2 * ndtr(z) - 1) - 2 * _density(z)
    low = float(error @ halves) / 2 - quantile * float(np.sqrt(HALVES_VARIANCE * (error @ error))) / 2
    shown = p_value is not None and p_value <= (1 - confidence) / 2
    low = min(max(low, 0.0), 1.0) if shown else 0.0
    high = max(high, low)
    return Difference(min(max(value, low), high), (low, high), p_value)


def largest_variation(
    first: EffectiveCounts | ArrayLike,
    second: EffectiveCounts | ArrayLike,
    confidence: float = DEFAULT_CONFIDENCE,
    *,
    is_design: bool = False,
) -> float:
    """Return the upper end of the interval of `total_variation`, without its permutations."""
    a, b = EffectiveCounts.of(first), EffectiveCounts.of(second)
    difference, variance, _ = _variances(a, b)
    p, q = a.members / a.n, b.members / b.n
    least = p * (1 - p) / a.samples + q * (1 - q) / b.samples
    plain, quantile = float(np.abs(difference).sum()) / 2, normal_quantile(confidence)
    # Variances to try: the one at hand, that of independent samples, and the one between them on a logarithmic scale.
    by_plain = max(_largest(plain, np.sqrt(variance ** (1 - part) * least**part), quantile) for part in (0.0, 0.5, 1.0))
    return max(_unseen(min(a.n, b.n), confidence), by_plain, plain if is_design else 0.0)


def _unseen(n: float, confidence: float) -> float:
    """Return the share of a kind that may well have no sample among n."""
    return float(1 - ((1 - confidence) / 2) ** (1 / n))


def permutation_p_value(
    first: EffectiveCounts | ArrayLike, second: EffectiveCounts | ArrayLike, seed: int = 0, least: int = MIN_EFFECTIVE
) -> float | None:
    """Return the p-value of "the sets have one law", from permuted labels; None if a set has too few samples.

    Two statistics see differences of many kinds and of a rare one: Pearson's χ² and its largest term (`smallest_p`).
    For effective numbers, the rounded sums are permuted, and each observed term is in units of its own variance. Each
    set must have `least` effective samples.
    """
    a, b = EffectiveCounts.of(first), EffectiveCounts.of(second)
    total = np.rint(a.members + b.members).astype(np.int64)
    n = round(total.sum() * a.n / (a.n + b.n))
    m = int(total.sum()) - n
    if min(n, m) < least:
        return None
    difference, _, by_chance = _variances(a, b)
    observed = _statistics(_squares(difference, by_chance)[None], total / (n + m))
    permuted = _permuted_statistics(tuple(total.tolist()), n, PERMUTATIONS, check_seed(seed))
    statistics = np.concatenate([observed, permuted], 1)
    # Rounding must not make equal tables differ.
    return float(smallest_p(np.round(statistics, 9)))


# 8: tables that are kept. The yardsticks of a board ask for one table in each of their splits of the reference.
@lru_cache(maxsize=8)
def _permuted_statistics(total: tuple[int, ...], n: int, permutations: int, seed: int) -> Array:
    """Return the statistics of permuted labels, shape (2, permutations): n samples of the table get one label."""
    both, m = np.array(total), sum(total) - n
    draws = np.random.default_rng(seed).multivariate_hypergeometric(both, n, permutations, method="marginals")
    share = both / (n + m)
    squares = _squares(draws / n - (both - draws) / m, share * (1 - share) * (1 / n + 1 / m))
    return _statistics(squares, share)


def _statistics(squares: Array, share: Array) -> Array:
    """Return Pearson's χ² and its largest term of each table, (tables, kinds) → (2, tables)."""
    return np.stack([squares @ (1 - share), squares.max(1)])


def _variances(a: EffectiveCounts, b: EffectiveCounts) -> tuple[Array, Array, Array]:
    """Return differences of shares, and the variance of each: from its own set, and for two samples of one law."""
    p, q, pooled = a.members / a.n, b.members / b.n, (a.members + b.members) / (a.n + b.n)
    of_a, of_b = a.spread / a.n, b.spread / b.n
    return p - q, p * (1 - p) * of_a + q * (1 - q) * of_b, pooled * (1 - pooled) * (of_a + of_b)


def _squares(difference: Array, variance: Array) -> Array:
    """Return squared differences in units of their variances, any shape; huge where the variance is 0."""
    return np.asarray(difference**2 / np.maximum(variance, np.finfo(float).tiny))


def _posterior_mean(z: Array) -> Array:
    """Return the mean of |μ| given each z, where z − μ is standard normal, for the likeliest distribution of μ.

    μ has a sign: a set that lacks a little of every kind, and has one in excess, is not taken for noise.
    """
    near = np.geomspace(0.25, CERTAIN, NEAR_POINTS)
    grid = np.concatenate([-near[::-1], [0.0], near, z[np.abs(z) > CERTAIN]])
    likelihood = _density(z[:, None] - grid) + np.finfo(float).tiny
    weights = np.full(len(grid), 1 / len(grid))
    for _ in range(EM_STEPS):
        posterior = likelihood * weights
        posterior /= posterior.sum(1, keepdims=True)
        weights = posterior.mean(0)
    return np.asarray(posterior @ np.abs(grid))


def _largest(plain: float, error: Array, quantile: float) -> float:
    """Return the largest total variation, at errors (t,), under which the plain one is not too small to be likely."""
    half, spread = float(error.sum()) / 2, float(np.sqrt(error @ error)) / 2
    if half == 0:
        return plain

    def above(mu: float) -> float:
        mean = 2 * float(_density(np.array(mu))) + mu * (2 * float(ndtr(mu)) - 1)
        return half * mean - quantile * spread * float(np.sqrt(max(1 + mu**2 - mean**2, 0.3))) - plain

    if above(0.0) > 0:
        return 0.0
    return min(half * float(brentq(above, 0.0, (plain + quantile * spread) / half + 1)), 1.0)


def _density(x: Array) -> Array:
    """Return the standard normal density at each number, any shape."""
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))
