"""Divisions of all sets of a gate into the same kinds: clusters, or the values of a metadata column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings, Subset
from finc_eval.gates.policy import KindLimits
from finc_eval.gates.sets import REF, GateSets
from finc_eval.gates.shares import members_to_hold
from finc_eval.partitions.counts import Counted, Counter, Counts, drawn_members, joined, tallied
from finc_eval.partitions.partition import MIN_SAMPLES_PER_KIND, Partition, pooled_sample
from finc_eval.partitions.tally import Tally

SAMPLES_PER_KIND = 100
"""Samples of each generated set per kind of the level "auto" at most: the largest number of kinds is sought whose
shares can be shown not to have changed."""

UNEQUAL = 1.4
"""Factor on the mean number of samples of a kind, so that kinds smaller than the mean have enough of them."""

AUTO_LEVELS = (2, 5, 10, 20, 50, 100, 200)
"""Numbers of kinds that the level "auto" chooses from."""

MOST_HIDDEN = 0.15
"""Share of a class that can be lost within a larger cluster, from which on a limit on lost kinds shows too little to
hold, unless the policy says so itself (`min_share`)."""


@dataclass(frozen=True)
class CountedSets:
    """Counts of all sets by the same kinds.

    Attributes:
        names: name of each kind of each level.
        counted: counts by label.
        digest: digest of the kinds.
        clusters: whether the kinds are clusters, in which smaller ones can hide.
        place: place of the level that limits on lost kinds are on.
        enough: factor on the number of generated samples from which on a new kind of the limit's share can be one by
            itself; at most 1 if it can now.
        more: factor on the number of generated samples from which on kinds are small enough that none of `MOST_HIDDEN`
            can be lost within them; infinite if the policy fixes their number.
        cells: kind of each sample at each level by label, shape (n, levels); empty unless samples are paired.
        nearest: of each cluster of each level, the one with the nearest center; none for a column.
    """

    names: list[list[str]]
    counted: dict[str, Counted]
    digest: str
    clusters: bool
    place: int
    enough: float
    more: float
    cells: dict[str, NDArray[np.int32]]
    nearest: tuple[NDArray[np.int64], ...] = ()

    @cached_property
    def tallies(self) -> dict[str, Tally]:
        """Numbers of samples of each set by kind, and how much they inform, by label."""
        return tallied({label: one.counts for label, one in self.counted.items()})

    def joined(self, least: float) -> CountedSets:
        """Return the counts with neighboring clusters that the reference lacks joined into one kind.

        A new kind may lie in several clusters, each of them smaller than it is. So a cluster that the reference has
        less of than the share `least`, and the nearest other one, if the reference has less of that, too, are one kind.
        It is called after both, and the name of the one that it was joined to is empty.
        """
        names, joins = list(self.names), [np.arange(len(every), dtype=np.int32) for every in self.names]
        for place, nearest in enumerate(self.nearest):
            ref, join = self.counted[REF].counts, joins[place]
            lacked = ref.members(place) < least * ref.n
            for kind in np.flatnonzero(lacked & lacked[nearest]):
                pair = join[kind], join[nearest[kind]]
                join[join == max(pair)] = min(pair)
            parts = [np.flatnonzero(join == kind).tolist() for kind in range(len(join))]
            names[place] = [f"k{len(join)}-{'+'.join(map(str, part))}" if part else "" for part in parts]
        return replace(
            self,
            names=names,
            counted={label: replace(one, counts=one.counts.joined(joins)) for label, one in self.counted.items()},
            cells={label: joined(cells, joins) for label, cells in self.cells.items()},
        )


def divided(sets: GateSets, limits: KindLimits, seed: int, run: Run) -> CountedSets:
    """Count all sets by the same kinds."""
    return _by_column(sets, limits.column) if limits.column else _by_clusters(sets, limits, seed, run)


def finest_level(sets: GateSets) -> int:
    """Return the largest number of kinds that the level "auto" knows and the samples are enough for."""
    generated = _generated(sets)
    rows = generated + min(independent(sets.ref), generated)
    return max((level for level in AUTO_LEVELS if level * MIN_SAMPLES_PER_KIND <= rows), default=AUTO_LEVELS[0])


def fewest(sets: GateSets) -> int:
    """Return the number of independent samples of the smallest set of a generator."""
    return min(independent(one) for one in (sets.gen, *sets.baselines.values()))


def _generated(sets: GateSets) -> int:
    """Return the number of independent samples of all generators."""
    return sum(independent(one) for label, one in sets.all.items() if label != REF)


def samples_per_kind(lose: float | None) -> float:
    """Return the number of samples per kind with which kinds that have not changed mostly hold a limit."""
    return SAMPLES_PER_KIND if lose is None else min(SAMPLES_PER_KIND, UNEQUAL * members_to_hold(lose))


def level_of(limits: KindLimits, sets: GateSets) -> int:
    """Return the number of kinds that the limits are on."""
    if limits.level != "auto":
        return limits.level
    most = fewest(sets) / samples_per_kind(limits.lose)
    if limits.min_share != "auto" and limits.lose is not None:
        # In clusters of this share, a kind of min_share cannot be lost without the loss of what lose allows.
        wanted = ceil(limits.lose / limits.min_share)
        most = max(most, min(wanted, finest_level(sets)))
    return max((level for level in AUTO_LEVELS if level <= most), default=AUTO_LEVELS[0])


def independent(embeddings: Embeddings) -> int:
    """Return the number of samples that are independent: that of groups where there are some."""
    groups = embeddings.group_hashes()
    return embeddings.n if groups is None else len(np.unique(groups))


def hidden_share(share: float, lose: float) -> float:
    """Return the share of a class whose loss from a cluster of this share is the loss of a part of the cluster.

    The shares of all other samples grow when a class is lost, those of the rest of the cluster, too.
    """
    return lose * share / (1 - share + lose * share)


def hidden_loss(share: float, least: float) -> float:
    """Return the part of its share that a cluster loses with a class of the share `least`, 1 at most."""
    return 1.0 if least >= share else least * (1 - share) / (share * (1 - least))


def scattered_share(moved: float) -> float:
    """Return from which share on a class cannot be lost while so many samples may move to other kinds.

    A class of the share c in kinds of together half of the samples moves at least c/2 of what is left, 1 − c: the
    other samples of these kinds take up half of its place.
    """
    return 2 * moved / (1 + 2 * moved)


def _by_clusters(sets: GateSets, limits: KindLimits, seed: int, run: Run) -> CountedSets:
    """Count by clusters of all samples together, blind to which generator a sample is from.

    Of the reference, there are as many samples as of all generators together at most, and first centers are far from
    each other. Otherwise, clusters would be of the reference alone, and kinds that it lacks be hidden in them.
    """
    generated, level, enough = _generated(sets), level_of(limits, sets), 1.0
    rows = pooled_sample(list((sets.all | {REF: _as_many(sets.ref, generated)}).values()))
    levels = {level}
    if limits.new is not None:
        # Fine enough that a new kind of the limit's share can be one by itself.
        fine = next((level for level in AUTO_LEVELS if level * limits.new >= 1), AUTO_LEVELS[-1])
        levels |= {fine} if fine <= finest_level(sets) else set()
        needed = fine * MIN_SAMPLES_PER_KIND
        enough = max(needed / 2, needed - independent(sets.ref)) / generated
    partition = Partition.fit(rows, tuple(levels), seed, run, spread=True)
    counted, cells = {}, {}
    for label, one in sets.all.items():
        counter = Counter(partition, run=run.named(f"count {label}"))
        counted[label] = counter.of(one)
        if sets.pairs:
            cells[label] = counter.kinds()
    names = [[f"k{level}-{kind}" for kind in range(level)] for level in partition.levels]
    # The largest of the kinds has about twice their mean share, and a class may lie in two of them.
    wanted = ceil(4 * (limits.lose or 0.0) / MOST_HIDDEN)
    fine = next((level for level in AUTO_LEVELS if level >= wanted), AUTO_LEVELS[-1])
    more = fine * samples_per_kind(limits.lose) / fewest(sets) if limits.level == "auto" else float("inf")
    return CountedSets(
        names=names,
        counted=counted,
        digest=partition.digest[:12],
        clusters=True,
        place=partition.place_of(level),
        enough=enough,
        more=more,
        cells=cells,
        nearest=tuple(map(_nearest, partition.centers)),
    )


def _as_many(embeddings: Embeddings, most: int) -> Embeddings:
    """Return so many independent samples at most, drawn by their ids."""
    keys = embeddings.id_keys() if (groups := embeddings.group_hashes()) is None else groups
    kept = np.unique(keys)[:most]
    return Subset(embeddings, np.flatnonzero(keys <= kept[-1]))


def _nearest(centers: torch.Tensor) -> NDArray[np.int64]:
    """Return the center that is nearest to each, other than itself."""
    squared = torch.cdist(centers.double(), centers.double())
    return squared.fill_diagonal_(float("inf")).argmin(1).numpy()


def _by_column(sets: GateSets, column: str) -> CountedSets:
    """Count by the values of a column; samples without a value are of no kind, and count in the size of the set."""
    values = {label: np.array(one.column(column)) for label, one in sets.all.items()}
    kinds = np.unique(np.concatenate(list(values.values())))
    counted: dict[str, Counted] = {}
    every: dict[str, NDArray[np.int32]] = {}
    for label, one in sets.all.items():
        cells = np.searchsorted(kinds, values[label]).astype(np.int32)[:, None]
        counts = Counts.of((len(kinds),), cells, one.group_hashes())
        drawn = drawn_members(cells, counts.levels)
        counted[label] = Counted(counts, drawn, drawn)
        every |= {label: cells} if sets.pairs else {}
    names = [[f"{column}={kind}" if kind else "" for kind in kinds.tolist()]]
    return CountedSets(
        names=names, counted=counted, digest=column, clusters=False, place=0, enough=1.0, more=1.0, cells=every
    )
