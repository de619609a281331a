"""Assembly of directions from their scores, the same for every method, and their names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from math import sqrt

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.comparison.direction import SETS_OF, Direction, Role, Tail
from finc_eval.comparison.directions import CrossFit
from finc_eval.comparison.estimates import HALVES_CORRELATION, Estimates
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.score_pass import ScoredSet
from finc_eval.comparison.settings import Settings
from finc_eval.core.digest import text_bytes
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.gallery.counts import MAX_SHOWN
from finc_eval.naming.causes import CauseKind, frequency_or_appearance, look_different
from finc_eval.naming.names import name_by_members
from finc_eval.numerics.inference import ALPHA, clopper_pearson, critical_value, holm, mover, upper_tail
from finc_eval.numerics.thresholds import thresholds_of
from finc_eval.partitions.counts import KindsOfSamples
from finc_eval.partitions.kind import Kind

NUMERICAL_ZERO = 1e-6  # excess below this is rounding: moments are float32, and masses lie between 0 and 1
LABEL = "label"  # column of metadata that decides whether a direction is due to frequency or to appearance

Members = Mapping[str, torch.Tensor]
"""Members of a direction among each set's bottom-k sample, by label: True for each, (m,). No sample helped to decide
whether it is a member."""


def assemble_directions(
    sets: Mapping[str, ScoredSet], fits: Mapping[Role, CrossFit], settings: Settings, *, is_paired: bool = False
) -> list[tuple[Direction, Members]]:
    """Return the directions that have an excess, both in the data and in held-out data, and members.

    The significant directions are first, by the difference of shares. Where its members are not more frequent in the
    set that has more mass, a direction shows no kind. Unrotated eigenvectors all stay whose eigenvalue is positive, as
    in Algorithm 1, in the order of their eigenvalues: their p-values say which have an excess.

    Directions, significant or not, are one family: adjusted by Holm's procedure, p-values are 1 if a set has too few
    independent samples. Paired sets have the same groups.
    """
    if not any(fit.full.vectors.shape[1] for fit in fits.values()):
        return []
    family = _Family.of(sets, fits, settings, is_paired=is_paired)
    found = [entry for role in fits for entry in family.found(role)]
    if not settings.by_eigenvalue:
        found.sort(key=lambda entry: (entry.direction.p_value > ALPHA, -entry.lead))
    named: dict[str, tuple[Direction, Members]] = {}
    for candidate in found:
        name = next(name for name in _possible_ids(candidate.direction.role, candidate.samples) if name not in named)
        named[name] = replace(candidate.direction, id=name), candidate.members
    return list(named.values())


def _possible_ids(role: Role, samples: Sequence[str]) -> Iterator[str]:
    """Yield ids for a direction, such as "over-1f09ab": by its best samples, then by numbers.

    Directions can share all of their best samples, so no list of samples is long enough.
    """
    for text in chain(samples, (f"direction {number}" for number in count())):
        yield f"{role}-{hashlib.blake2b(text_bytes(text), digest_size=3).hexdigest()}"


Interval = tuple[float, float, float]
"""A share between the ends of its interval."""


@dataclass(frozen=True, eq=False)
class _Counted:
    """The members of a direction in each set, and their shares, by label."""

    threshold: float  # score from which on a sample is a member, mean of both folds
    members: Members
    shares: Mapping[str, Interval]

    def lead(self, label: str, other: str) -> float:
        """Return the share of members in one set minus their share in another."""
        return self.shares[label][1] - self.shares[other][1]


@dataclass(frozen=True, eq=False)
class _Found:
    """A direction that shows something."""

    direction: Direction  # without an id
    members: Members
    lead: float  # share of its members in the set that has more mass, minus their share in the other
    samples: list[str]  # texts that can give it an id, the best first


@dataclass(frozen=True, eq=False)
class _Family:
    """The directions of all roles, which are tested together.

    Attributes:
        columns: columns of the directions of a role among all directions.
        estimates: masses and excesses of all directions, as a role sees them.
        p_values: adjusted p-value of each direction; of no meaning if a set is not testable.
        confidence: confidence of the interval of one share, at which all intervals hold together.
        is_testable: whether all sets have enough independent samples.
    """

    sets: Mapping[str, ScoredSet]
    fits: Mapping[Role, CrossFit]
    settings: Settings
    columns: Mapping[Role, range]
    estimates: Mapping[Role, Estimates]
    p_values: torch.Tensor
    confidence: float
    is_testable: bool

    @classmethod
    def of(
        cls, sets: Mapping[str, ScoredSet], fits: Mapping[Role, CrossFit], settings: Settings, *, is_paired: bool
    ) -> _Family:
        """Estimate the excess of each direction, and adjust the p-values of all."""
        columns: dict[Role, range] = {}
        estimates: dict[Role, Estimates] = {}
        stop = 0
        for role, fit in fits.items():
            start, stop = stop, stop + fit.full.vectors.shape[1]
            owner, other = (sets[label] for label in SETS_OF[role])
            paired = owner.scores.paired_variance(other.scores) if is_paired else None
            columns[role] = range(start, stop)
            estimates[role] = Estimates.of(owner.masses, other.masses, settings.rho, paired)
        p_values = [estimates[role].p_values()[span.start : span.stop] for role, span in columns.items()]
        # Intervals of shares hold simultaneously, each from two correlated halves.
        width = critical_value(settings.families * stop) * sqrt(1 + HALVES_CORRELATION)
        return cls(
            sets=sets,
            fits=fits,
            settings=settings,
            columns=columns,
            estimates=estimates,
            p_values=holm(torch.cat(p_values), settings.parts[0]),
            confidence=1 - 2 * upper_tail(width),
            is_testable=all(scored.sketched.is_testable for scored in sets.values()),
        )

    def found(self, role: Role) -> Iterator[_Found]:
        """Yield the directions of a role that have an excess and members."""
        settings, fit, places = self.settings, self.fits[role], self.columns[role]
        owner, other = (self.sets[label].scores.fitted for label in SETS_OF[role])
        thresholds = thresholds_of(owner, other, slice(places.start, places.stop))
        for rank, column in enumerate(places[: settings.modes]):
            excess = min(float(fit.full.excess[rank]), float(self.estimates[role].excess[column]))
            least = float(fit.full.eigenvalues[rank]) if settings.by_eigenvalue else excess
            if least <= NUMERICAL_ZERO:
                continue
            counted = {label: scored.members(column, thresholds[:, rank]) for label, scored in self.sets.items()}
            shares = {
                label: share_of(scored, column, counted[label][0], self.confidence)
                for label, scored in self.sets.items()
            }
            more, less = (shares[label][1] for label in SETS_OF[role])
            if not settings.by_eigenvalue and more <= settings.rho * less:
                continue
            members = {label: mask for label, (_, mask) in counted.items()}
            yield self._describe(role, rank, _Counted(float(thresholds[:, rank].abs().mean()), members, shares))

    def _describe(self, role: Role, rank: int, counted: _Counted) -> _Found:
        """Describe a direction by its place among those of its role, without an id and a name."""
        fit, estimate, column = self.fits[role], self.estimates[role], self.columns[role][rank]
        vector, tails = self._turned(role, rank)
        gen, ref = counted.shares["gen"], counted.shares["ref"]
        low, high = mover(gen, ref)
        masses = dict(zip(SETS_OF[role], (estimate.mass_first[column], estimate.mass_second[column]), strict=True))
        drawn = {label: _drawn(scored, counted.members[label]) for label, scored in self.sets.items()}
        direction = Direction(
            id="",
            role=role,
            name=None,
            evidence=(),
            cause=None,
            looks_different=None,
            kinds=(),
            shown_by_kinds=False,
            share_gen=gen[1],
            share_ref=ref[1],
            share_gen_interval=(gen[0], gen[2]),
            share_ref_interval=(ref[0], ref[2]),
            share_difference=gen[1] - ref[1],
            share_difference_interval=(float(low), float(high)),
            p_value=float(self.p_values[column]) if self.is_testable else 1.0,
            stability=None if fit.stability is None else float(fit.stability[rank]),
            threshold=counted.threshold,
            mass_gen=float(masses["gen"]),
            mass_ref=float(masses["ref"]),
            excess=float(estimate.excess[column]),
            interval=self._interval_of_excess(role, column),
            standard_error=float(estimate.error[column]),
            fitted_excess=float(fit.full.excess[rank]),
            tails=tails,
            drawn_gen=drawn["gen"],
            drawn_ref=drawn["ref"],
            direction=vector.float().cpu().numpy(),
        )
        typical = self.sets[SETS_OF[role][0]].sketched.typical(vector)
        return _Found(direction, counted.members, counted.lead(*SETS_OF[role]), typical)

    def _turned(self, role: Role, rank: int) -> tuple[torch.Tensor, tuple[Tail, Tail]]:
        """Return the vector of a direction, turned so that its first tail has most of the excess, and its tails."""
        column = self.columns[role][rank]
        # Means of s₊² and of s₋² over each set.
        mean, mean_of_other = (
            scored.scores.energy[:, column] / scored.scores.n
            for scored in (self.sets[label] for label in SETS_OF[role])
        )
        energy = mean - self.settings.rho * mean_of_other
        sign = 1 if energy[0] >= energy[1] else -1
        return sign * self.fits[role].full.vectors[:, rank], _tails(self.sets, energy, sign, column)

    def _interval_of_excess(self, role: Role, column: int) -> tuple[float, float]:
        """Return an interval that holds together with those of all directions; all values without a test."""
        rho = self.settings.rho
        return self.estimates[role].interval(column, len(self.p_values), rho) if self.is_testable else (-rho, 1.0)


def share_of(scored: ScoredSet, column: int, members: int, confidence: float) -> Interval:
    """Return the share of so many members of a direction, between the ends of its interval.

    Each sample is counted in the fold that is held out. The interval is that of Clopper and Pearson, of as many samples
    as are independent (Korn and Graubard 1998). It is [0, 1] where a set has too few, and for a sketch that keeps no
    samples, whose share is the mass.
    """
    n = scored.scores.n
    if not n:
        return 0.0, float(scored.masses.pooled()[0][column]), 1.0
    if not scored.sketched.is_testable:
        return 0.0, members / n, 1.0
    effect = float(scored.masses.effect[column])
    low, high = clopper_pearson(members / effect, n / effect, confidence)
    return float(low), members / n, float(high)


def _drawn(scored: ScoredSet, members: torch.Tensor) -> tuple[str, ...]:
    """Return the ids of some members of a set, drawn at random."""
    return scored.sketched.ids_at(scored.sketched.drawn(members)[:MAX_SHOWN])


def _tails(sets: Mapping[str, ScoredSet], energy: torch.Tensor, sign: int, column: int) -> tuple[Tail, Tail]:
    """Return both tails of a direction, first the one that carries most of the excess, by the excess of both, (2,).

    The excess is quadratic in s, so neither tail alone is the direction.
    """
    total = float(energy.sum())
    tails = []
    for tail in (0, 1) if sign > 0 else (1, 0):
        (gen_index, gen_best), (ref_index, ref_best) = (
            sets[label].scores.best(tail, column) for label in SETS_OF["over"]
        )
        tails.append(
            Tail(
                share=float(energy[tail]) / total if total > 0 else 0.5,
                gen=gen_index,
                ref=ref_index,
                gen_ids=sets["gen"].sketched.ids_at(gen_index),
                ref_ids=sets["ref"].sketched.ids_at(ref_index),
                gen_scores=gen_best,
                ref_scores=ref_best,
            )
        )
    return tails[0], tails[1]


def name_directions(
    directions: Sequence[tuple[Direction, Members]], gen: SketchedSet, ref: SketchedSet
) -> list[Direction]:
    """Name the significant directions that refits find again, add causes, and link directions of one kind of sample."""
    chosen = [
        (direction, members) for direction, members in directions if direction.p_value <= ALPHA and direction.firm
    ]
    if not (chosen and gen.has_rows and ref.has_rows):
        return [direction for direction, _ in directions]
    both = {sketched.label: sketched for sketched in (gen, ref)}
    sets = {label: sketched.at_hand for label, sketched in both.items()}
    owners = [(SETS_OF[direction.role][0], members) for direction, members in chosen]
    names = name_by_members([{name: both[name].drawn(members[name])} for name, members in owners], sets)
    typical = [{"gen": of_both.members("gen"), "ref": of_both.members("ref")} for of_both, _ in chosen]
    links = look_different(names, [direction.role for direction, _ in chosen], typical, sets)
    # Labels of the bottom-k samples, if both sets have them.
    labels = {}
    for label, embeddings in sets.items():
        if LABEL in embeddings.columns:
            ids = both[label].sketch.sample.ids
            known = embeddings.metadata_of({*ids})
            labels[label] = [known[name][1].get(LABEL, "") for name in ids]

    def cause(role: Role, members: Members) -> CauseKind | None:
        if len(labels) < len(sets):
            return None
        ordered: tuple[str, ...] = SETS_OF[role]
        places = {label: np.flatnonzero(members[label].numpy()) for label in ordered}
        return frequency_or_appearance({label: labels[label] for label in ordered}, places).kind

    named = {
        direction.id: replace(
            direction,
            name=name.text,
            evidence=name.evidence,
            cause=cause(direction.role, members),
            looks_different=None if link is None else chosen[link][0].id,
        )
        for (direction, members), name, link in zip(chosen, names, links, strict=True)
    }
    return [named.get(direction.id, direction) for direction, _ in directions]


def place_in_kinds(
    direction: Direction,
    at: Embeddings,
    kinds: Sequence[Kind],
    alike: NDArray[np.bool_],
    divided: KindsOfSamples,
    run: Run,
) -> Direction:
    """Return a direction with the kinds that most of its best samples lie in, of the set that has more.

    Kinds show a direction if most of these samples are of kinds that differ in the same way. `at` has the embeddings of
    that set; `alike`, shape (k,), marks the kinds that differ in the same way.
    """
    best = direction.tails[0].gen if direction.role == "over" else direction.tails[0].ref
    if not len(best):
        return direction
    count = np.bincount(divided.places(at.rows_at(best), run), minlength=len(kinds))
    order = np.argsort(-count, kind="stable")
    most = order[: 1 + int(np.searchsorted(count[order].cumsum(), len(best) / 2))]
    return replace(
        direction,
        kinds=tuple(kinds[place].id for place in most),
        shown_by_kinds=bool(2 * count[alike].sum() >= len(best)),
    )
