"""Out-of-fold masses of directions, and the excess, standard error and p-value that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from finc_eval.numerics.inference import critical_value, upper_tail
from finc_eval.numerics.moments import Moments

HALVES_CORRELATION = 0.25
"""Allowance for the correlation between the two half-sample estimates of one direction. Each half's direction is
judged on the other half, so one strong overlap raises both estimates. Measured on sets without any difference:
0.19 to 0.23 at three sizes (benchmarks/null_calibration.py)."""


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
        """Select directions."""
        return Masses(self.n, self.mean[:, columns], self.variance[:, columns])

    @classmethod
    def conservative(cls, folds: tuple[Moments, Moments], vectors: tuple[torch.Tensor, torch.Tensor]) -> Masses:
        """Compute masses from moments alone, with an upper bound for the variances.

        ‖φ‖ = ‖v‖ = 1, so s² ≤ 1, and its variance is at most m(1−m) for a mass m.

        Args:
            folds: moments of φ over fold 0 and fold 1.
            vectors: directions that score fold 0, and those that score fold 1, each (q, t).
        """
        mean = torch.stack(
            [(v * moments.apply(v)).sum(0).double() for moments, v in zip(folds, vectors, strict=True)]
        ).clamp(0, 1)
        return cls(
            torch.tensor([moments.n for moments in folds], dtype=torch.double),
            mean.cpu(),
            (mean * (1 - mean)).cpu(),
        )

    def pooled(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mass over both folds, shape (t,), and the variance of that estimate."""
        share = (self.n / self.n.sum())[:, None]
        return (share * self.mean).sum(0), (share.square() * self.variance / self.n[:, None]).sum(0)


@dataclass(frozen=True)
class Estimates:
    """Cross-fitted masses and excess of t directions; every tensor has shape (t,).

    Attributes:
        mass_first: out-of-fold mass in the set that may have more.
        mass_second: out-of-fold mass in the other set.
        excess: mass_first − ρ·mass_second.
        error: standard error of the excess.
    """

    mass_first: torch.Tensor
    mass_second: torch.Tensor
    excess: torch.Tensor
    error: torch.Tensor

    @classmethod
    def of(cls, first: Sequence[tuple[float, Masses]], second: Sequence[tuple[float, Masses]], rho: float) -> Estimates:
        """Compute excess and standard error from the masses of independent sets, mixed with these weights."""
        mass_first, variance_first = _mixed(first)
        mass_second, variance_second = _mixed(second)
        error = standard_error(variance_first + rho**2 * variance_second)
        return cls(mass_first, mass_second, mass_first - rho * mass_second, error)

    def p_values(self) -> torch.Tensor:
        """Return one-sided p-values of "the excess is not positive", normal approximation, before any adjustment."""
        z = self.excess / self.error.clamp_min(torch.finfo(self.error.dtype).tiny)
        return z.apply_(upper_tail)

    def half_widths(self, family: int) -> torch.Tensor:
        """Return half-widths of intervals that hold simultaneously for this many directions (Bonferroni)."""
        return critical_value(family) * self.error


def standard_error(variance: torch.Tensor) -> torch.Tensor:
    """Return the standard error of masses whose pooled half-sample estimates have this variance if independent."""
    return ((1 + HALVES_CORRELATION) * variance).sqrt()


def _mixed(parts: Sequence[tuple[float, Masses]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mass of a mixture of sets, and the variance of that estimate."""
    pooled = [(weight, *masses.pooled()) for weight, masses in parts]
    mass = torch.stack([weight * mean for weight, mean, _ in pooled]).sum(0)
    return mass, torch.stack([weight**2 * variance for weight, _, variance in pooled]).sum(0)
