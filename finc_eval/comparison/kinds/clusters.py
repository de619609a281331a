"""Kinds of a label-blind partition that two sets have unequal shares of, as candidates for modes beside directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.comparison.assemble import Candidate
from finc_eval.comparison.cross_fit import CrossFit
from finc_eval.comparison.directions import Directions
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.kinds.pieces import Coordinates, Pieces, pieces_of_one
from finc_eval.comparison.modes import ROLES, SETS_OF, Role
from finc_eval.comparison.scored import ModeMembers, Proposal, ScoredProposal
from finc_eval.comparison.settings import Clusters, Finc, Settings
from finc_eval.comparison.shares import told_share
from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.numerics.axes import PrincipalAxes
from finc_eval.numerics.inference import ALPHA, critical_value, upper_tail
from finc_eval.partitions.counts import Counted, count, tallied
from finc_eval.partitions.difference import Difference, total_variation
from finc_eval.partitions.overlap import distinct_kinds, shared_members
from finc_eval.partitions.partition import Partition, pooled_sample
from finc_eval.partitions.settings import MAIN_LEVEL
from finc_eval.partitions.tests import KindTests, test_kinds


@dataclass(frozen=True, eq=False)
class FoundKind:
    """A kind to report.

    Attributes:
        role: role that it is significant in.
        pieces: numbers of its clusters in the tests, the clearest first.
        p_value: adjusted p-value of the clearest one.
        members: samples of each set in its clusters, by label.
        effects: their design effects, by label.
    """

    role: Role
    pieces: Pieces
    p_value: float
    members: dict[str, ModeMembers]
    effects: dict[str, float]


@dataclass(frozen=True, eq=False)
class FoundKinds:
    """The kinds of two sets, tested, and those among them to report.

    Attributes:
        partition: the kinds.
        axes: principal axes of the samples that it was fitted to.
        coordinates: where the bottom-k sample of each set lies on them, by label.
        kinds: the kinds to report.
        tests: their tests.
        detectable: smallest share of a kind of one set alone that would have been found with 80 % power; None where
            clusters were not asked for.
        family: number of clusters of either role that have enough members to become significant; 0 where clusters were
            not asked for.
        difference: how different the two sets are.
        counted: counts of each set, by label.
    """

    partition: Partition
    axes: PrincipalAxes
    coordinates: dict[str, Coordinates]
    kinds: list[FoundKind]
    tests: KindTests
    detectable: float | None
    family: int
    difference: Difference
    counted: dict[str, Counted]

    @property
    def main_level(self) -> int:
        """Number of kinds that the difference is between."""
        return self.partition.levels[self.partition.place_of(MAIN_LEVEL)]

    def of(self, label: str) -> list[FoundKind]:
        """Return the kinds of which a set has more."""
        return [kind for kind in self.kinds if SETS_OF[kind.role][0] == label]

    def proposals(self, phi: FeatureMap) -> list[Proposal]:
        """Return φ of the centers of the kinds of either role as directions, which no fold decides."""
        found = []
        for own, other in SETS_OF.values():
            if kinds := self.of(own):
                centers = torch.cat(self.partition.centers)[[kind.pieces[0] for kind in kinds]]
                vectors = phi((centers + self.partition.origin).to(phi.device))
                vectors = (vectors / torch.linalg.vector_norm(vectors, dim=1, keepdim=True)).T
                blank = vectors.new_zeros(vectors.shape[1])
                fit = CrossFit(Directions(vectors, blank, blank[:0]), (vectors, vectors), None)
                marked = torch.stack([kind.members[own].sample for kind in kinds], 1)
                found.append(Proposal(own, {other: 1.0}, fit, marked))
        return found

    def candidates(self, proposals: Sequence[ScoredProposal], settings: Settings) -> list[Candidate]:
        """Return the reported kinds as candidates, from their `proposals` after the score pass."""
        if not proposals:
            return []
        _, weight = settings.weights
        confidence = 1 - 2 * upper_tail(critical_value(settings.families * self.family))
        found = []
        for scored in proposals:
            estimates = scored.estimates(settings.rho)
            for rank, kind in enumerate(self.of(scored.proposal.own)):
                members = {
                    label: one.told_members(scored.column(rank)) or kind.members[label]
                    for label, one in scored.sets.items()
                }
                own, other = (
                    told_share(
                        scored.sets[label].sketched,
                        members[label].count,
                        self.counted[label].counts.n,
                        kind.effects[label],
                        confidence,
                    )
                    for label in SETS_OF[kind.role]
                )
                found.append(
                    Candidate(
                        role=kind.role,
                        found_by="clusters",
                        scored=scored,
                        rank=rank,
                        sign=1,
                        estimates=estimates,
                        own=own,
                        other=other,
                        threshold=None,
                        p_value=min(kind.p_value / weight, 1.0),
                        stability=None,
                        members={label: one.sample for label, one in members.items()},
                        samples={label: one.samples(*kind.pieces) for label, one in self.counted.items()},
                    )
                )
        return found


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
    rows = pooled_sample((gen.at_hand, ref.at_hand))
    axes = PrincipalAxes.of(rows)
    partition = Partition.fit(rows, run=run, axes=axes)
    counted = {one.label: count(one.at_hand, partition, run=run.named(f"count {one.label}")) for one in (gen, ref)}
    tallies = tallied({label: one.counts for label, one in counted.items()})
    tests = test_kinds(tallies, settings.rho)
    samples = {one.label: one.sketch.sample.rows for one in (gen, ref)}
    coordinates = {label: axes(rows).numpy() for label, rows in samples.items()}
    cells = {label: partition.assign(rows, run)[0] for label, rows in samples.items()}
    _, weight = settings.weights
    place = partition.place_of(MAIN_LEVEL)
    return FoundKinds(
        partition=partition,
        axes=axes,
        coordinates=coordinates,
        kinds=_reported(tests, weight * ALPHA, counted, coordinates, cells),
        tests=tests,
        detectable=tests.detectable(weight * ALPHA) if weight else None,
        family=_testable(tests, weight),
        difference=total_variation(tallies[gen.label].effective(place), tallies[ref.label].effective(place)),
        counted=counted,
    )


def _reported(
    tests: KindTests,
    level: float,
    counted: Mapping[str, Counted],
    coordinates: Mapping[str, Coordinates],
    cells: Mapping[str, NDArray[np.int32]],
) -> list[FoundKind]:
    """Choose among the kinds that are significant at a level, and gather the pieces of one kind."""
    where, of_all = np.concatenate(list(coordinates.values())), np.concatenate(list(cells.values()))
    shared = shared_members([one.counts for one in counted.values()])
    found = []
    for row, role in enumerate(ROLES):
        significant = np.flatnonzero(tests.adjusted[row] <= level)
        distinct = distinct_kinds(tests.raw[row], significant, shared)
        found += [(role, pieces, row) for pieces in pieces_of_one(distinct, row, tests, where, of_all)]
    if not found:
        return []
    places = [[(int(tests.level[piece]), int(tests.index[piece])) for piece in pieces] for _, pieces, _ in found]
    tallies = tallied({label: one.counts.inside(places) for label, one in counted.items()})
    return [
        FoundKind(
            role=role,
            pieces=pieces,
            p_value=float(tests.adjusted[row, pieces[0]]),
            members={
                label: ModeMembers(int(tally.members[2 * number + 1]), _inside(cells[label], places[number]))
                for label, tally in tallies.items()
            },
            effects={label: float(tally.cautious[2 * number + 1]) for label, tally in tallies.items()},
        )
        for number, (role, pieces, row) in enumerate(found)
    ]


def _inside(cells: NDArray[np.int32], places: Sequence[tuple[int, int]]) -> torch.Tensor:
    """Return which samples are of any of some kinds, given as (place of the level, number there)."""
    return torch.from_numpy(np.any([cells[:, level] == index for level, index in places], axis=0))


def _testable(tests: KindTests, weight: float) -> int:
    """Return the number of clusters that have enough members to become significant in some role, at least 1."""
    if not weight:
        return 0
    level = weight * ALPHA / tests.members.size
    return max(1, round(float(tests.family.family_level(level)[0]) / level / len(ROLES)))
