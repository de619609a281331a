"""Do scores reach further down than fresh ones do? An exact test that sees a few copies among many samples.

Below the k-th smallest of m fresh scores lies a Beta(k, m − k + 1) distributed share of their distribution, so of N
other fresh scores a beta-binomial number. No density is estimated, and means are not looked at: a hundredth of copies
does not move those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaln, gammaln

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def ranks(m: int) -> NDArray[np.int64]:
    """Which of m fresh scores, in ascending order, are thresholds: the 1st, 2nd, 4th, … up to the median."""
    return 2 ** np.arange(max((m // 2).bit_length(), 1))


def counts_below(scores: ArrayLike, fresh: ArrayLike) -> NDArray[np.int64]:
    """How many scores lie below each threshold, strictly: those that tie with a fresh one say nothing."""
    ascending = np.sort(np.asarray(fresh, np.float64))
    below: NDArray[np.int64] = np.searchsorted(np.sort(scores), ascending[ranks(len(ascending)) - 1], side="left")
    return below


def tail_p_value(scores: ArrayLike, fresh: ArrayLike) -> float:
    """The p-value of "the scores are fresh, too", small where more of them are low; Bonferroni over thresholds.

    Args:
        scores: shape (N,), low ones are suspicious.
        fresh: of the same distribution if nothing is wrong, shape (m,).
    """
    n, m = np.size(scores), np.size(fresh)
    thresholds = ranks(m)
    counts = counts_below(scores, fresh)
    least = min(survival(n, m, int(k))[count] for k, count in zip(thresholds, counts, strict=True))
    return float(min(1.0, len(thresholds) * least))


def critical_counts(n: int, m: int, level: float) -> NDArray[np.int64]:
    """From how many of n scores on, below each threshold, the p-value is at most `level`; n + 1 where never."""
    thresholds = ranks(m)
    limit = level / len(thresholds)
    return np.array([int((survival(n, m, int(k)) > limit).sum()) for k in thresholds])


def survival(n: int, m: int, k: int) -> NDArray[np.float64]:
    """P(at least c of n fresh scores lie below the k-th smallest of m others) for c = 0 … n: shape (n + 1,)."""
    c = np.arange(n + 1)
    binomial = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)
    mass = np.exp(binomial + betaln(c + k, n - c + m - k + 1) - betaln(k, m - k + 1))
    above: NDArray[np.float64] = np.minimum(mass[::-1].cumsum()[::-1], 1.0)
    return above
