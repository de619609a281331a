"""Exact test of whether scores reach further down than fresh samples; it sees a few copies among many samples.

Below the k-th smallest of m fresh scores lies a Beta(k, m − k + 1) distributed share of their distribution, so of N
other fresh scores a beta-binomial number. No density is estimated and no mean is compared: a hundredth of copies does
not move a mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln

from finc_eval.numerics.attack_statistics import threshold_ranks


def counts_below(scores: ArrayLike, fresh: ArrayLike) -> NDArray[np.int64]:
    """Count the scores strictly below each threshold; a score that ties with a fresh one says nothing."""
    ascending = np.sort(np.asarray(fresh, np.float64))
    thresholds = ascending[[rank - 1 for rank in threshold_ranks(len(ascending))]]
    below: NDArray[np.int64] = np.searchsorted(np.sort(scores), thresholds, side="left")
    return below


def threshold_parts(m: int) -> NDArray[np.float64]:
    """Return the part of α that each threshold may spend, shape (t,): as 1, 1/2, 1/3, … are to each other.

    Few copies are seen at the first thresholds alone. Equal parts need 12 exact copies among 1000 samples to see them
    where these parts need 10, and at the last thresholds these need 2 % more copies.
    """
    parts = 1 / np.arange(1, len(threshold_ranks(m)) + 1)
    shared: NDArray[np.float64] = parts / parts.sum()
    return shared


def tail_p_value(scores: ArrayLike, fresh: ArrayLike) -> float:
    """Return the p-value of "the scores are fresh", small if more of them are low, adjusted for all thresholds.

    Scores (N,) and fresh scores (m,) are of one distribution under the null hypothesis; low ones are suspicious.
    """
    n, m = np.size(scores), np.size(fresh)
    thresholds = threshold_ranks(m)
    counts = counts_below(scores, fresh)
    adjusted = (
        survival(n, m, k)[count] / part for k, count, part in zip(thresholds, counts, threshold_parts(m), strict=True)
    )
    return float(min(1.0, *adjusted))


def least_copies(scores: ArrayLike, fresh: ArrayLike, alpha: float) -> int:
    """Return a lower bound of the number of scores that are not fresh, which holds with probability 1 − α.

    If s scores are low for another reason, those below a threshold are s and a beta-binomial number of the others. The
    bound is 1 + the largest s at which the observed count would be rejected.
    """
    n, m = np.size(scores), np.size(fresh)
    thresholds = threshold_ranks(m)
    limits, bounds = alpha * threshold_parts(m), []
    for k, count, limit in zip(thresholds, counts_below(scores, fresh).tolist(), limits, strict=True):
        low, high = 0, count  # `high` is never too improbable
        while low < high:
            middle = (low + high) // 2
            if survival(n - middle, m, k)[count - middle] <= limit:
                low = middle + 1
            else:
                high = middle
        bounds.append(low)
    return max(bounds)


def critical_counts(n: int, m: int, alpha: float) -> NDArray[np.int64]:
    """Return the least count below each threshold whose p-value is at most `alpha`; n + 1 if none is."""
    thresholds = threshold_ranks(m)
    limits = alpha * threshold_parts(m)
    return np.array([int((survival(n, m, k) > limit).sum()) for k, limit in zip(thresholds, limits, strict=True)])


def survival(n: int, m: int, k: int) -> NDArray[np.float64]:
    """Return P(at least c of n fresh scores lie below the k-th smallest of m others) for c = 0 … n: shape (n + 1,)."""
    c = np.arange(n + 1)
    binomial = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)
    mass = np.exp(binomial + betaln(c + k, n - c + m - k + 1) - betaln(k, m - k + 1))
    above: NDArray[np.float64] = np.minimum(mass[::-1].cumsum()[::-1], 1.0)
    return above
