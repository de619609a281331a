"""Sets scored on the directions that methods propose: masses, thresholds and members of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
import torch

from finc_eval.comparison.directions import CrossFit
from finc_eval.comparison.estimates import Estimates, Masses
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.score_pass import ScorePass, Scores
from finc_eval.core.device import send
from finc_eval.core.progress import Stage
from finc_eval.core.run import Run
from finc_eval.numerics.arrays import rows_of
from finc_eval.numerics.design_effects import design_effects
from finc_eval.numerics.inference import holm
from finc_eval.numerics.precision import arithmetic
from finc_eval.numerics.thresholds import thresholds_of
from finc_eval.sketches.folds import Far, FarSamples, fold_chunks

SCORE = Stage("score samples", cost=0.6)
"""Name in the progress."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """Directions that one set, `own`, may have more of than the other: t of them."""

    own: str
    other: str
    fit: CrossFit


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """A set after its score pass."""

    sketched: SketchedSet
    scores: Scores
    masses: Masses
    sample: torch.Tensor  # scores of its bottom-k sample on directions that were not fitted to them, (m, t), on the CPU
    far: Far | None  # samples far from all others; None if there is none, and of a sketch

    def members(self, column: int, thresholds: torch.Tensor) -> tuple[int, torch.Tensor]:
        """Return how many samples lie beyond the thresholds of a direction, and which of the bottom-k sample, (m,)."""
        count = sum(self.scores.beyond(fold, column, float(least)) for fold, least in enumerate(thresholds))
        least_of_samples = thresholds[self.sketched.sample_folds]
        return count, self.sample[:, column] * least_of_samples.sign() >= least_of_samples.abs()


@dataclass(frozen=True, eq=False)
class ScoredProposal:
    """A proposal, and the sets that were scored on it."""

    proposal: Proposal
    columns: slice
    sets: Mapping[str, ScoredSet]
    is_paired: bool = False

    @property
    def own(self) -> ScoredSet:
        """The set that may have more."""
        return self.sets[self.proposal.own]

    @property
    def other(self) -> ScoredSet:
        """The set compared with."""
        return self.sets[self.proposal.other]

    @cached_property
    def thresholds(self) -> torch.Tensor:
        """Least scores of members on the directions that score either fold, shape (2, t); see `thresholds_of`."""
        return thresholds_of(self.own.scores.fitted, self.other.scores.fitted, self.columns)

    def column(self, rank: int) -> int:
        """Return the column of a direction in the scores."""
        return int(self.columns.start) + rank

    def estimates(self, rho: float) -> Estimates:
        """Return masses and excesses of the directions."""
        own, other, columns = self.own, self.other, self.columns
        paired = own.scores.paired_variance(other.scores)[columns] if self.is_paired else None
        return Estimates.of(own.masses[columns], other.masses[columns], rho, paired)

    def energy(self, rank: int, rho: float) -> torch.Tensor:
        """Return the in-sample excess of both tails of a direction, shape (2,)."""
        own, other = (one.scores.energies()[:, self.column(rank)] for one in (self.own, self.other))
        return own - rho * other


@dataclass(frozen=True, eq=False)
class Scored:
    """All sets after their score pass."""

    sets: dict[str, ScoredSet]
    proposals: list[ScoredProposal]

    @property
    def directions(self) -> int:
        """Number of directions that the sets were scored on."""
        return int(self.proposals[-1].columns.stop) if self.proposals else 0


def adjusted_p_values(
    proposals: Sequence[ScoredProposal], estimates: Sequence[Estimates], part: float = 1.0
) -> torch.Tensor:
    """Return the p-values of the directions of all proposals, adjusted by Holm's procedure, shape (t,).

    They are 1 if a set has too few independent samples.
    """
    adjusted = holm(torch.cat([one.p_values() for one in estimates]), part)
    tested = all(one.sketched.is_testable for proposal in proposals for one in proposal.sets.values())
    return adjusted if tested else torch.ones_like(adjusted)


def score_sets(
    sets: Mapping[str, SketchedSet], proposals: Sequence[Proposal], run: Run, *, is_paired: bool = False
) -> Scored:
    """Score sets on all proposals, side by side in columns, in one pass over the embeddings of each.

    For a sketch, its own sample is scored; the masses are exact, and the sample gives their variances. Paired sets have
    the same groups.
    """
    phi = next(iter(sets.values())).sketch.feature_map
    none = torch.empty(phi.size, 0, device=phi.device)
    shown = torch.cat([none, *(one.fit.full.vectors for one in proposals)], 1)
    first, second = (torch.cat([none, *(one.fit.scoring[fold] for one in proposals)], 1) for fold in (0, 1))
    ends = list(accumulate((one.fit.full.vectors.shape[1] for one in proposals), initial=0))
    columns = [slice(start, stop) for start, stop in pairwise(ends)]
    placed = list(zip(proposals, columns, strict=True))
    runs = run.over(SCORE, [0 if one.embeddings is None else one.embeddings.n for one in sets.values()])
    passed = {
        label: _pass(one, shown, (first, second), each) for (label, one), each in zip(sets.items(), runs, strict=True)
    }
    effects = _effects({label: one for label, (one, _) in passed.items() if sets[label].embeddings is not None})
    found = {}
    for label, one in sets.items():
        scores, far = passed[label]
        if label in effects:
            masses = scores.masses(effects[label])
        else:
            sketch, concentration = one.sketch, scores.concentration()
            masses = Masses.of_sketch(sketch.folds, (first, second), concentration, sketch.samples_per_group)
        found[label] = ScoredSet(one, scores, masses, _score_sample(one, first, second), far)
    return Scored(found, [ScoredProposal(one, place, found, is_paired) for one, place in placed])


def _score_sample(one: SketchedSet, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Score a bottom-k sample on the directions that score the fold of each: (q, t) for fold 0, and 1 → (m, t)."""
    features, folds = one.sample
    with arithmetic("float32"):
        of_first, of_second = (features @ torch.cat([first, second], 1)).cpu().tensor_split(2, 1)
    return torch.where(folds[:, None] == 0, of_first, of_second)


def _pass(
    one: SketchedSet, shown: torch.Tensor, scoring: tuple[torch.Tensor, torch.Tensor], run: Run
) -> tuple[Scores, Far | None]:
    """Score a set, and look for samples far from all others; of a sketch, score the bottom-k sample."""
    phi, groups = one.sketch.feature_map, one.group_numbers
    found = ScorePass(shown, scoring, None if groups is None else np.bincount(groups))
    if one.embeddings is None:
        features, folds = one.sample
        for fold in (0, 1):
            index = send(rows_of(folds, fold), features.device)
            found.update(features[index], fold, index)
        return found.result(), None
    numbers = None if groups is None else send(torch.from_numpy(groups), phi.device)
    far = FarSamples(one.sketch.sample.rows, phi.device)
    for chunk in fold_chunks(one.embeddings, run, phi.prepared, SCORE):
        own = None if numbers is None else numbers[chunk.index]
        found.update(phi.apply(chunk.rows), chunk.fold, chunk.index, own)
        far.update(chunk)
    return found.result(), far.result(one.embeddings)


def _effects(scores: Mapping[str, Scores]) -> dict[str, torch.Tensor]:
    """Return the design effects of all directions in sets whose embeddings were scored."""
    if not scores:
        return {}
    second, fourth = torch.stack([one.powers.sum(0) for one in scores.values()]).sum(0)
    typical = fourth / second.clamp_min(torch.finfo(second.dtype).tiny)
    grouped = [one.grouped(typical) for one in scores.values()]
    return {
        label: torch.from_numpy(np.maximum(effect, one.even))
        for label, effect, one in zip(scores, design_effects(grouped), grouped, strict=True)
    }
