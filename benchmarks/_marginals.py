"""Distance between the joint distributions of a few columns of two tables (α-way marginals)."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from finc_eval.core.errors import UsageError


def marginal_distance(
    one: np.ndarray, other: np.ndarray, columns: int, *, at_most: int | None = None, seed: int = 0
) -> float:
    """Return the total variation distance ½ Σ |p − q| of the joint distribution of α columns, averaged over choices.

    Every value is a cell of its own. `published_distance` is what the code of the DP-HP paper computes.

    Args:
        one: whole numbers, (n, D).
        other: whole numbers, (k, D).
        columns: α, from 1 to D.
        at_most: maximum number of choices; if there are more, a seeded sample of them is taken.
        seed: random seed of that sample.

    Raises:
        UsageError: shapes do not fit, or α is out of range.
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


def published_distance(
    real: np.ndarray, synthetic: np.ndarray, alpha: int, *, at_most: int | None = None, seed: int = 0
) -> float:
    """Return what the DP-HP paper's code (dp_mehp/marginals_eval.py) prints as the distance of α-way marginals.

    It differs from `marginal_distance` in two ways. It joins α + 1 columns. It also counts the two highest values of
    each column as one, because its histograms have max − min bins. So distances are smaller, and zero for columns of
    two values.
    """
    merged = [merge_highest(values, real.min(0), real.max(0)) for values in (real, synthetic)]
    return marginal_distance(*merged, alpha + 1, at_most=at_most, seed=seed)


def merge_highest(table: np.ndarray, lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """Merge the two highest values of each column, as the DP-HP paper's evaluation does."""
    merged: np.ndarray = np.clip(table, lowest, np.maximum(highest - 1, lowest))
    return merged


def _distance(values: np.ndarray, first: int) -> float:
    cells = np.ravel_multi_index(tuple(values.T), tuple(values.max(0) + 1))
    _, place = np.unique(cells, return_inverse=True)
    size = int(place.max()) + 1
    p = np.bincount(place[:first], minlength=size) / first
    q = np.bincount(place[first:], minlength=size) / (len(values) - first)
    return float(np.abs(p - q).sum() / 2)
