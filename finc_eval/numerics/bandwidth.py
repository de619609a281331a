"""Choosing the bandwidth σ of the Gaussian kernel, and recognizing one that is too small or too large."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.numerics.kernels import gaussian_kernel

BANDWIDTH_FACTOR = 0.5
"""σ over the reference's median pairwise distance; docs/method.md has the measurement behind it."""

ALONE = 0.5
"""Share of the samples that are kinds of their own, from which on σ is too small."""

ALL_ALIKE = 1.5
"""Effective number of kinds below which σ is too large."""

STABLE_VARIANCE = 0.01
"""Variance of a score over resamples that the papers call stable."""

SMALLEST_SQUARED = float(torch.finfo(torch.float32).tiny) ** 0.5
"""Distances below it have squares that float32 does not hold."""


def median_distance(sample: torch.Tensor) -> float:
    """The median distance between two different rows of `sample`, shape (m, d).

    Raises:
        FincEvalError: when it is zero, so that no bandwidth follows from the sample.
    """
    median = float(torch.pdist(sample).median()) if len(sample) > 1 else 0.0
    if len(sample) > 1 and not SMALLEST_SQUARED < median < inf:
        median = float(torch.pdist(sample.double()).median())
    if not 0 < median < inf:
        raise FincEvalError(
            f"the median distance of the reference embeddings is {median:g}, so no bandwidth follows from it: leave "
            "out repeated samples, or pass sigma (--sigma), in the units of the embedding"
        )
    return median


def median_bandwidth(sample: torch.Tensor) -> float:
    """σ = 0.5 × the median distance between two different rows of `sample`, shape (m, d).

    Raises:
        FincEvalError: when the median distance is zero, so that no bandwidth follows from the sample.
    """
    return BANDWIDTH_FACTOR * median_distance(sample)


def effective_kinds(kernel: torch.Tensor) -> float:
    """How many kinds of samples the kernel tells apart, 1 to m: 1 / mean(k²) over all pairs of a kernel (m, m).

    The exponential of the order-2 Rényi entropy of K/m, known as the RKE score (Jalali et al. 2023).
    """
    return 1 / float(kernel.square().mean())


def bandwidth_warning(sample: torch.Tensor, sigma: float) -> str | None:
    """What is wrong with σ for embeddings like `sample`, shape (m, d), or None, which is also all that m < 2 say."""
    samples = len(sample)
    if samples < 2:
        return None
    rows = sample.double()  # in which even the distances of enormous embeddings are finite
    kinds = effective_kinds(gaussian_kernel(rows, rows, sigma))
    if kinds > ALONE * samples:
        return (
            f"sigma {sigma:.4g} is too small: it takes {samples} samples for {kinds:.0f} different kinds, so that "
            "every direction is a sample of its own, and scores such as KEN come close to log n"
        )
    if kinds < ALL_ALIKE:
        return (
            f"sigma {sigma:.4g} is too large: it takes {samples} samples for {kinds:.2f} kinds, so that all look "
            "alike and one direction holds nearly all mass"
        )
    return None


def stable_bandwidth(
    sigmas: Sequence[float],
    score: Callable[[float, np.random.Generator], float],
    *,
    resamples: int = 10,
    variance: float = STABLE_VARIANCE,
    seed: int = 0,
) -> float | None:
    """The rule of the KEN and FINC papers: the smallest σ under which a score's variance over resamples is small.

    The papers say neither of how many samples nor over how many resamples, and no code of theirs has the rule. Taken
    literally it fails: where σ is far too small every sample is alone, the score is log n for every resample, and its
    variance is zero. So the search begins at the largest σ and ends before the first that is not stable.

    Args:
        sigmas: the bandwidths to try.
        score: the score under a bandwidth of a resample drawn by the generator.
        resamples: how many resamples.
        variance: the limit.
        seed: of the resamples; they are the same for every bandwidth.

    Returns:
        σ, or None when not even the largest is stable.
    """
    found = None
    for sigma in sorted(sigmas, reverse=True):
        values = [score(sigma, np.random.default_rng([seed, draw])) for draw in range(resamples)]
        if float(np.var(values, ddof=1)) > variance:
            break
        found = sigma
    return found
