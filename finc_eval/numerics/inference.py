"""Inference: simultaneous intervals, Holm's adjustment, normal quantiles."""

from __future__ import annotations

import torch
from scipy.stats import norm

LEVEL = 0.95
"""Simultaneous coverage of the intervals."""


def critical_value(family: int) -> float:
    """How many standard errors wide intervals reach that hold simultaneously for a family of this many (Bonferroni)."""
    return float(norm.isf((1 - LEVEL) / (2 * family)))


def holm(p_values: torch.Tensor) -> torch.Tensor:
    """Holm's adjusted p-values, shape (t,): rejecting those ≤ α keeps the family-wise error rate at α (Holm 1979)."""
    order = p_values.argsort()
    steps = torch.arange(len(p_values), 0, -1, dtype=p_values.dtype)
    adjusted = torch.empty_like(p_values)
    adjusted[order] = (p_values[order] * steps).cummax(0).values.clamp_max(1.0)
    return adjusted
