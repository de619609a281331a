"""Scores of a set on directions, in one streaming pass: masses, frequencies, and the best samples of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from finc_eval.comparison.cross_fit import CrossFit
from finc_eval.comparison.estimates import Masses
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.modes import SAMPLES_PER_TAIL
from finc_eval.core.run import Run
from finc_eval.numerics.precision import arithmetic
from finc_eval.sketches.folds import fold_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ScorePass:
    """One pass over a set: out-of-fold masses, energies of both tails, and the best samples of each direction.

    Nothing here grows with the number of samples.

    Args:
        shown: reported directions, shape (q, k), fitted to all data.
        scoring: directions that score fold 0 and those that score fold 1, each (q, t), of the same orientation.
    """

    def __init__(self, shown: torch.Tensor, scoring: tuple[torch.Tensor, torch.Tensor]) -> None:
        self._vectors = torch.cat([shown, *scoring], 1)
        self._columns = [shown.shape[1], scoring[0].shape[1], scoring[1].shape[1]]
        tested = scoring[0].shape[1]
        self._n = torch.zeros(2, dtype=torch.double)
        # Sums of s² and s⁴: fold, tail, direction.
        self._second = torch.zeros(2, 2, tested, dtype=torch.double)
        self._fourth = torch.zeros(2, 2, tested, dtype=torch.double)
        self._energy = torch.zeros(2, shown.shape[1], dtype=torch.double)
        self._best = torch.empty(2, 0, shown.shape[1])
        self._index = torch.empty(2, 0, shown.shape[1], dtype=torch.long)

    def update(self, features: torch.Tensor, folds: torch.Tensor, start: int) -> None:
        """Add φ of consecutive samples, shape (b, q), with their folds (b,); `start` is the index of the first."""
        with arithmetic("float32"):
            scores, *by_fold = torch.split((features @ self._vectors).cpu(), self._columns, 1)
        for fold, held_out in enumerate(by_fold):
            square = _tails(held_out[folds == fold]).clamp_min(0).double().square()
            self._n[fold] += square.shape[1]
            self._second[fold] += square.sum(1)
            self._fourth[fold] += square.square().sum(1)
        tails = _tails(scores)
        self._energy += tails.clamp_min(0).double().square().sum(1)
        # Rounded, so that the last bit of a matrix product does not decide between equal samples; a stable sort
        # then keeps the earlier one.
        candidates = torch.cat([self._best, tails.mul(1e5).round_().div_(1e5)], dim=1)
        index = torch.arange(start, start + len(scores))[None, :, None].expand_as(tails)
        index = torch.cat([self._index, index], dim=1)
        order = candidates.argsort(dim=1, descending=True, stable=True)[:, :SAMPLES_PER_TAIL]
        self._best, self._index = candidates.gather(1, order), index.gather(1, order)

    def masses(self) -> Masses:
        """Return out-of-fold masses, with the variances that were seen."""
        n = self._n[:, None]
        mean = self._second.sum(1) / n
        variance = (self._fourth.sum(1) / n - mean.square()).clamp_min(0) * n / (n - 1)
        return Masses(self._n, mean.clamp_max(1), variance)  # norms are 1 only up to rounding

    def powers(self) -> torch.Tensor:
        """Return out-of-fold means of s² and s⁴ over the samples of each tail, the others counting as 0: (2, 2, t)."""
        return torch.stack([self._second.sum(0), self._fourth.sum(0)]) / self._n.sum()

    def energies(self) -> torch.Tensor:
        """Return the means of s₊² and of s₋² over the set, shape (2, k)."""
        return self._energy / self._n.sum()

    def best(self, tail: int, column: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return indices and scores of the samples furthest along a tail (0: positive) of a direction, best first."""
        scores, index = self._best[tail, :, column], self._index[tail, :, column]
        there = scores > 0
        return index[there].numpy(), scores[there].numpy()


def excess_frequency(own: torch.Tensor, others: torch.Tensor, rho: float) -> float | None:
    """Estimate the excess of a kind's frequency from the means of s² and s⁴ on its tail in two sets, each (2,).

    If members of the kind score c and all else scores alike in both sets, the excess of s² is f·c² and that of s⁴ is
    f·c⁴ for an excess f of the kind's frequency, which is therefore the first squared over the second. None where
    either is not positive.
    """
    second, fourth = (own - rho * others).tolist()
    return min(second**2 / fourth, 1.0) if second > 0 and fourth > 0 else None


def _tails(scores: torch.Tensor) -> torch.Tensor:
    return torch.stack([scores, -scores])


@dataclass(frozen=True)
class ScoredSet:
    """A set after its score pass."""

    sketched: SketchedSet
    scores: ScorePass
    masses: Masses


def score_set(one: SketchedSet, fits: Sequence[CrossFit], run: Run) -> ScoredSet:
    """Score a set on the directions of all fits, side by side in columns, in one pass over its embeddings.

    For a sketch, the best samples are found in its own sample, and the masses are exact with conservative variances.
    """
    shown = torch.cat([fit.full.vectors for fit in fits], 1)
    scoring = (torch.cat([fit.scoring[0] for fit in fits], 1), torch.cat([fit.scoring[1] for fit in fits], 1))
    scores = ScorePass(shown, scoring)
    if one.embeddings is None:
        scores.update(*one.sample, 0)
        return ScoredSet(one, scores, Masses.conservative(one.sketch.folds, scoring))
    for batch in one.embeddings.batches(run.batch_size):
        folds = torch.from_numpy(fold_of(batch.keys))
        scores.update(one.sketch.feature_map(batch.rows), folds, batch.start)
        run.progress(f"score {one.label}", batch.start + len(batch.ids), one.embeddings.n)
    return ScoredSet(one, scores, scores.masses())
