"""Kinds of a label-blind partition that two sets have unequal shares of, as candidates for modes beside directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.comparison.assemble import LISTED, Candidate, ScoredSets
from finc_eval.comparison.cross_fit import CrossFit
from finc_eval.comparison.directions import Directions
from finc_eval.comparison.estimates import Estimates
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.modes import Role
from finc_eval.comparison.settings import Settings
from finc_eval.comparison.shares import exact_share
from finc_eval.core.run import Run
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.numerics.inference import DEFAULT_CONFIDENCE, critical_value, upper_tail
from finc_eval.partitions.counts import Counts, count
from finc_eval.partitions.partition import Partition, pooled_sample
from finc_eval.partitions.tests import KindTests, test_kinds

SAME_MEMBERS = 1 / 3
"""Members that two modes share, over those of either, from which on they are one: half of each, for equal sizes."""

NESTED = 0.5
"""Members that two kinds share, over those of the smaller one, from which on only one of them is reported."""

CLUSTERS_WEIGHT = 0.8
"""Part of the family-wise error that tests of clusters may spend beside those of directions. They have most of the
power: with all of it they find hardly more of planted kinds, and directions find the same with a half as with a fifth
(docs/method.md)."""

ROLES: tuple[Role, Role] = ("over", "under")


@dataclass(frozen=True)
class FoundKinds:
    """The kinds of two sets, tested, and those among them to report.

    Attributes:
        partition: the kinds.
        counts: counts of gen and of ref.
        tests: their tests.
        chosen: of each role, the numbers of the significant kinds to report, in `tests`.
        weight: part of the family-wise error that these tests may spend.
    """

    partition: Partition
    counts: tuple[Counts, Counts]
    tests: KindTests
    chosen: dict[Role, NDArray[np.int64]]
    weight: float

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Numbers of the reported kinds of both roles."""
        return np.concatenate([self.chosen[role] for role in ROLES])

    @cached_property
    def centers(self) -> torch.Tensor:
        """Centers of the reported kinds, shape (k, d)."""
        return torch.cat(self.partition.centers)[torch.from_numpy(self.numbers)] + self.partition.origin

    def fit(self, phi: FeatureMap) -> CrossFit:
        """Return φ of the centers as directions, which no fold decides."""
        vectors = phi(self.centers.to(phi.device))
        vectors = (vectors / torch.linalg.vector_norm(vectors, dim=1, keepdim=True)).T
        blank = vectors.new_zeros(vectors.shape[1])
        return CrossFit(Directions(vectors, blank, blank[:0]), (vectors, vectors), None)

    def candidates(self, fit: CrossFit, start: int, sets: ScoredSets, rho: float) -> list[Candidate]:
        """Return the reported kinds, whose directions were scored in the columns from `start` on."""
        confidence = 1 - 2 * upper_tail(critical_value(self._family / self.weight))
        columns = slice(start, start + len(self.numbers))
        found = []
        for row, role in enumerate(ROLES):
            first, second = (one.masses[columns] for one in sets.ordered(role))
            estimates = Estimates.of([(1.0, first)], [(1.0, second)], rho)
            for rank in np.flatnonzero(np.isin(self.numbers, self.chosen[role])).tolist():
                number = self.numbers[rank]
                own, other = (
                    exact_share(
                        int(self.tests.members[s, number]),
                        int(self.tests.sizes[s]),
                        float(self.tests.effects[s, number]),
                        confidence,
                    )
                    for s in (row, 1 - row)
                )
                p_value = min(float(self.tests.adjusted[row, number]) / self.weight, 1.0)
                found.append(
                    Candidate(
                        role, "clusters", fit, rank, start + rank, 1, estimates, own, other, None, p_value, None
                    )
                )
        return found

    @property
    def _family(self) -> int:
        """Number of kinds that have enough members to become significant."""
        level = self.weight * (1 - DEFAULT_CONFIDENCE) / self.tests.members.size
        return max(1, round(float(self.tests.family.family_level(level)[0]) / level / 2))


def find_kinds(gen: SketchedSet, ref: SketchedSet, settings: Settings, weight: float, run: Run) -> FoundKinds:
    """Partition the pooled samples, count both sets, and choose the significant kinds to report."""
    sets = (gen.at_hand, ref.at_hand)
    partition = Partition.fit(pooled_sample(sets), run=run)
    counted = [count(one, partition, run=run.named(f"count {label}")) for one, label in zip(sets, ("gen", "ref"), strict=True)]
    counts = (counted[0].counts, counted[1].counts)
    tests = test_kinds({"gen": counts[0], "ref": counts[1]}, settings.rho)
    shared = shared_members(counts)
    chosen = {
        role: distinct_kinds(tests.raw[row], np.flatnonzero(tests.adjusted[row] <= weight * LISTED), shared)
        for row, role in enumerate(ROLES)
    }
    return FoundKinds(partition, counts, tests, chosen, weight)


def shared_members(counts: Sequence[Counts]) -> NDArray[np.float64]:
    """Return how many samples of all sets every two kinds share, shape (t, t)."""
    offsets = np.concatenate([[0], np.cumsum(counts[0].levels)])
    shared = np.zeros((offsets[-1], offsets[-1]))
    for one in counts:
        for first, start in enumerate(offsets[:-1]):
            for second, other in enumerate(offsets[:-1]):
                pair = one.cells[:, first].astype(np.int64) * one.levels[second] + one.cells[:, second]
                table = np.bincount(pair, one.number, one.levels[first] * one.levels[second])
                shape = one.levels[first], one.levels[second]
                shared[start : offsets[first + 1], other : offsets[second + 1]] += table.reshape(shape)
    return shared


def distinct_kinds(
    p_values: NDArray[np.float64], numbers: NDArray[np.int64], shared: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Choose among overlapping kinds, the strongest evidence first.

    A kind gives way to smaller ones inside it that have more evidence together than it has alone: it joins what differs
    for several reasons, or with what does not differ.

    Args:
        p_values: p-value of every kind.
        numbers: kinds to choose from.
        shared: samples that every two kinds share; on the diagonal, those of each.
    """
    evidence = -np.log(np.maximum(p_values, np.finfo(float).tiny))
    size = shared.diagonal()

    def independent(among: Sequence[int], kept: Sequence[int] = ()) -> list[int]:
        found = list(kept)
        for number in sorted(among, key=lambda number: -evidence[number]):
            if all(shared[number, other] <= NESTED * min(size[number], size[other]) for other in found):
                found.append(number)
        return found[len(kept) :]

    whole = []
    for number in numbers.tolist():
        inside = [o for o in numbers if size[o] < size[number] and shared[o, number] > NESTED * size[o]]
        if evidence[independent(inside)].sum() <= evidence[number]:
            whole.append(number)
    return np.array(independent(whole), np.int64)


def merged(candidates: Sequence[Candidate], kinds: FoundKinds, sets: ScoredSets) -> list[Candidate]:
    """Join directions and kinds of one role with nearly the same members; the one with the smaller p-value stays.

    Members are compared among the samples that were kept of both sets.
    """
    features = torch.cat([one.sketched.sample[0] for one in (sets.gen, sets.ref)])
    rows = torch.cat([one.sketched.sketch.sample.rows for one in (sets.gen, sets.ref)])
    cells, _ = kinds.partition.assign(rows)
    directions = [one for one in candidates if one.found_by == "directions"]
    members = [_members(one, features, cells, kinds) for one in candidates]
    found = {id(one): one for one in candidates}
    for place, cluster in enumerate(candidates):
        if cluster.found_by == "directions":
            continue
        alike = [
            (overlap, one)
            for one, other in zip(candidates, members, strict=True)
            if one in directions and one.role == cluster.role and id(one) in found
            and (overlap := _overlap(members[place], other)) > SAME_MEMBERS
        ]
        if alike:
            _, direction = max(alike, key=lambda pair: pair[0])
            better, worse = sorted((cluster, direction), key=lambda one: one.p_value)
            del found[id(worse)]
            found[id(better)] = replace(better, found_by="both", stability=direction.stability)
    return list(found.values())


def _members(one: Candidate, features: torch.Tensor, cells: NDArray[np.int32], kinds: FoundKinds) -> torch.Tensor:
    if one.threshold is not None:
        return features @ one.direction.to(features) >= one.threshold
    number = kinds.numbers[one.rank]
    return torch.from_numpy(cells[:, kinds.tests.level[number]] == kinds.tests.index[number])


def _overlap(first: torch.Tensor, second: torch.Tensor) -> float:
    """Return the members that two share over those of either, 0 where there is none."""
    return float((first & second).sum()) / max(float((first | second).sum()), 1.0)
