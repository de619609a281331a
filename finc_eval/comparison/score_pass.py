"""Scores of a set on directions, in one streaming pass: masses, histograms, and the best samples of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import torch

from finc_eval.comparison.cross_fit import CrossFit
from finc_eval.comparison.estimates import Masses, design_effects
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.modes import SAMPLES_PER_TAIL
from finc_eval.core.run import Run
from finc_eval.numerics.precision import arithmetic
from finc_eval.sketches.folds import fold_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BINS = 4096
"""Bins of a histogram of scores, over [−1, 1]: a threshold is exact to 0.0005."""


class ScorePass:
    """One pass over a set: out-of-fold masses, histograms of scores, and the best samples of each direction.

    Nothing here grows with the number of samples, save the sums of groups.

    Args:
        shown: reported directions, shape (q, k), fitted to all data.
        scoring: directions that score fold 0 and those that score fold 1, each (q, t), of the same orientation.
        groups: number of groups of the set; 0 where every sample stands for itself.
    """

    def __init__(self, shown: torch.Tensor, scoring: tuple[torch.Tensor, torch.Tensor], groups: int = 0) -> None:
        self._vectors = torch.cat([shown, *scoring], 1)
        self._columns = [shown.shape[1], scoring[0].shape[1], scoring[1].shape[1]]
        tested = scoring[0].shape[1]
        self._n = torch.zeros(2, dtype=torch.double)
        self._powers = torch.zeros(2, 2, tested, dtype=torch.double)
        # Fold of the sample, fold that the direction scores.
        self._histograms = torch.zeros(2, 2, tested * BINS, dtype=torch.long)
        self._energy = torch.zeros(2, shown.shape[1], dtype=torch.double)
        self._best = torch.empty(2, 0, shown.shape[1])
        self._index = torch.empty(2, 0, shown.shape[1], dtype=torch.long)
        self._group_sums = torch.zeros(groups, tested, dtype=torch.double)
        self._group_sizes = torch.zeros(groups, dtype=torch.double)

    def update(self, features: torch.Tensor, folds: torch.Tensor, start: int, groups: torch.Tensor | None) -> None:
        """Add φ of consecutive samples.

        Args:
            features: φ, shape (b, q).
            folds: fold of each, shape (b,).
            start: index of the first.
            groups: number of the group of each, shape (b,); None where every sample stands for itself.
        """
        with arithmetic("float32"):
            shown, *scoring = torch.split((features @ self._vectors).cpu(), self._columns, 1)
        for fold in (0, 1):
            inside = folds == fold
            self._n[fold] += int(inside.sum())
            squares = scoring[fold][inside].double().square()
            self._powers[fold] += torch.stack([squares.sum(0), squares.square().sum(0)])
            for scored in (0, 1):
                self._histograms[fold, scored] += _counted(scoring[scored][inside])
            if groups is not None:
                own = groups[inside]
                self._group_sums.index_add_(0, own, squares)
                self._group_sizes.index_add_(0, own, torch.ones(len(own), dtype=torch.double))
        self._keep_best(shown, start)

    def _keep_best(self, scores: torch.Tensor, start: int) -> None:
        tails = _tails(scores)
        self._energy += tails.clamp_min(0).double().square().sum(1)
        # Rounded, so that the last bit of a matrix product does not decide between equal samples; a stable sort
        # then keeps the earlier one.
        candidates = torch.cat([self._best, tails.mul(1e5).round_().div_(1e5)], dim=1)
        index = torch.arange(start, start + len(scores))[None, :, None].expand_as(tails)
        index = torch.cat([self._index, index], dim=1)
        order = candidates.argsort(dim=1, descending=True, stable=True)[:, :SAMPLES_PER_TAIL]
        self._best, self._index = candidates.gather(1, order), index.gather(1, order)

    @property
    def n(self) -> int:
        """Number of samples scored."""
        return int(self._n.sum())

    def masses(self) -> Masses:
        """Return out-of-fold masses, with the variances that were seen."""
        n = self._n[:, None]
        second, fourth = self._powers.unbind(1)
        mean = second / n
        variance = (fourth / n - mean.square()).clamp_min(0) * n / (n - 1)
        effect = torch.ones(mean.shape[1], dtype=torch.double)
        if len(self._group_sizes):
            effect = design_effects(self._group_sums, self._group_sizes, variance, self._n)
        return Masses(self._n, mean.clamp_max(1), variance, effect)  # norms are 1 only up to rounding

    def concentration(self) -> torch.Tensor:
        """Return Σs⁴ / Σs² of the out-of-fold scores of each fold, shape (2, t), as if one more sample had s = 1."""
        second, fourth = self._powers.unbind(1)
        return (fourth + 1) / (second + 1)

    def fitted(self, fold: int, column: int) -> torch.Tensor:
        """Return which share of a fold is in each bin of the score on a direction that was fitted to it: (BINS,)."""
        return self._histogram(fold, 1 - fold, column).double() / self._n[fold].clamp_min(1)

    def beyond(self, fold: int, column: int, threshold: float) -> int:
        """Count the samples of a fold whose out-of-fold score is at least a threshold, or at most a negative one.

        Thresholds are rounded up, to the end of a bin.
        """
        histogram = self._histogram(fold, fold, column)
        if threshold < 0:
            histogram, threshold = histogram.flip(0), -threshold
        return int(histogram[ceil((threshold + 1) * (BINS / 2)) :].sum())

    def _histogram(self, fold: int, scored: int, column: int) -> torch.Tensor:
        return self._histograms[fold, scored, BINS * column : BINS * (column + 1)]

    def energies(self) -> torch.Tensor:
        """Return the means of s₊² and of s₋² over the set, shape (2, k)."""
        return self._energy / self._n.sum()

    def best(self, tail: int, column: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return indices and scores of the samples furthest along a tail (0: positive) of a direction, best first."""
        scores, index = self._best[tail, :, column], self._index[tail, :, column]
        there = scores > 0
        return index[there].numpy(), scores[there].numpy()


def _counted(scores: torch.Tensor) -> torch.Tensor:
    """Count the scores in each bin of each column: (b, t) → (t · BINS,)."""
    columns = scores.shape[1]
    bins = ((scores + 1) * (BINS / 2)).long().clamp_(0, BINS - 1) + BINS * torch.arange(columns)
    return torch.bincount(bins.flatten(), minlength=BINS * columns)


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

    Of a sketch, its own sample is scored; the masses are exact, and the sample gives their variances.
    """
    shown = torch.cat([fit.full.vectors for fit in fits], 1)
    scoring = (torch.cat([fit.scoring[0] for fit in fits], 1), torch.cat([fit.scoring[1] for fit in fits], 1))
    if one.embeddings is None:
        scores = ScorePass(shown, scoring)
        scores.update(*one.sample, 0, None)
        masses = Masses.of_sketch(one.sketch.folds, scoring, scores.concentration(), one.sketch.samples_per_group)
        return ScoredSet(one, scores, masses)
    groups = one.group_numbers
    scores = ScorePass(shown, scoring, 0 if groups is None else int(groups.max()) + 1)
    for batch in one.embeddings.batches(run.portion):
        folds = torch.from_numpy(fold_of(batch.keys))
        numbers = None if groups is None else torch.from_numpy(groups[batch.start : batch.start + len(batch.ids)])
        scores.update(one.sketch.feature_map(batch.rows), folds, batch.start, numbers)
        run.progress(f"score {one.label}", batch.start + len(batch.ids), one.embeddings.n)
    return ScoredSet(one, scores, scores.masses())
