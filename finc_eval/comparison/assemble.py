"""Assembly of directions from their scores, the same for every method, and their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.comparison.direction import ROLES, SETS_OF, Direction, Role, SetLabel, Tail, unique_id
from finc_eval.comparison.directions import Directions
from finc_eval.comparison.estimates import HALVES_CORRELATION, Estimates
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.scored import ScoredProposal, ScoredSet, adjusted_p_values
from finc_eval.comparison.settings import Settings
from finc_eval.embeddings.base import Embeddings
from finc_eval.gallery.counts import MAX_SHOWN
from finc_eval.naming.causes import CauseKind, frequency_or_appearance, look_different
from finc_eval.naming.names import name_modes
from finc_eval.numerics.exact_tests import clopper_pearson, mover
from finc_eval.numerics.inference import ALPHA, critical_value, upper_tail
from finc_eval.partitions.counts import KindsOfSamples
from finc_eval.partitions.kind import Kind

ANY = (0.0, 1.0)
"""Interval of a share about which nothing is known."""


@dataclass(frozen=True)
class Share:
    """A fraction of a set, with an interval."""

    value: float
    interval: tuple[float, float]


def confidence_of(family: int) -> float:
    """Return the confidence of each of so many intervals that hold simultaneously, each from two correlated halves."""
    return 1 - 2 * upper_tail(critical_value(family) * sqrt(1 + HALVES_CORRELATION))


def share_of(one: ScoredSet, column: int, members: int, confidence: float) -> Share:
    """Return the share of so many members of a direction, each sample counted in the fold that is held out.

    For a sketch that keeps no samples, the mass is returned with the interval [0, 1]. That is also the interval of a
    set without enough independent samples.
    """
    if not one.scores.n:
        return Share(float(one.masses[slice(column, column + 1)].pooled()[0]), ANY)
    if not one.sketched.is_testable:
        return Share(members / one.scores.n, ANY)
    return exact_share(members, one.scores.n, float(one.masses.effect[column]), confidence)


def exact_share(count: float, n: float, effect: float, confidence: float) -> Share:
    """Return count / n with the interval of Clopper and Pearson, of n / effect samples (Korn and Graubard 1998)."""
    low, high = clopper_pearson(count / effect, n / effect, confidence)
    return Share(count / n, (float(low), float(high)))


def difference_of(own: Share, other: Share) -> Share:
    """Subtract two independent shares, with an interval of the same confidence (MOVER: Zou and Donner 2008)."""
    first, second = ((one.interval[0], one.value, one.interval[1]) for one in (own, other))
    low, high = mover(first, second)
    return Share(own.value - other.value, (float(low), float(high)))


NUMERICAL_ZERO = 1e-6
"""Excess below this is rounding: moments are float32, and masses lie between 0 and 1."""

LABEL = "label"
"""Column of metadata that decides whether a direction is due to frequency or to appearance."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A direction that may be reported."""

    role: Role
    scored: ScoredProposal
    rank: int  # place of the direction in its proposal
    sign: int  # sign, 1 or −1, that makes positive the tail of the members
    estimates: Estimates  # estimates of the proposal
    own: Share  # share of its members in the set that has more
    other: Share  # share of its members in the other set
    threshold: float  # score of a member, mean of the two folds'
    p_value: float
    stability: float | None  # share of it that refits find again; None if it is not known
    # which samples of each set's bottom-k sample are members, by label, shape (m,). No sample helped to decide whether
    # it is one.
    members: Mapping[str, torch.Tensor]

    @property
    def column(self) -> int:
        """Column of the direction in the score passes."""
        return self.scored.column(self.rank)

    @property
    def fitted(self) -> Directions:
        """The directions of its proposal."""
        return self.scored.proposal.fit.full

    @property
    def direction(self) -> torch.Tensor:
        """v, shape (q,), members positive."""
        return self.sign * self.fitted.vectors[:, self.rank]

    @property
    def sets(self) -> tuple[ScoredSet, ScoredSet]:
        """The set that has more, then the other."""
        own, other = SETS_OF[self.role]
        return self.scored.sets[own], self.scored.sets[other]

    def drawn(self, label: str) -> NDArray[np.int64]:
        """Return indices of members of a set, drawn at random."""
        return self.scored.sets[label].sketched.drawn(self.members[label])


def direction_candidates(proposals: Sequence[ScoredProposal], settings: Settings) -> list[Candidate]:
    """Return the directions of both roles that have an excess, both in the data and in held-out data, and members.

    Where its members are not more frequent in the set that has more mass, a direction shows no kind. Unrotated
    eigenvectors all stay whose eigenvalue is positive, as in Algorithm 1: their p-values say which have an excess.
    """
    if not any(one.proposal.fit.full.vectors.shape[1] for one in proposals):
        return []
    estimates = [one.estimates(settings.rho) for one in proposals]
    adjusted = adjusted_p_values(proposals, estimates, settings.parts[0])
    confidence = confidence_of(settings.families * len(adjusted))
    found = []
    for role, scored, estimate in zip(ROLES, proposals, estimates, strict=True):
        fit, thresholds = scored.proposal.fit, scored.thresholds
        own, other = SETS_OF[role]
        for rank in range(min(settings.modes, len(estimate.excess))):
            if settings.by_eigenvalue:
                least = float(fit.full.eigenvalues[rank])
            else:
                least = min(float(fit.full.excess[rank]), float(estimate.excess[rank]))
            if least <= NUMERICAL_ZERO:
                continue
            column = scored.column(rank)
            members = {label: one.members(column, thresholds[:, rank]) for label, one in scored.sets.items()}
            shares = {label: share_of(one, column, members[label][0], confidence) for label, one in scored.sets.items()}
            if not settings.by_eigenvalue and shares[own].value <= settings.rho * shares[other].value:
                continue
            energy = scored.energy(rank, settings.rho).tolist()
            found.append(
                Candidate(
                    role=role,
                    scored=scored,
                    rank=rank,
                    sign=1 if energy[0] >= energy[1] else -1,
                    estimates=estimate,
                    own=shares[own],
                    other=shares[other],
                    threshold=float(thresholds[:, rank].abs().mean()),
                    p_value=float(adjusted[column]),
                    stability=None if fit.stability is None else float(fit.stability[rank]),
                    members={label: mask for label, (_, mask) in members.items()},
                )
            )
    return found


def assemble_directions(
    candidates: Sequence[Candidate], family: int, settings: Settings
) -> list[tuple[Candidate, Direction]]:
    """Return candidates with their modes: the significant ones first, by the difference of shares.

    Unrotated eigenvectors stay in the order of their eigenvalues.
    """
    order = list(candidates)
    if not settings.by_eigenvalue:
        order.sort(key=lambda one: (one.p_value > ALPHA, one.other.value - one.own.value))
    found: dict[str, Direction] = {}
    for one in order:
        direction = _direction(one, family, settings.rho, found)
        found[direction.id] = direction
    return list(zip(order, found.values(), strict=True))


def _direction(one: Candidate, family: int, rho: float, taken: Mapping[str, Direction]) -> Direction:
    is_testable = all(each.sketched.is_testable for each in one.sets)
    masses = float(one.estimates.mass_first[one.rank]), float(one.estimates.mass_second[one.rank])
    over = one.role == "over"
    gen, ref = (one.own, one.other) if over else (one.other, one.own)
    difference = difference_of(gen, ref)
    return Direction(
        id=unique_id(one.role, [*one.sets[0].sketched.typical(one.direction), str(one.column)], taken),
        role=one.role,
        name=None,
        evidence=(),
        cause=None,
        looks_different=None,
        kinds=(),
        shown_by_kinds=False,
        share_gen=gen.value,
        share_ref=ref.value,
        share_gen_interval=gen.interval,
        share_ref_interval=ref.interval,
        share_difference=difference.value,
        share_difference_interval=difference.interval,
        p_value=one.p_value,
        stability=one.stability,
        threshold=one.threshold,
        mass_gen=masses[0 if over else 1],
        mass_ref=masses[1 if over else 0],
        excess=float(one.estimates.excess[one.rank]),
        interval=one.estimates.interval(one.rank, family, rho) if is_testable else (-rho, 1.0),
        standard_error=float(one.estimates.error[one.rank]),
        fitted_excess=float(one.fitted.excess[one.rank]),
        tails=_tails(one, rho),
        drawn_gen=_draw_ids(one, "gen"),
        drawn_ref=_draw_ids(one, "ref"),
        direction=one.direction.float().cpu().numpy(),
    )


def _draw_ids(one: Candidate, label: SetLabel) -> tuple[str, ...]:
    return one.scored.sets[label].sketched.ids_at(one.drawn(label)[:MAX_SHOWN])


def _tails(one: Candidate, rho: float) -> tuple[Tail, Tail]:
    """Return both tails of a direction, first the one that carries most of the excess.

    The excess is quadratic in s, so neither tail alone is the direction.
    """
    energy = one.scored.energy(one.rank, rho)
    total = float(energy.sum())
    sets = [one.scored.sets[label] for label in SETS_OF["over"]]
    tails = []
    for tail in (0, 1) if one.sign > 0 else (1, 0):
        (gen_index, gen_best), (ref_index, ref_best) = (each.scores.best(tail, one.column) for each in sets)
        tails.append(
            Tail(
                share=float(energy[tail]) / total if total > 0 else 0.5,
                gen=gen_index,
                ref=ref_index,
                gen_ids=sets[0].sketched.ids_at(gen_index),
                ref_ids=sets[1].sketched.ids_at(ref_index),
                gen_scores=gen_best,
                ref_scores=ref_best,
            )
        )
    return tails[0], tails[1]


def name_directions(
    directions: Sequence[tuple[Candidate, Direction]], gen: SketchedSet, ref: SketchedSet
) -> list[Direction]:
    """Name the significant directions that refits find again, add causes, and link directions of one kind of sample."""
    chosen = [(one, direction) for one, direction in directions if direction.p_value <= ALPHA and direction.firm]
    if not (chosen and gen.has_rows and ref.has_rows):
        return [direction for _, direction in directions]
    sets = {"gen": gen.at_hand, "ref": ref.at_hand}
    drawn = [{own.sketched.label: one.drawn(own.sketched.label)} for one, _ in chosen for own in one.sets[:1]]
    names = name_modes(drawn, sets)
    typical = [{"gen": direction.members("gen"), "ref": direction.members("ref")} for _, direction in chosen]
    links = look_different(names, [direction.role for _, direction in chosen], typical, sets)
    labels = {one.label: _labels(one) for one in (gen, ref)}
    known = {
        direction.id: replace(
            direction,
            name=name.text,
            evidence=name.evidence,
            cause=_cause(one, labels),
            looks_different=None if link is None else chosen[link][1].id,
        )
        for (one, direction), name, link in zip(chosen, names, links, strict=True)
    }
    return [known.get(direction.id, direction) for _, direction in directions]


def place_in_kinds(
    direction: Direction, at: Embeddings, kinds: Sequence[Kind], alike: NDArray[np.bool_], divided: KindsOfSamples
) -> Direction:
    """Return a direction with the kinds that most of its best samples lie in, of the set that has more.

    Kinds show a direction if most of these samples are of kinds that differ in the same way. `at` has the embeddings of
    that set; `alike`, shape (k,), marks the kinds that differ in the same way.
    """
    best = direction.tails[0].gen if direction.role == "over" else direction.tails[0].ref
    if not len(best):
        return direction
    count = np.bincount(divided.places(at.rows_at(best).cpu()), minlength=len(kinds))
    order = np.argsort(-count, kind="stable")
    most = order[: 1 + int(np.searchsorted(count[order].cumsum(), len(best) / 2))]
    return replace(
        direction,
        kinds=tuple(kinds[place].id for place in most),
        shown_by_kinds=bool(2 * count[alike].sum() >= len(best)),
    )


def _labels(one: SketchedSet) -> list[str] | None:
    """Return the label of each sample of the bottom-k sample; None without labels."""
    embeddings = one.at_hand
    if LABEL not in embeddings.columns:
        return None
    known = embeddings.metadata_of({*one.sketch.sample.ids})
    return [known[name][1].get(LABEL, "") for name in one.sketch.sample.ids]


def _cause(one: Candidate, labels: dict[str, list[str] | None]) -> CauseKind | None:
    ordered: tuple[str, ...] = SETS_OF[one.role]
    known = {label: values for label in ordered if (values := labels[label]) is not None}
    if len(known) < len(ordered):
        return None
    members = {label: np.flatnonzero(one.members[label].numpy()) for label in known}
    return frequency_or_appearance(known, members).kind
