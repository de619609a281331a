"""Evidence on kinds of samples: shares of nodes of a tree of kinds, or of the values of a column, in all sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add

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
    judge_kinds,
    kinds_by_name,
    sought_kinds,
)
from finc_eval.gates.evidence import Distance, LimitEvidence, Missing, Moved, PairedMoved
from finc_eval.gates.kind_shares import KindEvidence, lost_evidence, new_evidence
from finc_eval.gates.policy import KindLimits
from finc_eval.gates.sets import BASELINE, GEN, REF, GateSets
from finc_eval.gates.shares import Unseen
from finc_eval.naming.measured import PictureLooks
from finc_eval.numerics.blocks import WithinBlocks
from finc_eval.partitions.answer import Answer, divide, kind_counts, main_counts, within_blocks
from finc_eval.partitions.blocks import Pairing, count_by_design, designs, missing_values
from finc_eval.partitions.difference import paired_variation, total_variation
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.placed import ReleaseMap
from finc_eval.partitions.tests import EffectiveCounts
from finc_eval.same_ids.result import ById


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
            evidence += _lost(against, known, judged, (fresh, classes) if is_sought else (), limits)
        if limits.new is not None and fresh is not None:
            evidence += _new(against, fresh, classes, limits, limits.new)
    if limits.new is not None and not limits.column and sets.baselines:
        rule = sets.rule("kinds.new")
        gathered.warnings.append(
            f"{rule} sees kinds that the reference lacks: what is new among samples of its kinds is not seen"
        )
    gathered.digests += dict.fromkeys(counted.digest for counted in (known, fresh) if counted is not None)


def _lost(
    sets: GateSets, known: CountedSets, judged: JudgedKinds, others: Sequence[CountedSets | None], limits: KindLimits
) -> list[KindEvidence]:
    """Return the evidence on kinds that may be lost: those that are limited, then those that are searched."""
    lose = limits.lose or 0.0
    unmatched = [KindEvidence(each) for each in _judge_unmatched(sets, known, judged, limits, lose)]
    lost = [*lost_evidence(sets, known, judged, lose)]
    for counted, limited in ((known, judged.limited), *((other, ()) for other in others)) if others else ():
        if counted is not None and counted.tree is not None:
            sought = sought_kinds(counted, limits, fewest(sets), limited)
            lost += lost_evidence(sets, counted, sought, lose, [part.evidence.name for part in lost])
    return unmatched + lost


def _new(
    sets: GateSets, fresh: CountedSets, classes: CountedSets | None, limits: KindLimits, margin: float
) -> list[KindEvidence]:
    """Return the evidence on kinds that the reference lacks: limited ones, then classes, which are searched."""
    new = [*new_evidence(sets, fresh, limits, margin)]
    if classes is not None:
        new += new_evidence(sets, classes, limits, margin, [part.evidence.name for part in new])
    return new


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
