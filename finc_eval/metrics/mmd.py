"""The maximum mean discrepancy (Gretton et al., JMLR 2012), exactly and in blocks, from sketches, and as CMMD."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from finc_eval.core.device import usable_device
from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.base import Embeddings, as_embeddings
from finc_eval.metrics.gaussian import check_pair
from finc_eval.numerics.inference import normal_interval
from finc_eval.sketches.sketch import Sketch

BLOCK = 2048
"""Rows per block of a kernel matrix: 32 MB of float64."""

CMMD_SIGMA = 10.0
CMMD_SCALE = 1000.0

Kernel = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class MmdEstimate:
    """An unbiased estimate of MMD², which may be negative for like sets.

    Attributes:
        value: the estimate.
        standard_error: of it.
        low, high: value ∓ the normal quantile times the standard error.
        level: the confidence.
        n_gen, n_ref: samples per set.
    """

    value: float
    standard_error: float
    low: float
    high: float
    level: float
    n_gen: int
    n_ref: int


@dataclass(frozen=True, eq=False)
class KernelSums:
    """What an MMD needs of the kernel matrices of two sets, float64.

    Attributes:
        xx, yy: Σ_{j≠i} k(x_i, x_j) of each i, shapes (n,) and (m,).
        xy, yx: Σ_j k(x_i, y_j) of each i and Σ_i k(x_i, y_j) of each j, shapes (n,) and (m,).
        diagonal_x, diagonal_y: Σ_i k(x_i, x_i) and Σ_j k(y_j, y_j).
    """

    xx: torch.Tensor
    yy: torch.Tensor
    xy: torch.Tensor
    yx: torch.Tensor
    diagonal_x: float
    diagonal_y: float

    def unbiased(self) -> float:
        """MMD² without the diagonals: Gretton's equation 3, the U-statistic; needs two samples a set."""
        n, m = len(self.xx), len(self.yy)
        within = self.xx.sum() / (n * (n - 1)) + self.yy.sum() / (m * (m - 1))
        return float(within - 2 * self.xy.sum() / (n * m))

    def biased(self) -> float:
        """MMD² with the diagonals: Gretton's equation 5, the V-statistic, never negative but for rounding."""
        n, m = len(self.xx), len(self.yy)
        within = (self.xx.sum() + self.diagonal_x) / n**2 + (self.yy.sum() + self.diagonal_y) / m**2
        return float(within - 2 * self.xy.sum() / (n * m))

    def standard_error(self) -> float:
        """Of the unbiased estimate, by the jackknife over samples, for which the row sums suffice; n, m ≥ 3.

        For sets of the same law, where the estimate is degenerate, the jackknife gives √2 times the error: intervals
        are conservative there, and exact in the limit elsewhere.
        """
        variance = self._variance(self.xx, self.xy, len(self.yy)) + self._variance(self.yy, self.yx, len(self.xx))
        return float(variance**0.5)

    @staticmethod
    def _variance(within: torch.Tensor, across: torch.Tensor, others: int) -> float:
        n = len(within)
        inside = (within.sum() - 2 * within) / ((n - 1) * (n - 2))
        without = inside - 2 * (across.sum() - across) / ((n - 1) * others)
        return float((n - 1) * without.var(correction=0))


def kernel_sums(
    x: Embeddings, y: Embeddings, kernel: Kernel, *, device: str | torch.device | None = None
) -> KernelSums:
    """Row sums of the kernel matrices of two sets, in float64 and blocks: memory of n + m numbers and one block.

    Args:
        x: n embeddings.
        y: m embeddings.
        kernel: (a, d), (b, d) → (a, b), of float64 rows.
        device: where blocks are computed; a GPU if there is one.
    """
    where = usable_device(device)
    xx, diagonal_x = _within(x, kernel, where)
    yy, diagonal_y = _within(y, kernel, where)
    xy = torch.zeros(x.n, dtype=torch.double, device=where)
    yx = torch.zeros(y.n, dtype=torch.double, device=where)
    for rows, left in _blocks(x, 0, where):
        for columns, right in _blocks(y, 0, where):
            values = kernel(left, right)
            xy[rows] += values.sum(1)
            yx[columns] += values.sum(0)
    return KernelSums(xx, yy, xy, yx, diagonal_x, diagonal_y)


def mmd(
    gen: object, ref: object, sigma: float, *, level: float = 0.95, device: str | torch.device | None = None
) -> MmdEstimate:
    """MMD² of the Gaussian kernel exp(−‖x−y‖²/(2σ²)), unbiased, with its standard error.

    Args:
        gen: the embeddings of the generated set, or their cache.
        ref: of the reference.
        sigma: σ, the bandwidth, in the units of the embedding.
        level: of the interval, in (0, 1).
        device: where blocks are computed; a GPU if there is one.

    Raises:
        FincEvalError: when the spaces differ, a set has fewer than three samples, or σ or the level is out of range.
    """
    x, y = pair_of(gen, ref, smallest=3)
    check_sigma(sigma)
    return unbiased_estimate(kernel_sums(x, y, _gaussian_less_one(sigma), device=device), level)


def cmmd(
    gen: object,
    ref: object,
    *,
    sigma: float = CMMD_SIGMA,
    scale: float = CMMD_SCALE,
    device: str | torch.device | None = None,
) -> float:
    """CMMD (Jayasumana et al., CVPR 2024, arXiv 2401.09603): the biased MMD² × 1000 of CLIP ViT-L/14-336 embeddings.

    Its published code scales embeddings to length one and takes the Gaussian kernel with σ = 10 and the V-statistic,
    diagonals included, so that two finite sets of one law read above zero. As σ is far beyond the largest distance,
    2, the number is close to scale/σ² times the squared distance of the two means.

    Args:
        gen: the embeddings of the generated set, of any length, or their cache.
        ref: of the reference.
        sigma: σ.
        scale: the factor.
        device: where blocks are computed; a GPU if there is one.

    Raises:
        FincEvalError: when the spaces differ, or an embedding is zero.
    """
    x, y = pair_of(gen, ref, smallest=1)
    check_sigma(sigma)
    gaussian = _gaussian_less_one(sigma)
    kernel: Kernel = lambda left, right: gaussian(unit_length(left), unit_length(right))  # noqa: E731
    return scale * kernel_sums(x, y, kernel, device=device).biased()


def sketch_mmd(gen: Sketch, ref: Sketch, *, level: float = 0.95) -> MmdEstimate:
    """MMD² from two sketches, unbiased, with its standard error: no sample is needed.

    It is ‖E φ(x) − E φ(y)‖² without the pairs of a sample with itself, which are ‖φ(x)‖² = 1. For random features it
    is exactly that of the kernel φ(x)·φ(y), whose mean over frequencies is the Gaussian kernel. The variance is that
    of Hoeffding's decomposition, from the covariances of φ. Sketches made in float32 hold the sums to about 1e-7.

    Raises:
        FincEvalError: when the sketches use different feature maps, or either has fewer than two samples.
    """
    gen.check_comparable(ref)
    check_level(level)
    for name, sketch in (("the generated set", gen), ("the reference", ref)):
        if sketch.n < 2:
            raise FincEvalError(f"an MMD needs two samples a set at least, {name} has {sketch.n}")
    n, m = gen.n, ref.n
    x, y = _feature_mean(gen), _feature_mean(ref).to(gen.feature_map.device)
    own_x = (n * float(x @ x) - 1) / (n - 1)
    own_y = (m * float(y @ y) - 1) / (m - 1)
    value = own_x + own_y - 2 * float(x @ y)
    covariance_x = gen.covariance.double() - torch.outer(x, x)
    covariance_y = ref.covariance.to(x.device).double() - torch.outer(y, y)
    gap = x - y
    xx, yy = float(covariance_x.square().sum()), float(covariance_y.square().sum())
    xy = float((covariance_x * covariance_y).sum())
    # Less what the noise of the gap itself is expected to add, which for like sets would be twice all the rest.
    along_x = float(gap @ covariance_x @ gap) - xx / n - xy / m
    along_y = float(gap @ covariance_y @ gap) - xy / n - yy / m
    first = 4 * max(along_x / n + along_y / m, 0.0)
    second = 2 * xx / (n * (n - 1)) + 2 * yy / (m * (m - 1)) + 4 * xy / (n * m)
    return _estimate(value, (first + second) ** 0.5, level, n, m)


def unbiased_estimate(sums: KernelSums, level: float) -> MmdEstimate:
    """The unbiased MMD² of these sums with its interval."""
    check_level(level)
    return _estimate(sums.unbiased(), sums.standard_error(), level, len(sums.xx), len(sums.yy))


def pair_of(gen: object, ref: object, *, smallest: int) -> tuple[Embeddings, Embeddings]:
    """Two sets of one space with `smallest` samples each at least, or FincEvalError."""
    x, y = as_embeddings(gen, "the generated set"), as_embeddings(ref, "the reference")
    check_pair(x, y)
    for one in (x, y):
        if one.n < smallest:
            raise FincEvalError(f"this needs {smallest} samples a set at least, {one.name} has {one.n}")
    return x, y


def unit_length(rows: torch.Tensor) -> torch.Tensor:
    """Every row divided by its norm.

    Raises:
        FincEvalError: when one is zero.
    """
    norms: torch.Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    if not norms.all():
        raise FincEvalError("an embedding is zero, which has no direction: leave it out")
    return rows / norms


def _gaussian_less_one(sigma: float) -> Kernel:
    """The Gaussian kernel less one: the same MMD, as a constant cancels, without the rounding of numbers near one."""

    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        squared = torch.addmm(x.square().sum(1)[:, None] + y.square().sum(1), x, y.T, alpha=-2).clamp_(min=0)
        return torch.expm1(squared.div_(-2 * sigma**2))

    return kernel


def _within(x: Embeddings, kernel: Kernel, where: torch.device) -> tuple[torch.Tensor, float]:
    sums, diagonal = torch.zeros(x.n, dtype=torch.double, device=where), 0.0
    for rows, left in _blocks(x, 0, where):
        values = kernel(left, left)
        diagonal += float(values.trace())
        sums[rows] += values.fill_diagonal_(0).sum(1)
        for columns, right in _blocks(x, rows.stop, where):
            values = kernel(left, right)
            sums[rows] += values.sum(1)
            sums[columns] += values.sum(0)
    return sums, diagonal


def _blocks(x: Embeddings, start: int, where: torch.device) -> Iterator[tuple[slice, torch.Tensor]]:
    for first in range(start, x.n, BLOCK):
        rows = slice(first, min(first + BLOCK, x.n))
        yield rows, x.rows_at(np.arange(rows.start, rows.stop)).to(where, torch.double)


def _feature_mean(sketch: Sketch) -> torch.Tensor:
    return (sketch.folds[0].first.double() + sketch.folds[1].first.double()) / sketch.n


def _estimate(value: float, error: float, level: float, n: int, m: int) -> MmdEstimate:
    return MmdEstimate(value, error, *normal_interval(value, error, level), level, n, m)


def check_level(level: float) -> None:
    """Raise FincEvalError unless a confidence is one."""
    if not 0 < level < 1:
        raise FincEvalError(f"the level of an interval must be in (0, 1), got {level}")


def check_sigma(sigma: float) -> None:
    """Raise FincEvalError unless a bandwidth is positive."""
    if not 0 < sigma < float("inf"):
        raise FincEvalError(f"sigma must be a positive number, got {sigma}")
