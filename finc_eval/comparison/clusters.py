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
from finc_eval.sketches.sketch import Sketch


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


SAME_MEMBERS = 1 / 3
"""Members that two modes share, over those of either, from which on they are one: half of each, for equal sizes."""

REMAINDER_STABILITY = 0.7
"""Stability below which a direction may show what another has left over; in simulations, such ones had .53 to .62."""


@dataclass(frozen=True)
class _Members:
    """Members of a candidate in the bottom-k samples: of the set that has more, and of the other.

    Attributes:
        own, other: which samples of either are members, each (m,).
        per_group: samples of either that tell as much as one independent one: the mean size, in the bottom-k sample,
            of the group of a sample.
    """

    own: torch.Tensor
    other: torch.Tensor
    per_group: tuple[float, float]

    @classmethod
    def of(cls, one: Candidate, sets: ScoredSets) -> _Members:
        """Tell which samples are members of a candidate."""
        own, other = (each.sketched for each in sets.ordered(one.role))
        return cls(one.members(own), one.members(other), (_per_group(own.sketch), _per_group(other.sketch)))

    def both(self, other: _Members) -> _Members:
        """Return the samples that are members of two candidates."""
        return _Members(self.own & other.own, self.other & other.other, self.per_group)

    @property
    def size(self) -> int:
        """Number of members."""
        return int(self.own.sum()) + int(self.other.sum())

    @property
    def independent(self) -> tuple[float, float]:
        """Members of either set, in independent samples."""
        return int(self.own.sum()) / self.per_group[0], int(self.other.sum()) / self.per_group[1]

    def overlap(self, other: _Members) -> float:
        """Return the members that two share over those of either, 0 where there is none."""
        shared = self.both(other).size
        return shared / max(self.size + other.size - shared, 1)

    def excess(self, rho: float) -> float:
        """Return the share of the set that has more, minus ρ times that of the other."""
        own, other = (float(mask.double().mean()) for mask in (self.own, self.other))
        return own - rho * other

    def is_part_of(self, whole: _Members) -> bool:
        """Tell whether more than half are members of another candidate."""
        return 2 * self.both(whole).size > self.size

    def is_apart_in(self, whole: _Members, tried: int) -> bool:
        """Tell whether one set has significantly more of these than of the other members of the whole.

        Then they are a kind of their own, which the whole blends with others.

        Args:
            whole: the members among which these lie.
            tried: number of candidates that this is corrected for.
        """
        (own, other), (all_own, all_other) = self.both(whole).independent, whole.independent
        return bool(tried * ShareTests(own, all_own, other, all_other).p_values[0] <= ALPHA)


def _per_group(sketch: Sketch) -> float:
    """Return the mean size, in the bottom-k sample, of the group of a sample; it holds some of each group."""
    kept = (len(sketch.sample.keys) - 1) / max(sketch.n - 1, 1)
    return 1 + (sketch.samples_per_group - 1) * kept


def without_remainders(directions: Sequence[Candidate], sets: ScoredSets, rho: float) -> list[Candidate]:
    """Leave out significant directions that show what a clearer one has left over of its kind.

    One direction seldom carries all the excess of a kind, and what it leaves can be significant by itself. Most of the
    excess of its members is then of samples that are members of the clearer one.

    Args:
        directions: directions of both roles.
        sets: both sets, scored on them.
        rho: ρ of the comparison.
    """
    left_out = set()
    clear: list[tuple[Candidate, _Members]] = []
    for one in sorted(directions, key=lambda one: one.p_value):
        if one.p_value > ALPHA:
            break
        if one.stability is None or one.stability >= REMAINDER_STABILITY:
            clear.append((one, _Members.of(one, sets)))
            continue
        mine = _Members.of(one, sets)
        wholes = [whole for other, whole in clear if other.role == one.role]
        if any(_is_remainder(mine, whole, rho, len(directions)) for whole in wholes):
            left_out.add(one.column)
        else:
            clear.append((one, mine))
    return [one for one in directions if one.column not in left_out]


def _is_remainder(part: _Members, whole: _Members, rho: float, tried: int) -> bool:
    return 2 * part.both(whole).excess(rho) > part.excess(rho) > 0 and not part.is_apart_in(whole, tried)


def joined(
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
    wholes, parts = ([_Members.of(one, sets) for one in found] for found in (directions, clusters))
    pieces = [_pieces(one, whole, clusters, parts, tried) for one, whole in zip(directions, wholes, strict=True)]
    for number, (cluster, part) in enumerate(zip(clusters, parts, strict=True)):
        alike = [
            0.0 if one.role != cluster.role else 1.0 if number in joining else part.overlap(whole)
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
    whole: _Members,
    clusters: Sequence[Candidate],
    parts: Sequence[_Members],
    tried: int,
) -> list[int]:
    """Return the numbers of the clusters that are pieces of a direction's kind.

    Of several small ones, those are not which are kinds of their own, corrected for all clusters that were tried.
    """
    found = [
        number
        for number, (cluster, part) in enumerate(zip(clusters, parts, strict=True))
        if _is_piece(cluster, part, direction, whole)
    ]
    if len(found) < 2 or max(parts[number].overlap(whole) for number in found) >= SAME_MEMBERS:
        return found
    return [number for number in found if not parts[number].is_apart_in(whole, tried)]


def _is_piece(cluster: Candidate, part: _Members, direction: Candidate, whole: _Members) -> bool:
    """Tell whether a cluster lies within a significant direction, and the feature map shows no difference of kind."""
    if direction.role != cluster.role or direction.p_value > ALPHA or not part.is_part_of(whole):
        return False
    return float(squared_overlap(cluster.direction[:, None], direction.direction[:, None])) > SAME_MODE_OVERLAP
