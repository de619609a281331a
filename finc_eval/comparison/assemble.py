"""Assembly of modes from scored directions and tested clusters, the same for every method, and their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.comparison.cross_fit import CrossFit
from finc_eval.comparison.estimates import Estimates
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.modes import ROLES, FoundBy, Mode, Role, Tail, unique_id
from finc_eval.comparison.score_pass import ScoredSet
from finc_eval.comparison.settings import Settings
from finc_eval.comparison.shares import Share, confidence_of, difference_of, held_out_members, share_of, thresholds_of
from finc_eval.gallery.counts import MAX_SHOWN
from finc_eval.naming.causes import CauseKind, frequency_or_appearance
from finc_eval.naming.links import look_different
from finc_eval.naming.names import name_modes
from finc_eval.numerics.inference import ALPHA, holm
from finc_eval.partitions.counts import KindSamples

NUMERICAL_ZERO = 1e-6
"""Excess below this is rounding: moments are float32, and masses lie between 0 and 1."""

LABEL = "label"
"""Column of metadata that tells whether a mode is one of frequency or of appearance."""

Sign = Literal[1, -1]

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A direction or a cluster that may become a mode.

    Attributes:
        role: role of the mode.
        found_by: what proposed it.
        fit: fit that has the direction.
        rank: column of the direction in its fit.
        column: column of the direction in the score passes.
        sign: sign that makes positive the tail of the members.
        estimates: estimates of the fit.
        own, other: shares of its members in the set that has more, and in the other.
        threshold: score of a member, mean of the two folds'; None for a cluster.
        p_value: adjusted p-value.
        stability: share of it that refits find again; None for a cluster.
        members: function that tells which samples of a set's bottom-k sample are members, shape (m,). No sample
            helped to decide whether it is one.
        samples: samples of a cluster, by label of the set; None for a direction.
    """

    role: Role
    found_by: FoundBy
    fit: CrossFit
    rank: int
    column: int
    sign: Sign
    estimates: Estimates
    own: Share
    other: Share
    threshold: float | None
    p_value: float
    stability: float | None
    members: Callable[[SketchedSet], torch.Tensor]
    samples: Mapping[str, KindSamples] | None = None

    @property
    def direction(self) -> torch.Tensor:
        """v, shape (q,), members positive."""
        return self.sign * self.fit.full.vectors[:, self.rank]

    def drawn(self, of: SketchedSet) -> Indices:
        """Return indices of members of a set, drawn at random."""
        return of.drawn(self.members(of)) if self.samples is None else self.samples[of.label].drawn


@dataclass(frozen=True)
class ScoredSets:
    """Both sets after their score pass."""

    gen: ScoredSet
    ref: ScoredSet

    def ordered(self, role: Role) -> tuple[ScoredSet, ScoredSet]:
        """Return the set that has more of a mode of this role, then the other."""
        return (self.gen, self.ref) if role == "over" else (self.ref, self.gen)


def direction_candidates(fits: Mapping[Role, CrossFit], sets: ScoredSets, settings: Settings) -> list[Candidate]:
    """Return the directions of both roles that have an excess, both in the data and in held-out data.

    Args:
        fits: directions of both roles, in the order of their columns.
        sets: both sets, scored on them.
        settings: settings of the comparison.
    """
    if not any(fit.full.vectors.shape[1] for fit in fits.values()):
        return []
    starts, estimates, family = {}, {}, 0
    for role, fit in fits.items():
        starts[role], family = family, family + fit.full.vectors.shape[1]
        first, second = (one.masses[starts[role] : family] for one in sets.ordered(role))
        estimates[role] = Estimates.of([(1.0, first)], [(1.0, second)], settings.rho)
    weight, _ = settings.weights
    adjusted = holm(torch.cat([one.p_values() for one in estimates.values()]), weight)
    confidence = confidence_of(settings.families * family)
    found = []
    for role, fit in fits.items():
        own, other = sets.ordered(role)
        for rank in range(min(settings.modes, len(estimates[role].excess))):
            if min(float(fit.full.excess[rank]), float(estimates[role].excess[rank])) <= NUMERICAL_ZERO:
                continue
            column = starts[role] + rank
            thresholds = thresholds_of(own, [(1.0, other)], column)
            shares = [share_of(one, column, thresholds, confidence) for one in (own, other)]
            found.append(
                Candidate(
                    role=role,
                    found_by="directions",
                    fit=fit,
                    rank=rank,
                    column=column,
                    sign=leading_sign(_energy(own, other, column, settings.rho)),
                    estimates=estimates[role],
                    own=shares[0],
                    other=shares[1],
                    threshold=sum(map(abs, thresholds)) / 2,
                    p_value=float(adjusted[column]),
                    stability=fit.stability_of(rank),
                    members=partial(held_out_members, fit.scoring, rank, thresholds),
                )
            )
    return found


def assemble_modes(
    candidates: Sequence[Candidate], sets: ScoredSets, family: int, settings: Settings
) -> list[tuple[Candidate, Mode]]:
    """Return candidates with their modes: the significant ones first, by the difference of shares.

    Of each role there are at most as many directions as the settings ask for, and as many clusters that are not one of
    them. Unrotated eigenvectors stay in the order of their eigenvalues. Where nothing is significant, a share that
    contradicts the role tells that there is nothing.

    Args:
        candidates: directions and clusters.
        sets: both sets, scored on the candidates.
        family: number of intervals of the excess that hold together.
        settings: settings of the comparison.
    """
    told = [one for one in candidates if one.p_value <= ALPHA or one.own.value > settings.rho * one.other.value]
    if not settings.by_eigenvalue:
        told.sort(key=lambda one: (one.p_value > ALPHA, -abs(one.own.value - one.other.value)))
    chosen = []
    for role in ROLES:
        mine = [one for one in told if one.role == role]
        surplus = [one for one in mine if one.found_by == "clusters"][settings.modes :]
        chosen += [one for one in mine if one not in surplus]
    found: dict[str, Mode] = {}
    for one in chosen:
        mode = _mode(one, sets, family, settings.rho, found)
        found[mode.id] = mode
    return list(zip(chosen, found.values(), strict=True))


def _mode(one: Candidate, sets: ScoredSets, family: int, rho: float, taken: Mapping[str, Mode]) -> Mode:
    own, other = sets.ordered(one.role)
    excess, width = float(one.estimates.excess[one.rank]), float(one.estimates.half_widths(family)[one.rank])
    masses = float(one.estimates.mass_first[one.rank]), float(one.estimates.mass_second[one.rank])
    over = one.role == "over"
    gen, ref = (one.own, one.other) if over else (one.other, one.own)
    difference = difference_of(gen, ref)
    return Mode(
        id=unique_id(one.role, [*_typical(one, own), str(one.column)], taken),
        role=one.role,
        found_by=one.found_by,
        name=None,
        evidence=(),
        cause=None,
        looks_different=None,
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
        excess=excess,
        interval=(excess - width, excess + width),
        standard_error=float(one.estimates.error[one.rank]),
        fitted_excess=float(one.fit.full.excess[one.rank]),
        tails=_tails(one, _energy(own, other, one.column, rho), sets) if one.samples is None else _nearest(one, sets),
        drawn_gen=_drawn_ids(one, sets.gen.sketched),
        drawn_ref=_drawn_ids(one, sets.ref.sketched),
        direction=one.direction.float().cpu().numpy(),
    )


def _drawn_ids(one: Candidate, of: SketchedSet) -> tuple[str, ...]:
    return of.ids_at(one.drawn(of)[:MAX_SHOWN])


def _typical(one: Candidate, own: ScoredSet) -> Sequence[str]:
    """Return ids that can name a mode: of its best samples in the set that has more."""
    if one.samples is None:
        return own.sketched.typical(one.direction)
    return own.sketched.ids_at(one.samples[own.sketched.label].nearest[:5])


def leading_sign(energy: torch.Tensor) -> Sign:
    """Return the sign that makes positive the tail with most of the excess; `energy` has shape (2,)."""
    return 1 if float(energy[0]) >= float(energy[1]) else -1


def tail_of(sign: Sign) -> int:
    """Return the index of the tail that is positive under this sign."""
    return 0 if sign > 0 else 1


def _energy(own: ScoredSet, other: ScoredSet, column: int, rho: float) -> torch.Tensor:
    """Return the in-sample excess of both tails of a direction, shape (2,)."""
    return own.scores.energies()[:, column] - rho * other.scores.energies()[:, column]


def _nearest(one: Candidate, sets: ScoredSets) -> tuple[Tail, Tail]:
    """Return the samples nearest to the center of a cluster as its first tail; it has no second one."""
    assert one.samples is not None
    (gen, gen_ids, gen_scores), (ref, ref_ids, ref_scores) = (
        (
            index,
            each.ids_at(index),
            (each.sketch.feature_map(each.at_hand.rows_at(index)) @ one.direction).cpu().numpy(),
        )
        for each in (sets.gen.sketched, sets.ref.sketched)
        for index in (one.samples[each.label].nearest,)
    )
    none, nothing = np.empty(0, np.int64), np.empty(0, np.float32)
    return Tail(1.0, gen, ref, gen_ids, ref_ids, gen_scores, ref_scores), Tail(
        0.0, none, none, (), (), nothing, nothing
    )


def _tails(one: Candidate, energy: torch.Tensor, sets: ScoredSets) -> tuple[Tail, Tail]:
    """Return both tails of a direction, first the one that carries most of the excess.

    The excess is quadratic in s, so neither tail alone is the mode.
    """
    total = float(energy.sum())
    tails = []
    for tail in (tail_of(one.sign), 1 - tail_of(one.sign)):
        (gen_index, gen_best), (ref_index, ref_best) = (
            scored.scores.best(tail, one.column) for scored in (sets.gen, sets.ref)
        )
        tails.append(
            Tail(
                share=float(energy[tail]) / total if total > 0 else 0.5,
                gen=gen_index,
                ref=ref_index,
                gen_ids=sets.gen.sketched.ids_at(gen_index),
                ref_ids=sets.ref.sketched.ids_at(ref_index),
                gen_scores=gen_best,
                ref_scores=ref_best,
            )
        )
    return tails[0], tails[1]


def named(modes: Sequence[tuple[Candidate, Mode]], gen: SketchedSet, ref: SketchedSet) -> list[Mode]:
    """Name the significant modes that refits find again, tell their cause, and link those of one kind of sample."""
    chosen = [(one, mode) for one, mode in modes if mode.p_value <= ALPHA and mode.firm]
    if not (chosen and gen.has_rows and ref.has_rows):
        return [mode for _, mode in modes]
    sets = {"gen": gen.at_hand, "ref": ref.at_hand}
    having_more = {"over": gen, "under": ref}
    drawn = [{having_more[one.role].label: one.drawn(having_more[one.role])} for one, _ in chosen]
    names = name_modes(drawn, sets)
    typical = [{"gen": mode.members("gen"), "ref": mode.members("ref")} for _, mode in chosen]
    links = look_different(names, [mode.role for _, mode in chosen], typical, sets)
    labels = {one.label: _labels(one) for one in (gen, ref)}
    known = {
        mode.id: replace(
            mode,
            name=name.text,
            evidence=name.evidence,
            cause=_cause(one, gen, ref, labels),
            looks_different=None if link is None else chosen[link][1].id,
        )
        for (one, mode), name, link in zip(chosen, names, links, strict=True)
    }
    return [known.get(mode.id, mode) for _, mode in modes]


def _labels(one: SketchedSet) -> list[str] | None:
    """Return the label of each sample of the bottom-k sample; None without labels."""
    embeddings = one.at_hand
    if LABEL not in embeddings.columns:
        return None
    known = embeddings.metadata_of({*one.sketch.sample.ids})
    return [known[name][1].get(LABEL, "") for name in one.sketch.sample.ids]


def _cause(one: Candidate, gen: SketchedSet, ref: SketchedSet, labels: dict[str, list[str] | None]) -> CauseKind | None:
    ordered = (gen, ref) if one.role == "over" else (ref, gen)
    known = {each.label: values for each in ordered if (values := labels[each.label]) is not None}
    if len(known) < len(ordered):
        return None
    members = {each.label: np.flatnonzero(one.members(each).cpu().numpy()) for each in ordered}
    return frequency_or_appearance(known, members).kind
