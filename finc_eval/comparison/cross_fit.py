"""Cross-fitting: directions of all data, their counterparts in each half, and how well the two agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from scipy.optimize import linear_sum_assignment

from finc_eval.comparison.directions import Directions, FoldedMoments, pad
from finc_eval.core.device import send


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
        rows, columns = match(squared_overlap(full.vectors, found))
        paired = torch.zeros_like(full.vectors)
        paired[:, send(rows, paired.device)] = found[:, send(columns, found.device)]
        halves.append(torch.where((full.vectors * paired).sum(0) < 0, -paired, paired))
    again = r_squared(full.vectors, [*halves, *refits], sets)
    reproduced = torch.zeros(len(again), count)
    for place, one in enumerate(again):
        rows, columns = (torch.arange(count),) * 2 if place < 2 else match(one)
        reproduced[place, rows] = one[rows, columns].to(reproduced)
    return CrossFit(full, (halves[1], halves[0]), reproduced.mean(0))


def r_squared(
    vectors: torch.Tensor, refits: Sequence[torch.Tensor], sets: Sequence[FoldedMoments]
) -> list[torch.Tensor]:
    """Return squared correlations of φ(x)·v between directions (q, t) and each of `refits` (q, u): (t, u), on the CPU.

    Each fold of each set weighs the same.
    """
    folds = [fold for one in sets for fold in one.folds]
    columns = torch.cat([vectors, *refits], 1).to(folds[0].first)
    mean = torch.stack([fold.mean() for fold in folds]).mean(0)
    images = torch.stack([fold.apply(columns) for fold in folds]).mean(0) - mean[:, None] * (mean @ columns)
    variance = (columns * images).sum(0).clamp_min(torch.finfo(images.dtype).tiny)
    count = vectors.shape[1]
    between = (images[:, :count].T @ columns[:, count:]).square() / variance[:count, None] / variance[count:]
    return list(torch.split(between.clamp(0, 1).cpu(), [other.shape[1] for other in refits], 1))


def squared_overlap(targets: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    """Return (vᵀw)² of every pair of unit directions: (q, t), (q, u) → (t, u), on the CPU."""
    return (targets.T @ candidates).square().cpu()


def match(similarity: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Pair rows with columns of similarities (t, u) one to one, so that their sum is largest; rows ascend."""
    rows, columns = linear_sum_assignment(similarity.numpy(), maximize=True)
    return torch.from_numpy(rows), torch.from_numpy(columns)
