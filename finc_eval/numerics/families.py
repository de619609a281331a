"""Families of tests: policies that keep one error over many tests, as functions of vectors.

A vector has p-values, statistics with their values under exchanges of labels, or e-values. What adjusts it keeps the
probability of any false rejection of the family at α, whatever is true of the other tests. A test is rejected if its
adjusted p-value is at most α, or its adjusted e-value at least 1/α. No policy of a false discovery rate is here: each
finding is said by itself, so that each must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

TIE = 1e-9  # difference within which two statistics are equal: they are sums of rounded numbers

TESTS_AT_ONCE = 256
"""Tests whose correction is computed at once; most families end in the first lot, with adjusted p-values of 1."""

MAX_LOG_E = 700.0  # logarithm of an e-value beyond which it does not grow in sums


def level_of_each(level: float, tests: float) -> float:
    """Return the level of each of some tests, bounds or sides, which keeps this level over all (Bonferroni).

    Example:
        >>> level_of_each(0.05, 20), level_of_each(0.05, 0)
        (0.0025, 0.05)
    """
    return level / max(tests, 1)


def bonferroni(p_values: ArrayLike, tests: float = 1, part: ArrayLike = 1.0) -> Array:
    """Adjust p-values, of any shape, for a family of so many tests.

    The family may spend `part` of α, and other families the rest; an array has the part of each test.

    Example:
        >>> bonferroni([0.01, 0.2], 4, part=0.5).tolist()
        [0.08, 1.0]
    """
    return np.asarray(np.minimum(np.asarray(p_values, float) * tests / np.asarray(part, float), 1.0))


def holm(p_values: ArrayLike, part: float = 1.0) -> Array:
    """Adjust p-values, shape (t,), by steps: at most those of `bonferroni` (Holm 1979).

    The family may spend `part` of α, and other families the rest.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, float)
    order = p.argsort(kind="stable")
    return _in_steps(order, p[order] * np.arange(len(p), 0, -1) / part)


def holm_level(rejects: Sequence[Callable[[float], bool]], level: float) -> float:
    """Return the level of each test after the last step of Holm's procedure, for tests that know no p-value.

    Each of `rejects` says whether a test is rejected at a level. A test of `level_of_each` of all tests is the first
    step; those that are rejected leave the family, and the others share the level.

    Example:
        >>> holm_level([lambda level: 0.01 <= level, lambda level: 0.04 <= level], 0.05)
        0.05
    """
    rejected = frozenset[int]()
    while True:
        near = level_of_each(level, len(rejects) - len(rejected))
        now = frozenset(test for test, is_rejected in enumerate(rejects) if is_rejected(near))
        if now == rejected:
            return near
        rejected = now


def discrete_step_down(p_values: Array, reach: Callable[[Array], Array]) -> Array:
    """Adjust p-values of discrete tests, shape (t,), by the largest p-values that they can take.

    Step-down, with P(pᵢ ≤ p) instead of p (Westfall and Wolfinger 1997). Holm's correction is the same for continuous
    tests, and Tarone's (1990) removal of tests that cannot become significant is a part of it.

    Args:
        p_values: p-values, shape (t,).
        reach: function of p-values, (q,), that returns P(pᵢ ≤ p) of each test, shape (t, q).
    """
    order = p_values.argsort(kind="stable")
    steps = np.ones(len(order))
    for start in range(0, len(order), TESTS_AT_ONCE):
        stop = min(start + TESTS_AT_ONCE, len(order))
        reached = reach(p_values[order[start:stop]])[order]
        left = np.cumsum(reached[::-1], axis=0)[::-1]
        steps[start:stop] = left[np.arange(start, stop), np.arange(stop - start)]
        if steps[stop - 1] >= 1:
            break
    return _in_steps(order, steps)


def step_down(z: Array, drawn: NDArray[np.float32], *, is_exact: bool = False) -> Array:
    """Adjust two-sided tests, shape (m,), by exchanges (Westfall and Young 1993, step-down maxT).

    The p-value of a test is the share of exchanges whose largest statistic, of this test and later tests, is as large.
    Tests that cannot be large add little to the maximum. Statistics have shapes (m,) and, after exchanges, (r, m);
    `is_exact` says that these are all exchanges, the labels as they are among them.
    """
    observed = np.abs(z)

    def drawn_of(test: int) -> Array:
        return np.abs(drawn[:, test]).astype(np.float64)

    return step_down_by(observed, drawn_of, len(drawn), least=observed * (1 - 1e-5) - TIE, is_exact=is_exact)


def step_down_by(
    statistics: Array,
    drawn_of: Callable[[int], Array],
    draws: int,
    *,
    least: Array | None = None,
    is_exact: bool = False,
) -> Array:
    """Adjust one-sided tests, shape (m,), by draws of their joint law, a test at a time (Romano and Wolf 2005).

    The largest statistic is compared with the largest of all tests in each draw, the next with that of the tests that
    are left, and so on.

    Args:
        statistics: statistics as observed, shape (m,).
        drawn_of: function of the place of a test that returns its statistics in all draws, shape (r,).
        draws: number of draws r.
        least: statistics that count as large as the observed ones, shape (m,); default: the observed ones.
        is_exact: whether the draws are all that there are, with the observed statistics among them.
    """
    least = statistics if least is None else least
    order = np.argsort(-statistics, kind="stable")
    largest, reached = np.full(draws, -np.inf), np.empty(len(order))
    for place in range(len(order) - 1, -1, -1):
        np.maximum(largest, drawn_of(int(order[place])), out=largest)
        reached[place] = np.count_nonzero(largest >= least[order[place]])
    return _in_steps(order, reached / draws if is_exact else (reached + 1) / (draws + 1))


def share_as_large(observed: Array, drawn: Array) -> Array:
    """Return the share of draws, with the observed ones, that are as large: p-values of shape (w,).

    Statistics have shapes (w,) and, drawn, (r, w); or (r, 1) for the largest of a family in each draw, so that p-values
    are adjusted for it in a single step (Westfall and Young 1993).
    """
    return np.asarray((1 + (drawn >= observed - TIE).sum(0)) / (1 + len(drawn)))


def smallest_p(statistics: Array) -> Array:
    """Return the p-value of the smallest of several p-values, under exchanges (Westfall and Young 1993, minP).

    A test that sees by several statistics, (s, r) or (s, r, c), rejects for any; row 0 of r is as observed, the others
    are after exchanges. The smallest of the s p-values is compared with its values under exchanges: a number, or (c,).
    """
    ranks = np.apply_along_axis(lambda row: np.searchsorted(np.sort(row), row, "right"), 1, -statistics).min(0)
    return np.asarray((ranks <= ranks[0]).mean(0))


def closed_e_values(log_e: Array) -> Array:
    """Adjust e-values by closed testing with their means; logarithms, shape (k,) (Vovk and Wang 2021).

    The adjusted e-value of a test is the smallest mean of all e-values of a part of the family that it belongs to. It
    holds whatever the dependence. For e-processes, it holds at every time.

    Example:
        >>> [round(e, 9) for e in np.exp(closed_e_values(np.log([40.0, 0.0001]))).tolist()]
        [20.00005, 0.0001]
    """
    e = np.exp(np.clip(log_e, -MAX_LOG_E, MAX_LOG_E))
    order = np.argsort(e, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(e[order])])
    adjusted = np.empty(len(e))
    for place, test in enumerate(order):
        # The smallest others: those that come before, or, beyond its own place, all but itself.
        sizes = np.arange(len(e))
        others = np.where(sizes <= place, sums[:-1], sums[1:] - e[test])
        adjusted[test] = ((e[test] + others) / (sizes + 1)).min()
    return np.log(adjusted)


def _in_steps(order: NDArray[np.int64], steps: Array) -> Array:
    """Return steps, (t,), as adjusted p-values of the tests in this order: none is smaller than one before it."""
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
