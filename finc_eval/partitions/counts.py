"""`Counts`: how many samples of a set are of each kind, in independent units; counts of shards add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import send
from finc_eval.core.errors import IncompatibleError
from finc_eval.core.files.reading import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.gallery.counts import KEPT, MAX_SHOWN
from finc_eval.numerics.design_effects import Array, GroupedKinds, design_effects
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.tally import Tally
from finc_eval.partitions.tree import Tree

DRAWN = 200
"""Samples of each set and kind that are drawn at random, and that its name is taken from."""

COPIED_ROWS = 1 << 17
"""Rows whose kinds are copied from the device together: for every copy, the host waits."""

SORTED_ROWS = 1 << 13
"""Rows that are sorted together by distance: of later ones, only those nearer than what is kept are sorted."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Samples of a set by their kinds at all levels.

    Attributes:
        levels: number of kinds of each level, with the one of samples far from all others if there is one.
        cells: distinct combinations of kinds (and groups), one kind per level, shape (t, levels).
        number: number of samples in each combination, shape (t,).
        groups: hash of the group of each combination, shape (t,); None where every sample stands for itself.
    """

    levels: tuple[int, ...]
    cells: NDArray[np.int32]
    number: NDArray[np.int64]
    groups: NDArray[np.uint64] | None = None

    @classmethod
    def of(
        cls,
        levels: tuple[int, ...],
        cells: NDArray[np.int32],
        groups: NDArray[np.uint64] | None = None,
        number: NDArray[np.int64] | None = None,
    ) -> Counts:
        """Count samples by combinations of kinds.

        Args:
            levels: number of kinds of each level.
            cells: kinds of the samples, shape (n, levels).
            groups: hash of the group of each sample, shape (n,).
            number: how often each row of `cells` counts; default: once.
        """
        columns = [*cells.astype(np.uint64).T, *([] if groups is None else [groups])]
        order = np.lexsort(columns)
        new = np.ones(len(order), bool)
        new[1:] = np.any([column[order[1:]] != column[order[:-1]] for column in columns], axis=0)
        weights = np.ones(len(order), np.int64) if number is None else number
        total = np.bincount(np.cumsum(new) - 1, weights[order]).astype(np.int64)
        first = order[new]
        return cls(levels, cells[first].astype(np.int32), total, None if groups is None else groups[first])

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.number.sum())

    def __add__(self, other: Counts) -> Counts:
        if self.levels != other.levels:
            raise IncompatibleError(f"counts of {self.levels} and {other.levels} kinds do not add: use one partition")
        both = [one.groups for one in (self, other) if one.groups is not None]
        if len(both) == 1:
            raise IncompatibleError("counts of grouped and of ungrouped samples do not add: group both, or neither")
        groups = np.concatenate(both) if both else None
        cells, number = np.concatenate([self.cells, other.cells]), np.concatenate([self.number, other.number])
        return Counts.of(self.levels, cells, groups, number)

    def write(self, file: NewFile, place: str) -> None:
        """Write the counts into a file, as arrays whose names begin with `place`."""
        file.array(f"{place}/levels", np.array(self.levels, np.int64))
        file.array(f"{place}/cells", self.cells)
        file.array(f"{place}/number", self.number)
        if self.groups is not None:
            file.array(f"{place}/groups", self.groups)

    @classmethod
    def read(cls, file: StoredFile, place: str) -> Counts:
        """Read what `write` wrote."""
        levels = tuple(file.array(f"{place}/levels", None, dtype="<i8").tolist())
        cells = file.array(f"{place}/cells", None, len(levels), dtype="<i4")
        number = file.array(f"{place}/number", len(cells), dtype="<i8")
        groups = f"{place}/groups"
        return cls(
            levels, cells, number, file.array(groups, len(cells), dtype="<u8") if groups in file.arrays else None
        )

    def check(self, levels: Sequence[int]) -> None:
        """Raise ValueError unless these are counts by a partition of these levels."""
        far = {own - level for own, level in zip(self.levels, levels, strict=True)}
        inside = (self.cells >= 0).all() and (self.cells < np.array(self.levels)).all()
        if not far <= {0, 1} or not inside or not len(self.number) or (self.number <= 0).any():
            raise ValueError("its counts are not of its kinds")

    def members(self, level: int) -> NDArray[np.int64]:
        """Return the number of samples of each kind of a level, given by its place, shape (kinds,)."""
        return np.bincount(self.cells[:, level], self.number, self.levels[level]).astype(np.int64)

    def all_members(self) -> NDArray[np.int64]:
        """Return the number of samples of each kind of all levels, numbered through, shape (t,)."""
        return np.concatenate([self.members(level) for level in range(len(self.levels))])

    def grouped(self, level: int) -> GroupedKinds:
        """Return how the samples of each kind of a level lie in the groups."""
        if self.groups is None:
            return GroupedKinds.independent(self.members(level), self.n)
        _, group = np.unique(self.groups, return_inverse=True)
        return GroupedKinds.of(self.levels[level], self.cells[:, level], group, self.number)

    def at_nodes(self, tree: Tree) -> Counts:
        """Return the counts of leaves as counts of all nodes of their tree, one level for each depth of it."""
        return Counts.of(tree.level_sizes, tree.at_depths[self.cells[:, 0]], self.groups, self.number)

    def tally(self) -> Tally:
        """Return what tests need of the counts, by the groups of this set alone; see `tally_sets`."""
        return tally_sets({"": self})[""]


def tally_sets(counts: Mapping[str, Counts]) -> dict[str, Tally]:
    """Return what tests of these sets need of their counts; it does not grow with the number of samples or groups."""
    sets = list(counts.values())
    found: list[list[tuple[Array, ...]]] = [[] for _ in sets]
    for level in range(len(sets[0].levels)):
        shares = [one.grouped(level) for one in sets]
        for own, share, effects in zip(found, shares, design_effects(shares), strict=True):
            own.append((effects, share.even, share.within))
    tallies = {}
    for (label, one), own in zip(counts.items(), found, strict=True):
        effects, even, within = (np.concatenate(part) for part in zip(*own, strict=True))
        tallies[label] = Tally(one.levels, one.n, one.all_members(), effects, even, within)
    return tallies


@dataclass(frozen=True)
class Examples(Record):
    """Samples of a set that show what a kind is: at most 16 of each.

    Attributes:
        top: row numbers of the samples nearest to the center of the kind, nearest first.
        top_ids: their ids.
        drawn: row numbers of samples of the kind, drawn at random.
        drawn_ids: their ids.
    """

    top: tuple[int, ...] = ()
    top_ids: tuple[str, ...] = ()
    drawn: tuple[int, ...] = ()
    drawn_ids: tuple[str, ...] = ()


class KindSamples(NamedTuple):
    """Indices of samples of a kind."""

    nearest: NDArray[np.int64]
    drawn: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counted:
    """Counts of a set, and some samples of each kind, which is numbered through all levels.

    Attributes:
        counts: samples by kinds.
        nearest: indices of the samples nearest to the center of each kind, best first, shape (kinds of all levels,
            `KEPT`); −1 where there are fewer.
        drawn: indices of samples of each kind, drawn at random, shape (kinds of all levels, `DRAWN`); −1 where there
            are fewer.
    """

    counts: Counts
    nearest: NDArray[np.int64]
    drawn: NDArray[np.int64]

    def samples(self, *kinds: int) -> KindSamples:
        """Return the indices of samples of a kind, from each of its pieces in proportion to its size."""
        members = np.maximum(self.counts.all_members()[list(kinds)], 1)
        return KindSamples(*(_mix([rows[kind] for kind in kinds], members) for rows in (self.nearest, self.drawn)))

    def examples(self, embeddings: Embeddings, *kinds: int) -> Examples:
        """Return samples that show a kind, or a kind of several pieces, with the embeddings that were counted."""
        top, drawn = (found[:MAX_SHOWN] for found in self.samples(*kinds))
        return Examples(tuple(top.tolist()), embeddings.ids_at(top), tuple(drawn.tolist()), embeddings.ids_at(drawn))


def _mix(pieces: Sequence[NDArray[np.int64]], members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return indices of samples of all pieces, −1 left out, in turns by the sizes of the pieces; each index once."""
    place = np.concatenate([(np.arange(len(piece)) + 0.5) / size for piece, size in zip(pieces, members, strict=True)])
    indices = np.concatenate(pieces)[place.argsort(kind="stable")]
    _, first = np.unique(indices, return_index=True)
    indices = indices[np.sort(first)]
    return indices[indices >= 0]


class Counter:
    """Counts a set in one pass.

    Args:
        far: whether samples far from all kinds are counted as a last kind of their own, which later sets need.
    """

    def __init__(self, partition: KindTree, *, far: bool = False, run: Run | None = None) -> None:
        self.partition, self._far, self._run = partition, far, Run.of(run)
        self._assign = partition.on(self._run.torch_device)
        self._waiting: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self._counted = 0
        self.levels = tuple(level + far for level in partition.levels)
        self._cells: list[NDArray[np.int16]] = []
        self._offsets = np.concatenate([[0], np.cumsum(self.levels)])
        self._nearest = np.full((int(self._offsets[-1]), KEPT), -1)
        self._squared = np.full(self._nearest.shape, np.inf, np.float32)

    def of(self, embeddings: Embeddings) -> Counted:
        """Count a whole set."""
        for batch in embeddings.batches(self._run.portion, partial(send, device=self._assign.device)):
            self.update(batch.rows)
            self._run.progress("count", batch.start + len(batch.rows), embeddings.n)
        return self.result(embeddings.group_hashes())

    def update(self, rows: torch.Tensor) -> None:
        """Count the next rows of the set, shape (b, d)."""
        self._waiting.append(self._assign(rows))
        if sum(len(kinds) for kinds, *_ in self._waiting) >= COPIED_ROWS:
            self._count()

    def _count(self) -> None:
        """Count the rows that wait on the device."""
        if not self._waiting:
            return
        kinds, squared, middle = (torch.cat(parts).cpu().numpy() for parts in zip(*self._waiting, strict=True))
        self._waiting.clear()
        start, self._counted = self._counted, self._counted + len(kinds)
        if self._far:
            kinds = np.where(self.partition.far(squared), np.array(self.partition.levels, np.int32), kinds)
        self._cells.append(kinds.astype(np.int16))
        for level, offset in enumerate(self._offsets[:-1]):
            for part in range(0, len(kinds), SORTED_ROWS):
                rows = slice(part, part + SORTED_ROWS)
                self._keep_nearest(start + part, kinds[rows, level] + offset, middle[rows, level])

    def _keep_nearest(self, start: int, kinds: NDArray[np.int64], squared: NDArray[np.float32]) -> None:
        near = np.flatnonzero(squared < self._squared[kinds, -1])
        kinds, squared = kinds[near], squared[near]
        order = np.lexsort((squared, kinds))
        present, first = np.unique(kinds[order], return_index=True)
        rank = np.arange(len(order)) - np.repeat(first, np.diff([*first, len(order)]))
        order, rank = order[rank < KEPT], rank[rank < KEPT]
        place = np.searchsorted(present, kinds[order])
        indices, distances = np.full((len(present), KEPT), -1), np.full((len(present), KEPT), np.inf, np.float32)
        indices[place, rank], distances[place, rank] = near[order] + start, squared[order]
        distances = np.concatenate([self._squared[present], distances], 1)
        indices = np.concatenate([self._nearest[present], indices], 1)
        kept = distances.argsort(1, kind="stable")[:, :KEPT]
        self._squared[present] = np.take_along_axis(distances, kept, 1)
        self._nearest[present] = np.take_along_axis(indices, kept, 1)

    def result(self, groups: NDArray[np.uint64] | None = None) -> Counted:
        """Return the counts; `groups` are the hashes of the groups of all rows, in order."""
        kinds = self.kinds()
        return Counted(Counts.of(self.levels, kinds, groups), self._nearest, draw_members(kinds, self.levels))

    def kinds(self) -> NDArray[np.int32]:
        """Return the kind of each row at each level, shape (n, levels)."""
        self._count()
        return np.concatenate(self._cells, dtype=np.int32)


def draw_members(kinds: NDArray[np.int32], levels: Sequence[int]) -> NDArray[np.int64]:
    """Draw samples of each kind at random, and return their indices as `Counted` has them.

    Args:
        kinds: kind of each sample at each level, shape (n, levels).
        levels: number of kinds of each level.
    """
    order = np.random.default_rng(0).permutation(len(kinds))
    first = [_first(kinds[order, place], level) for place, level in enumerate(levels)]
    return np.append(order, -1)[np.concatenate(first)]


def _first(kinds: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """Return the places of the first `DRAWN` samples of each kind, shape (count, `DRAWN`); −1 beyond them."""
    members = np.bincount(kinds, minlength=count)
    place = np.arange(DRAWN) + (members.cumsum() - members)[:, None]
    by_kind = kinds.astype(np.min_scalar_type(count)).argsort(kind="stable")
    return np.where(np.arange(DRAWN) < members[:, None], by_kind[np.minimum(place, len(kinds) - 1)], -1)


def count(embeddings: Embeddings, partition: KindTree, *, far: bool = False, run: Run | None = None) -> Counted:
    """Count a set by the kinds of a partition, in one pass."""
    return Counter(partition, far=far, run=run).of(embeddings)
