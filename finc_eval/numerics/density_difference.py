"""Least-squares density difference: ∫ (p − q)² estimated without estimating p or q (Sugiyama et al. 2013).

The difference of the densities is fitted by Gaussians, f(x) = Σ_c θ_c exp(−‖x − c‖²/(2s²)). Their least-squares fit
needs only their means over both samples, in closed form (Neural Computation 25(10), arXiv 1207.0099).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.errors import DataError, IncompatibleError, UsageError, check_count, check_seed
from finc_eval.core.memory import check_list
from finc_eval.core.record import Record

MAX_CENTERS = 300  # maximum number of Gaussians, as in the paper
FOLDS = 5  # folds of the cross-validation, as in the paper

WIDTHS = (0.25, 0.5, 0.75, 1.0, 1.2, 1.5, 2.0, 2.2, 2.5, 3.0, 5.0)
PENALTIES = tuple(float(value) for value in np.logspace(-3, 1, 9))
"""The paper's grids of s and λ, made for data of deviation 1."""


@dataclass(frozen=True)
class DensityDifference(Record):
    """An estimate of ∫ (p − q)².

    Attributes:
        value: estimate in units of 1/x^d. It is a squared L2 distance, not a distance, and it may be negative.
        standardized: estimate for the data divided by the pooled deviation of each coordinate: without a unit.
        deviation: product of these deviations; standardized = value · deviation.
        width: s, in pooled deviations unless estimated on the data as they are.
        penalty: λ of the fit.
        null: standardized value for each permutation of the points between the samples, shape (permutations,).
            Each permutation chooses its own s and λ: with the s and λ of the value kept, equal densities were rejected
            at a level of 5 % in 14 of 100 cases.
        p_value: (1 + permutations whose value is at least as large) / (1 + permutations); None without permutations.
    """

    value: float
    standardized: float
    deviation: float
    width: float
    penalty: float
    null: tuple[float, ...]
    p_value: float | None

    def threshold(self, confidence: float = 0.95) -> float:
        """Return the standardized value that samples of one distribution stay below with this probability."""
        if not self.null:
            raise UsageError("a threshold comes from permutations: ask for some, such as permutations=199")
        return float(np.quantile(self.null, confidence, method="higher"))


def density_difference(
    a: ArrayLike, b: ArrayLike, *, standardize: bool = True, permutations: int = 0, seed: int = 0
) -> DensityDifference:
    """Estimate ∫ (p − q)² from samples of p and q.

    Args:
        a: samples of p, shape (m,) or (m, d).
        b: samples of q, shape (n,) or (n, d); the sizes m and n may differ by any factor.
        standardize: whether s is chosen in units of the pooled deviation, so that the estimate follows the unit of the
            data. The paper's grid is absolute, and good only for data of deviation about 1: False takes the paper's
            grid.
        permutations: number of permutations for p-value and null; 199 is enough for a level of 5 %.
        seed: random seed of centers, folds and permutations.

    Raises:
        UsageError: the number of permutations is negative.
        DataError: a sample has fewer than two points, a value that is not finite, or points that are all equal in one
            coordinate.
        IncompatibleError: the samples have different dimensions.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> rng = np.random.default_rng(0)
        >>> found = fe.kahm.density_difference(rng.normal(size=300), rng.normal(1, 1, 300), permutations=99)
        >>> found.p_value
        0.01
    """
    check_count("permutations", permutations, least=0)
    x, y = _points(a, "a"), _points(b, "b")
    if x.shape[1] != y.shape[1]:
        raise IncompatibleError(f"samples of one dimension are needed, got {x.shape[1]} and {y.shape[1]}")
    pooled = np.concatenate([x, y])
    deviations = pooled.std(0)
    if not (deviations > 1e-12 * np.abs(pooled).max(0)).all():
        raise DataError("all points are equal in one coordinate: they have no density to compare")
    # 16: bytes that a point takes for each permutation: its place in the order, and its fold.
    check_list(permutations, "the null", "permutations", 16 * len(pooled))
    deviation = float(deviations.prod())
    if standardize:
        pooled = (pooled - pooled.mean(0)) / deviations
    rng = np.random.default_rng(check_seed(seed))
    centers = pooled[rng.choice(len(pooled), min(MAX_CENTERS, len(pooled)), replace=False)]
    orders = [np.arange(len(pooled)), *(rng.permutation(len(pooled)) for _ in range(permutations))]
    parts = np.stack([_parts(order, len(x), rng) for order in orders])
    estimates, widths, penalties = _estimates(pooled, parts, centers)
    distance, null = float(estimates[0]), estimates[1:]
    if not standardize:
        distance, null = distance * deviation, null * deviation
    return DensityDifference(
        value=distance / deviation,
        standardized=distance,
        deviation=deviation,
        width=float(widths[0]),
        penalty=float(penalties[0]),
        null=tuple(float(value) for value in null),
        p_value=float((1 + (null >= distance).sum()) / (1 + permutations)) if permutations else None,
    )


def _parts(order: NDArray[np.int64], split: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the fold of each point, shape (n,): 0 to 4 for the first `split` points of `order`, 5 to 9 for the others.

    Each sample is folded by itself, so that every fold has points of both, however much their sizes differ.
    """
    part = np.empty(len(order), np.int64)
    for sample, points in enumerate((order[:split], order[split:])):
        part[points] = sample * FOLDS + rng.permutation(np.arange(len(points)) % FOLDS)
    return part


def _estimates(
    pooled: NDArray[np.float64], parts: NDArray[np.int64], centers: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return 2θᵀh − θᵀHθ with θ = (H + λI)⁻¹h, s and λ for each way to divide the points: (ways, points) → 3 × (ways,).

    Each way has its own s and λ, those with the least Σ θᵀHθ − 2θᵀh_held over its folds.
    """
    ways = len(parts)
    squared = _squared_distances(centers, centers)
    sizes = np.stack([(parts == part).sum(1) for part in range(2 * FOLDS)], 1).reshape(ways, 2, FOLDS, 1)
    least = np.full(ways, np.inf)
    distances, widths, penalties = np.zeros(ways), np.zeros(ways), np.zeros(ways)
    for width, of_parts in zip(WIDTHS, _sums(pooled, parts, centers), strict=True):
        # H, the integrals of products of two Gaussians: (√π s)^d exp(−‖c − c'‖²/(4s²)).
        values, vectors = np.linalg.eigh((sqrt(pi) * width) ** pooled.shape[1] * np.exp(-squared / (4 * width**2)))
        values = np.maximum(values, 0)
        sums = of_parts.reshape(ways, 2, FOLDS, -1) @ vectors
        held = _difference(sums, np.maximum(sizes, 1))
        kept = _difference(sums.sum(2, keepdims=True) - sums, np.maximum(sizes.sum(2, keepdims=True) - sizes, 1))
        h = _difference(sums.sum(2), sizes.sum(2))
        # Sums over folds come first, so that all λ are one product.
        shrunk = 1 / (values[:, None] + np.array(PENALTIES))
        squares = values[:, None] * shrunk**2
        scores = np.square(kept).sum(1) @ squares - 2 * (kept * held).sum(1) @ shrunk
        best = scores.argmin(1)
        score = scores[np.arange(ways), best]
        estimate = (np.square(h) @ (2 * shrunk - squares))[np.arange(ways), best]
        better = score < least
        least, distances = np.where(better, score, least), np.where(better, estimate, distances)
        widths, penalties = np.where(better, width, widths), np.where(better, np.take(PENALTIES, best), penalties)
    return distances, widths, penalties


def _sums(points: NDArray[np.float64], parts: NDArray[np.int64], centers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ exp(−‖x − c‖²/(2s²)) over the points of each fold, for each width s.

    The shapes are (ways, points) → (widths, ways · folds of both, centers).
    """
    ways, folds = len(parts), 2 * FOLDS
    sums = np.zeros((len(WIDTHS), ways * folds, len(centers)))
    # 1 << 22: numbers held at a time that assign points to samples.
    rows = max((1 << 22) // (ways * folds), 1)
    for start in range(0, len(points), rows):
        part = parts[:, start : start + rows]
        squared = _squared_distances(points[start : start + rows], centers)
        mask = np.zeros((ways, folds, part.shape[1]))
        np.put_along_axis(mask, part[:, None], 1.0, axis=1)
        for width, into in zip(WIDTHS, sums, strict=True):
            into += mask.reshape(ways * folds, -1) @ np.exp(-squared / (2 * width**2))
    return sums


def _difference(sums: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the means of a's points minus the means of b's, from sums (p, 2, …) and sizes that broadcast to them."""
    means: NDArray[np.float64] = sums / sizes
    difference: NDArray[np.float64] = means[:, 0] - means[:, 1]
    return difference


def _squared_distances(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared distances of points (n, d) and (m, d), shape (n, m)."""
    if x.shape[1] == 1:
        squared: NDArray[np.float64] = np.square(x - y.T)
    else:
        squared = np.maximum(np.square(x).sum(1)[:, None] + np.square(y).sum(1) - 2 * x @ y.T, 0)
    return squared


def _points(values: ArrayLike, name: str) -> NDArray[np.float64]:
    points = np.asarray(values, np.float64)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or len(points) < 2 or not points.shape[1]:
        raise DataError(f"{name} must hold at least two points, shape (n,) or (n, d), got {np.shape(values)}")
    if not np.isfinite(points).all():
        raise DataError(f"{name} holds values that are not finite (NaN or Inf): leave them out")
    return points
