"""Modes of one kind: what several directions and clusters find of a kind is one mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from finc_eval.comparison.assemble import Candidate
from finc_eval.comparison.kinds.pieces import NEAR, Coordinates, amid, distance
from finc_eval.numerics.exact_tests import ShareTests
from finc_eval.numerics.inference import ALPHA
from finc_eval.sketches.sketch import Sketch

ALIKE = 1 / 2
"""Members that two modes share, over those of either, from which on they are found by both: of one size, two thirds."""

BEST = 50
"""Best members of a mode, which tell where it is."""


@dataclass(frozen=True, eq=False)
class Inside:
    """Members of a candidate in the bottom-k samples: of the set that has more, and of the other.

    Attributes:
        own, other: which samples of either are members, each (m,).
        per_group: samples of either that tell as much as one independent one: the mean size, in the bottom-k sample,
            of the group of a sample.
        where: where the samples of either lie.
        scores: scores of the samples of the set that has more, on the direction of the candidate, shape (m,).
    """

    own: torch.Tensor
    other: torch.Tensor
    per_group: tuple[float, float]
    where: tuple[Coordinates, Coordinates]
    scores: torch.Tensor

    @classmethod
    def of(cls, one: Candidate, coordinates: Mapping[str, Coordinates]) -> Inside:
        """Tell which samples are members of a candidate; the samples of each set lie at these coordinates, by label."""
        own, other = (each.sketched for each in one.sets)
        return cls(
            one.members[own.label],
            one.members[other.label],
            (_per_group(own.sketch), _per_group(other.sketch)),
            (coordinates[own.label], coordinates[other.label]),
            (own.sample[0] @ one.direction).cpu(),
        )

    def __and__(self, other: Inside) -> Inside:
        return replace(self, own=self.own & other.own, other=self.other & other.other)

    def __sub__(self, other: Inside) -> Inside:
        return replace(self, own=self.own & ~other.own, other=self.other & ~other.other)

    @property
    def points(self) -> Coordinates:
        """Coordinates of the members."""
        own, other = self.where
        return np.concatenate([own[self.own.numpy()], other[self.other.numpy()]])

    @cached_property
    def best(self) -> Coordinates:
        """Coordinates of the best members of the set that has more."""
        scores = self.scores.masked_fill(~self.own, -torch.inf)
        return self.where[0][scores.topk(min(BEST, int(self.own.sum()))).indices.tolist()]

    @property
    def size(self) -> int:
        """Number of members."""
        return int(self.own.sum()) + int(self.other.sum())

    @property
    def independent(self) -> tuple[float, float]:
        """Members of either set, in independent samples."""
        return int(self.own.sum()) / self.per_group[0], int(self.other.sum()) / self.per_group[1]

    def overlap(self, other: Inside) -> float:
        """Return the members that two share over those of either, 0 where there is none."""
        shared = (self & other).size
        return shared / max(self.size + other.size - shared, 1)

    def excess(self, rho: float) -> float:
        """Return the share of the set that has more, minus ρ times that of the other."""
        own, other = (float(mask.double().mean()) for mask in (self.own, self.other))
        return own - rho * other

    def near(self, whole: Inside, rho: float) -> bool:
        """Tell whether the best members are near those of a larger mode, or the members lie amid its other ones.

        Where most of the larger one is something else, they must be near the best of that, too.
        """
        shared, rest = self & whole, whole - self
        best = [whole.best] if 2 * shared.excess(rho) > whole.excess(rho) else [whole.best, rest.best]
        return all(distance(self.best, one) <= NEAR for one in best) or amid(shared.points, rest.points)

    def prevails_in(self, whole: Inside, tried: int) -> bool:
        """Tell whether one set has significantly more of these members than of the others of the whole.

        Args:
            whole: the members among which these are.
            tried: number of candidates that this is corrected for.
        """
        (own, other), (all_own, all_other) = self.independent, whole.independent
        return bool(tried * ShareTests(own, all_own, other, all_other).p_values[0] <= ALPHA)


def _per_group(sketch: Sketch) -> float:
    """Return the mean size, in the bottom-k sample, of the group of a sample; it holds some of each group."""
    kept = (len(sketch.sample.keys) - 1) / max(sketch.n - 1, 1)
    return 1 + (sketch.samples_per_group - 1) * kept


def one_kind(part: Inside, whole: Inside, rho: float, tried: int) -> bool:
    """Tell whether a mode is of the kind of a larger one.

    It is if most of its excess is of members of the larger one, and it is near that, unless the larger one blends
    several kinds: one set has significantly more of what both share, or the best of its other members lie elsewhere.

    Args:
        part: members of the mode.
        whole: members of the larger one.
        rho: ρ of the comparison.
        tried: number of candidates.
    """
    shared = part & whole
    mostly = 2 * shared.excess(rho) > part.excess(rho) > 0
    return mostly and not shared.prevails_in(whole, tried) and part.near(whole, rho)


def joined(
    candidates: Sequence[Candidate],
    coordinates: Mapping[str, Coordinates],
    rho: float,
    tried: int,
    *,
    directions: bool = True,
) -> list[Candidate]:
    """Join what shows one kind, in the order of the candidates.

    One direction seldom carries all the excess of a kind, and what it leaves can be significant by itself. Clusters of
    many levels cut a kind in pieces. The largest of those that show one kind stays, with the smallest p-value.

    Args:
        candidates: directions and clusters of both roles.
        coordinates: where the bottom-k samples of each set lie, by its label.
        rho: ρ of the comparison.
        tried: number of directions and clusters that were tested.
        directions: whether directions are joined, too, and not clusters alone.
    """
    inside = [Inside.of(one, coordinates) for one in candidates]
    kept = dict(enumerate(candidates))
    shown: list[int] = []
    significant = [place for place, one in enumerate(candidates) if one.p_value <= ALPHA]
    for place in sorted(significant, key=lambda place: -inside[place].excess(rho)):
        one = candidates[place]
        for larger in shown:
            if one.role != candidates[larger].role:
                continue
            if not directions and "clusters" not in (one.found_by, kept[larger].found_by):
                continue
            if one_kind(inside[place], inside[larger], rho, tried):
                alike = inside[larger].overlap(inside[place]) >= ALIKE
                kept[larger] = _joined(kept[larger], kept.pop(place), alike)
                break
        else:
            shown.append(place)
    for place in set(kept) - set(shown):  # directions that are not significant by themselves
        for other in shown:
            alone = kept[other].found_by == "clusters" and kept[other].role == kept[place].role
            if alone and inside[place].overlap(inside[other]) >= ALIKE:
                kept[other] = replace(kept[other], found_by="both", stability=kept.pop(place).stability)
                break
    return sorted(kept.values(), key=lambda one: one.column)


def _joined(larger: Candidate, one: Candidate, alike: bool) -> Candidate:
    """Return the mode of two candidates of one kind: the larger one, but a direction in place of a cluster like it."""
    shown = one if alike and larger.found_by == "clusters" != one.found_by else larger
    return replace(
        shown,
        found_by=larger.found_by if larger.found_by == one.found_by else "both",
        p_value=min(larger.p_value, one.p_value),
        stability=one.stability if larger.stability is None else larger.stability,
    )
