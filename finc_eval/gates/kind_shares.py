"""Evidence on kinds that were lost or are new: shares of nodes of a tree, of classes, or of the values of a column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.words import in_percent
from finc_eval.estimates.retraining import Retrained, between_shares
from finc_eval.gates.divisions import CountedSets, JudgedKinds, find_named
from finc_eval.gates.evidence import LimitEvidence, Missing
from finc_eval.gates.paired_shares import PairCounts, PairedGain, PairedLoss
from finc_eval.gates.policy import KindLimits
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.gates.shares import GainedShare, LostShare, TwoCounts

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
    counts: KindCounts | None = None  # counts of all kinds; None if no kind is meant
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


@dataclass(frozen=True)
class KindCounts:
    """Effective counts, shape (kinds,) each; for replicates, of all together."""

    sets: GateSets
    found: CountedSets
    members: NDArray[np.float64]
    size: NDArray[np.float64]
    old_members: NDArray[np.float64]
    old_size: NDArray[np.float64]
    retrained: Retrained

    @classmethod
    def of(cls, sets: GateSets, counted: CountedSets) -> KindCounts:
        """Return the counts of all sets, divided by their design effects."""
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
    counts, rule, n = KindCounts.of(sets, counted), sets.rule("kinds.lose"), sets.gen.n
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
    counts, rule, n = KindCounts.of(sets, counted), sets.rule("kinds.new"), sets.gen.n
    part, surely = (1.0, None) if counted.tree is None else (IN_ONE, 0.0)
    shared: dict[str, Any] = {"margin": margin, "n": n, "part": part, "surely": surely}
    if before is not None:
        note = f"the extractor recognizes about half of a class: {in_percent(margin, 2)} of the samples count as half"
        shared |= {"margin": OF_A_CLASS * margin, "part": 1.0, "is_search": True, "note": note}
    kinds = _new_kinds(counts, limits, shared["margin"])
    titles = {kind: f"{rule} {counted.names[kind]}" for kind in kinds}
    for kind, title in titles.items():
        both, pairs = counts.of_kind(kind), counts.pairs(kind)
        evidence: LimitEvidence = GainedShare(name=title, value=both.share - both.old_share, counts=both, **shared)
        if pairs is not None:
            evidence = PairedGain(name=title, value=(pairs.gained - pairs.lost) / pairs.size, counts=pairs, **shared)
        yield KindEvidence(evidence, _holders(counted, kind, titles, before), counts, kind, counted.noun(kind, {}))
    if not kinds and before is None:
        # Every kind is one of the reference's: none of the samples are of a new one.
        old = float(sum(baseline.n for baseline in sets.baselines.values()))
        none, note = TwoCounts(0.0, float(n), 0.0, old), "the reference has every kind that was found"
        yield KindEvidence(GainedShare(name=rule, value=0.0, counts=none, note=note, **shared))


def _new_kinds(counts: KindCounts, limits: KindLimits, margin: float) -> list[int]:
    """Return the kinds that the reference lacks and that may have grown by more than the margin."""
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
