"""Kinds of a label-blind partition that two sets have unequal shares of, as candidates for modes beside directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.comparison.assemble import Candidate, ScoredSets
from finc_eval.comparison.cross_fit import SAME_MODE_OVERLAP, CrossFit, squared_overlap
from finc_eval.comparison.directions import Directions
from finc_eval.comparison.estimates import Estimates
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.modes import ROLES, Role
from finc_eval.comparison.settings import Clusters, Finc, Settings
from finc_eval.comparison.shares import Share, exact_share
from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.numerics.exact_tests import ShareTests
from finc_eval.numerics.inference import ALPHA, critical_value, upper_tail
from finc_eval.partitions.counts import Counted, count, tallied
from finc_eval.partitions.difference import Difference, total_variation
from finc_eval.partitions.overlap import distinct_kinds, shared_members
from finc_eval.partitions.partition import Partition, pooled_sample
from finc_eval.partitions.settings import MAIN_LEVEL
from finc_eval.partitions.tests import KindTests, test_kinds

SAME_MEMBERS = 1 / 3
"""Members that two modes share, over those of either, from which on they are one: half of each, for equal sizes."""


@dataclass(frozen=True)
class FoundKinds:
    """The kinds of two sets, tested, and those among them to report.

    Attributes:
        partition: the kinds.
        tests: their tests.
        chosen: of each role, the numbers of the significant kinds to report, in `tests`.
        detectable: smallest share of a kind of one set alone that would have been found with 80 % power; None where
            clusters were not asked for.
        family: number of clusters of either role that have enough members to become significant; 0 where clusters were
            not asked for.
        difference: how different the two sets are.
        kept: kinds of the bottom-k sample of each set, by label.
        counted: counts of each set, by label.
    """

    partition: Partition
    tests: KindTests
    chosen: dict[Role, NDArray[np.int64]]
    detectable: float | None
    family: int
    difference: Difference
    kept: dict[str, NDArray[np.int32]]
    counted: dict[str, Counted]

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

    def candidates(self, fit: CrossFit, sets: ScoredSets, settings: Settings) -> list[Candidate]:
        """Return the reported kinds, whose directions were scored in the last columns."""
        if not len(self.numbers):
            return []
        _, weight = settings.weights
        confidence = 1 - 2 * upper_tail(critical_value(settings.families * self.family))
        start = len(sets.gen.masses.effect) - len(self.numbers)
        found = []
        for row, role in enumerate(ROLES):
            first, second = (one.masses[start:] for one in sets.ordered(role))
            estimates = Estimates.of([(1.0, first)], [(1.0, second)], settings.rho)
            for rank in np.flatnonzero(np.isin(self.numbers, self.chosen[role])).tolist():
                number = int(self.numbers[rank])
                own, other = (self._share(one, number, confidence) for one in (row, 1 - row))
                found.append(
                    Candidate(
                        role=role,
                        found_by="clusters",
                        fit=fit,
                        rank=rank,
                        column=start + rank,
                        sign=1,
                        estimates=estimates,
                        own=own,
                        other=other,
                        threshold=None,
                        p_value=min(float(self.tests.adjusted[row, number]) / weight, 1.0),
                        stability=None,
                        members=partial(self._members, number),
                        samples={label: one.samples(number) for label, one in self.counted.items()},
                    )
                )
        return found

    def _share(self, row: int, number: int, confidence: float) -> Share:
        members, size = int(self.tests.members[row, number]), int(self.tests.sizes[row])
        return exact_share(members, size, float(self.tests.cautious[row, number]), confidence)

    def _members(self, number: int, one: SketchedSet) -> torch.Tensor:
        kinds = self.kept[one.label][:, self.tests.level[number]]
        return torch.from_numpy(kinds == self.tests.index[number])


def without_clusters(settings: Settings) -> Settings:
    """Return settings that ask for directions alone.

    Raises:
        DataError: clusters are all that was asked for.
    """
    if isinstance(settings.method, Clusters):
        raise DataError(
            "a sketch keeps too few samples to divide into clusters, or not which groups they are of: pass embeddings, "
            "or use method finc"
        )
    method = settings.method
    return replace(settings, method=replace(method, clusters=False)) if isinstance(method, Finc) else settings


def find_kinds(gen: SketchedSet, ref: SketchedSet, settings: Settings, run: Run) -> FoundKinds | None:
    """Partition the pooled samples, count both sets, and choose the significant kinds to report.

    None where a sketch keeps too few samples, or not which groups they are of.
    """
    if not (gen.has_rows and ref.has_rows):
        return None
    sets = (gen.at_hand, ref.at_hand)
    partition = Partition.fit(pooled_sample(sets), run=run)
    counted = {one.label: count(one.at_hand, partition, run=run.named(f"count {one.label}")) for one in (gen, ref)}
    counts = {label: one.counts for label, one in counted.items()}
    tallies = tallied(counts)
    tests = test_kinds(tallies, settings.rho)
    shared = shared_members(list(counts.values()))
    _, weight = settings.weights
    chosen = {
        role: distinct_kinds(tests.raw[row], np.flatnonzero(tests.adjusted[row] <= weight * ALPHA), shared)
        for row, role in enumerate(ROLES)
    }
    place = partition.place_of(MAIN_LEVEL)
    return FoundKinds(
        partition=partition,
        tests=tests,
        chosen=chosen,
        detectable=tests.detectable(weight * ALPHA) if weight else None,
        family=_testable(tests, weight),
        difference=total_variation(tallies[gen.label].effective(place), tallies[ref.label].effective(place)),
        kept={one.label: partition.assign(one.sketch.sample.rows, run)[0] for one in (gen, ref)},
        counted=counted,
    )


def _testable(tests: KindTests, weight: float) -> int:
    """Return the number of clusters that have enough members to become significant in some role, at least 1."""
    if not weight:
        return 0
    level = weight * ALPHA / tests.members.size
    return max(1, round(float(tests.family.family_level(level)[0]) / level / len(ROLES)))


def merged(
    directions: Sequence[Candidate], clusters: Sequence[Candidate], sets: ScoredSets, tried: int
) -> list[Candidate]:
    """Join directions and clusters of one role with nearly the same members.

    A direction stays where it is significant by itself: its shares are nearer to those of the kind.
    Clusters of many levels cut a large kind in pieces, which then join its direction, unless it blends several kinds.

    Args:
        directions: directions of both roles.
        clusters: significant clusters of both roles.
        sets: both sets, scored on all of them.
        tried: number of clusters that were tested.
    """
    kept, new = list(directions), []
    wholes, parts = ([_kept_members(one, sets) for one in found] for found in (directions, clusters))
    pieces = [_pieces(one, whole, clusters, parts, sets, tried) for one, whole in zip(directions, wholes, strict=True)]
    for number, (cluster, part) in enumerate(zip(clusters, parts, strict=True)):
        alike = [
            0.0 if one.role != cluster.role else 1.0 if number in joining else _overlap(part, whole)
            for one, whole, joining in zip(directions, wholes, pieces, strict=True)
        ]
        if max(alike, default=0.0) < SAME_MEMBERS:
            new.append(cluster)
            continue
        place = int(np.argmax(alike))
        direction = kept[place]
        shown = direction if direction.p_value <= ALPHA else cluster
        p_value = min(direction.p_value, cluster.p_value)
        kept[place] = replace(shown, found_by="both", p_value=p_value, stability=direction.stability)
    return kept + new


def _pieces(
    direction: Candidate,
    whole: torch.Tensor,
    clusters: Sequence[Candidate],
    parts: Sequence[torch.Tensor],
    sets: ScoredSets,
    tried: int,
) -> list[int]:
    """Return the numbers of the clusters that are pieces of a direction's kind.

    Of several small ones, those are not of which one set has significantly more than of the direction's other members,
    corrected for all clusters that were tried: they are kinds of their own, which the direction blends.
    """
    found = [
        number
        for number, (cluster, part) in enumerate(zip(clusters, parts, strict=True))
        if _is_piece(cluster, part, direction, whole)
    ]
    if len(found) < 2 or max(_overlap(parts[number], whole) for number in found) >= SAME_MEMBERS:
        return found
    sketches = [one.sketched.sketch for one in sets.ordered(direction.role)]
    n = len(sketches[0].sample.keys)

    def effective(some: torch.Tensor) -> tuple[float, float]:
        of_each = zip((some[:n], some[n:]), sketches, strict=True)
        own, other = (int(mine.sum()) / sketch.samples_per_group for mine, sketch in of_each)
        return own, other

    members = effective(whole)

    def apart(part: torch.Tensor) -> bool:
        inside = effective(whole & part)
        test = ShareTests(inside[0], members[0], inside[1], members[1])
        return bool(tried * test.p_values[0] <= ALPHA)

    return [number for number in found if not apart(parts[number])]


def _kept_members(one: Candidate, sets: ScoredSets) -> torch.Tensor:
    """Tell which samples of the bottom-k samples are members: of the set that has more, then of the other."""
    return torch.cat([one.members(each.sketched) for each in sets.ordered(one.role)])


def _is_piece(cluster: Candidate, own: torch.Tensor, direction: Candidate, others: torch.Tensor) -> bool:
    """Tell whether a cluster lies within a significant direction, and the feature map shows no difference of kind."""
    if direction.role != cluster.role or direction.p_value > ALPHA:
        return False
    inside = 2 * int((own & others).sum()) > int(own.sum())
    alike = float(squared_overlap(cluster.direction[:, None], direction.direction[:, None])) > SAME_MODE_OVERLAP
    return inside and alike


def _overlap(first: torch.Tensor, second: torch.Tensor) -> float:
    """Return the members that two share over those of either, 0 where there is none."""
    return float((first & second).sum()) / max(float((first | second).sum()), 1.0)
