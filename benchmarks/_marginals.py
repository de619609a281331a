"""Distance of α-way marginals as the code of the DP-HP paper computes it."""

from __future__ import annotations

import numpy as np

from finc_eval.private.synthesis.marginals import marginal_distance


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
