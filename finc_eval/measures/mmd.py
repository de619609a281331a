"""The maximum mean discrepancy (Gretton et al., JMLR 2012): exact and in blocks, and as CMMD."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, check_positive
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import open_pair
from finc_eval.estimates.error_source import REF, ErrorSource, Integers
from finc_eval.estimates.estimate import Estimate, units_of
from finc_eval.measures.gaussians.gaussian import row_blocks
from finc_eval.measures.inputs import (
    MIN_INTERVAL_SAMPLES,
    Estimator,
    Metric,
    MetricInputs,
    biased_floor,
    reference_bandwidth,
    split_reference,
)
from finc_eval.measures.score import Score
from finc_eval.numerics.kernels import PairKernel

KERNEL_BLOCK = 2048  # rows per block of a kernel matrix: 32 MB of float64

Visitor = Callable[[tuple[int, int], slice, slice, torch.Tensor], None]
"""Function that gets the numbers of two sets, and rows, columns and values of a block of their kernel matrix."""

BlockVisitor = Callable[[slice, slice, torch.Tensor], None]
"""Function that gets rows, columns and values of a block of the kernel matrix of one set."""

OF_GROUPS = "the unbiased value and its interval leave out pairs of samples of one group"

CMMD_SIGMA = 10.0
CMMD_SCALE = 1000.0  # bandwidth and factor of the published code


@dataclass(frozen=True)
class MmdEstimate:
    """An unbiased estimate of MMD², which may be negative for similar sets."""

    value: float  # estimate
    standard_error: float  # standard error of the estimate
    low: float  # lower end of the interval, the value minus Student's quantile times the standard error
    high: float  # upper end of the interval


@dataclass(frozen=True, eq=False)
class OwnUnits:
    """Kernel of the samples of a set with the others of their unit, which are not independent of them."""

    sums: torch.Tensor  # Σ k(x_i, x_j) over the other samples j of the unit of i, shape (n,)
    sizes: torch.Tensor  # number of samples of the unit of i, shape (n,)


@dataclass(frozen=True, eq=False)
class KernelSums:
    """Sums over the kernel matrices of two sets, all that an MMD needs, in float64."""

    xx: torch.Tensor  # Σ_{j≠i} k(x_i, x_j) for each i, shape (n,)
    yy: torch.Tensor  # Σ_{j≠i} k(y_i, y_j) for each i, shape (m,)
    xy: torch.Tensor  # Σ_j k(x_i, y_j) for each i, shape (n,)
    yx: torch.Tensor  # Σ_i k(x_i, y_j) for each j, shape (m,)
    diagonal_x: float  # Σ_i k(x_i, x_i)
    diagonal_y: float  # Σ_j k(y_j, y_j)
    own_x: OwnUnits | None = None  # None if each sample of x is a unit
    own_y: OwnUnits | None = None

    @property
    def is_grouped(self) -> bool:
        """True if a set has units of several samples."""
        return self.own_x is not None or self.own_y is not None

    def unbiased(self) -> float:
        """Return MMD² without the diagonals: Gretton's equation 3, the U-statistic, for n, m ≥ 2."""
        n, m = len(self.xx), len(self.yy)
        within = self.xx.sum() / (n * (n - 1)) + self.yy.sum() / (m * (m - 1))
        return float(within - 2 * self.xy.sum() / (n * m))

    def of_units(self) -> float:
        """Return MMD² without pairs of samples of one unit: the U-statistic of independent samples.

        Samples of a unit are alike. With their pairs, a set of units is the farther from any other the larger its units
        are, and a set of single samples is not.
        """
        within = _mean_of_pairs(self.xx, self.own_x) + _mean_of_pairs(self.yy, self.own_y)
        return within - 2 * float(self.xy.sum()) / (len(self.xx) * len(self.yy))

    def biased(self) -> float:
        """Return MMD² with the diagonals: Gretton's equation 5, the V-statistic, negative by rounding only."""
        n, m = len(self.xx), len(self.yy)
        within = (self.xx.sum() + self.diagonal_x) / n**2 + (self.yy.sum() + self.diagonal_y) / m**2
        return float(within - 2 * self.xy.sum() / (n * m))

    def derivatives(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the derivative of the estimate of `of_units` by the weight of each sample, shapes (n,) and (m,).

        It is twice the mean kernel of a sample with its own set less that with the other set. Divided by n − 2, it is
        what the jackknife over samples gives, and so its influences are: for sets of the same law, where the estimate
        is degenerate, the error is √2 times too large, and elsewhere exact in the limit. Units of M samples take M
        times as much from n.
        """
        n, m = len(self.xx), len(self.yy)
        own_x, own_y = _means_without_one(self.xx, self.own_x), _means_without_one(self.yy, self.own_y)
        return 2 * (own_x - self.xy / m), 2 * (own_y - self.yx / n)


def _mean_of_pairs(sums: torch.Tensor, own: OwnUnits | None) -> float:
    """Return the mean kernel of two samples of unlike units; of two samples if all are of one unit."""
    n = len(sums)
    if own is None or float(own.sizes.sum()) >= n**2:
        return float(sums.sum()) / (n * (n - 1))
    return float((sums - own.sums).sum()) / (n**2 - float(own.sizes.sum()))


def _means_without_one(sums: torch.Tensor, own: OwnUnits | None) -> torch.Tensor:
    """Return the mean kernel of each sample with those of other units, as a jackknife over units weighs it, (n,)."""
    n = len(sums)
    if own is None:
        return sums / max(n - 2, 1)
    size = float(own.sizes.mean())
    means = (sums - own.sums) / (n - own.sizes).clamp_min(1)
    return means * ((n - size) / max(n - 2 * size, size))


def kernel_sums(
    x: Embeddings,
    y: Embeddings,
    kernel: PairKernel,
    *,
    run: Run | None = None,
    visit: Visitor | None = None,
    units: Integers | None = None,
) -> KernelSums:
    """Sum the rows of the kernel matrices of two sets, in float64 and blocks: memory of n + m numbers and one block.

    `kernel` maps two batches of float64 rows, (a, d) and (b, d), to (a, b). `visit` sees every block, of a symmetric
    matrix those on and above the diagonal, without the diagonal itself. Samples of a group are one unit, or those of
    the same number in `units`, (n,), for the first set.
    """
    where = Run.of(run).torch_device
    own_x, own_y = (
        None if of_set is None else _UnitSums(of_set, where)
        for of_set in (units_of(x) if units is None else units, units_of(y))
    )
    xx, diagonal_x = sums_within(x, kernel, where, own_x, visit and partial(visit, (0, 0)))
    yy, diagonal_y = sums_within(y, kernel, where, own_y, visit and partial(visit, (1, 1)))
    xy = torch.zeros(x.n, dtype=torch.double, device=where)
    yx = torch.zeros(y.n, dtype=torch.double, device=where)
    for rows, left in _blocks(x, 0, where):
        for columns, right in _blocks(y, 0, where):
            values = kernel(left, right)
            xy[rows] += values.sum(1)
            yx[columns] += values.sum(0)
            if visit:
                visit((0, 1), rows, columns, values)
    own = [None if visitor is None else visitor.found() for visitor in (own_x, own_y)]
    return KernelSums(xx, yy, xy, yx, diagonal_x, diagonal_y, *own)


class _UnitSums:
    """Adds up the kernel of each sample with the others of its unit, as a visitor of `sums_within`."""

    def __init__(self, units: Integers, where: torch.device) -> None:
        self._units = torch.from_numpy(units).to(where)
        self._sums = torch.zeros(len(units), dtype=torch.double, device=where)

    def __call__(self, rows: slice, columns: slice, values: torch.Tensor) -> None:
        """Add the values of a block, which has no diagonal."""
        own = values * (self._units[rows, None] == self._units[columns])
        self._sums[rows] += own.sum(1)
        if rows != columns:  # a block beside the diagonal stands for its mirror image, too
            self._sums[columns] += own.sum(0)

    def found(self) -> OwnUnits | None:
        """Return the sums, after all blocks were visited; None if each sample is a unit."""
        sizes = torch.bincount(self._units)[self._units].double()
        return OwnUnits(self._sums, sizes) if bool((sizes > 1).any()) else None


class UnbiasedFloor:
    """Unbiased MMD² of a part of the reference against the rest of it, as a visitor of `kernel_sums`.

    The kernel matrix of the reference has all values for it, so that a floor takes hardly more time.
    """

    def __init__(self, ref: Embeddings, n_gen: int, where: torch.device) -> None:
        self._part, self._rest = split_reference(ref, n_gen, least=2)
        self._chosen = torch.zeros(ref.n, dtype=torch.double, device=where)
        self._chosen[torch.from_numpy(self._part.rows).to(where)] = 1.0
        self._within = torch.zeros((), dtype=torch.double, device=where)

    def __call__(self, pair: tuple[int, int], rows: slice, columns: slice, values: torch.Tensor) -> None:
        """Add the values of a block of the reference's kernel matrix."""
        if pair == (1, 1):  # a block beside the diagonal stands for its mirror image, too
            total = self._chosen[rows] @ values @ self._chosen[columns]
            self._within += total if rows == columns else 2 * total

    def value(self, sums: KernelSums) -> float:
        """Return the floor, after all blocks were visited."""
        n, m, within = self._part.n, self._rest.n, self._within
        across = self._chosen @ sums.yy - within
        rest = sums.yy.sum() - within - 2 * across
        return float(within / (n * (n - 1)) + rest / (m * (m - 1)) - 2 * across / (n * m))


def unbiased_floor(gen: Embeddings, ref: Embeddings, run: Run | None) -> UnbiasedFloor | None:
    """Return the visitor that finds the floor; None for sets that are too small for one."""
    enough = min(gen.n, ref.n) >= MIN_INTERVAL_SAMPLES
    return UnbiasedFloor(ref, gen.n, Run.of(run).torch_device) if enough else None


def mmd(gen: object, ref: object, sigma: float, *, run: Run | None = None) -> MmdEstimate:
    """Compute the unbiased MMD² of the Gaussian kernel exp(−‖x−y‖²/(2σ²)), with its standard error."""
    check_positive("sigma", sigma)
    x, y = open_pair(gen, ref, least=3)
    return unbiased_estimate(kernel_sums(x, y, _gaussian_minus_one(sigma), run=run), x, y)


def cmmd(gen: object, ref: object, *, run: Run | None = None) -> float:
    """Compute CMMD (Jayasumana et al., CVPR 2024, arXiv 2401.09603): biased MMD² × 1000 of CLIP embeddings.

    The published code takes embeddings of CLIP ViT-L/14-336, scales them to length one and uses the Gaussian kernel
    with σ = 10 and the V-statistic, diagonals included, so two finite sets of one law are above zero. Because σ is far
    larger than the largest distance, 2, the number is close to 10 times the squared distance of the two means.
    """
    x, y = open_pair(gen, ref, least=1)
    return CMMD_SCALE * kernel_sums(x, y, _cmmd_kernel, run=run).biased()


def unbiased_estimate(sums: KernelSums, gen: Embeddings, ref: Embeddings) -> MmdEstimate:
    """Return the MMD² of independent samples with its interval, which reaches 0, the least possible MMD²."""
    found = estimate_mmd(sums, gen, ref)
    low, high = found.interval
    return MmdEstimate(found.value, found.standard_error, low, max(high, 0.0))


def estimate_mmd(
    sums: KernelSums, gen: Embeddings, ref: Embeddings, units: NDArray[np.int64] | None = None, scale: float = 1.0
) -> Estimate:
    """Return `scale` times the MMD² of independent samples, with the influence of each unit of both sets.

    Samples of a group are one unit, or those of the same number in `units`, for the generated set, as in the sums.
    """
    of_gen, of_ref = (scale * derivative.cpu().numpy() for derivative in sums.derivatives())
    of_units = ErrorSource.of_samples(of_gen, units_of(gen) if units is None else units)
    return Estimate.of(scale * sums.of_units(), (of_units, ErrorSource.of_samples(of_ref, units_of(ref), name=REF)))


def mmd_estimator(kernel: PairKernel, scale: float = 1.0) -> Callable[[Embeddings, Run], Estimator]:
    """Return the estimator of `scale` times the squared MMD of a kernel, see `Metric.estimator`."""

    def of_reference(ref: Embeddings, run: Run) -> Estimator:
        def estimate(gen: Embeddings, units: NDArray[np.int64] | None = None) -> Estimate:
            return estimate_mmd(kernel_sums(gen, ref, kernel, run=run, units=units), gen, ref, units, scale)

        return estimate

    return of_reference


def unit_length(rows: torch.Tensor) -> torch.Tensor:
    """Divide every row by its norm."""
    norms: torch.Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    if not norms.all():
        raise DataError("an embedding is zero, which has no direction: leave it out")
    return rows / norms


def _gaussian_minus_one(sigma: float) -> PairKernel:
    """Return the Gaussian kernel minus one: the constant cancels in an MMD, and the rounding near one is avoided."""

    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        squared = torch.addmm(x.square().sum(1)[:, None] + y.square().sum(1), x, y.T, alpha=-2).clamp_(min=0)
        return torch.expm1(squared.div_(-2 * sigma**2))

    return kernel


def _cmmd_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return _gaussian_minus_one(CMMD_SIGMA)(unit_length(x), unit_length(y))


def sums_within(
    x: Embeddings, kernel: PairKernel, where: torch.device, *visitors: BlockVisitor | None
) -> tuple[torch.Tensor, float]:
    """Return Σ_{j≠i} k(x_i, x_j) for each i, shape (n,), and Σ_i k(x_i, x_i); visitors see every block."""
    seeing = [visitor for visitor in visitors if visitor is not None]
    sums, diagonal = torch.zeros(x.n, dtype=torch.double, device=where), 0.0
    for rows, left in _blocks(x, 0, where):
        values = kernel(left, left)
        diagonal += float(values.trace())
        sums[rows] += values.fill_diagonal_(0).sum(1)
        for visit in seeing:
            visit(rows, rows, values)
        for columns, right in _blocks(x, rows.stop, where):
            values = kernel(left, right)
            sums[rows] += values.sum(1)
            sums[columns] += values.sum(0)
            for visit in seeing:
                visit(rows, columns, values)
    return sums, diagonal


def _blocks(x: Embeddings, start: int, where: torch.device) -> Iterator[tuple[slice, torch.Tensor]]:
    return row_blocks(x, where, KERNEL_BLOCK, start)


def _mmd(inputs: MetricInputs, *, sigma: float | None = None) -> list[Score]:
    gen, ref = inputs.embeddings()
    sigma = reference_bandwidth(ref) if sigma is None else sigma
    check_positive("sigma", sigma)
    gen, ref = open_pair(gen, ref, least=3)
    visitor = unbiased_floor(gen, ref, inputs.run)
    sums = kernel_sums(gen, ref, _gaussian_minus_one(sigma), run=inputs.run, visit=visitor)
    signature = inputs.signature(kernel="gaussian", sigma=f"{sigma:.6g}")
    return [score_of_all_pairs(inputs.name, sums, unbiased_estimate(sums, gen, ref), signature, visitor)]


def score_of_all_pairs(
    key: str, sums: KernelSums, exact: MmdEstimate, signature: Signature, floor: UnbiasedFloor | None
) -> Score:
    """Return the U-statistic over all pairs of samples, with its interval and its floor.

    Of grouped sets its value without pairs of one group is the unbiased value.
    """
    return Score(
        key,
        sums.unbiased(),
        signature,
        unbiased=exact.value if sums.is_grouped else None,
        interval=(exact.low, exact.high),
        floor=floor.value(sums) if floor else None,
        higher_is_better=False,
        notes=(OF_GROUPS,) if sums.is_grouped else (),
    )


def _cmmd(inputs: MetricInputs) -> list[Score]:
    signature = inputs.signature(sigma=CMMD_SIGMA, scale=CMMD_SCALE)
    return [biased_score(inputs, _cmmd_kernel, CMMD_SCALE, partial(cmmd, run=inputs.run), signature)]


def biased_score(
    inputs: MetricInputs,
    kernel: PairKernel,
    scale: float,
    statistic: Callable[[Embeddings, Embeddings], float],
    signature: Signature,
) -> Score:
    """Return the V-statistic of a kernel times a scale, with the U-statistic as its unbiased value, and its interval.

    `statistic` computes the V-statistic, of the reference's own law for the floor.
    """
    gen, ref = open_pair(*inputs.embeddings(), least=1)
    sums = kernel_sums(gen, ref, kernel, run=inputs.run)
    floor = biased_floor(statistic, ref, gen.n)
    score = Score(inputs.name, scale * sums.biased(), signature, floor=floor, higher_is_better=False)
    if min(gen.n, ref.n) < 3:
        return score
    exact = unbiased_estimate(sums, gen, ref)
    itself = "the unbiased value and its interval leave out pairs of a sample with itself"
    note = OF_GROUPS if sums.is_grouped else itself
    interval = (scale * exact.low, scale * exact.high)
    return replace(score, unbiased=scale * exact.value, interval=interval, notes=(note,))


def _mmd_estimator(ref: Embeddings, run: Run) -> Estimator:
    return mmd_estimator(_gaussian_minus_one(reference_bandwidth(ref)))(ref, run)


METRICS = (
    Metric("mmd", "squared maximum mean discrepancy of the Gaussian kernel", _mmd, estimator=_mmd_estimator),
    Metric(
        "cmmd",
        "CLIP maximum mean discrepancy",
        _cmmd,
        "clip-vitl14-336",
        estimator=mmd_estimator(_cmmd_kernel, CMMD_SCALE),
    ),
)
