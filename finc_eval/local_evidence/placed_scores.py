"""Scores of pictures by a classifier to which the cells of each place are numbers of their own.

It finds what is always at one place, such as a seam in the middle, which a classifier of windows wherever they lie
hardly sees. Z has a row for each of n pictures, all numbers of all windows, each number centered and of deviation 1.
With K = Z·Zᵀ/c, scaled so that its mean eigenvalue is 1, and A = (K + λ·I)⁻¹, a ridge regression of the weights w
without the pictures L scores these by

    w_L − (A_LL)⁻¹·(A·w)_L

(Cook and Weisberg 1982, Residuals and Influence in Regression, for a single one), for all permutations at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from finc_eval.local_evidence.permutations import Permutations, Scores

PENALTY = 3.0
"""λ, in parts of the mean eigenvalue: of .1, .3, 1, 3, 10 and 100, it found most of forty faults (150 v 150)."""

MOST_SAMPLES = 1000
"""Samples that are looked at, of both sets together: their products take .3 s of a core. Of more, the windows of
`cell_scores` see nearly all that is seen here."""


def score_places(values: NDArray[np.int8], permuted: Permutations) -> Scores:
    """Score pictures by classifiers that know the labels of other pictures, for all permutations.

    Args:
        values: cells of both sets in the order of `permuted`, shape (n, w, c).
        permuted: labels, and what is left out together.

    Returns:
        Scores, shape (1 + r, n).
    """
    products = _products(values)
    products.flat[:: len(products) + 1] += PENALTY
    inverse = cho_solve(cho_factor(products), np.eye(len(products)))
    weights = permuted.weights.T.astype(np.float64)
    solved = inverse @ weights
    for together in np.split(np.argsort(permuted.apart, kind="stable"), np.cumsum(np.bincount(permuted.apart))[:-1]):
        solved[together] = np.linalg.solve(inverse[np.ix_(together, together)], solved[together])
    return np.asarray((weights - solved).T, np.float32)


def _products(values: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return K, shape (n, n), place by place; 0 if nothing varies."""
    n, windows, _ = values.shape
    products = np.zeros((n, n))
    for window in range(windows):
        numbers = values[:, window].astype(np.float32)
        numbers -= numbers.mean(0)
        spread = numbers.std(0)
        numbers /= np.where(spread > 0, spread, 1)
        products += numbers @ numbers.T
    mean = np.trace(products) / n
    return products / mean if mean > 0 else products
