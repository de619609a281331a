"""The kernel inception distance (Binkowski et al., ICLR 2018, arXiv 1801.01401): MMD² of a polynomial kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.metrics.mmd import MmdEstimate, kernel_sums, pair_of, unbiased_estimate

SUBSETS = 100
SUBSET_SIZE = 1000
SEED = 2020
"""torch-fidelity's defaults."""


@dataclass(frozen=True)
class KernelDistance:
    """KID over subsets.

    Attributes:
        mean: the mean over subsets of the unbiased MMD²; slightly negative for like sets.
        std: its standard deviation over subsets, which says how one subset varies, not how exact the mean is.
        subsets, subset_size, seed: how the subsets were drawn.
    """

    mean: float
    std: float
    subsets: int
    subset_size: int
    seed: int


def kid(
    gen: object,
    ref: object,
    *,
    subsets: int = SUBSETS,
    subset_size: int = SUBSET_SIZE,
    seed: int = SEED,
    device: str | torch.device | None = None,
) -> KernelDistance:
    """KID as torch-fidelity defines it, of the same subsets for the same seed.

    Subsets are drawn without replacement by numpy's RandomState, first of gen, then of ref, so that a number does not
    depend on the library's version. Products and sums are of float64; torch-fidelity's are of the type of the
    features, and its float32 sums differ by about 1e-7 of the kernel's mean, which may be much of a small KID.

    Args:
        gen: the embeddings of the generated set, or their cache.
        ref: of the reference.
        subsets: how many.
        subset_size: samples of each set in one.
        seed: of the subsets.
        device: where they are computed; a GPU if there is one.

    Raises:
        FincEvalError: when the spaces differ, or a set has fewer samples than a subset.
    """
    x, y = pair_of(gen, ref, smallest=2)
    if subsets < 1 or subset_size < 2:
        raise FincEvalError(f"KID needs one subset of two samples at least, got {subsets} of {subset_size}")
    for one in (x, y):
        if one.n < subset_size:
            raise FincEvalError(
                f"{one.name} has {one.n} samples, fewer than KID's subsets of {subset_size}: give more, or a smaller "
                "subset size; or take kid_interval, which needs no subsets"
            )
    draw = np.random.RandomState(seed)
    values = []
    for _ in range(subsets):
        left, right = _subset(x, subset_size, draw), _subset(y, subset_size, draw)
        values.append(kernel_sums(left, right, polynomial_kernel, device=device).unbiased())
    return KernelDistance(float(np.mean(values)), float(np.std(values)), subsets, subset_size, seed)


def kid_interval(
    gen: object, ref: object, *, level: float = 0.95, device: str | torch.device | None = None
) -> MmdEstimate:
    """KID of all pairs of samples, the U-statistic, with its standard error: no subsets and no seed.

    The interval covers the sampling of both sets. Time grows with (n + m)², memory with n + m.

    Raises:
        FincEvalError: when the spaces differ, or a set has fewer than three samples.
    """
    x, y = pair_of(gen, ref, smallest=3)
    return unbiased_estimate(kernel_sums(x, y, polynomial_kernel, device=device), level)


def polynomial_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """(x·y/d + 1)³ of every pair of rows: (n, d), (m, d) → (n, m)."""
    return (x @ y.T / x.shape[1] + 1) ** 3


def _subset(x: Embeddings, size: int, draw: np.random.RandomState) -> Embeddings:
    return ArrayEmbeddings(x.rows_at(np.sort(draw.choice(x.n, size, replace=False))), x.name)
