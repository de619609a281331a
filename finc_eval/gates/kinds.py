"""Evidence on kinds of samples: shares of clusters, or of the values of a column, in all sets of a gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.core.words import counted, in_percent
from finc_eval.gates.divisions import (
    MOST_HIDDEN,
    CountedSets,
    divided,
    hidden_loss,
    hidden_share,
    scattered_share,
)
from finc_eval.gates.evidence import Evidence, Missing
from finc_eval.gates.moved import Distance, Moved
from finc_eval.gates.paired_shares import PairCounts, PairedGain, PairedLoss
from finc_eval.gates.policy import COLUMN_SHARE, KindLimits
from finc_eval.gates.retraining import Retrained, between_shares
from finc_eval.gates.sets import BASELINE, GEN, REF, GateSets
from finc_eval.gates.shares import GainedShare, LostShare, TwoCounts, Unseen
from finc_eval.partitions.difference import total_variation

LACKED = 0.25
"""A kind that the reference has less of than this part of the limit on new kinds is one that it lacks."""

IN_ONE = 0.8
"""Part of a new kind that one cluster holds, in four of five cases: other clusters take the rest."""

CUT, PARTS = 2, 4
"""Clusters that a class may lie in, in equal parts, and not be lost unseen. Those of a quarter of `min_share` are
limited, too, and the losses of those of less than a half are parts of it."""


@dataclass(frozen=True)
class KindEvidence:
    """Evidence on a kind, and what to show of it.

    Attributes:
        evidence: the evidence.
        shares: share of each set, by label.
        examples: ids of samples nearest to the center of the kind, by label.
    """

    evidence: Evidence
    shares: dict[str, float]
    examples: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Promise:
    """Classes whose loss the limits on lost kinds see.

    Attributes:
        kinds: number of clusters; 0 for the values of a column.
        seen: smallest share of a class in up to `CUT` kinds that cannot be lost unseen.
        scattered: smallest share of a class in any kinds of together half of the samples that cannot be lost unseen;
            1 where no limit says so.
        smallest: smallest share of the reference of the kinds that are limited.
        least: share of the baseline that losses of rarer kinds are parts of.
    """

    kinds: int
    seen: float
    scattered: float
    smallest: float
    least: float


@dataclass(frozen=True)
class Division:
    """Kinds that limits were put on.

    Attributes:
        digest: their digest.
        promise: what limits on lost kinds see; None where there are none.
        unseen: sentences on what can be lost or come while all limits hold.
        distances: how far the release is from the older ones.
    """

    digest: str
    promise: Promise | None
    unseen: tuple[str, ...]
    distances: tuple[Distance, ...]


def kind_evidence(sets: GateSets, limits: KindLimits, seed: int, run: Run) -> tuple[list[KindEvidence], Division]:
    """Count all sets by the same kinds, and return the evidence of each limit, and what the kinds are."""
    found = divided(sets, limits, seed, run)
    promise = None if limits.lose is None else _promise(found, limits, limits.lose)
    evidence: list[KindEvidence] = []
    distances: list[Distance] = []
    for against in sets.comparisons:
        distance, moved = _distance(against, found, limits.moved)
        distances.append(distance)
        if limits.moved is not None:
            evidence.append(_alone(moved))
        if limits.lose is not None and promise is not None:
            evidence += _lost(against, found, limits, limits.lose, promise)
        if limits.new is not None:
            evidence += _new(against, found, limits, limits.new)
    unseen = tuple(_unseen(sets, found, limits, promise)) if sets.baselines else ()
    return evidence, Division(found.digest, promise, unseen, tuple(distances))


@dataclass(frozen=True)
class _Level:
    """Effective counts at one level, shape (kinds,) each; of the replicates, those of all together."""

    sets: GateSets
    found: CountedSets
    place: int
    members: NDArray[np.float64]
    size: NDArray[np.float64]
    old_members: NDArray[np.float64]
    old_size: NDArray[np.float64]
    retrained: Retrained
    ref_share: NDArray[np.float64]

    @classmethod
    def of(cls, sets: GateSets, found: CountedSets, place: int) -> _Level:
        effective = {label: found.tallies[label].units(place) for label in found.counted}

        def of_all(labels: Iterable[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            found = [effective[label] for label in labels]
            return np.array([one[0] for one in found]), np.array([one[1] for one in found])

        members, sizes = of_all(sets.baselines)
        again, again_sizes = of_all(sets.replicates)
        ref_members, ref_size = effective[REF]
        retrained = between_shares(again, again_sizes, len(sets.baselines))
        return cls(sets, found, place, *effective[GEN], members.sum(0), sizes.sum(0), retrained, ref_members / ref_size)

    def counts(self, kind: int) -> TwoCounts:
        """Return the counts of a kind."""
        return TwoCounts(
            members=float(self.members[kind]),
            size=float(self.size[kind]),
            old_members=float(self.old_members[kind]),
            old_size=float(self.old_size[kind]),
            training=float(self.retrained.training[kind]),
            degrees=self.retrained.degrees,
        )

    def pairs(self, kind: int) -> PairCounts | None:
        """Return the counts of pairs of a kind; None where samples are not paired with those of the baseline."""
        (label,) = list(self.sets.baselines)[:1]
        if label not in self.sets.pairs:
            return None
        old = self.found.cells[label][self.sets.pairs[label], self.place] == kind
        return PairCounts.of(self.found.cells[GEN][:, self.place] == kind, old, self.sets.gen.group_hashes())


def _promise(found: CountedSets, limits: KindLimits, lose: float) -> Promise:
    """Return what limits on lost kinds see: what the policy asks for, or what clusters of these sizes show."""
    if not found.clusters:
        least = limits.least or 0.0
        return Promise(0, least, least, least, least)
    counts = found.counted[REF].counts
    shares = counts.members(found.place) / counts.n
    kinds = len(found.names[found.place])
    scattered = 1.0 if limits.moved is None else scattered_share(limits.moved)
    if limits.least is not None:
        return Promise(kinds, limits.least, scattered, limits.least / PARTS, limits.least / CUT)
    # The largest of the clusters hides most.
    seen = CUT * max(hidden_share(float(share), lose) for share in shares)
    return Promise(kinds, seen, scattered, COLUMN_SHARE, COLUMN_SHARE)


def _unseen(sets: GateSets, found: CountedSets, limits: KindLimits, promise: Promise | None) -> Iterator[str]:
    """Yield a sentence on each way in which limits on kinds hold though a kind is lost, or new."""
    lose, new = sets.rule("kinds.lose"), sets.rule("kinds.new")
    made = len(found.names[found.place])
    if found.clusters and limits.level not in ("auto", made):
        yield f"{sets.rule('kinds.level')} asks for {limits.level} kinds: the samples are enough for {made}"
    if promise is not None and found.clusters:
        least = "" if promise.scattered >= 1 else f" and is less than {in_percent(promise.scattered, 2)}"
        hidden = (
            f"a class of less than {in_percent(promise.seen, 2)} of the samples, or one that is in more than {CUT} of "
        )
        hidden = "any class" if promise.seen >= 1 else f"{hidden}them{least},"
        yield (
            f"{lose} divides the samples into {promise.kinds} kinds: {hidden} can be lost unseen; more samples, a "
            "smaller min_share or a labelled column show more"
        )
    elif promise is not None:
        counts, names = found.counted[REF].counts, found.names[found.place]
        shares = counts.members(found.place) / counts.n
        rare = [names[kind] for kind in _named(names, limits) if 0 < shares[kind] < promise.smallest]
        if rare and not limits.only:
            least = in_percent(promise.smallest, 2)
            yield (
                f"{lose} does not limit {counted(len(rare), 'kind')} of less than {least} of the reference, such as "
                f"{rare[0]}, which can be lost unseen: set a smaller min_share"
            )
    if limits.new is not None and found.clusters:
        yield f"{new} sees kinds that the reference lacks: what is new among samples of its kinds can come unseen"


def _lost(
    sets: GateSets, found: CountedSets, limits: KindLimits, lose: float, promise: Promise
) -> Iterator[KindEvidence]:
    level, names, rule = _Level.of(sets, found, found.place), found.names[found.place], sets.rule("kinds.lose")
    kinds = [kind for kind in _named(names, limits) if level.ref_share[kind] >= promise.smallest]
    yield from _unmatched(found, limits, rule, lose, promise, kinds)
    if limits.min_share == "auto" and promise.kinds and promise.seen > MOST_HIDDEN:
        hidden = "any class" if promise.seen >= 1 else f"a class of {in_percent(promise.seen, 2)}"
        note = (
            f"with so few kinds, {hidden} could be lost within them: draw more samples, raise lose, or set min_share "
            "to what may be hidden"
        )
        yield _alone(Unseen(name=rule, margin=lose, n=sets.gen.n, enough=found.more, note=note))
    for kind in kinds:
        counts, pairs, real = level.counts(kind), level.pairs(kind), float(level.ref_share[kind])
        margin = min(lose, hidden_loss(real, promise.seen / CUT)) if promise.kinds else lose
        unchanged = 0.0 if counts.share <= real else None
        title, n, least = f"{rule} {names[kind]}", sets.gen.n, promise.least
        evidence: Evidence
        if pairs is None:
            value = LostShare.value_of(counts.share, counts.old_share, least)
            evidence = LostShare(
                name=title, value=value, margin=margin, n=n, least=least, unchanged=unchanged, counts=counts
            )
        else:
            value = LostShare.value_of((pairs.kept + pairs.gained) / pairs.size, pairs.old / pairs.size, least)
            evidence = PairedLoss(
                name=title, value=value, margin=margin, n=n, least=least, unchanged=unchanged, counts=pairs
            )
        yield _shown(evidence, sets, found, found.place, kind)


def _new(sets: GateSets, found: CountedSets, limits: KindLimits, margin: float) -> Iterator[KindEvidence]:
    any_lacked, rule, n = found.enough > 1, sets.rule("kinds.new"), sets.gen.n
    part, found = IN_ONE if found.clusters else 1.0, found.joined(LACKED * margin)
    if any_lacked:
        note = f"with so few samples, a new kind of {in_percent(margin, 2)} would be hidden in a larger one"
        yield _alone(Unseen(name=rule, margin=margin, n=n, enough=found.enough, note=note))
    for place, names in enumerate(found.names):
        level = _Level.of(sets, found, place)
        for kind in _named(names, limits):
            if level.ref_share[kind] < LACKED * margin:
                any_lacked = True
                counts, pairs, title = level.counts(kind), level.pairs(kind), f"{rule} {names[kind]}"
                evidence: Evidence
                if pairs is None:
                    value = counts.share - counts.old_share
                    evidence = GainedShare(name=title, value=value, margin=margin, n=n, part=part, counts=counts)
                else:
                    value = (pairs.gained - pairs.lost) / pairs.size
                    evidence = PairedGain(name=title, value=value, margin=margin, n=n, part=part, counts=pairs)
                yield _shown(evidence, sets, found, place, kind)
    if not any_lacked:
        # Every kind is one of the reference's: none of the samples are of a new one.
        old = float(sum(one.n for one in sets.baselines.values()))
        counts = TwoCounts(0.0, float(n), 0.0, old)
        note = "the reference has every kind that was found"
        yield _alone(GainedShare(name=rule, value=0.0, margin=margin, n=n, part=part, note=note, counts=counts))


def _distance(sets: GateSets, found: CountedSets, margin: float | None) -> tuple[Distance, Moved]:
    """Return how far the release is from the older one, and the evidence on the limit on it.

    Without a limit on what has moved, the finest kinds tell: those that a loss is limited in may be two.
    """
    place = len(found.names) - 1 if margin is None else found.place
    new = found.tallies[GEN].effective(place)
    old = reduce(add, [found.tallies[label].effective(place) for label in sets.baselines])
    whole, limit = total_variation(new, old), margin or 0.0
    ref = found.tallies[REF].effective(place)
    to_ref = [total_variation(one, ref).value for one in (new, old)] if whole.value > limit else []
    note = ""
    if to_ref and to_ref[0] < to_ref[1]:
        now, before = (in_percent(one, 2) for one in to_ref)
        note = f"towards the reference, from {before} to {now} away: if that was wanted, raise moved for this release"
    rule, (label, *more) = sets.rule("kinds.moved"), sets.baselines
    evidence = Moved(
        name=rule, value=whole.value, margin=limit, n=sets.gen.n, new=new, old=old, unchanged=0.0, note=note
    )
    return Distance.of(BASELINE if more else label, len(found.names[place]), whole), evidence


def _named(names: list[str], limits: KindLimits) -> list[int]:
    """Return the kinds that are limited."""
    wanted = {f"{limits.column}={value}" for value in limits.only}
    return [kind for kind, name in enumerate(names) if name and (not wanted or name in wanted)]


def _unmatched(
    found: CountedSets, limits: KindLimits, rule: str, margin: float, promise: Promise, kinds: list[int]
) -> Iterator[KindEvidence]:
    """Yield what the policy names and no set has, and a limit that would otherwise be about nothing."""
    least = in_percent(promise.smallest, 2)
    every = found.names[found.place]
    names = {every[kind] for kind in kinds}
    for value in limits.only:
        name = f"{limits.column}={value}"
        if name not in names:
            note = f"{name} is less than {least} of the reference" if name in every else f"no set has {name}"
            yield _alone(Missing(name=f"{rule} {name}", margin=margin, note=note))
    if not kinds and not limits.only:
        note = f"no kind is {least} of the reference: lower min_share, or the level"
        yield _alone(Missing(name=rule, margin=margin, note=note))


def _alone(evidence: Evidence) -> KindEvidence:
    return KindEvidence(evidence, {}, {})


def _shown(evidence: Evidence, sets: GateSets, found: CountedSets, place: int, kind: int) -> KindEvidence:
    number = sum(len(names) for names in found.names[:place]) + kind
    shares = {
        label: float(found.counted[label].counts.members(place)[kind] / found.counted[label].counts.n)
        for label in sets.all
    }
    examples = {
        label: found.counted[label].examples(embeddings, number).top_ids for label, embeddings in sets.all.items()
    }
    return KindEvidence(evidence, shares, examples)
