"""Statistical inference: quantiles, confidence intervals, and corrections for many tests."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from finc_eval.core.checks import check_fraction

DEFAULT_CONFIDENCE = 0.95
"""Confidence of intervals; of several intervals that hold together, their simultaneous confidence."""

ALPHA = 0.05
"""Adjusted p-value up to which a finding counts as significant."""

POWER = 0.8
"""Probability with which what is called detectable is found."""


def normal_quantile(confidence: float = DEFAULT_CONFIDENCE) -> float:
    """Return the half-width, in standard errors, of a two-sided normal interval: 1.96 at 0.95."""
    check_fraction("confidence", confidence)
    return -float(ndtri((1 - confidence) / 2))


def upper_tail(z: float) -> float:
    """Return P(Z ≥ z) of a standard normal Z: the one-sided p-value of z standard errors."""
    return float(ndtr(-z))


def student_quantile(degrees: float, confidence: float = DEFAULT_CONFIDENCE) -> float:
    """Return the half-width, in standard errors, of a two-sided interval of Student's t."""
    check_fraction("confidence", confidence)
    return float(stdtrit(degrees, (1 + confidence) / 2))


def normal_interval(value: float, standard_error: float, confidence: float = DEFAULT_CONFIDENCE) -> tuple[float, float]:
    """Return the value minus and plus its normal quantile times the standard error."""
    half = normal_quantile(confidence) * standard_error
    return value - half, value + half


def wilson(share: float, n: int, confidence: float = DEFAULT_CONFIDENCE) -> tuple[float, float]:
    """Return Wilson's interval of a share that was observed in n independent samples (Wilson 1927)."""
    z = normal_quantile(confidence)
    center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # Without rounding, the ends are 0 and 1 if the share is.
    return max(min(center - half, share), 0.0), min(max(center + half, share), 1.0)


def mean_interval(values: NDArray[np.floating[Any]], confidence: float = DEFAULT_CONFIDENCE) -> tuple[float, float]:
    """Return the normal interval of the mean of nonnegative numbers, cut off at zero."""
    error = float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else 0.0
    low, high = normal_interval(float(values.mean()), error, confidence)
    return max(low, 0.0), high


def critical_value(family: int) -> float:
    """Return the half-width, in standard errors, of `family` intervals that hold simultaneously (Bonferroni)."""
    return -float(ndtri((1 - DEFAULT_CONFIDENCE) / (2 * family)))


def holm(p_values: torch.Tensor, part: float = 1.0) -> torch.Tensor:
    """Return Holm's adjusted p-values, shape (t,): rejecting those ≤ α keeps the family-wise error at α (Holm 1979).

    This family may spend `part` of α; others have the rest.
    """
    order = p_values.argsort()
    steps = torch.arange(len(p_values), 0, -1, dtype=p_values.dtype)
    adjusted = torch.empty_like(p_values)
    adjusted[order] = (p_values[order] * steps / part).cummax(0).values.clamp_max(1.0)
    return adjusted
