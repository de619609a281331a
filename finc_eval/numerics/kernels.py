"""Exact kernels of pairs of embeddings, the choice of the bandwidth σ, and warnings of an unfit σ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np
import torch

from finc_eval.core.errors import DataError

PairKernel = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""A kernel of every pair of rows: (n, d), (m, d) → (n, m)."""


def gaussian_kernel(x: torch.Tensor, y: torch.Tensor, sigma: float) -> torch.Tensor:
    """Compute exp(−‖x−y‖²/(2σ²)) of every pair of rows: (n, d), (m, d) → (n, m).

    The FINC, KEN and RKE papers have the same factor 2 in the exponent.
    """
    return torch.exp(-torch.cdist(x, y).square_() / (2 * sigma**2))


def cosine_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compute x·y/(‖x‖‖y‖) of every pair of rows: (n, d), (m, d) → (n, m)."""
    return unit_rows(x) @ unit_rows(y).T


def unit_rows(rows: torch.Tensor) -> torch.Tensor:
    """Divide every row by its norm, computed in float64 because it can overflow in float32."""
    norms: torch.Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.double)
    return (rows / norms).to(rows.dtype)


BANDWIDTH_FACTOR = 0.5
"""Bandwidth σ divided by the reference's median pairwise distance; docs/directions.md has the measurement."""


RESAMPLES, STABLE_VARIANCE = 10, 0.01
"""Number of resamples, and the variance of a score over them that the papers call stable."""

MIN_FLOAT32_DISTANCE = float(torch.finfo(torch.float32).tiny) ** 0.5
"""Distance below which the square underflows in float32."""


def median_distance(sample: torch.Tensor) -> float:
    """Return the median distance between two different rows of `sample`, shape (m, d)."""
    median = float(torch.pdist(sample).median()) if len(sample) > 1 else 0.0
    if len(sample) > 1 and not MIN_FLOAT32_DISTANCE < median < inf:
        median = float(torch.pdist(sample.double()).median())
    if not 0 < median < inf:
        raise DataError(
            f"the median distance of the reference embeddings is {median:g}, so no bandwidth follows from it: leave "
            "out repeated samples, or pass sigma (--sigma), in the units of the embedding"
        )
    return median


def median_bandwidth(sample: torch.Tensor) -> float:
    """Return the bandwidth σ = 0.5 × the median distance between two different rows of `sample`, shape (m, d)."""
    return BANDWIDTH_FACTOR * median_distance(sample)


def effective_kinds(kernel: torch.Tensor) -> float:
    """Return the effective number of kinds that a kernel matrix (m, m) distinguishes, 1 to m: 1 / mean(k²).

    It is the exponential of the order-2 Rényi entropy of K/m, known as the RKE score (Jalali et al. 2023).
    """
    return 1 / float(kernel.square().mean())


def bandwidth_warnings(sample: torch.Tensor, sigma: float) -> list[str]:
    """Warn of a σ that is too small or too large for embeddings like `sample`, shape (m, d)."""
    samples = len(sample)
    if samples < 2:
        return []
    rows = sample.double()  # in which even the distances of enormous embeddings are finite
    kinds = effective_kinds(gaussian_kernel(rows, rows, sigma))
    # 0.5: effective number of kinds, as a share of the samples, above which σ is too small.
    if kinds > 0.5 * samples:
        return [
            f"sigma {sigma:.4g} is too small: among {samples} samples it distinguishes {kinds:.0f} kinds, so that "
            "every direction is a single sample, and scores such as KEN come close to log n"
        ]
    # 1.5: effective number of kinds below which σ is too large.
    if kinds < 1.5:
        return [
            f"sigma {sigma:.4g} is too large: among {samples} samples it distinguishes {kinds:.2f} kinds, so that all "
            "look alike and one direction holds nearly all mass"
        ]
    return []


def stable_bandwidth(sigmas: Sequence[float], score: Callable[[float, np.random.Generator], float]) -> float | None:
    """Find σ by the rule of the KEN and FINC papers: the smallest with a small variance of the score over resamples.

    The papers state neither the size nor the number of the resamples, and their code does not contain the rule. Taken
    literally it fails: where σ is far too small every sample is alone, the score is log n for every resample, and its
    variance is zero. So the search begins at the largest σ and ends before the first σ that is not stable. `score`
    draws a resample by the generator, alike for every bandwidth. The result is None if not even the largest is stable.
    """
    stable = None
    for sigma in sorted(sigmas, reverse=True):
        values = [score(sigma, np.random.default_rng([0, draw])) for draw in range(RESAMPLES)]
        if float(np.var(values, ddof=1)) > STABLE_VARIANCE:
            break
        stable = sigma
    return stable
