"""FINC: the directions of feature space on which one set has more mass than another, and how sure that is.

Mathematics only: tensors in, tensors out. C_X = E[φ(x)φ(x)ᵀ] over the first set, C_Y over the second; a direction
v has mass vᵀC_X v and vᵀC_Y v, and excess vᵀΛv with Λ = C_X − ρC_Y (FINC paper, arXiv 2405.02700, Section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm

from finc_eval.moments import Moments, weighted_sum
from finc_eval.rotation import varimax
from finc_eval.spectrum import top_eigenpairs

OVERSAMPLING = 1.3
"""Rotated directions per mode asked for: the varimax rotation needs some room beyond the modes reported."""

LEVEL = 0.95
"""Simultaneous coverage of the intervals."""

HALVES_CORRELATION = 0.25
"""Allowance for the correlation between the two half-sample estimates of one direction. Each half's direction is
judged on the other half, so one strong overlap raises both estimates. Measured on sets without any difference:
0.19 to 0.22 at three sizes (benchmarks/null_calibration.py)."""


@dataclass(frozen=True)
class Directions:
    """Orthonormal directions of feature space, by descending excess.

    Attributes:
        vectors: shape (2r, t), one direction a column.
        excess: shape (t,), vᵀΛv in the data that the directions were fitted to, so biased upwards.
        eigenvalues: the leading eigenvalues of Λ, descending.
    """

    vectors: torch.Tensor
    excess: torch.Tensor
    eigenvalues: torch.Tensor


def directions(
    first: Sequence[Moments],
    second: Sequence[Moments],
    rho: float,
    count: int,
    sample: torch.Tensor | None,
    spectrum: int = 0,
) -> Directions:
    """The `count` leading directions of Λ = C_first − ρ·C_second.

    Args:
        first: moments of φ over the set that may have more, in any number of parts.
        second: moments of φ over the set compared with.
        rho: ρ > 0, how many times more frequent a kind must be to count.
        count: how many directions.
        sample: φ of some samples of both sets, shape (m, 2r): the eigenspace is rotated (varimax) so that each
            of them lies on few directions. None keeps the eigenvectors, as the paper does.
        spectrum: how many leading eigenvalues to return, at least `count`.
    """
    n_first, n_second = (sum(part.n for part in parts) for parts in (first, second))
    difference = weighted_sum([*((1 / n_first, part) for part in first), *((-rho / n_second, part) for part in second)])
    values, vectors = top_eigenpairs(difference, max(count, spectrum))
    vectors = vectors[:, :count]
    if sample is not None:
        vectors = vectors @ varimax(sample @ vectors)
    excess = (vectors * (difference @ vectors)).sum(0)
    order = excess.argsort(descending=True)
    return Directions(vectors[:, order], excess[order], values)


@dataclass(frozen=True)
class CrossFit:
    """Directions fitted to all data, and their counterparts fitted to one half, for scoring the other.

    Attributes:
        full: the directions of all data.
        scoring: the directions that score fold 0 (fitted to fold 1) and those that score fold 1 (fitted to fold 0),
            each (2r, t), in the order of `full`.
        stability: shape (t,), the mean squared overlap (vᵀw)² of a direction with its two counterparts.
    """

    full: Directions
    scoring: tuple[torch.Tensor, torch.Tensor]
    stability: torch.Tensor


def cross_fit(
    first: tuple[Moments, Moments],
    second: tuple[Moments, Moments],
    rho: float,
    count: int,
    sample: torch.Tensor | None,
    sample_folds: torch.Tensor,
    spectrum: int,
) -> CrossFit:
    """Fit directions to all data and to each half.

    Every direction of a half is paired with one of the full fit, none is left out, so that pairing cannot select
    the half's lucky directions: as a family, the out-of-fold masses stay unbiased.

    Args:
        first: moments of φ over the two folds of the set that may have more.
        second: those of the other set.
        rho: ρ.
        count: how many directions, t.
        sample: φ of samples of both sets for the rotation, (m, 2r); None for eigenvectors.
        sample_folds: the fold of each of them, (m,); a half is rotated by its own samples only.
        spectrum: how many eigenvalues the full fit returns.
    """
    full = directions(first, second, rho, count, sample, spectrum)
    fitted = []
    for fold in (0, 1):
        own = None if sample is None else sample[sample_folds == fold]
        fitted.append(match(full.vectors, directions([first[fold]], [second[fold]], rho, count, own).vectors))
    return CrossFit(full, (fitted[1][0], fitted[0][0]), (fitted[0][1] + fitted[1][1]) / 2)


def match(targets: torch.Tensor, candidates: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Pair each target direction with one candidate, so that the squared overlaps (vᵀw)² sum to the most.

    Args:
        targets: shape (2r, t).
        candidates: shape (2r, t).

    Returns:
        The candidates in the order of the targets, (2r, t), and the squared overlaps, (t,).
    """
    overlap = (targets.T @ candidates).square().cpu()
    _, column = linear_sum_assignment(overlap.numpy(), maximize=True)
    chosen = torch.from_numpy(column)
    return candidates[:, chosen.to(candidates.device)], overlap[torch.arange(len(chosen)), chosen]


@dataclass(frozen=True)
class Masses:
    """Mean and variance of s² = (φ(x)·v)² over the two folds of a set, for t directions each scored out of fold.

    Attributes:
        n: shape (2,), samples per fold.
        mean: shape (2, t).
        variance: shape (2, t), of one sample's s².
    """

    n: torch.Tensor
    mean: torch.Tensor
    variance: torch.Tensor

    def __getitem__(self, columns: slice) -> Masses:
        """Those of some of the directions."""
        return Masses(self.n, self.mean[:, columns], self.variance[:, columns])

    @classmethod
    def conservative(cls, folds: tuple[Moments, Moments], vectors: tuple[torch.Tensor, torch.Tensor]) -> Masses:
        """From moments alone: ‖φ‖ = ‖v‖ = 1, so s² ≤ 1 and its variance is at most m(1−m).

        Args:
            folds: moments of φ over fold 0 and fold 1.
            vectors: the directions that score fold 0, and those that score fold 1, each (2r, t).
        """
        mean = torch.stack(
            [(v * (moments.mean_square() @ v)).sum(0).double() for moments, v in zip(folds, vectors, strict=True)]
        ).clamp(0, 1)
        return cls(
            torch.tensor([moments.n for moments in folds], dtype=torch.double),
            mean.cpu(),
            (mean * (1 - mean)).cpu(),
        )

    def pooled(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The mass over both folds, shape (t,), and the variance of that estimate."""
        share = (self.n / self.n.sum())[:, None]
        return (share * self.mean).sum(0), (share.square() * self.variance / self.n[:, None]).sum(0)


@dataclass(frozen=True)
class Estimates:
    """What cross-fitting says of t directions; every tensor has shape (t,).

    Attributes:
        mass_first: out-of-fold mass in the set that may have more.
        mass_second: out-of-fold mass in the other set.
        excess: mass_first − ρ·mass_second.
        error: the standard error of the excess.
    """

    mass_first: torch.Tensor
    mass_second: torch.Tensor
    excess: torch.Tensor
    error: torch.Tensor

    @classmethod
    def of(cls, first: Masses, second: Masses, rho: float) -> Estimates:
        """Excess and standard error from the masses of the two independent sets."""
        mass_first, variance_first = first.pooled()
        mass_second, variance_second = second.pooled()
        error = ((1 + HALVES_CORRELATION) * (variance_first + rho**2 * variance_second)).sqrt()
        return cls(mass_first, mass_second, mass_first - rho * mass_second, error)

    def p_values(self) -> torch.Tensor:
        """One-sided p-values of "the excess is not positive", normal approximation, before any adjustment."""
        z = self.excess / self.error.clamp_min(torch.finfo(self.error.dtype).tiny)
        return torch.from_numpy(np.asarray(norm.sf(z.numpy())))

    def half_widths(self, family: int) -> torch.Tensor:
        """Half-widths of intervals that hold simultaneously for a family of this many directions (Bonferroni)."""
        return float(norm.isf((1 - LEVEL) / (2 * family))) * self.error


def holm(p_values: torch.Tensor) -> torch.Tensor:
    """Holm's adjusted p-values, shape (t,): rejecting those ≤ α keeps the family-wise error rate at α (Holm 1979)."""
    order = p_values.argsort()
    steps = torch.arange(len(p_values), 0, -1, dtype=p_values.dtype)
    adjusted = torch.empty_like(p_values)
    adjusted[order] = (p_values[order] * steps).cummax(0).values.clamp_max(1.0)
    return adjusted
