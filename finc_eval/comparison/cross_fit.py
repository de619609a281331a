"""Cross-fitting: directions of all data, their counterparts of each half, and how well the two agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from scipy.optimize import linear_sum_assignment

from finc_eval.comparison.directions import Directions, Mixture, _embedded


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
