"""Scores of sets on directions, in one streaming pass each: masses, histograms, and the best samples of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.comparison.directions import CrossFit
from finc_eval.comparison.estimates import Masses
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.core.device import send
from finc_eval.core.progress import Stage
from finc_eval.core.run import Run
from finc_eval.gallery.counts import KEPT
from finc_eval.numerics.arrays import rows_of
from finc_eval.numerics.design_effects import GroupedShares, GroupSizes, design_effects
from finc_eval.numerics.inference import normal_quantile, student_quantile
from finc_eval.numerics.precision import arithmetic
from finc_eval.numerics.thresholds import BINS
from finc_eval.sketches.folds import Far, FarSamples, fold_chunks
from finc_eval.sketches.one_law import UnitFeatures

SCORE = Stage("score samples", cost=0.6)

FAR_TAIL = 0.999
"""Confidence at which Student's quantile is compared with the normal one: p-values of directions are adjusted for some
tens of tests."""

PER_SCORE = 1e5  # steps of the scores that rank the samples of a tail

MOST_SAMPLES = 1 << 44
"""Number of samples that indices can distinguish. Scores are at most 1, so that score and index fit into 62 bits."""


class ScorePass:
    """One pass over a set: out-of-fold masses, histograms of scores, and the best samples of each direction.

    Everything is summed on the device of the directions, and nothing goes back to the host before `result`. Nothing
    here grows with the number of samples, save the sums of groups, of these sizes (g,). The directions `shown`, (q, k),
    are fitted to all data; those that score fold 0, and fold 1, are each (q, t), of the same orientation.
    """

    def __init__(
        self,
        shown: torch.Tensor,
        scoring: tuple[torch.Tensor, torch.Tensor],
        group_sizes: NDArray[np.int64] | None = None,
    ) -> None:
        self._vectors = torch.cat([shown, *scoring], 1)
        self._columns = [shown.shape[1], scoring[0].shape[1], scoring[1].shape[1]]
        tested, device = scoring[0].shape[1], shown.device
        sizes = np.empty(0) if group_sizes is None else group_sizes
        self._group_sizes = torch.from_numpy(sizes).double()
        self._n = [0, 0]
        self._powers = torch.zeros(2, 2, tested, dtype=torch.double, device=device)
        # Fold of the sample, fold that the direction scores, direction, bin.
        self._histograms = torch.zeros(2, 2 * tested * BINS, dtype=torch.long, device=device)
        self._places = torch.arange(2 * tested, device=device) * BINS
        self._energy = torch.zeros(2, shown.shape[1], dtype=torch.double, device=device)
        self._best = torch.empty(2, shown.shape[1], 0, dtype=torch.long, device=device)
        self._group_sums = torch.zeros(len(sizes), tested, dtype=torch.double, device=device)

    def update(
        self, features: torch.Tensor, fold: int, index: torch.Tensor, groups: torch.Tensor | None = None
    ) -> None:
        """Add φ of samples of one fold; all is on the device of the directions.

        Shapes: `features` (b, q), `index` and `groups` (b,); `groups` is None if ungrouped.
        """
        with arithmetic():
            scores = features @ self._vectors
        shown, *scored = torch.split(scores, self._columns, 1)
        squares = scored[fold].double().square()
        self._n[fold] += len(features)
        self._powers[fold] += torch.stack([squares.sum(0), squares.square().sum(0)])
        bins = ((scores[:, self._columns[0] :] + 1) * (BINS / 2)).long().clamp_(0, BINS - 1)
        places = (bins + self._places).flatten()
        self._histograms[fold].scatter_add_(0, places, torch.ones_like(places))
        if groups is not None:
            self._group_sums.index_add_(0, groups, squares)
        tails = torch.stack([shown.T, -shown.T])
        self._energy += tails.clamp_min(0).double().square().sum(2)
        # Rounded, so that the last bit of a matrix product does not decide between equal samples. The earlier
        # sample is kept: score and index are one number, so that no two are equal.
        ranked = tails.mul(PER_SCORE).round_().long() * MOST_SAMPLES + (MOST_SAMPLES - 1 - index)
        candidates = torch.cat([self._best, ranked], dim=2)
        self._best = candidates.topk(min(KEPT, candidates.shape[2]), dim=2).values

    def result(self) -> DirectionScores:
        """Copy the sums to the host."""
        best = self._best.cpu()
        places = torch.div(best, MOST_SAMPLES, rounding_mode="floor")
        return DirectionScores(
            folds=torch.tensor(self._n, dtype=torch.double),
            powers=self._powers.cpu(),
            histograms=self._histograms.cpu().view(2, 2, -1, BINS),
            energy=self._energy.cpu(),
            scores=places.float().div_(PER_SCORE),
            index=MOST_SAMPLES - 1 - (best - places * MOST_SAMPLES),
            group_sums=self._group_sums.cpu(),
            group_sizes=self._group_sizes,
        )


@dataclass(frozen=True, eq=False)
class DirectionScores:
    """Sums and best samples of a score pass, on the host.

    Attributes:
        folds: samples of each fold, shape (2,).
        powers: Σs² and Σs⁴ of the out-of-fold scores of each fold, shape (2, 2, t).
        histograms: samples in each bin, by their fold and the fold that the direction scores, shape (2, 2, t, BINS).
        energy: Σs₊² and Σs₋² on the reported directions, shape (2, k).
        scores: best scores on either tail, best first, shape (2, k, m).
        index: indices of their samples, shape (2, k, m).
        group_sums: Σs² of each group, shape (g, t).
        group_sizes: number of samples of each group, shape (g,).
    """

    folds: torch.Tensor
    powers: torch.Tensor
    histograms: torch.Tensor
    energy: torch.Tensor
    scores: torch.Tensor
    index: torch.Tensor
    group_sums: torch.Tensor
    group_sizes: torch.Tensor

    @property
    def n(self) -> int:
        """Number of samples scored."""
        return int(self.folds.sum())

    def grouped(self, typical: torch.Tensor) -> GroupedShares:
        """Return how alike the samples of a group are in s².

        `typical` is s² of a member of the kind that each direction shows, shape (t,).
        """
        members = (self.powers[:, 1].sum(0) / typical.square()).numpy()
        if not len(self.group_sizes):
            ones = np.ones(len(members))
            return GroupedShares(members, members, ones, ones, GroupSizes(np.ones(1), np.array([float(self.n)])))
        mean = self.group_sums.sum(0) / self.n
        between = (self.group_sums - self.group_sizes[:, None] * mean).square().sum(0)
        tiny = torch.finfo(torch.double).tiny
        independent = (self.folds[:, None] * self._variance()).sum(0).clamp_min(tiny)
        groups = (self.group_sums / typical).square().clamp_max(1).sum(0)
        around = self.group_sizes.double() @ self.group_sums.double() / (mean * self.n).clamp_min(tiny)
        sizes = GroupSizes.of(self.group_sizes.numpy())
        return GroupedShares(
            members, groups.numpy(), (between / independent).numpy(), around.clamp_min(1).numpy(), sizes
        )

    def paired_variance(self, other: DirectionScores) -> torch.Tensor:
        """Return the variance of the difference of masses from a set with the same groups, shape (t,).

        What both sets have in common in a group cancels: e_b = Σ_b (s² − mass) / n − the same of the other set, and the
        variance is B/(B − 1)·Σ e_b² over B groups. With few groups it is wider, as Student's quantile is.
        """
        parts = [
            (scores.group_sums - scores.group_sizes[:, None] * (scores.group_sums.sum(0) / scores.n)) / scores.n
            for scores in (self, other)
        ]
        blocks = len(self.group_sizes)
        wider = student_quantile(blocks - 1, FAR_TAIL) / normal_quantile(FAR_TAIL)
        return (parts[0] - parts[1]).square().sum(0) * blocks / (blocks - 1) * wider**2

    def _variance(self) -> torch.Tensor:
        """Return the variance of s² in each fold, shape (2, t)."""
        n = self.folds[:, None]
        second, fourth = self.powers.unbind(1)
        return (fourth / n - (second / n).square()).clamp_min(0) * n / (n - 1)

    def masses(self, effect: torch.Tensor) -> Masses:
        """Return out-of-fold masses, with the variances that were seen, and these design effects, shape (t,)."""
        mean = self.powers[:, 0] / self.folds[:, None]
        return Masses(self.folds, mean.clamp_max(1), self._variance(), effect)  # norms are 1 only up to rounding

    def fitted(self, fold: int) -> torch.Tensor:
        """Return which part of a fold is in each bin of the scores on directions fitted to it: (t, BINS)."""
        return self.histograms[fold, 1 - fold].double() / self.folds[fold].clamp_min(1)

    def beyond(self, fold: int, column: int, threshold: float) -> int:
        """Count the samples of a fold whose out-of-fold score is at least a threshold, or at most a negative one.

        Thresholds are rounded up, to the end of a bin.
        """
        histogram = self.histograms[fold, fold, column]
        if threshold < 0:
            histogram, threshold = histogram.flip(0), -threshold
        return int(histogram[ceil((threshold + 1) * (BINS / 2)) :].sum())

    def best(self, tail: int, column: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return indices and scores of the samples furthest along a tail (0: positive) of a direction, best first."""
        scores, index = self.scores[tail, column], self.index[tail, column]
        there = scores > 0
        return index[there].numpy(), scores[there].numpy()


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """A set after its score pass."""

    sketched: SketchedSet
    scores: DirectionScores
    masses: Masses
    sample: torch.Tensor  # scores of its bottom-k sample on directions that were not fitted to them, (m, t), on the CPU
    far: Far | None  # samples far from all others; None if there is none, and of a sketch

    def members(self, column: int, thresholds: torch.Tensor) -> tuple[int, torch.Tensor]:
        """Return how many samples lie beyond the thresholds of a direction, and which of the bottom-k sample, (m,)."""
        count = sum(self.scores.beyond(fold, column, float(least)) for fold, least in enumerate(thresholds))
        least_of_samples = thresholds[self.sketched.sample[1]]
        return count, self.sample[:, column] * least_of_samples.sign() >= least_of_samples.abs()


def score_sets(
    sets: Mapping[str, SketchedSet], fits: Sequence[CrossFit], units: Mapping[str, UnitFeatures], run: Run
) -> dict[str, ScoredSet]:
    """Score sets on the directions of all fits, side by side in columns, in one pass over the embeddings of each.

    For a sketch, its own sample is scored; the masses are exact, and the sample gives their variances. The same pass
    adds φ to the sums of units.
    """
    phi = next(iter(sets.values())).sketch.feature_map
    none = torch.empty(phi.size, 0, device=phi.device)
    shown = torch.cat([none, *(fit.full.vectors for fit in fits)], 1)
    first, second = (torch.cat([none, *(fit.scoring[fold] for fit in fits)], 1) for fold in (0, 1))
    runs = run.over(SCORE, [0 if sketched.embeddings is None else sketched.embeddings.n for sketched in sets.values()])
    passed = {
        label: _pass(sketched, shown, (first, second), units.get(label), each)
        for (label, sketched), each in zip(sets.items(), runs, strict=True)
    }
    effects = _effects({label: of_set for label, (of_set, _) in passed.items() if sets[label].embeddings is not None})
    found = {}
    for label, sketched in sets.items():
        scores, far = passed[label]
        if label in effects:
            masses = scores.masses(effects[label])
        else:
            sketch = sketched.sketch
            masses = Masses.of_sketch(sketch.folds, (first, second), scores.powers, sketch.samples_per_group)
        features, folds = sketched.sample
        with arithmetic():
            of_first, of_second = (features @ torch.cat([first, second], 1)).cpu().tensor_split(2, 1)
        sample = torch.where(folds[:, None] == 0, of_first, of_second)
        found[label] = ScoredSet(sketched, scores, masses, sample, far)
    return found


def _pass(
    sketched: SketchedSet,
    shown: torch.Tensor,
    scoring: tuple[torch.Tensor, torch.Tensor],
    units: UnitFeatures | None,
    run: Run,
) -> tuple[DirectionScores, Far | None]:
    """Score a set, and look for samples far from all others; of a sketch, score the bottom-k sample."""
    phi, hashes = (
        sketched.sketch.feature_map,
        None if sketched.embeddings is None else sketched.embeddings.group_hashes(),
    )
    groups = None if hashes is None else np.unique(hashes, return_inverse=True)[1]
    found = ScorePass(shown, scoring, None if groups is None else np.bincount(groups))
    if sketched.embeddings is None:
        features, folds = sketched.sample
        for fold in (0, 1):
            index = send(rows_of(folds, fold), features.device)
            found.update(features[index], fold, index)
        return found.result(), None
    numbers = None if groups is None else send(torch.from_numpy(groups), phi.device)
    far = FarSamples(sketched.sketch.sample.rows, phi.device)
    for chunk in fold_chunks(sketched.embeddings, run, phi.prepared, SCORE):
        units_of_chunk = None if numbers is None else numbers[chunk.index]
        features = phi.apply(chunk.rows)
        found.update(features, chunk.fold, chunk.index, units_of_chunk)
        if units is not None:
            units.update(features, chunk.index)
        far.update(chunk)
    return found.result(), far.result(sketched.embeddings)


def _effects(scores: Mapping[str, DirectionScores]) -> dict[str, torch.Tensor]:
    """Return the design effects of all directions in sets whose embeddings were scored."""
    if not scores:
        return {}
    second, fourth = torch.stack([of_set.powers.sum(0) for of_set in scores.values()]).sum(0)
    typical = fourth / second.clamp_min(torch.finfo(second.dtype).tiny)
    grouped = [of_set.grouped(typical) for of_set in scores.values()]
    return {
        label: torch.from_numpy(np.maximum(effect, groups.even))
        for label, effect, groups in zip(scores, design_effects(grouped), grouped, strict=True)
    }
