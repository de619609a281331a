"""Evidence on kinds of samples: shares of clusters, or of the values of a column, in all sets of a gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.gates.evidence import Evidence, Missing
from finc_eval.gates.policy import KindLimits
from finc_eval.gates.retraining import between_shares
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.gates.shares import GainedShare, LostShare, TwoCounts, Unseen
from finc_eval.partitions.counts import Counted, Counts, count
from finc_eval.partitions.partition import MIN_SAMPLES_PER_KIND, Partition, pooled_sample

SAMPLES_PER_KIND = 100
"""Samples of each generated set per kind of the level "auto": with fewer, a kind whose share has not changed is often
undecided at a limit of one half."""

AUTO_LEVELS = (2, 5, 10, 20, 50, 100, 200)
"""Numbers of kinds that the level "auto" chooses from."""

LACKED = 0.25
"""A kind that the reference has less of than this part of the limit on new kinds is one that it lacks."""

EXAMPLES = 16
"""Samples of each set and kind that a limit names."""


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
class CountedSets:
    """Counts of all sets by the same kinds.

    Attributes:
        names: name of each kind of each level.
        counted: counts by label.
        digest: digest of the kinds.
        place: place of the level that limits on lost kinds are on.
        enough: factor on the number of generated samples from which on a new kind of the limit's share can be one by
            itself; at most 1 if it can now.
    """

    names: list[list[str]]
    counted: dict[str, Counted]
    digest: str
    place: int = 0
    enough: float = 1.0


@dataclass(frozen=True)
class Division:
    """Kinds that limits on lost kinds are on.

    Attributes:
        digest: their digest.
        kinds: how many clusters they are; 0 for the values of a column.
        largest: share of the baseline that the largest of them has.
    """

    digest: str
    kinds: int = 0
    largest: float = 0.0

    def hidden(self, lose: float, min_share: float) -> tuple[str, ...]:
        """Return a sentence on what can be lost within one cluster while its limit holds, if it is much."""
        if self.largest * lose <= min_share:
            return ()
        return (
            f"there are {self.kinds} kinds, the largest of them {100 * self.largest:.2g} % of the baseline: a class of "
            f"up to {100 * self.largest * lose:.2g} % of the samples can be lost within it, and kinds.lose holds; more "
            "samples, a finer level or a labelled column show more",
        )


def kind_evidence(sets: GateSets, limits: KindLimits, seed: int, run: Run) -> tuple[list[KindEvidence], Division]:
    """Count all sets by the same kinds, and return the evidence of each limit, and what the kinds are."""
    found = _by_column(sets, limits.column) if limits.column else _by_clusters(sets, limits, seed, run)
    evidence: list[KindEvidence] = []
    for against in filter(None, (sets, sets.against_anchor())):
        if limits.lose is not None:
            evidence += _lost(against, found, limits, limits.lose)
        if limits.new is not None:
            evidence += _new(against, found, limits, limits.new)
    if limits.column:
        return evidence, Division(found.digest)
    level = _Level.of(sets, found.counted, found.place)
    largest = max((level.counts(kind).old_share for kind in _limited(level, found, limits)), default=0.0)
    return evidence, Division(found.digest, len(found.names[found.place]), largest)


def finest_level(sets: GateSets) -> int:
    """Return the largest number of kinds that the level "auto" knows and all samples together are enough for."""
    rows = sum(map(_independent, sets.all.values()))
    return max((level for level in AUTO_LEVELS if level * MIN_SAMPLES_PER_KIND <= rows), default=AUTO_LEVELS[0])


def level_of(limits: KindLimits, sets: GateSets) -> int:
    """Return the number of kinds that the limits are on."""
    if limits.level != "auto":
        return limits.level
    least = min(_independent(one) for one in (sets.gen, *sets.baselines.values()))
    return max((level for level in AUTO_LEVELS if level * SAMPLES_PER_KIND <= least), default=AUTO_LEVELS[0])


def _independent(embeddings: Embeddings) -> int:
    groups = embeddings.group_hashes()
    return embeddings.n if groups is None else len(np.unique(groups))


def _by_clusters(sets: GateSets, limits: KindLimits, seed: int, run: Run) -> CountedSets:
    """Count by clusters of all samples together, blind to which set a sample is from."""
    rows, level, enough = pooled_sample(list(sets.all.values())), level_of(limits, sets), 1.0
    levels = {level}
    if limits.new is not None:
        # Fine enough that a new kind of the limit's share can be one by itself.
        fine = next((level for level in AUTO_LEVELS if level * limits.new >= 1), AUTO_LEVELS[-1])
        levels |= {fine} if fine <= finest_level(sets) else set()
        real = _independent(sets.ref)
        enough = (fine * MIN_SAMPLES_PER_KIND - real) / (sum(map(_independent, sets.all.values())) - real)
    partition = Partition.fit(rows, tuple(levels), seed, run)
    counted = {label: count(one, partition, run=run.named(f"count {label}")) for label, one in sets.all.items()}
    names = [[f"k{level}-{kind}" for kind in range(level)] for level in partition.levels]
    return CountedSets(names, counted, partition.digest[:12], partition.place_of(level), enough)


def _by_column(sets: GateSets, column: str) -> CountedSets:
    """Count by the values of a column; samples without a value are of no kind, and count in the size of the set."""
    values = {label: np.array(one.column(column)) for label, one in sets.all.items()}
    kinds = np.unique(np.concatenate(list(values.values())))
    counted = {}
    for label, one in sets.all.items():
        cells = np.searchsorted(kinds, values[label]).astype(np.int32)[:, None]
        counts = Counts.of((len(kinds),), cells, one.group_hashes())
        nearest = [np.flatnonzero(cells[:, 0] == kind)[:EXAMPLES] for kind in range(len(kinds))]
        padded = np.full((len(kinds), EXAMPLES), -1)
        for kind, indices in enumerate(nearest):
            padded[kind, : len(indices)] = indices
        counted[label] = Counted(counts, padded)
    return CountedSets([[f"{column}={kind}" if kind else "" for kind in kinds.tolist()]], counted, column)


@dataclass(frozen=True)
class _Level:
    """Effective counts at one level, shape (kinds,) each; of the replicates, those of all together."""

    members: NDArray[np.float64]
    size: NDArray[np.float64]
    old_members: NDArray[np.float64]
    old_size: NDArray[np.float64]
    spread: NDArray[np.float64]
    degrees: float
    ref_share: NDArray[np.float64]

    @classmethod
    def of(cls, sets: GateSets, counted: Mapping[str, Counted], place: int) -> _Level:
        effective = {}
        for label, one in counted.items():
            effects = one.counts.design_effects(place)
            effective[label] = (one.counts.members(place) / effects, one.counts.n / effects)
        old = [effective[label] for label in sets.baselines]
        members, sizes = (np.array([pair[part] for pair in old]) for part in (0, 1))
        spread, degrees = between_shares(members, sizes)
        ref_members, ref_size = effective[REF]
        return cls(*effective[GEN], members.sum(0), sizes.sum(0), spread, degrees, ref_members / ref_size)

    def counts(self, kind: int) -> TwoCounts:
        """Return the counts of a kind."""
        return TwoCounts(
            members=float(self.members[kind]),
            size=float(self.size[kind]),
            old_members=float(self.old_members[kind]),
            old_size=float(self.old_size[kind]),
            spread=float(self.spread[kind]),
            degrees=self.degrees,
        )


def _limited(level: _Level, found: CountedSets, limits: KindLimits) -> list[int]:
    """Return the kinds that must not be lost."""
    return [kind for kind in _named(found.names[found.place], limits) if level.ref_share[kind] >= limits.min_share]


def _lost(sets: GateSets, found: CountedSets, limits: KindLimits, margin: float) -> Iterator[KindEvidence]:
    level, names = _Level.of(sets, found.counted, found.place), found.names[found.place]
    kinds = _limited(level, found, limits)
    yield from _unmatched(found, limits, sets.rule("kinds.lose"), margin, kinds)
    for kind in kinds:
        counts = level.counts(kind)
        evidence = LostShare(
            name=f"{sets.rule('kinds.lose')} {names[kind]}",
            value=LostShare.value_of(counts.share, counts.old_share, limits.min_share),
            margin=margin,
            n=sets.gen.n,
            least=limits.min_share,
            unchanged=0.0 if counts.share <= level.ref_share[kind] else None,
            counts=counts,
        )
        yield _shown(evidence, sets, found, found.place, kind)


def _new(sets: GateSets, found: CountedSets, limits: KindLimits, margin: float) -> Iterator[KindEvidence]:
    any_lacked = found.enough > 1
    if any_lacked:
        note = f"with so few samples, a new kind of {100 * margin:.2g} % would be hidden in a larger one"
        name = sets.rule("kinds.new")
        yield KindEvidence(Unseen(name=name, margin=margin, n=sets.gen.n, enough=found.enough, note=note), {}, {})
    for place, names in enumerate(found.names):
        level = _Level.of(sets, found.counted, place)
        for kind in _named(names, limits):
            if level.ref_share[kind] < LACKED * margin:
                any_lacked = True
                counts = level.counts(kind)
                name = f"{sets.rule('kinds.new')} {names[kind]}"
                evidence = GainedShare(
                    name=name, value=counts.share - counts.old_share, margin=margin, n=sets.gen.n, counts=counts
                )
                yield _shown(evidence, sets, found, place, kind)
    if not any_lacked:
        # Every kind is one of the reference's: none of the samples are of a new one.
        old = float(sum(one.n for one in sets.baselines.values()))
        counts = TwoCounts(0.0, float(sets.gen.n), 0.0, old)
        note = "the reference has every kind that was found"
        evidence = GainedShare(
            name=sets.rule("kinds.new"), value=0.0, margin=margin, n=sets.gen.n, note=note, counts=counts
        )
        yield KindEvidence(evidence, {}, {})


def _named(names: list[str], limits: KindLimits) -> list[int]:
    """Return the kinds that are limited."""
    wanted = {f"{limits.column}={value}" for value in limits.only}
    return [kind for kind, name in enumerate(names) if name and (not wanted or name in wanted)]


def _unmatched(
    found: CountedSets, limits: KindLimits, rule: str, margin: float, kinds: list[int]
) -> Iterator[KindEvidence]:
    """Yield what the policy names and no set has, and a limit that would otherwise be about nothing."""
    least = f"{100 * limits.min_share:g} %"
    every = found.names[found.place]
    names = {every[kind] for kind in kinds}
    for value in limits.only:
        name = f"{limits.column}={value}"
        if name not in names:
            note = f"{name} is less than {least} of the reference" if name in every else f"no set has {name}"
            yield KindEvidence(Missing(name=f"{rule} {name}", margin=margin, note=note), {}, {})
    if not kinds and not limits.only:
        note = f"no kind is {least} of the reference: lower min_share, or the level"
        yield KindEvidence(Missing(name=rule, margin=margin, note=note), {}, {})


def _shown(evidence: Evidence, sets: GateSets, found: CountedSets, place: int, kind: int) -> KindEvidence:
    number = sum(len(names) for names in found.names[:place]) + kind
    shares = {
        label: float(found.counted[label].counts.members(place)[kind] / found.counted[label].counts.n)
        for label in sets.all
    }
    examples = {
        label: embeddings.ids_at(found.counted[label].nearest_to(number)[:EXAMPLES])
        for label, embeddings in sets.all.items()
    }
    return KindEvidence(evidence, shares, examples)
