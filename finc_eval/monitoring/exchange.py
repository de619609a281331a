"""Scores of an evaluation: how unusual its samples are among all samples so far, as standard normal numbers.

Under the null hypothesis, the reference and all samples so far are exchangeable: any order of them is as probable. Call
the samples up to an evaluation, with the reference, its *bag*. Given the bag, the samples of the evaluation are a
random part of it. So the rank of any statistic of the evaluation among its values for random parts, with ties broken at
random, is uniform (a p-value P of a permutation test). P has this law whatever the bag is, so P is independent of the
bag. The earlier p-values are functions of how the bag before was divided, and that bag is a function of this bag and
this evaluation. So all p-values are independent: those of conformal prediction (Vovk, Gammerman and Shafer 2005,
theorem 8.2), an evaluation at a time. The reference is finite, and no confidence set of it is needed: it is the first
part of the bag.

An evaluation's score is Φ⁻¹(P): standard normal, and independent of all scores before.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

LEVELS = 16  # levels of equal size into which a bag is divided by rank: against all ranks, 1/16² of the power is lost
DRAWS = 4095  # random parts of a bag to which an evaluation is compared: a score of one evaluation is at most about 3.5
MAX_BAG = 500_000_000  # values of a bag that is read from a file: NumPy draws parts of fewer than a billion

STEPS, SCALE, BINS = 200, 100.0, 6001
"""Bins of a value x: 200 · asinh(100x), rounded. They are half a percent of a value wide, and do not depend on data."""


def bins_of(values: Array) -> Counts:
    """Return the bin of each value, 0 to `BINS` − 1, in the order of the values."""
    middle = BINS // 2
    places = np.rint(np.arcsinh(np.clip(values, -1e4, 1e4) * SCALE) * STEPS).astype(np.int64)
    found: Counts = np.clip(places, -middle, middle) + middle
    return found


def score_of_shares(evaluation: Counts, before: Counts, rng: np.random.Generator) -> Array:
    """Return scores of shares, (k,), from (samples that have it, samples) of the evaluation and before, (k, 2).

    The count is hypergeometric given the bag. A share that no sample or every sample of the bag has says nothing: NaN.
    """
    from scipy.stats import hypergeom  # slow to import

    ties = rng.random(len(evaluation))
    total = evaluation + before
    law = total[:, 1], total[:, 0], evaluation[:, 1]
    p = hypergeom.cdf(evaluation[:, 0] - 1, *law) + ties * hypergeom.pmf(evaluation[:, 0], *law)
    silent = (total[:, 0] == 0) | (total[:, 0] == total[:, 1]) | (before[:, 1] == 0) | (evaluation[:, 1] == 0)
    return np.where(silent, np.nan, _normal(p))


def score_of_ranks(evaluation: Counts, before: Counts, rng: np.random.Generator) -> float:
    """Return the score of the mean rank of an evaluation, from its bins, shape (b,), and the count of each bin before.

    Ties are broken at random. NaN if the whole bag has one value, or nothing was before.
    """
    bag = before + np.bincount(evaluation, minlength=BINS)
    n, b = int(bag.sum()), len(evaluation)
    if n == b or b == 0 or np.count_nonzero(bag) < 2:
        return float("nan")
    others = _sums_of_parts(n, b, int(rng.integers(2**31)))  # the same for all scores that begin with the same state
    own = int(_places(evaluation, bag, rng).sum())
    return score_among(own, others, rng)


def score_among(own: int, others: Counts, rng: np.random.Generator) -> float:
    """Return the score of the statistic of an evaluation among those of random parts of the bag, shape (draws,)."""
    ties = rng.random() * (np.count_nonzero(others == own) + 1)
    return float(_normal(np.array([(np.count_nonzero(others < own) + ties) / (len(others) + 1)]))[0])


def _normal(p: Array) -> Array:
    return np.asarray(ndtri(np.clip(p, 1e-12, 1 - 1e-12)), np.float64)


def _places(evaluation: Counts, bag: Counts, rng: np.random.Generator) -> Counts:
    """Return the level of each sample of an evaluation among the bag, (b,); samples of one bin have a random order."""
    ends = np.cumsum(bag)
    found = []
    for one, count in zip(*np.unique(evaluation, return_counts=True), strict=True):
        start, size = int(ends[one] - bag[one]), int(bag[one])
        is_inside = start * LEVELS // ends[-1] == (start + size - 1) * LEVELS // ends[-1]
        drawn = np.zeros(count, np.int64) if is_inside else rng.choice(size, count, replace=False)
        found.append((start + drawn) * LEVELS // ends[-1])
    return np.concatenate(found)


@lru_cache(maxsize=8)
def _sums_of_parts(n: int, b: int, seed: int) -> Counts:
    """Return the sums of the levels of random parts, (DRAWS,), of b of n samples."""
    sizes = -np.diff(-np.arange(LEVELS + 1) * n // LEVELS)  # the numbers i below n with ⌊16·i / n⌋ = 0, 1, …
    rng = np.random.default_rng(seed)
    return np.asarray(rng.multivariate_hypergeometric(sizes, b, DRAWS, "marginals") @ np.arange(LEVELS), np.int64)
