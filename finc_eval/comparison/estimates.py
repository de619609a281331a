"""Out-of-fold masses of directions, and the excess, standard error and p-value that follow from them.

All directions are estimated at once, from the moments of both folds, which sketches keep. They are not `Estimate`s: the
influence of single samples is not known, and the halves of a set are correlated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from finc_eval.numerics.inference import critical_value, upper_tail
from finc_eval.numerics.moments import Moments

HALVES_CORRELATION = 0.5
"""Correlation to assume between the two half-sample estimates of one direction. Directions are paired by all data, and
those that both halves have are those that chance raises in both. Simulated with 13 of many equal kinds in each role,
5 % false discoveries take a variance 1.1 (20 kinds), 1.3 (50) to 1.4 times (100) that of independent halves, and 1.8
times with 1000 kinds of one size (docs/directions.md)."""


@dataclass(frozen=True)
class Masses:
    """Mean and variance of s² = (φ(x)·v)² over the two folds of a set, for t directions each scored out of fold."""

    n: torch.Tensor  # shape (2,), samples per fold
    mean: torch.Tensor  # shape (2, t)
    variance: torch.Tensor  # shape (2, t), of one sample's s²
    # shape (t,), design effect: how many samples of the set inform as much as one independent sample
    effect: torch.Tensor

    @classmethod
    def of_sketch(
        cls,
        folds: tuple[Moments, Moments],
        vectors: tuple[torch.Tensor, torch.Tensor],
        powers: torch.Tensor,
        effect: float,
    ) -> Masses:
        """Compute masses from moments, and their variances with the help of a sample.

        The moments give E[s²]; E[s⁴] is E[s²] times the sample's Σs⁴ / Σs², as if one more sample had s = 1. Both are
        at most 1, as ‖φ‖ = ‖v‖ = 1, so that a ratio of 1, of an empty sample, bounds the variance. `vectors` are the
        directions that score fold 0, and those that score fold 1, each (q, t); `powers` are Σs² and Σs⁴ in a sample of
        either fold, (2, 2, t).
        """
        mean = torch.stack(
            [(v * moments.apply(v)).sum(0).double() for moments, v in zip(folds, vectors, strict=True)]
        ).clamp(0, 1)
        second, fourth = powers.unbind(1)
        concentration = (fourth + 1) / (second + 1)
        variance = (mean.cpu() * concentration - mean.cpu().square()).clamp_min(0)
        n = torch.tensor([moments.n for moments in folds], dtype=torch.double)
        return cls(n, mean.cpu(), variance, torch.full((mean.shape[1],), effect, dtype=torch.double))

    def pooled(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mass over both folds, shape (t,), and the variance of that estimate."""
        share = (self.n / self.n.sum())[:, None]
        variance = (share.square() * self.variance / self.n[:, None]).sum(0)
        return (share * self.mean).sum(0), self.effect * variance


@dataclass(frozen=True)
class Estimates:
    """Cross-fitted masses and excess of t directions; every tensor has shape (t,)."""

    mass_first: torch.Tensor  # out-of-fold mass in the set that may have more
    mass_second: torch.Tensor  # out-of-fold mass in the other set
    excess: torch.Tensor  # mass_first − ρ·mass_second
    error: torch.Tensor  # standard error of the excess

    @classmethod
    def of(cls, first: Masses, second: Masses, rho: float, paired: torch.Tensor | None = None) -> Estimates:
        """Compute excess and standard error from the masses of two sets.

        `paired` is the variance of the excess of paired sets, shape (t,); None for independent sets.
        """
        floors = variance_floors([first, second], [1.0, rho])
        (mass_first, variance_first), (mass_second, variance_second) = (
            replace(masses, variance=torch.maximum(masses.variance, floor)).pooled()
            for masses, floor in zip((first, second), floors, strict=True)
        )
        variance = variance_first + rho**2 * variance_second if paired is None else paired
        error = ((1 + HALVES_CORRELATION) * variance).sqrt()
        return cls(mass_first, mass_second, mass_first - rho * mass_second, error)

    def p_values(self) -> torch.Tensor:
        """Return one-sided p-values of "the excess is not positive", normal approximation, before any adjustment."""
        z = self.excess / self.error.clamp_min(torch.finfo(self.error.dtype).tiny)
        return z.apply_(upper_tail)

    def interval(self, rank: int, family: int, rho: float) -> tuple[float, float]:
        """Return the interval of an excess, which holds simultaneously for this many directions, within [−ρ, 1]."""
        excess, width = float(self.excess[rank]), float((critical_value(family) * self.error)[rank])
        return max(excess - width, -rho), min(excess + width, 1.0)


def variance_floors(sets: Sequence[Masses], scales: Sequence[float]) -> list[torch.Tensor]:
    """Return the least variance of s² to assume in each set, shape (t,), from what all sets show together.

    A kind that a small set lacks by chance has variance 0 there, and makes the set look far more certain than it is.
    Where no set has an excess, the variance of s² is the same in all, up to scale: so the pooled one is a floor, with a
    weight of 1 − (n/n_max)⁴, where n is the effective number of samples. Sets of one size keep the variances of their
    own, which has more power: there, what is too small in one set is too large in the other. `scales` are variances of
    each set relative to the first, inverted, under the null hypothesis: ρ for the set that ρ multiplies.
    """
    sizes = torch.stack([masses.n.sum() / masses.effect for masses in sets])
    variances = [(masses.n[:, None] * masses.variance).sum(0) / masses.n.sum() for masses in sets]  # over both folds
    spreads = torch.stack([scale * variance for scale, variance in zip(scales, variances, strict=True)])
    pooled = (sizes * spreads).sum(0) / sizes.sum(0)
    weights = 1 - (sizes / sizes.amax(0)) ** 4
    return [weight * pooled / scale for weight, scale in zip(weights, scales, strict=True)]
