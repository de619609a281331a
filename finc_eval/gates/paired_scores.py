"""Differences of Fréchet distances from pairs: what both releases share with each other and the reference cancels."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.space import extractor_of
from finc_eval.gates.policy import metric_of
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.measures.frechet import distance_of_gaussians
from finc_eval.measures.gaussian import MomentBlocks, block_moments
from finc_eval.measures.registry import METRICS

BLOCKS = 10
"""Blocks of pairs, and of the reference, that are left out one by one."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class PairedErrors:
    """Distances of both releases without each block.

    Attributes:
        new, old: distances without each block of pairs, shape (BLOCKS,).
        new_ref, old_ref: distances without each block of the reference, shape (BLOCKS,).
    """

    new: Values
    old: Values
    new_ref: Values
    old_ref: Values

    degrees = BLOCKS - 1.0

    def of_difference(self, growth: float) -> tuple[float, float]:
        """Return the standard error of new − growth·old, and the part of it that the reference has."""
        pairs, fixed = (_error(new - growth * old) for new, old in ((self.new, self.old), (self.new_ref, self.old_ref)))
        return sqrt(pairs**2 + fixed**2), fixed


def paired_errors(sets: GateSets, name: str, run: Run) -> PairedErrors | None:
    """Return the errors of a paired difference of a score; None for scores whose samples are not paired.

    Only Fréchet distances in the space of these sets have them. For others the error of unpaired sets stands, which is
    larger where the scores of both releases rise and fall together.
    """
    metric = METRICS[metric_of(name)]
    (label,) = list(sets.baselines)[:1]
    here = metric.extractor in (None, extractor_of(sets.gen.space)) and metric.output is None
    if label not in sets.pairs or metric.compute is not METRICS["fd"].compute or not here:
        return None
    blocks = _blocks_of(sets.gen.group_hashes(), sets.gen.n)
    of_old = torch.empty_like(blocks)
    of_old[torch.from_numpy(sets.pairs[label])] = blocks
    of_ref = _blocks_of(sets.ref.group_hashes(), sets.ref.n)
    cut = {
        key: MomentBlocks(*block_moments(one, own, BLOCKS, run), one.name, one.space)
        for key, one, own in (
            (GEN, sets.gen, blocks),
            (label, sets.baselines[label], of_old),
            (REF, sets.ref, of_ref),
        )
    }
    whole = cut[REF].statistics()

    def without_pairs(key: str) -> Values:
        return np.array([distance_of_gaussians(cut[key].statistics(k), whole).value for k in range(BLOCKS)])

    def without_ref(key: str) -> Values:
        every = cut[key].statistics()
        return np.array([distance_of_gaussians(every, cut[REF].statistics(k)).value for k in range(BLOCKS)])

    return PairedErrors(without_pairs(GEN), without_pairs(label), without_ref(GEN), without_ref(label))


def _blocks_of(groups: NDArray[np.uint64] | None, n: int) -> torch.Tensor:
    """Return a block for each sample, the same for all of a group."""
    rng = np.random.default_rng(0)
    if groups is None:
        return torch.from_numpy(rng.permutation(np.arange(n) % BLOCKS))
    _, group = np.unique(groups, return_inverse=True)
    own = rng.permutation(np.arange(int(group.max()) + 1) % BLOCKS)
    return torch.from_numpy(own[group])


def _error(values: Values) -> float:
    """Return the standard error by the delete-a-block jackknife."""
    return sqrt((len(values) - 1) * float(values.var()))
