"""Distance between the joint distributions of a few columns of two tables (α-way marginals)."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import UsageError

Levels = NDArray[np.int64]


def marginal_distance(one: Levels, other: Levels, columns: int, *, at_most: int | None = None, seed: int = 0) -> float:
    """Return the total variation distance ½ Σ |p − q| of the joint distribution of α columns, averaged over choices.

    It is a number about these two tables. Two samples of one law have a distance, too, which grows with α.

    Args:
        one: whole numbers, (n, D).
        other: whole numbers, (k, D).
        columns: α, from 1 to D.
        at_most: maximum number of choices; if there are more, a seeded sample of them is taken.
        seed: random seed of that sample.

    Raises:
        UsageError: shapes do not fit, or α is out of range.

    Example:
        >>> import numpy as np
        >>> from finc_eval.private.synthesis.marginals import marginal_distance
        >>> x, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
        >>> marginal_distance(x, y, 1), marginal_distance(x, y, 2)
        (0.0, 0.5)
    """
    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1] or not len(one) or not len(other):
        raise UsageError(f"tables must have the same columns and some rows, got {one.shape} and {other.shape}")
    if not 1 <= columns <= one.shape[1]:
        raise UsageError(f"marginals must be of 1 to {one.shape[1]} columns, got {columns}")
    chosen = list(combinations(range(one.shape[1]), columns))
    if at_most is not None and at_most < len(chosen):
        picked = np.random.default_rng(seed).choice(comb(one.shape[1], columns), at_most, replace=False)
        chosen = [chosen[place] for place in sorted(picked)]
    both = np.concatenate([one, other]).astype(np.int64)
    both -= both.min(0)
    return float(np.mean([_distance(both[:, list(subset)], len(one)) for subset in chosen]))


def _distance(values: Levels, first: int) -> float:
    cells = np.ravel_multi_index(tuple(values.T), tuple(values.max(0) + 1))
    _, place = np.unique(cells, return_inverse=True)
    size = int(place.max()) + 1
    p = np.bincount(place[:first], minlength=size) / first
    q = np.bincount(place[first:], minlength=size) / (len(values) - first)
    return float(np.abs(p - q).sum() / 2)
