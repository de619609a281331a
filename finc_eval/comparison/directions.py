"""FINC: the directions of feature space on which one set has more mass than another.

Mathematics only: tensors in, tensors out. C_X = E[φ(x)φ(x)ᵀ] over the first set, C_Y over the second; a direction
v has mass vᵀC_X v and vᵀC_Y v, and excess vᵀΛv with Λ = C_X − ρC_Y (FINC paper, arXiv 2405.02700, Section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from scipy.optimize import linear_sum_assignment

from finc_eval.core.device import send
from finc_eval.numerics.arrays import rows_of
from finc_eval.numerics.eigen import RESIDUAL_TOLERANCE, Eigenpairs, LowRank, extreme_eigenpairs, varimax
from finc_eval.numerics.moments import Moments, weighted_sum

OVERSAMPLING = 1.3
"""Rotated directions per direction asked for: the varimax rotation needs some room. Over 18 draws of digits and
photographs, 5.3 of six planted kinds are found; with 1.0, 5.2."""

REFIT_TOLERANCE = 0.01
"""Residual tolerance of the pairs of a half: its directions only have to be its own, of its samples alone. No figure of
18 comparisons of digits, photographs and clips is another by more than 1e-4 than with 1e-4; with 0.1 some are."""

DUAL = 2
"""Entries of φ per sample from which on Λ is known by its factors: a product with it takes no longer, and nobody makes
the matrix."""


@dataclass(frozen=True)
class FoldedMoments:
    """Moments of φ over a set, by fold."""

    folds: tuple[Moments, Moments]  # moments of φ over the samples of each fold
    # φ of every sample of each fold, shapes (n₀, q) and (n₁, q), where the set is small enough; else None
    features: tuple[torch.Tensor, torch.Tensor] | None = None


@dataclass(frozen=True)
class Directions:
    """Orthonormal directions of feature space, by descending excess."""

    vectors: torch.Tensor  # shape (q, t), one direction a column
    # shape (t,), vᵀΛv in the data that the directions were fitted to, so biased upwards; on the CPU
    excess: torch.Tensor
    eigenvalues: torch.Tensor  # leading eigenvalues of Λ, descending; on the CPU
    # share of the exact neighbors that the directions were found by; None if all are exact, or none are needed
    recall: float | None = None


def covariance_difference(
    first: FoldedMoments, second: FoldedMoments, rho: float, folds: Sequence[int] = (0, 1)
) -> torch.Tensor | LowRank:
    """Return Λ = C_first − ρ·C_second over some of the folds.

    Where φ of every sample is at hand and samples are few, Λ is returned as its factors.
    """
    terms = [
        (weight / sum(moments.folds[fold].n for fold in folds), moments, fold)
        for weight, moments in ((1.0, first), (-rho, second))
        for fold in folds
    ]
    rows = [(weight, moments.features[fold]) for weight, moments, fold in terms if moments.features is not None]
    if len(rows) == len(terms) and DUAL * sum(len(part) for _, part in rows) <= first.folds[0].size:
        weights = torch.cat([torch.full((len(part),), weight, device=part.device) for weight, part in rows])
        return LowRank(torch.cat([part for _, part in rows]), weights)
    return weighted_sum([(weight, moments.folds[fold]) for weight, moments, fold in terms])


def fit_directions(pairs: Eigenpairs, scores: Callable[[torch.Tensor], torch.Tensor] | None) -> Directions:
    """Turn leading eigenpairs of Λ into directions.

    The first t eigenvalues have eigenvectors, (q, t). With `scores`, φ(x)·v of samples of both sets, (q, t) → (m, t),
    the eigenspace is rotated (varimax) so that each sample lies on few directions. None keeps the eigenvectors, as the
    paper does.
    """
    values, vectors = pairs
    excess = values[: vectors.shape[1]]
    if scores is not None:
        rotation = varimax(scores(vectors.float())).to(vectors)
        vectors, excess = vectors @ rotation, excess @ rotation.square()
    order = excess.argsort(descending=True)
    return Directions(vectors[:, order].float(), excess[order].cpu(), values.cpu())


@dataclass(frozen=True)
class RotationSample:
    """Some samples of all sets, to rotate eigenspaces by."""

    features: tuple[torch.Tensor, ...]  # φ of the samples of each set, shapes (m₁, q), (m₂, q), …
    folds: torch.Tensor  # fold of each of them all, (m,), on the CPU

    def scores(
        self, vectors: torch.Tensor, *, fold: int | None = None, entries: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return φ(x)·v of the samples, of all or of one fold: (q, t) → (m, t).

        With `entries`, the directions are among these entries of φ only.
        """
        if entries is not None:
            vectors = pad(vectors, entries, self.features[0].shape[1])
        scores = torch.cat([part @ vectors for part in self.features])
        return scores if fold is None else scores[rows_of(self.folds, fold).to(scores.device)]


@dataclass(frozen=True, eq=False)
class EigenProblem:
    """Leading eigenpairs of Λ = C_first − ρ·C_second, and of −Λ if asked for: each found once."""

    first: FoldedMoments  # set that may have more
    second: FoldedMoments  # set compared with
    rho: float  # ρ
    count: int  # number of directions, t
    spectrum: int  # number of eigenvalues of all data
    both: bool = False  # whether to find also the pairs of −Λ. With ρ = 1 that is what the second set has more of.
    _found: dict[tuple[int, ...], list[list[Eigenpairs]]] = field(default_factory=dict)

    def pairs(self, folds: Sequence[int], parts: Sequence[torch.Tensor]) -> list[list[Eigenpairs]]:
        """Return the pairs of Λ and −Λ over some folds: of all entries of φ, and of those in each of `parts` alone.

        A part holds numbers of entries of φ, shape (q′,).
        """
        if tuple(folds) not in self._found:
            difference = covariance_difference(self.first, self.second, self.rho, folds)
            problems = [difference]
            for entries in parts:  # Λ of the feature map that has these entries only, up to scale
                if isinstance(difference, LowRank):
                    problems.append(LowRank(difference.rows.index_select(1, entries), difference.weights))
                else:
                    problems.append(difference.index_select(0, entries).index_select(1, entries))
            all_data = (self.spectrum, RESIDUAL_TOLERANCE)
            wanted = (all_data if len(folds) == 2 else (0, REFIT_TOLERANCE), *((0, REFIT_TOLERANCE) for _ in parts))
            self._found[tuple(folds)] = [
                extreme_eigenpairs(problem, self.count, *how, both=self.both)
                for problem, how in zip(problems, wanted, strict=True)
            ]
        return self._found[tuple(folds)]


def eigen_directions(
    problem: EigenProblem,
    sample: RotationSample | None,
    folds: Sequence[int],
    parts: Sequence[torch.Tensor] = (),
    *,
    end: int = 0,
) -> tuple[Directions, list[torch.Tensor]]:
    """Find leading eigenvectors of Λ in some folds, rotated by their own part of a sample; see `DirectionFinder`.

    `end` is 0 for what the first set has more of, 1 for the second, of a problem that has both.
    """
    fold = None if len(folds) == 2 else folds[0]
    whole, *restricted = (pairs[end] for pairs in problem.pairs(folds, parts))
    full, *others = (
        fit_directions(pairs, None if sample is None else partial(sample.scores, fold=fold, entries=entries))
        for pairs, entries in zip([whole, *restricted], [None, *parts], strict=True)
    )
    return full, [fitted.vectors for fitted in others]


def pad(vectors: torch.Tensor, entries: torch.Tensor, size: int) -> torch.Tensor:
    """Turn directions among some entries of φ into directions among all: (p, t) → (q, t)."""
    whole = vectors.new_zeros(size, vectors.shape[1])
    whole[entries] = vectors
    return whole


@dataclass(frozen=True)
class CrossFit:
    """Directions fitted to all data, and their counterparts fitted to one half, for scoring the other."""

    full: Directions  # directions of all data
    # directions that score fold 0 (fitted to fold 1) and those that score fold 1 (fitted to fold 0), each (q, t), in
    # the order and orientation of `full`
    scoring: tuple[torch.Tensor, torch.Tensor]
    # shape (t,), share of a direction's scores that four refits reproduce: R² between its scores and its counterpart's,
    # averaged over the two halves of the samples and the two halves of the random frequencies; None for directions that
    # are not fitted to the difference of sets
    stability: torch.Tensor | None


DirectionFinder = Callable[[Sequence[int], Sequence[torch.Tensor]], tuple[Directions, list[torch.Tensor]]]
"""A function that finds directions on which one set may have more than another, in the samples of some folds.

It finds them also with the entries of each of some parts of φ only, each (p, t).
"""


def cross_fit(
    find: DirectionFinder,
    sets: Sequence[FoldedMoments],
    frequency_halves: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> CrossFit:
    """Fit directions to all data, to each half of the samples, and with each half of the frequencies.

    Every direction of a half is paired with one of the full fit, none is left out, so that pairing cannot select the
    half's lucky directions: as a family, the out-of-fold masses stay unbiased. A direction for which a half has none
    left gets one without mass there. `frequency_halves` are the entries of φ of either half of the frequencies; None
    for a map without frequencies.
    """
    full, restricted = find((0, 1), frequency_halves or ())
    size, count = full.vectors.shape
    refits = [pad(found, entries, size) for found, entries in zip(restricted, frequency_halves or (), strict=True)]
    halves = []
    for fold in (0, 1):
        found = find((fold,), ())[0].vectors[:, :count]
        rows, columns = match((full.vectors.T @ found).square().cpu())
        paired = torch.zeros_like(full.vectors)
        paired[:, send(rows, paired.device)] = found[:, send(columns, found.device)]
        halves.append(torch.where((full.vectors * paired).sum(0) < 0, -paired, paired))
    again = r_squared(full.vectors, [*halves, *refits], sets)
    reproduced = torch.zeros(len(again), count)
    for place, similarity in enumerate(again):
        rows, columns = (torch.arange(count),) * 2 if place < 2 else match(similarity)
        reproduced[place, rows] = similarity[rows, columns].to(reproduced)
    return CrossFit(full, (halves[1], halves[0]), reproduced.mean(0))


def r_squared(
    vectors: torch.Tensor, refits: Sequence[torch.Tensor], sets: Sequence[FoldedMoments]
) -> list[torch.Tensor]:
    """Return squared correlations of φ(x)·v between directions (q, t) and each of `refits` (q, u): (t, u), on the CPU.

    Each fold of each set weighs the same.
    """
    folds = [fold for folded in sets for fold in folded.folds]
    columns = torch.cat([vectors, *refits], 1).to(folds[0].first)
    mean = torch.stack([fold.mean().to(columns) for fold in folds]).mean(0)  # one sketch may be of float64
    images = torch.stack([fold.apply(columns).to(columns) for fold in folds]).mean(0) - mean[:, None] * (mean @ columns)
    variance = (columns * images).sum(0).clamp_min(torch.finfo(images.dtype).tiny)
    count = vectors.shape[1]
    between = (images[:, :count].T @ columns[:, count:]).square() / variance[:count, None] / variance[count:]
    return list(torch.split(between.clamp(0, 1).cpu(), [other.shape[1] for other in refits], 1))


def match(similarity: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Pair rows with columns of similarities (t, u) one to one, so that their sum is largest; rows ascend."""
    rows, columns = linear_sum_assignment(similarity.numpy(), maximize=True)
    return torch.from_numpy(rows), torch.from_numpy(columns)
