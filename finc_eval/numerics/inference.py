"""Statistical inference: quantiles, intervals, and exact tests of shares from counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import inf, isfinite, sqrt
from typing import Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, gammaln, ndtr, ndtri, stdtr, stdtrit

from finc_eval.core.errors import check_fraction, check_positive
from finc_eval.core.memory import check_decoded
from finc_eval.numerics.families import discrete_step_down, level_of_each

Array = NDArray[np.float64]
Number = Array | float

TINY = float(np.finfo(float).tiny)  # in place of 0, where a formula has no value and its result is not used

DEFAULT_CONFIDENCE = 0.95
"""Confidence of intervals; of several intervals that hold together, their simultaneous confidence."""

ALPHA = 0.05  # adjusted p-value up to which a finding counts as significant

BESIDE_ALPHA = ALPHA / 4
"""Level of tests that stand beside kinds in a headline: of the sets, their looks, words of prompts, parts of pictures,
drifts of clips.

Kinds and directions keep α, of which they spend a half in practice, so that a headline keeps α as a whole (the record
`first_sentence` of the benchmarks)."""

POWER = 0.8  # probability with which what is called detectable is found


def upper_quantile(level: float, degrees: float = inf) -> float:
    """Return what Student's t exceeds with probability `level`; of infinite degrees of freedom it is normal."""
    return -float(stdtrit(degrees, level) if isfinite(degrees) else ndtri(level))


OF_POWER = upper_quantile(1 - POWER)  # standard errors beyond a limit at which what is detectable lies


def units_for(have: float, variance: float, margin: float, distance: float, fixed: float = 0.0) -> float:
    """Return how many units bring a margin to a distance of so many standard errors; infinite if no number does.

    Args:
        have: number of units at hand.
        variance: variance of the margin with these, which is inversely proportional to their number.
        margin: difference that is to be decided.
        distance: standard errors that decide it.
        fixed: further variance, which more units leave as it is.

    Example:
        >>> from finc_eval.numerics.inference import units_for
        >>> units_for(100, 0.01, 0.2, 4.0)
        400.0
    """
    left = (margin / distance) ** 2 - fixed
    return have * variance / left if margin > 0 and left > 0 else inf


def normal_quantile(confidence: float = DEFAULT_CONFIDENCE) -> float:
    """Return the half-width, in standard errors, of a two-sided normal interval: 1.96 at 0.95."""
    return student_quantile(inf, confidence)


def upper_tail(z: float) -> float:
    """Return P(Z ≥ z) of a standard normal Z: the one-sided p-value of z standard errors."""
    return float(ndtr(-z))


def student_tail(t: float, degrees: float) -> float:
    """Return P(T ≥ t) of Student's t: the one-sided p-value of t standard errors that are estimated."""
    return float(stdtr(degrees, -t)) if isfinite(degrees) else upper_tail(t)


def student_quantile(degrees: float, confidence: float = DEFAULT_CONFIDENCE) -> float:
    """Return the half-width, in standard errors, of a two-sided interval of Student's t."""
    return upper_quantile((1 - check_fraction("confidence", confidence)) / 2, degrees)


def wilson(share: float, n: float, confidence: float = DEFAULT_CONFIDENCE) -> tuple[float, float]:
    """Return Wilson's interval of a share that was observed in n independent samples (Wilson 1927)."""
    z = normal_quantile(confidence)
    center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # Without rounding, the ends are 0 and 1 if the share is.
    return max(min(center - half, share), 0.0), min(max(center + half, share), 1.0)


def critical_value(family: int) -> float:
    """Return the half-width, in standard errors, of `family` intervals that hold simultaneously (Bonferroni)."""
    return upper_quantile(level_of_each((1 - DEFAULT_CONFIDENCE) / 2, family))


def least_variance(values: Array, ends: tuple[float, float]) -> float:
    """Return the least variance of a mean of values: as with two values more at each end of what they can be.

    If most values are the same, their variance says little: where all answers are right it is 0, and the share of right
    answers is still not known (Agresti and Coull 1998). Values that mostly differ speak for themselves (0).
    """
    _, counts = np.unique(values.round(9), return_counts=True)  # rounding leaves about 1e-16
    if 2 * counts.max() < len(values):
        return 0.0
    more = np.append(values, [*ends, *ends])
    return float(more.var()) / len(more)


def jackknife_bias(value: float, *without: Sequence[float] | Array) -> float:
    """Return the bias of a value that is of order 1/n, from the values without each block (Quenouille 1956)."""
    return sum((len(values) - 1) * (float(np.mean(values)) - value) for values in without)


TIED_P_VALUES = 1 + 1e-9  # factor within which two p-values are equal: they are sums of rounded numbers


class ShareTests:
    """One-sided exact tests of "the first share is at most ρ times the second", and their correction.

    Whole numbers and ρ = 1: Fisher's exact test, the upper tail of the hypergeometric distribution. Otherwise the
    conditional binomial test (Przyborowski and Wilenski 1940): of k + l members, each is one of the first set with
    probability at most π = ρ·n₁ / (ρ·n₁ + n₂), so p = P(Binomial(k + l, π) ≥ k) = I_π(k, l + 1). This is exact for
    counts of rare members, which are Poisson, and conservative for binomial counts, which vary less given their sum.
    I_π(k, l + 1) is also defined for the effective counts of grouped samples, which are not whole. Numbers of members k
    and sizes n of the sets have the shape (t,), or are one for all tests.
    """

    def __init__(
        self, k_first: ArrayLike, n_first: ArrayLike, k_second: ArrayLike, n_second: ArrayLike, rho: float = 1.0
    ) -> None:
        counts = np.broadcast_arrays(*(np.asarray(c, float).ravel() for c in (k_first, n_first, k_second, n_second)))
        k, n, other, m = counts
        self._total, self.rho = k + other, check_positive("rho", rho)
        self._pi = rho * n / (rho * n + m)
        self._whole = all(bool(np.all(count == np.floor(count))) for count in counts)
        self._fisher = self._whole and rho == 1
        if self._fisher:
            cases, case = np.unique(np.stack([self._total, n, m]).astype(int), axis=1, return_inverse=True)
            self._case = case.ravel()  # NumPy 2.0.0 gives it two axes
            spans = [_span(*case) for case in cases.T.tolist()]
            # 4 * 8: bytes of each count with a probability: its tail is kept, with three more numbers while it is made.
            check_decoded(4 * 8 * sum(map(len, spans)), "the law of the counts of so many samples")
            self._tails = [hypergeometric_tails(*case) for case in cases.T.tolist()]
            p_values = [self._tails[case].at(int(a)) for case, a in zip(self._case, k, strict=True)]
            self.p_values: Array = np.array(p_values)  # shape (t,)
        else:
            self.p_values = np.where(k > 0, betainc(np.maximum(k, np.finfo(float).tiny), other + 1, self._pi), 1.0)

    def level_of_one_set(self, count: int, n: float, m: float) -> float:
        """Return the family-wise error of rejecting at the p-value of members that all are in the first set.

        That set has n samples, and the other m. The error is Σ P(pᵢ ≤ p) over all tests i, or a bound of it: given its
        number of members, a test can take few p-values, and most tests of rare kinds none that is small.
        """
        k = np.array([float(count)])
        if self._fisher:
            p = np.exp(log_choose(n, k) - log_choose(n + m, k))
        else:
            p = np.asarray((self.rho * n / (self.rho * n + m)) ** k)
        return float(self._reach(p).sum(0)[0])

    @cached_property
    def adjusted(self) -> Array:
        """Adjusted p-values of the family, shape (t,), by `discrete_step_down`."""
        return discrete_step_down(self.p_values, self._reach)

    def _reach(self, p: Array) -> Array:
        """Return P(pᵢ ≤ p) for each test and each p, shape (t, len(p)): the largest attainable p-value up to p."""
        if not self._fisher:
            smallest = self._pi**self._total
            return np.where(p * TIED_P_VALUES >= smallest[:, None], p, 0.0)
        reach = np.empty((len(self._tails), len(p)))
        for row, tails in enumerate(self._tails):
            attainable = tails.values[::-1]
            number = attainable.searchsorted(p * TIED_P_VALUES, side="right")
            reach[row] = np.where(number > 0, attainable[number - 1], 0.0)
        return reach[self._case]


class Tails(NamedTuple):
    """P(K ≥ k) of the values k that have a probability in floating point; below them it is 1, and above them 0."""

    low: int  # the first k
    values: Array  # P(K ≥ k) for k = low, low + 1, …

    def at(self, k: int) -> float:
        """Return P(K ≥ k)."""
        number = max(k - self.low, 0)
        return float(self.values[number]) if number < len(self.values) else 0.0


@lru_cache(maxsize=2048)
def hypergeometric_tails(total: int, n: int, m: int) -> Tails:
    """Return P(K ≥ k), of the K of `hypergeometric_masses`."""
    low, masses = hypergeometric_masses(total, n, m)
    return Tails(low, np.asarray(np.minimum(np.cumsum(masses[::-1])[::-1], 1.0)))


def hypergeometric_masses(total: int, n: int, m: int) -> tuple[int, Array]:
    """Return the first k with a probability, and P(K = k) from there on.

    K of `total` members are in the first set, of n samples; the other set has m samples.
    """
    span = _span(total, n, m)
    k = np.arange(span.start, span.stop, dtype=np.float64)
    log = log_choose(n, k) + log_choose(m, total - k)
    return span.start, np.asarray(np.exp(log - log_choose(n + m, np.array(float(total)))))


def _span(total: int, n: int, m: int) -> range:
    """Return the values of the K of `hypergeometric_masses` whose probability is not 0 in floating point.

    P(|K − mean| ≥ t) ≤ 2·exp(−2t² / s), s the least of the numbers of both margins (Hoeffding 1963, section 6): the
    law is the same if members and samples of the first set change places, or either with the rest.
    """
    least = min(total, n, m, n + m - total)
    # 750: exp(−750) is 0 in floating point.
    mean, reach = total * n // max(n + m, 1), math.isqrt(375 * max(least, 0)) + 2
    return range(max(0, total - m, mean - reach), min(total, n, mean + reach) + 1)


def log_choose(n: float, k: Array) -> Array:
    """Return the logarithm of the number of ways to choose each k, any shape, of n; both may be fractions."""
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def clopper_pearson(k: ArrayLike, n: ArrayLike, confidence: float = DEFAULT_CONFIDENCE) -> tuple[Array, Array]:
    """Return the exact intervals of shares k / n (Clopper and Pearson 1934), as arrays (low, high).

    Effective numbers k need not be whole.
    """
    return share_bounds(k, n, (1 - check_fraction("confidence", confidence)) / 2)


def share_bounds(k: ArrayLike, n: ArrayLike, error: float) -> tuple[Array, Array]:
    """Return exact lower and upper bounds of shares k / n, each with this one-sided error."""
    k, n = np.broadcast_arrays(np.asarray(k, float), np.asarray(n, float))
    return share_bound(k, n, "low", error), share_bound(k, n, "high", error)


def share_bound(k: Number, n: Number, side: Literal["low", "high"], error: float) -> Array:
    """Return the exact bound of a share k / n on one side, with this one-sided error (Clopper and Pearson 1934)."""
    if side == "low":
        return np.where(k > 0, betaincinv(np.maximum(k, TINY), n - k + 1, error), 0.0)
    return np.where(k < n, betaincinv(k + 1, np.maximum(n - k, TINY), 1 - error), 1.0)


def mover(first: tuple[Number, Number, Number], second: tuple[Number, Number, Number]) -> tuple[Array, Array]:
    """Return the interval of a difference from the intervals of its parts (MOVER; Zou and Donner 2008).

    With Wilson's intervals this is Newcombe's method 10 (1998). Each part is its low end, estimate and high end.
    """
    (l1, p1, u1), (l2, p2, u2) = first, second
    difference = np.asarray(p1 - p2)
    return difference - np.hypot(p1 - l1, u2 - p2), difference + np.hypot(u1 - p1, p2 - l2)


def detectable_share(count: ArrayLike, n: ArrayLike, power: float = POWER) -> Array:
    """Return the share at which at least `count` of n samples are members with this probability.

    From P(Binomial(n, share) ≥ count) = I_share(count, n − count + 1).
    """
    count, n = np.asarray(count, float), np.asarray(n, float)
    reachable = count <= n
    return np.where(reachable, betaincinv(count, np.where(reachable, n - count + 1, 1), power), 1.0)


class _Tested(Protocol):
    @property
    def p_value(self) -> float: ...


Tested = TypeVar("Tested", bound=_Tested)


def significant(tests: Sequence[Tested], alpha: float) -> tuple[Tested, ...]:
    """Return the kinds, or the directions, whose adjusted p-value is at most α."""
    check_fraction("alpha", alpha)
    return tuple(tested for tested in tests if tested.p_value <= alpha)
