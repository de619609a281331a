"""Evidence on kinds of samples: shares of nodes of a tree of kinds, or of the values of a column, in all sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.core.words import in_percent, join_words
from finc_eval.embeddings.columns import words_of_missing
from finc_eval.findings.local import LocalParts
from finc_eval.findings.visible import Visible
from finc_eval.gates.divisions import (
    OF_REF,
    CountedSets,
    JudgedKinds,
    by_classes,
    by_column,
    by_tree,
    by_tree_of_all,
    fewest,
    find_named,
    judge_kinds,
    kinds_by_name,
    sought_kinds,
)
from finc_eval.gates.evidence import Distance, LimitEvidence, Missing, Moved, PairedMoved
from finc_eval.gates.paired_shares import PairCounts, PairedGain, PairedLoss
from finc_eval.gates.policy import KindLimits
from finc_eval.gates.retraining import Retrained, between_shares
from finc_eval.gates.sets import BASELINE, GEN, REF, GateSets
from finc_eval.gates.shares import GainedShare, LostShare, TwoCounts, Unseen
from finc_eval.naming.measured import PictureLooks
from finc_eval.numerics.blocks import WithinBlocks
from finc_eval.partitions.answer import Answer, divide, kind_counts, main_counts, within_blocks
from finc_eval.partitions.blocks import Pairing, count_by_design, designs, missing_values
from finc_eval.partitions.difference import paired_variation, total_variation
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.placed import ReleaseMap
from finc_eval.partitions.tests import EffectiveCounts
from finc_eval.same_ids.result import ById

IN_ONE = 0.8  # part of a new kind that one node of the tree holds, in four of five cases: other nodes take the rest

OF_A_CLASS = 0.5
"""Part of a class that the extractor's last layer sees as this class, or as the noun above it that the others lack: the
median of 24 classes of small photographs was .52, and the quartiles .36 and .63."""


@dataclass(frozen=True)
class KindEvidence:
    """Evidence on a kind, and what to show of it."""

    evidence: LimitEvidence
    # None for a limit. Else it counts only if it regressed, and is shown if none of these did: names of the evidence on
    # the kinds that hold this one.
    above: frozenset[str] | None = None
    counts: _Counts | None = None  # counts of all kinds; None if no kind is meant
    kind: int = -1  # place of the kind in them
    noun: str = ""  # what it is called; "" if no kind is meant

    @property
    def shares(self) -> dict[str, float]:
        """Share of the kind in each set, by label."""
        if self.counts is None:
            return {}
        return {label: float(self.counts.found.shares(label)[self.kind]) for label in self.counts.sets.all}

    @property
    def examples(self) -> dict[str, tuple[str, ...]]:
        """Ids of samples nearest to the center of the kind, by label."""
        if self.counts is None:
            return {}
        found, leaves = self.counts.found, self.counts.found.leaves(self.kind)
        return {
            label: found.counted[label].examples(samples, *leaves).top_ids
            for label, samples in self.counts.sets.all.items()
        }

    def members(self, rows: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[np.bool_]]:
        """Return which of these samples of each set, by label and index, are of the kind."""
        assert self.counts is not None
        found = self.counts.found
        return {label: np.isin(found.cells[label][chosen], found.leaves(self.kind)) for label, chosen in rows.items()}


@dataclass
class Gathered:
    """Evidence on the limits of a policy, and what was found on the way to it."""

    kinds: list[KindEvidence] = field(default_factory=list)  # evidence on kinds, which has shares and samples
    others: list[LimitEvidence] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)  # digests of the kinds of each part of the sets
    scores: dict[str, dict[str, float]] = field(default_factory=dict)  # scores of whole sets, by label and name
    distances: list[Distance] = field(default_factory=list)  # how far the whole release is from older releases
    tree: KindTree | None = None  # kinds of the reference; None without limits on lost kinds
    warnings: list[str] = field(default_factory=list)
    pictures: dict[str, PictureLooks | None] = field(default_factory=dict)  # what was measured of pictures, by label
    answer: Answer | None = None  # the release and its baseline, divided into kinds of their own
    map: ReleaseMap | None = None  # where the release and its baseline lie on the map of the reference
    by_id: ById | None = None  # pairs of the release and its baseline; None without limits on these
    visible: Visible | None = None  # what would have been found; None where something was
    parts: LocalParts | None = None  # parts of pictures of the release and its baseline; None where nobody looked

    @property
    def all(self) -> list[KindEvidence]:
        """All evidence, in the order of the policy."""
        return [*self.kinds, *(KindEvidence(evidence) for evidence in self.others)]


def gather_on_kinds(gathered: Gathered, sets: GateSets, limits: KindLimits, seed: int, run: Run) -> None:
    """Count all sets by the same kinds, and gather the evidence on each limit."""
    evidence, kinds = gathered.kinds, gathered.tree
    if limits.column and (note := _warn_of_unlabeled(sets, limits.column)):
        evidence += (
            KindEvidence(Missing(name=sets.rule(f"kinds.{rule}"), margin=margin, note=note))
            for rule, margin in limits.given.items()
        )
        gathered.digests.append(limits.column)
        return
    values = by_column(sets, limits.column) if limits.column else None
    known = values or (
        by_tree(sets, kinds, run.prefixed(OF_REF)) if kinds is not None and limits.lose is not None else None
    )
    is_sought = limits.lose is not None and not limits.only
    fresh = values or (by_tree_of_all(sets, seed, run) if is_sought or limits.new is not None else None)
    classes = by_classes(sets) if fresh is not None and values is None and not limits.only else None
    for against in sets.comparisons:
        if limits.moved is not None or not sets.part:
            distance, moved = _distance(against, values, limits.moved, seed, run, gathered)
            gathered.distances += () if sets.part else (distance,)
            evidence += () if limits.moved is None else (KindEvidence(moved),)
        if limits.lose is not None and known is not None:
            judged = judge_kinds(known, limits, limits.lose, fewest(against))
            if against is sets and not limits.only:
                gathered.warnings += judged.unseen(sets.rule("kinds.lose"), known)
            evidence += (KindEvidence(each) for each in _judge_unmatched(against, known, judged, limits, limits.lose))
            lost = [*lost_evidence(against, known, judged, limits.lose)]
            for of, others in ((known, judged.limited), (fresh, ()), (classes, ())) if is_sought else ():
                if of is not None and of.tree is not None:
                    sought = sought_kinds(of, limits, fewest(against), others)
                    before = [part.evidence.name for part in lost]
                    lost += lost_evidence(against, of, sought, limits.lose, before)
            evidence += lost
        if limits.new is not None and fresh is not None:
            new = [*new_evidence(against, fresh, limits, limits.new)]
            if classes is not None:
                new += new_evidence(against, classes, limits, limits.new, [part.evidence.name for part in new])
            evidence += new
    if limits.new is not None and not limits.column and sets.baselines:
        rule = sets.rule("kinds.new")
        gathered.warnings.append(
            f"{rule} sees kinds that the reference lacks: what is new among samples of its kinds is not seen"
        )
    gathered.digests += dict.fromkeys(counted.digest for counted in (known, fresh) if counted is not None)


@dataclass(frozen=True)
class _Counts:
    """Effective counts, shape (kinds,) each; for replicates, of all together."""

    sets: GateSets
    found: CountedSets
    members: NDArray[np.float64]
    size: NDArray[np.float64]
    old_members: NDArray[np.float64]
    old_size: NDArray[np.float64]
    retrained: Retrained

    @classmethod
    def of(cls, sets: GateSets, counted: CountedSets) -> _Counts:
        effective = {
            label: (tally.members / tally.effects, tally.n / tally.effects) for label, tally in counted.tallies.items()
        }
        (members, sizes), (again, again_sizes) = (
            [np.array([effective[label][part] for label in labels]) for part in (0, 1)]
            for labels in (sets.baselines, sets.replicates)
        )
        retrained = between_shares(again, again_sizes, len(sets.baselines))
        return cls(sets, counted, *effective[GEN], members.sum(0), sizes.sum(0), retrained)

    @property
    def unlabeled(self) -> float:
        """Number of samples without a value in the column, beyond the share of the baseline."""
        if self.found.tree is not None or "" not in self.found.names:
            return 0.0
        place = self.found.names.index("")
        return max(float(self.members[place] - self.old_members[place] / self.old_size[place] * self.size[place]), 0.0)

    def of_kind(self, kind: int) -> TwoCounts:
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
        """Return the counts of pairs of a kind; None if samples are not paired with the baseline."""
        (label,) = list(self.sets.baselines)[:1]
        if label not in self.sets.pairs:
            return None
        leaves = self.found.leaves(kind)
        new, old = (np.isin(self.found.cells[side], leaves) for side in (GEN, label))
        return PairCounts.of(new, old[self.sets.pairs[label]], self.sets.gen.group_hashes())


def lost_evidence(
    sets: GateSets, counted: CountedSets, judged: JudgedKinds, lose: float, before: Sequence[str] | None = None
) -> Iterator[KindEvidence]:
    """Yield the evidence on kinds that may be lost.

    No kind may lose this part of its share (`lose`). `before` is None for kinds that are limited; others are searched,
    and shown if they regressed, unless a kind that holds them or the evidence of `before` did. A kind that was lost
    shares its nodes of a tree with others, so that it is more of the kind that is lost than of the node. So a node is a
    regression if it surely lost something, and its estimate is beyond the limit.
    """
    counts, rule, n = _Counts.of(sets, counted), sets.rule("kinds.lose"), sets.gen.n
    titles = {kind: f"{rule} {counted.names[kind]}" for kind in judged.limited}
    shares = {kind: counts.pairs(kind) or counts.of_kind(kind) for kind in titles}
    values = {kind: LostShare.value_of(each.share, each.old_share, judged.least) for kind, each in shares.items()}
    # Of kinds that are searched, only those that are beyond the limit can be said.
    called = counted.called([kind for kind, value in values.items() if before is None or value > lose])
    for kind, title in titles.items():
        both, pairs, real = counts.of_kind(kind), counts.pairs(kind), float(judged.shares[kind])
        value = values[kind]
        shared: dict[str, Any] = {
            "name": title,
            "value": value,
            "margin": lose,
            "n": n,
            "least": judged.least,
            "unchanged": 0.0 if both.share <= real else None,
            "note": called[kind].text or "" if kind in called else "",
            "surely": None if counted.tree is None else 0.0,
            "is_search": before is not None,
        }
        evidence: LimitEvidence
        evidence = PairedLoss(counts=pairs, **shared) if pairs else LostShare(counts=both, **shared)
        regained = counts.unlabeled / both.size / max(both.old_share, judged.least)
        if value > lose >= value - regained:
            note = (
                f"{counted.digest} is missing for {counts.unlabeled:,.0f} more samples than in the baseline: "
                f"{counted.names[kind]} may be unlabeled and not lost"
            )
            evidence = Missing(name=title, margin=lose, note=note)
        above = _holders(counted, kind, titles, before)
        yield KindEvidence(evidence, above, counts, kind, counted.noun(kind, called))


def new_evidence(
    sets: GateSets, counted: CountedSets, limits: KindLimits, margin: float, before: Sequence[str] | None = None
) -> Iterator[KindEvidence]:
    """Yield the evidence on kinds that the reference lacks.

    Nodes of a tree divide a new kind among them, so that it has gained more than a node has; the last layer sees a part
    of a class as this class. So either is a regression if it surely gained something, and its estimate is beyond the
    limit, or beyond `OF_A_CLASS` of it. `before` is None for kinds that are limited, as in `lost_evidence`.
    """
    counts, rule, n = _Counts.of(sets, counted), sets.rule("kinds.new"), sets.gen.n
    part, surely = (1.0, None) if counted.tree is None else (IN_ONE, 0.0)
    shared: dict[str, Any] = {"margin": margin, "n": n, "part": part, "surely": surely}
    if before is not None:
        note = f"about half of a class is seen as such, so that {in_percent(margin, 2)} of all are half as many seen"
        shared |= {"margin": OF_A_CLASS * margin, "part": 1.0, "is_search": True, "note": note}
    kinds = _new_kinds(counts, limits, shared["margin"])
    titles = {kind: f"{rule} {counted.names[kind]}" for kind in kinds}
    called = counted.called(kinds) if before is not None else {}
    for kind, title in titles.items():
        both, pairs = counts.of_kind(kind), counts.pairs(kind)
        evidence: LimitEvidence = GainedShare(name=title, value=both.share - both.old_share, counts=both, **shared)
        if pairs is not None:
            evidence = PairedGain(name=title, value=(pairs.gained - pairs.lost) / pairs.size, counts=pairs, **shared)
        yield KindEvidence(evidence, _holders(counted, kind, titles, before), counts, kind, counted.noun(kind, called))
    if not kinds and before is None:
        # Every kind is one of the reference's: none of the samples are of a new one.
        old = float(sum(baseline.n for baseline in sets.baselines.values()))
        none, note = TwoCounts(0.0, float(n), 0.0, old), "the reference has every kind that was found"
        yield KindEvidence(GainedShare(name=rule, value=0.0, counts=none, note=note, **shared))


def _new_kinds(counts: _Counts, limits: KindLimits, margin: float) -> list[int]:
    """Return the kinds that the reference lacks, and of which the new release may have gained so much."""
    # 0.25: a kind that the reference has less of than this part of the limit on new kinds is one that it lacks.
    lacked = counts.found.shares(REF) < 0.25 * margin
    if counts.found.tree is None:
        return [kind for kind in find_named(counts.found, limits) if lacked[kind]]
    # Of fewer samples than these, the share cannot be beyond the limit.
    return [*np.flatnonzero(lacked & (counts.members + counts.old_members > margin * counts.size)).tolist()]


def _holders(
    counted: CountedSets, kind: int, titles: Mapping[int, str], before: Sequence[str] | None
) -> frozenset[str] | None:
    """Return the names of the evidence that a kind which is searched is said by, if this regressed."""
    if before is None:
        return None
    return frozenset((*before, *(titles[other] for other in counted.above(kind) if other in titles)))


def _distance(
    sets: GateSets, values: CountedSets | None, margin: float | None, seed: int, run: Run, gathered: Gathered
) -> tuple[Distance, Moved | PairedMoved]:
    """Return how far the release is from the older one, and the evidence on the limit on it.

    Without a column, it is the difference of a comparison of these sets: they are divided into kinds of their own.
    Paired sets are compared within the blocks that both have, and what the release lacks of the others has moved.
    """
    run, column = run.prefixed(sets.rule("moved")), None if values is None else values.digest
    (last_label, *more) = sets.baselines
    to = BASELINE if more else last_label
    pairing = sets.pairing(column)
    if pairing is not None:
        return _paired_distance(sets, pairing, within_blocks(pairing, column, seed, run), to, margin or 0.0)
    judged = {GEN: sets.gen, **sets.baselines}
    found = designs(judged)
    counts = partial(_pooled_counts, sets, values, seed=seed, run=run, gathered=gathered)
    new, old = counts([GEN], [*sets.baselines])
    whole, notes = total_variation(new, old, seed, is_design=bool(found)), missing_values(judged, found)
    if margin is not None and whole.value > margin:
        now, before = (total_variation(*counts([*labels], [REF]), seed).value for labels in ((GEN,), sets.baselines))
        if now < before:
            ends = f"from {in_percent(before, 2)} to {in_percent(now, 2)}"
            notes.append(f"towards the reference, {ends} away: if that was wanted, raise moved for this release")
    evidence = Moved(
        name=sets.rule("kinds.moved"),
        value=whole.value,
        margin=margin or 0.0,
        n=sets.gen.n,
        new=new,
        old=old,
        is_design=bool(found),
        unchanged=0.0,
        note="; ".join(notes),
    )
    return Distance(to, len(new.members), whole.value, whole.interval), evidence


def _paired_distance(
    sets: GateSets, pairing: Pairing, within: WithinBlocks, to: str, margin: float
) -> tuple[Distance, PairedMoved]:
    """Return the distance of paired sets to the baseline, which has a label, and the evidence on its limit."""
    whole, lacked = paired_variation(within)[0], pairing.info.lacked(GEN, sets.baselines)
    low, value, high = (lacked + (1 - lacked) * end for end in (whole.interval[0], whole.value, whole.interval[1]))
    moved = PairedMoved(
        name=sets.rule("kinds.moved"),
        value=value,
        margin=margin,
        n=sets.gen.n,
        within=within,
        lacked=lacked,
        unchanged=0.0,
        note=" ".join(pairing.info.missing()),
    )
    return Distance(to, within.shares.shape[1], value, (low, high)), moved


def _pooled_counts(
    sets: GateSets,
    values: CountedSets | None,
    first: Sequence[str],
    last: Sequence[str],
    *,
    seed: int,
    run: Run,
    gathered: Gathered,
) -> tuple[EffectiveCounts, EffectiveCounts]:
    """Count the kinds of two groups of sets: kinds of their own, or the values of a column."""
    labels = [*first, *last]
    if values is None and labels == [GEN, BASELINE] and not sets.part:
        answer = gathered.answer = gathered.answer or compare_two(sets, BASELINE, seed, run)
        made = dict(zip(labels, main_counts(answer.kinds.tree, answer.tallies).values(), strict=True))
    elif values is None:
        made = kind_counts({label: sets.all[label] for label in labels}, seed, run)
    else:
        made = {label: count_by_design(values.tallies[label]) for label in labels}
    return reduce(add, [made[label] for label in first]), reduce(add, [made[label] for label in last])


def compare_two(sets: GateSets, old: str, seed: int, run: Run) -> Answer:
    """Divide a release and an older one into kinds of their own, as a comparison of the two does."""
    return divide({GEN: sets.gen, REF: sets.all[old]}, seed=seed, run=run)


def _judge_unmatched(
    sets: GateSets, counted: CountedSets, judged: JudgedKinds, limits: KindLimits, margin: float
) -> Iterator[LimitEvidence]:
    """Yield what the policy names and no set has, what so few samples cannot judge, and a limit about nothing."""
    least, rule = in_percent(judged.smallest, 2), sets.rule("kinds.lose")
    if judged.enough is not None:
        note = f"so few samples judge kinds of at least {least} of the reference: draw more samples, or set min_share"
        yield Unseen(name=rule, margin=margin, n=sets.gen.n, enough=judged.enough, note=note)
    limited = set(judged.limited)
    for value, wanted in kinds_by_name(counted, limits).items():
        if limited.isdisjoint(wanted):
            name = f"{limits.column}={value}" if limits.column else value
            note = f"{name} is less than {least} of the reference" if wanted else f"no set has {name}"
            yield Missing(name=f"{rule} {name}", margin=margin, note=note)
    if not (judged.limited or limits.only) and judged.enough is None:
        yield Missing(name=rule, margin=margin, note=f"no kind is {least} of the reference: lower min_share")


def _warn_of_unlabeled(sets: GateSets, column: str) -> str | None:
    """Say that values of a column are missing, if so unevenly that it would look like kinds lost, new or moved."""
    missing = {label: sum(value == "" for value in samples.column(column)) for label, samples in sets.all.items()}
    shares = [count / sets.all[label].n for label, count in missing.items()]
    # 0.01: difference between the shares of samples without a value from which values say nothing of kinds.
    if max(shares) - min(shares) <= 0.01:
        return None
    counts = [
        f"{count:,} of {sets.all[label].n:,} samples of {label}{words_of_missing(sets.all[label].missing_as(column))}"
        for label, count in missing.items()
        if count
    ]
    return f"{column} is missing for {join_words(counts)}: what looks lost or moved may be unlabeled; give each a value"
