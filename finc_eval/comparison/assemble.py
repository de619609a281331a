"""Assembly of directions from their scores, the same for every method, and their names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from finc_eval.embeddings.base import Embeddings
from finc_eval.gallery.counts import MAX_SHOWN
from finc_eval.naming.causes import CauseKind, frequency_or_appearance, look_different
from finc_eval.naming.names import name_modes
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
    family = sum(fit.full.vectors.shape[1] for fit in fits.values())
    if not family:
        return []
    rho, stop = settings.rho, 0
    columns, estimates, p_values = [], [], []
    for role, fit in fits.items():
        start, stop = stop, stop + fit.full.vectors.shape[1]
        own, other = (sets[label] for label in SETS_OF[role])
        paired = own.scores.paired_variance(other.scores) if is_paired else None
        columns.append(range(start, stop))
        estimates.append(Estimates.of(own.masses, other.masses, rho, paired))
        p_values.append(estimates[-1].p_values()[start:stop])
    is_testable = all(one.sketched.is_testable for one in sets.values())
    adjusted = holm(torch.cat(p_values), settings.parts[0])
    # Intervals of shares hold simultaneously, each from two correlated halves.
    width = critical_value(settings.families * family) * sqrt(1 + HALVES_CORRELATION)
    confidence = 1 - 2 * upper_tail(width)
    found = []
    for (role, fit), estimate, places in zip(fits.items(), estimates, columns, strict=True):
        own, other = (sets[label] for label in SETS_OF[role])
        thresholds = thresholds_of(own.scores.fitted, other.scores.fitted, slice(places.start, places.stop))
        for rank, column in enumerate(places[: settings.modes]):
            in_sample, excess = float(fit.full.excess[rank]), float(estimate.excess[column])
            least = float(fit.full.eigenvalues[rank]) if settings.by_eigenvalue else min(in_sample, excess)
            if least <= NUMERICAL_ZERO:
                continue
            counted = {label: one.members(column, thresholds[:, rank]) for label, one in sets.items()}
            members = {label: mask for label, (_, mask) in counted.items()}
            shares = {label: share_of(one, column, counted[label][0], confidence) for label, one in sets.items()}
            more, less = (shares[label][1] for label in SETS_OF[role])
            if not settings.by_eigenvalue and more <= rho * less:
                continue
            gen, ref = shares["gen"], shares["ref"]
            low, high = mover(gen, ref)
            # Means of s₊² and of s₋² over each set.
            mean, mean_of_other = (one.scores.energy[:, column] / one.scores.n for one in (own, other))
            energy = mean - rho * mean_of_other
            sign = 1 if energy[0] >= energy[1] else -1
            vector = sign * fit.full.vectors[:, rank]
            masses = dict(zip(SETS_OF[role], (estimate.mass_first[column], estimate.mass_second[column]), strict=True))
            drawn = {label: one.sketched.drawn(members[label])[:MAX_SHOWN] for label, one in sets.items()}
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
                p_value=float(adjusted[column]) if is_testable else 1.0,
                stability=None if fit.stability is None else float(fit.stability[rank]),
                threshold=float(thresholds[:, rank].abs().mean()),
                mass_gen=float(masses["gen"]),
                mass_ref=float(masses["ref"]),
                excess=excess,
                interval=estimate.interval(column, family, rho) if is_testable else (-rho, 1.0),
                standard_error=float(estimate.error[column]),
                fitted_excess=in_sample,
                tails=_tails(sets, energy, sign, column),
                drawn_gen=sets["gen"].sketched.ids_at(drawn["gen"]),
                drawn_ref=sets["ref"].sketched.ids_at(drawn["ref"]),
                direction=vector.float().cpu().numpy(),
            )
            found.append((direction, less - more, [*own.sketched.typical(vector), str(column)], members))
    if not settings.by_eigenvalue:
        found.sort(key=lambda entry: (entry[0].p_value > ALPHA, entry[1]))
    named: dict[str, tuple[Direction, Members]] = {}
    for direction, _, samples, members in found:
        # Directions can share their best sample: the id is the first by a sample that is free, such as "over-1f09ab".
        digests = (hashlib.blake2b(text_bytes(sample), digest_size=3).hexdigest() for sample in samples)
        name = next(name for digest in digests if (name := f"{direction.role}-{digest}") not in named)
        named[name] = replace(direction, id=name), members
    return list(named.values())


def share_of(one: ScoredSet, column: int, members: int, confidence: float) -> tuple[float, float, float]:
    """Return the share of so many members of a direction, between the ends of its interval.

    Each sample is counted in the fold that is held out. The interval is that of Clopper and Pearson, of as many samples
    as are independent (Korn and Graubard 1998). It is [0, 1] where a set has too few, and for a sketch that keeps no
    samples, whose share is the mass.
    """
    n = one.scores.n
    if not n:
        return 0.0, float(one.masses.pooled()[0][column]), 1.0
    if not one.sketched.is_testable:
        return 0.0, members / n, 1.0
    effect = float(one.masses.effect[column])
    low, high = clopper_pearson(members / effect, n / effect, confidence)
    return float(low), members / n, float(high)


def _tails(sets: Mapping[str, ScoredSet], energy: torch.Tensor, sign: int, column: int) -> tuple[Tail, Tail]:
    """Return both tails of a direction, first the one that carries most of the excess, by the excess of both, (2,).

    The excess is quadratic in s, so neither tail alone is the direction.
    """
    total = float(energy.sum())
    tails = []
    for tail in (0, 1) if sign > 0 else (1, 0):
        (gen_index, gen_best), (ref_index, ref_best) = (sets[one].scores.best(tail, column) for one in SETS_OF["over"])
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
    chosen = [(one, members) for one, members in directions if one.p_value <= ALPHA and one.firm]
    if not (chosen and gen.has_rows and ref.has_rows):
        return [one for one, _ in directions]
    both = {one.label: one for one in (gen, ref)}
    sets = {label: one.at_hand for label, one in both.items()}
    owners = [(SETS_OF[one.role][0], members) for one, members in chosen]
    names = name_modes([{own: both[own].drawn(members[own])} for own, members in owners], sets)
    typical = [{"gen": one.members("gen"), "ref": one.members("ref")} for one, _ in chosen]
    links = look_different(names, [one.role for one, _ in chosen], typical, sets)
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
        one.id: replace(
            one,
            name=name.text,
            evidence=name.evidence,
            cause=cause(one.role, members),
            looks_different=None if link is None else chosen[link][0].id,
        )
        for (one, members), name, link in zip(chosen, names, links, strict=True)
    }
    return [named.get(one.id, one) for one, _ in directions]


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
