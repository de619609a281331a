"""`compare_models`: the modes on which several sets differ, and how much of each every set has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.comparison.assemble import NUMERICAL_ZERO, Sign, leading_sign, tail_of
from finc_eval.comparison.caveats import rho_warnings
from finc_eval.comparison.cross_fit import SAME_MODE_OVERLAP, squared_overlap
from finc_eval.comparison.finc_directions import FincFit
from finc_eval.comparison.inputs import OpenSets, groups_signature, open_sets
from finc_eval.comparison.modes import FIRM_STABILITY, Direction, Interval, significant, unique_id
from finc_eval.comparison.scored import Proposal, Scored, ScoredProposal, ScoredSet, adjusted_p_values, score_sets
from finc_eval.comparison.settings import REFERENCE, Finc, Options, Settings, StoredSettings, settings_of
from finc_eval.comparison.shares import confidence_of, share_of
from finc_eval.core.errors import UsageError
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import ABSENT, NOT_IN_JSON, Record
from finc_eval.core.run import Run
from finc_eval.core.shown import Shown
from finc_eval.core.signature import Signature, SignatureText
from finc_eval.core.words import counted
from finc_eval.embeddings.opening import labeled
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.embeddings.space import known_space
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.gallery.counts import MAX_SHOWN, told_sets
from finc_eval.gallery.pictured import Pictured
from finc_eval.naming.evidence import Evidence
from finc_eval.naming.names import name_modes
from finc_eval.numerics.inference import ALPHA
from finc_eval.numerics.precision import arithmetic


@dataclass(frozen=True)
class ModeShare(Record):
    """Part of one set that belongs to a mode.

    Attributes:
        share: fraction of the set that are members, counted on held-out samples; see `Mode`.
        interval: interval of the share; all intervals of a comparison hold together with probability 0.95.
        mass: cross-fitted mass of the mode in the set, in [0, 1].
        top_ids: ids of the samples of the set that are most of the mode, best first.
        drawn_ids: ids of members of the set, drawn at random: at most 16; none of a sketch that keeps no samples.
    """

    share: float
    interval: Interval
    mass: float
    top_ids: tuple[str, ...]
    drawn_ids: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SharedMode(Record, Shown):
    """A mode with more mass in one set than in the mixture of all others.

    Attributes:
        id: stable name, from the set that has most and its best sample.
        name: what most members have in common and other samples have not; None without significant evidence.
        evidence: what supports the name.
        set_with_most: label of that set.
        excess: its mass minus ρ × the mean mass in the others, cross-fitted.
        interval: interval of the excess.
        p_value: one-sided p-value of "no excess", adjusted for all directions tested (Holm).
        stability: share of the mode that refits find again; see `Mode`.
        shares: how much of the mode each set has, by label.
        direction: v, shape (q,), norm 1.
    """

    id: str
    name: str | None
    evidence: tuple[Evidence, ...]
    set_with_most: str
    excess: float
    interval: Interval
    p_value: float
    stability: float
    shares: dict[str, ModeShare]
    direction: Direction = field(default=ABSENT, kw_only=True)

    @property
    def title(self) -> str:
        """The name, or the id of a mode without one."""
        return self.name or self.id

    @property
    def side(self) -> str:
        """Set that it sets apart, in words: "more in gen", which is more than the mean of the others."""
        return f"more in {self.set_with_most}"

    @property
    def firm(self) -> bool:
        """True unless refits find less than half of the mode again."""
        return self.stability >= FIRM_STABILITY

    def _summary(self) -> str:
        shares = ", ".join(f"{one.share:.1%} of {label}" for label, one in self.shares.items())
        return f"{self.title}: {shares}, p={self.p_value:.2g}"


@dataclass(frozen=True, eq=False)
class ModelComparison(Pictured):
    """The modes on which several models differ.

    Attributes:
        modes: modes by descending excess.
        sets: the models, and the reference if there is one, by label.
        settings: settings of the comparison, with the bandwidth and the number of frequencies that were used.
        sigma_rule: origin of the bandwidth.
        signature: everything that changes the numbers save the models.
        tested: number of directions tested.
        warnings: sentences for a reader, on groups, repeats and ρ.
        feature_map: φ.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()
        >>> found = fe.compare_models({"a": gen[:200], "b": gen[200:]}, ref, features=500)
        >>> list(found.sets), found.models
        (['a', 'b', 'ref'], ('a', 'b'))
    """

    type_name: ClassVar[str] = "models"

    modes: tuple[SharedMode, ...]
    sets: dict[str, SetInfo]
    settings: StoredSettings
    sigma_rule: str
    signature: SignatureText
    tested: int
    warnings: tuple[str, ...]
    feature_map: Annotated[FeatureMap, *NOT_IN_JSON] = field(default=ABSENT, kw_only=True)

    @property
    def models(self) -> tuple[str, ...]:
        """Labels of the models."""
        return tuple(label for label in self.sets if label != REFERENCE)

    def significant(self, alpha: float = 0.05) -> tuple[SharedMode, ...]:
        """Return the modes whose adjusted p-value is at most α.

        Among all directions tested, a false one is in it with probability α at most.

        Raises:
            UsageError: α does not lie between 0 and 1.
        """
        return significant(self.modes, alpha)

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return all sets."""
        return self.sets

    def shown_samples(self) -> Mapping[str, list[str]]:
        """Return the ids of the samples of each set that a page shows."""
        found: dict[str, list[str]] = {label: [] for label in self.sets}
        for mode in self.modes:
            for label in told_sets(mode.shares, mode.set_with_most):
                part = mode.shares[label]
                found[label] += (*part.top_ids[: self.shown], *part.drawn_ids[: self.shown])
        return found

    def _frame_rows(self) -> tuple[SharedMode, ...]:
        return self.modes

    def _lines(self) -> Iterator[str]:
        return (one._summary() for one in self.significant())

    def _summary(self) -> str:
        modes, found = counted(len(self.modes), "mode"), len(self.significant())
        return f"{', '.join(self.sets)}: {modes}, {found} of them with p ≤ 0.05"


@arithmetic("float32")
def compare_models(
    models: Mapping[str, object] | Sequence[object],
    ref: object = None,
    settings: Settings | None = None,
    *,
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **options: Unpack[Options],
) -> ModelComparison:
    """Find the modes on which several models differ, and how much of each every model has.

    Every set is compared with the mixture of all others, each weighing the same; directions found from several sets
    are reported once. A reference takes part like a model, called "ref": the modes where it has most are what the
    models lack. Sketches are enough; with embeddings the intervals are sharper.

    Args:
        models: two sets or more, by label, each in any form that `compare` takes. Those of a list are called by the
            names of their files and folders where they have different ones, or else "model 1", "model 2", and so on.
        ref: reference, in any of the same forms; it decides the bandwidth. Default: all models together decide.
        settings: settings of the comparison; `modes` is the maximum number of modes per set.
        extractor: how to embed sets of samples; see `compare`.
        run: device, portions, threads and progress of the computation.
        options: fields of `Settings`, in place of those of `settings`.

    Raises:
        UsageError: there are fewer than two sets, a model is called "ref", or a setting is out of range or a baseline.
        DataError: a set cannot be used.
        IncompatibleError: the sets come from unlike extractors, or have unlike dimensions or feature maps.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()  # gen has no zeros
        >>> found = fe.compare_models({"a": gen[:250], "b": gen[250:]}, ref, features=500)
        >>> {mode.set_with_most for mode in found.significant()}
        {'ref'}
    """
    run = Run.of(run)
    chosen = settings_of(settings, options)
    if not isinstance(chosen.method, Finc):
        raise UsageError(f"compare_models knows the method finc, got {chosen.method.name}: leave method out")
    models = labeled(models, "model", taken=REFERENCE)
    if REFERENCE in models:
        raise UsageError(f'a model cannot be called "{REFERENCE}": pass the reference as ref, or rename the model')
    sources = dict(models) | ({} if ref is None else {REFERENCE: ref})
    if len(sources) < 2:
        raise UsageError(f"at least two sets are needed to compare, got {len(sources)}")
    opened = open_sets(sources, list(models) if ref is None else [REFERENCE], chosen, run, extractor)
    sets, chosen = opened.sets, opened.settings
    fit = FincFit.among(list(sets.values()), chosen)
    proposals = []
    for done, (label, one) in enumerate(sets.items()):
        run.progress("decompose", done, len(sets))
        others = {other: 1 / (len(sets) - 1) for other in sets if other != label}
        found = fit([(1.0, one)], [(weight, sets[other]) for other, weight in others.items()])
        proposals.append(Proposal(label, others, found))
    run.progress("decompose", len(sets), len(sets))
    scored = score_sets(sets, proposals, run)
    family = fit.count * len(sets)
    return ModelComparison(
        modes=_shared_modes(scored, chosen, family),
        sets={label: one.info() for label, one in sets.items()},
        settings=chosen,
        sigma_rule=opened.sigma_rule,
        signature=_signature(opened),
        tested=family,
        warnings=(*rho_warnings(chosen.rho), *opened.warnings),
        feature_map=next(iter(sets.values())).sketch.feature_map,
        provenance=Provenance.here(run.device),
    )


def _signature(opened: OpenSets) -> Signature:
    sets = opened.sets
    first = next(iter(sets.values())).sketch
    reference = sets[REFERENCE].sketch.sources if REFERENCE in sets else ()
    return Signature.of(
        ModelComparison.type_name,
        [one.sketch.n for one in sets.values()],
        known_space(one.sketch.space for one in sets.values()),
        ("ref", "+".join(source[:12] for source in reference) or "none"),
        *first.feature_map.signature(),
        *opened.settings.signature(),
        *groups_signature(one.sketch for one in sets.values()),
        ("prec", "/".join(dict.fromkeys(one.sketch.precision for one in sets.values()))),
    )


def _shared_modes(scored: Scored, settings: Settings, family: int) -> tuple[SharedMode, ...]:
    """Return the reported directions of all sets, one mode each, by descending excess."""
    estimates = [one.estimates(settings.rho) for one in scored.proposals]
    adjusted = adjusted_p_values(scored.proposals, estimates)
    candidates = [
        (float(estimate.excess[rank]), number, rank)
        for number, (one, estimate) in enumerate(zip(scored.proposals, estimates, strict=True))
        for rank in range(min(settings.modes, len(estimate.excess)))
        if min(float(one.proposal.fit.full.excess[rank]), float(estimate.excess[rank])) > NUMERICAL_ZERO
    ]
    found: dict[str, SharedMode] = {}
    vectors = [one.proposal.fit.full.vectors.cpu() for one in scored.proposals]
    known: list[torch.Tensor] = []
    drawn: dict[str, dict[str, NDArray[np.int64]]] = {}
    for excess, number, rank in sorted(candidates, reverse=True):
        one, direction = scored.proposals[number], vectors[number][:, rank]
        if known and float(squared_overlap(torch.stack(known, 1), direction[:, None]).max()) > SAME_MODE_OVERLAP:
            continue
        known.append(direction)
        label, fit, column = one.proposal.own, one.proposal.fit, one.column(rank)
        sign = leading_sign(one.energy(rank, settings.rho))
        typical = one.own.sketched.typical(sign * fit.full.vectors[:, rank])
        name = unique_id(label, [*typical, str(rank)], found)
        shares, members = _shares(one, rank, sign, family * len(scored.sets))
        found[name] = SharedMode(
            id=name,
            name=None,
            evidence=(),
            set_with_most=label,
            excess=excess,
            interval=estimates[number].interval(rank, family, settings.rho),
            p_value=float(adjusted[column]),
            stability=fit.stability_of(rank) or 0.0,
            shares=shares,
            direction=(sign * direction).float().numpy(),
        )
        drawn[name] = {label: members[label]}
    return _named(found, drawn, scored.sets)


def _named(
    found: Mapping[str, SharedMode],
    drawn: Mapping[str, Mapping[str, NDArray[np.int64]]],
    scored: Mapping[str, ScoredSet],
) -> tuple[SharedMode, ...]:
    """Name the significant modes that refits find again."""
    chosen = [name for name, mode in found.items() if mode.p_value <= ALPHA and mode.firm]
    if not (chosen and all(one.sketched.has_rows for one in scored.values())):
        return tuple(found.values())
    sets = {label: one.sketched.at_hand for label, one in scored.items()}
    names = dict(zip(chosen, name_modes([drawn[name] for name in chosen], sets), strict=True))
    return tuple(
        replace(mode, name=names[name].text, evidence=names[name].evidence) if name in names else mode
        for name, mode in found.items()
    )


def _shares(
    scored: ScoredProposal, rank: int, sign: Sign, family: int
) -> tuple[dict[str, ModeShare], dict[str, NDArray[np.int64]]]:
    """Return how much each set has of a direction, and the indices of members of each, drawn at random."""
    column, confidence = scored.column(rank), confidence_of(family)
    shares, drawn = {}, {}
    for label, one in scored.sets.items():
        members = one.members(column, scored.thresholds[:, rank])
        share = share_of(one, column, members, confidence)
        mass, _ = one.masses[slice(column, column + 1)].pooled()
        index, _ = one.scores.best(tail_of(sign), column)
        drawn[label] = one.sketched.drawn(members.sample)
        shares[label] = ModeShare(
            share=share.value,
            interval=share.interval,
            mass=float(mass),
            top_ids=one.sketched.ids_at(index),
            drawn_ids=one.sketched.ids_at(drawn[label][:MAX_SHOWN]),
        )
    return shares, drawn
