"""FINC: the directions of feature space on which one set has more mass than another, and how sure that is.

Mathematics only: tensors in, tensors out. C_X = E[φ(x)φ(x)ᵀ] over the first set, C_Y over the second; a direction
v has mass vᵀC_X v and vᵀC_Y v, and excess vᵀΛv with Λ = C_X − ρC_Y (FINC paper, arXiv 2405.02700, Section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm

from finc_eval.numerics.eigen import LowRank, top_eigenpairs
from finc_eval.numerics.moments import Moments, weighted_sum
from finc_eval.numerics.varimax import varimax

OVERSAMPLING = 1.3
"""Rotated directions per mode asked for: the varimax rotation needs some room beyond the modes reported."""

DUAL = 4
"""Entries of φ per sample from which on the eigenproblem of the samples is solved instead. Making it takes a QR
factorisation: of 4000 entries, in 0.4 of the time of the larger problem with 1000 samples, in 1.4 times with 2000."""

LEVEL = 0.95
"""Simultaneous coverage of the intervals."""

HALVES_CORRELATION = 0.25
"""Allowance for the correlation between the two half-sample estimates of one direction. Each half's direction is
judged on the other half, so one strong overlap raises both estimates. Measured on sets without any difference:
0.19 to 0.23 at three sizes (benchmarks/null_calibration.py)."""


@dataclass(frozen=True)
class Population:
    """One set, as its two folds know it.

    Attributes:
        folds: moments of φ over the samples of each fold.
        features: φ of every sample of each fold, shapes (n₀, q) and (n₁, q), where the set is small enough; else None.
    """

    folds: tuple[Moments, Moments]
    features: tuple[torch.Tensor, torch.Tensor] | None = None


Mixture = Sequence[tuple[float, Population]]
"""Populations with their weights, which add to 1."""


class Difference:
    """Λ = C_first − ρ·C_second over some of the folds.

    Where φ of every sample is at hand and samples are few, Λ is kept by its factors, so that the eigenproblem has the
    size of the number of samples.

    Args:
        first: the mixture that may have more.
        second: the mixture compared with.
        rho: ρ.
        folds: which folds count.
    """

    def __init__(self, first: Mixture, second: Mixture, rho: float, folds: Sequence[int] = (0, 1)) -> None:
        weighted = [*first, *((-rho * weight, population) for weight, population in second)]
        self._terms = [
            (weight / sum(population.folds[fold].n for fold in folds), population, fold)
            for weight, population in weighted
            for fold in folds
        ]

    def matrix(self) -> torch.Tensor | LowRank:
        """Λ, or its factors."""
        rows = [(weight, p.features[fold]) for weight, p, fold in self._terms if p.features is not None]
        size = self._terms[0][1].folds[0].size
        if len(rows) == len(self._terms) and DUAL * sum(len(part) for _, part in rows) <= size:
            weights = torch.cat([torch.full((len(part),), weight, device=part.device) for weight, part in rows])
            return LowRank(torch.cat([part for _, part in rows]), weights)
        return weighted_sum([(weight, population.folds[fold]) for weight, population, fold in self._terms])


@dataclass(frozen=True)
class Directions:
    """Orthonormal directions of feature space, by descending excess.

    Attributes:
        vectors: shape (q, t), one direction a column.
        excess: shape (t,), vᵀΛv in the data that the directions were fitted to, so biased upwards.
        eigenvalues: the leading eigenvalues of Λ, descending.
    """

    vectors: torch.Tensor
    excess: torch.Tensor
    eigenvalues: torch.Tensor


def directions(
    difference: torch.Tensor | LowRank,
    count: int,
    scores: Callable[[torch.Tensor], torch.Tensor] | None,
    spectrum: int = 0,
) -> Directions:
    """The `count` leading directions of Λ.

    Args:
        difference: Λ, shape (q, q), or its factors.
        count: how many directions, t.
        scores: φ(x)·v of some samples of both sets on directions, (q, t) → (m, t): the eigenspace is rotated (varimax)
            so that each of them lies on few directions. None keeps the eigenvectors, as the paper does.
        spectrum: how many leading eigenvalues to return, at least `count`.
    """
    values, vectors = top_eigenpairs(difference, count, spectrum)
    if scores is not None:
        vectors = vectors @ varimax(scores(vectors.float())).to(vectors)
    images = difference.apply(vectors) if isinstance(difference, LowRank) else difference @ vectors
    excess = (vectors * images).sum(0)
    order = excess.argsort(descending=True)
    return Directions(vectors[:, order].float(), excess[order], values)


@dataclass(frozen=True)
class RotationSample:
    """Some samples of all sets, to rotate eigenspaces by.

    Attributes:
        features: φ of the samples of each set, shapes (m₁, q), (m₂, q), ….
        folds: the fold of each of them all, (m,), on the CPU.
    """

    features: tuple[torch.Tensor, ...]
    folds: torch.Tensor

    def scores(
        self, vectors: torch.Tensor, *, fold: int | None = None, entries: torch.Tensor | None = None
    ) -> torch.Tensor:
        """φ(x)·v of all of them, or those of one fold: (q, t) → (m, t); `vectors` may have some entries of φ only."""
        if entries is not None:
            vectors = _embedded(vectors, entries, self.features[0].shape[1])
        scores = torch.cat([part @ vectors for part in self.features])
        return scores if fold is None else scores[self.folds == fold]


@dataclass(frozen=True)
class CrossFit:
    """Directions fitted to all data, and their counterparts fitted to one half, for scoring the other.

    Attributes:
        full: the directions of all data.
        scoring: the directions that score fold 0 (fitted to fold 1) and those that score fold 1 (fitted to fold 0),
            each (q, t), in the order and orientation of `full`.
        stability: shape (t,), how much of a direction's scores four refits reproduce: R² between its scores and its
            counterpart's, averaged over the two halves of the samples and the two halves of the random frequencies.
    """

    full: Directions
    scoring: tuple[torch.Tensor, torch.Tensor]
    stability: torch.Tensor


class Proposer(Protocol):
    """Whatever finds directions on which one mixture of sets may have more than another."""

    def __call__(
        self, folds: Sequence[int], parts: Sequence[torch.Tensor] = ()
    ) -> tuple[Directions, list[torch.Tensor]]:
        """The directions that the samples of these folds propose.

        Args:
            folds: which folds count.
            parts: some entries of φ each.

        Returns:
            The directions, and for each of `parts` those under a feature map with these entries only, each (p, t).
        """


@dataclass(frozen=True)
class Eigenvectors:
    """FINC's proposer: the leading eigenvectors of Λ, rotated where there is a sample to rotate by.

    Attributes:
        first: the mixture that may have more.
        second: the mixture compared with.
        rho: ρ.
        count: how many directions, t.
        sample: what to rotate by, a half by its own samples only; None for eigenvectors.
        spectrum: how many eigenvalues of all data to return.
    """

    first: Mixture
    second: Mixture
    rho: float
    count: int
    sample: RotationSample | None
    spectrum: int

    def __call__(
        self, folds: Sequence[int], parts: Sequence[torch.Tensor] = ()
    ) -> tuple[Directions, list[torch.Tensor]]:
        """As of `Proposer`."""
        difference = Difference(self.first, self.second, self.rho, folds).matrix()
        whole, only = (self.spectrum, None) if len(folds) == 2 else (0, folds[0])
        found = directions(difference, self.count, self._scores(fold=only), whole)
        restricted = [
            directions(_restricted(difference, entries), self.count, self._scores(fold=only, entries=entries)).vectors
            for entries in parts
        ]
        return found, restricted

    def _scores(self, **of: Any) -> Callable[[torch.Tensor], torch.Tensor] | None:
        return None if self.sample is None else partial(self.sample.scores, **of)


def cross_fit(
    propose: Proposer, populations: Mixture, frequency_halves: tuple[torch.Tensor, torch.Tensor] | None = None
) -> CrossFit:
    """Fit directions to all data, to each half of the samples, and with each half of the frequencies.

    Every direction of a half is paired with one of the full fit, none is left out, so that pairing cannot select
    the half's lucky directions: as a family, the out-of-fold masses stay unbiased. A direction for which a half has
    none left gets one without mass there.

    Args:
        propose: what finds directions.
        populations: the sets whose samples directions are fitted to.
        frequency_halves: the entries of φ of either half of the frequencies; None for a map without frequencies.
    """
    full, restricted = propose((0, 1), frequency_halves or ())
    size, count = full.vectors.shape
    refits = [
        _embedded(found, entries, size) for found, entries in zip(restricted, frequency_halves or (), strict=True)
    ]
    halves = []
    for fold in (0, 1):
        found = propose((fold,))[0].vectors[:, :count]
        rows, columns = match(squared_overlap(full.vectors, found))
        paired = torch.zeros_like(full.vectors)
        paired[:, rows.to(paired.device)] = found[:, columns.to(found.device)]
        halves.append(torch.where((full.vectors * paired).sum(0) < 0, -paired, paired))
    again = r_squared(full.vectors, [*halves, *refits], populations)
    reproduced = [one.diagonal() for one in again[:2]] + [one[match(one)] for one in again[2:]]
    return CrossFit(full, (halves[1], halves[0]), torch.stack(reproduced).mean(0))


def r_squared(vectors: torch.Tensor, refits: Sequence[torch.Tensor], populations: Mixture) -> list[torch.Tensor]:
    """Squared correlations of scores φ(x)·v over all samples, each fold of each population weighing the same.

    Args:
        vectors: shape (q, t).
        refits: other directions, each (q, u).
        populations: whose samples are scored.

    Returns:
        For each of `refits`, the squared correlation of every pair, shape (t, u), on the CPU.
    """
    folds = [fold for _, population in populations for fold in population.folds]
    columns = torch.cat([vectors, *refits], 1).to(folds[0].first)
    mean = torch.stack([fold.mean() for fold in folds]).mean(0)
    images = torch.stack([fold.apply(columns) for fold in folds]).mean(0) - mean[:, None] * (mean @ columns)
    variance = (columns * images).sum(0).clamp_min(torch.finfo(images.dtype).tiny)
    count = vectors.shape[1]
    between = (images[:, :count].T @ columns[:, count:]).square() / variance[:count, None] / variance[count:]
    return list(torch.split(between.clamp(0, 1).cpu(), [other.shape[1] for other in refits], 1))


def squared_overlap(targets: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    """(vᵀw)² of every pair of unit directions: (q, t), (q, u) → (t, u), on the CPU."""
    return (targets.T @ candidates).square().cpu()


def match(similarity: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Pair targets with candidates one to one, so that the similarities of the pairs sum to the most.

    Args:
        similarity: shape (t, u).

    Returns:
        The rows and the columns of the min(t, u) pairs, rows ascending.
    """
    rows, columns = linear_sum_assignment(similarity.numpy(), maximize=True)
    return torch.from_numpy(rows), torch.from_numpy(columns)


def _embedded(vectors: torch.Tensor, entries: torch.Tensor, size: int) -> torch.Tensor:
    """Directions among these entries of φ as directions among all: (p, t) → (q, t)."""
    whole = vectors.new_zeros(size, vectors.shape[1])
    whole[entries] = vectors
    return whole


def _restricted(difference: torch.Tensor | LowRank, entries: torch.Tensor) -> torch.Tensor | LowRank:
    """Λ of the feature map that has these entries only, up to scale."""
    if isinstance(difference, LowRank):
        rows = difference.rows[:, entries]
        if DUAL * len(rows) <= len(entries):
            return LowRank(rows, difference.weights)
        return rows.T @ (difference.weights[:, None] * rows)
    return difference[entries][:, entries]


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
            vectors: the directions that score fold 0, and those that score fold 1, each (q, t).
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
    def of(cls, first: Sequence[tuple[float, Masses]], second: Sequence[tuple[float, Masses]], rho: float) -> Estimates:
        """Excess and standard error from the masses of independent sets, mixed with these weights."""
        mass_first, variance_first = _mixed(first)
        mass_second, variance_second = _mixed(second)
        error = standard_error(variance_first + rho**2 * variance_second)
        return cls(mass_first, mass_second, mass_first - rho * mass_second, error)

    def p_values(self) -> torch.Tensor:
        """One-sided p-values of "the excess is not positive", normal approximation, before any adjustment."""
        z = self.excess / self.error.clamp_min(torch.finfo(self.error.dtype).tiny)
        return torch.from_numpy(np.asarray(norm.sf(z.numpy())))

    def half_widths(self, family: int) -> torch.Tensor:
        """Half-widths of intervals that hold simultaneously for a family of this many directions (Bonferroni)."""
        return critical_value(family) * self.error


def standard_error(variance: torch.Tensor) -> torch.Tensor:
    """The standard error of cross-fitted masses whose two half-sample estimates alone have this variance, pooled."""
    return ((1 + HALVES_CORRELATION) * variance).sqrt()


def critical_value(family: int) -> float:
    """How many standard errors wide intervals reach that hold simultaneously for a family of this many (Bonferroni)."""
    return float(norm.isf((1 - LEVEL) / (2 * family)))


def _mixed(parts: Sequence[tuple[float, Masses]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Mass of a mixture of sets, and the variance of that estimate."""
    pooled = [(weight, *masses.pooled()) for weight, masses in parts]
    mass = torch.stack([weight * mean for weight, mean, _ in pooled]).sum(0)
    return mass, torch.stack([weight**2 * variance for weight, _, variance in pooled]).sum(0)


def holm(p_values: torch.Tensor) -> torch.Tensor:
    """Holm's adjusted p-values, shape (t,): rejecting those ≤ α keeps the family-wise error rate at α (Holm 1979)."""
    order = p_values.argsort()
    steps = torch.arange(len(p_values), 0, -1, dtype=p_values.dtype)
    adjusted = torch.empty_like(p_values)
    adjusted[order] = (p_values[order] * steps).cummax(0).values.clamp_max(1.0)
    return adjusted
