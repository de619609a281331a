"""Sets opened to be counted, and `Counts`: how many samples of a set are of each kind, and in which groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from finc_eval.core.device import send
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.progress import Stage
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.needs import Check, needs_columns, needs_groups, needs_samples
from finc_eval.embeddings.opened import Form, OpenedSet, Sets
from finc_eval.embeddings.opening import OF_EMBEDDINGS, Opener, as_embeddings, open_embedded, open_sets
from finc_eval.embeddings.repeats import few_groups, mean_group_size
from finc_eval.embeddings.set_info import notes_on
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.gallery.counts import KEPT, MAX_SHOWN
from finc_eval.numerics.design_effects import Array, GroupedKinds, design_effects
from finc_eval.partitions.kind_tree import Assignment, KindTree
from finc_eval.partitions.tests import Tally
from finc_eval.sketches.opening import SetInput, group_sets, open_sketch
from finc_eval.sketches.sketch import Sketch

COUNT = Stage("count kinds", cost=0.3)  # name of a pass over sets in the progress
DRAWN = 200  # samples of each set and kind that are drawn at random, and that its name is taken from
COPIED_ROWS = 1 << 17  # rows whose kinds are copied from the device together: for every copy, the host waits

SORTED_ROWS = 1 << 13
"""Rows that are sorted together by distance: of later rows, only those nearer than the kept ones are sorted."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Samples of a set by their kinds, which may overlap."""

    n: int  # number of samples
    members: NDArray[np.int64]  # number of samples of each kind, shape (t,)
    sizes: Array | None = None  # number of samples of each group, shape (g,); None if ungrouped
    # number of samples of each group and kind, sparse, shape (g, t); None without groups
    table: csr_matrix | None = None

    @classmethod
    def of(cls, kinds: int, cells: NDArray[np.int32], groups: NDArray[np.uint64] | None = None) -> Counts:
        """Count samples, from the kind of each, shape (n,), and the hash of its group, shape (n,)."""
        members = np.bincount(cells, minlength=kinds)
        if groups is None:
            return cls(len(cells), members)
        _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        table = csr_matrix((np.ones(len(cells)), (group, cells)), (len(sizes), kinds))
        return cls(len(cells), members, sizes.astype(float), table)

    def of_unions(self, unions: NDArray[np.bool_]) -> Counts:
        """Return the counts of unions of kinds, given by the kinds that each holds, shape (u, t)."""
        table = None if self.table is None else self.table @ csr_matrix(unions.T, dtype=float)
        return Counts(self.n, unions @ self.members, self.sizes, table)

    def grouped(self) -> GroupedKinds:
        """Return how the samples of each kind lie in the groups."""
        if self.table is None or self.sizes is None:
            return GroupedKinds.independent(self.members, self.n)
        return GroupedKinds.of(self.table, self.sizes)


def tally_sets(counts: Mapping[str, Counts]) -> dict[str, Tally]:
    """Return what tests of these sets need of their counts; it does not grow with the number of samples or groups."""
    shares = [counts_of_set.grouped() for counts_of_set in counts.values()]
    return {
        label: Tally(counts_of_set.n, counts_of_set.members, effects, share.even, share.within)
        for (label, counts_of_set), share, effects in zip(counts.items(), shares, design_effects(shares), strict=True)
    }


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

    def __post_init__(self) -> None:
        for rows, ids in ((self.top, self.top_ids), (self.drawn, self.drawn_ids)):
            if len(rows) != len(ids) or len(rows) > MAX_SHOWN or min(rows, default=0) < 0:
                raise DataError(f"its examples are not up to {MAX_SHOWN} rows with an id each")


@dataclass(frozen=True, eq=False)
class Counted:
    """Counts of a set, and some samples of each kind."""

    counts: Counts  # samples by kinds
    # indices of the samples nearest to the center of each kind, best first, shape (kinds, `KEPT`); −1 if there are
    # fewer
    nearest: NDArray[np.int64]
    # indices of samples of each kind, drawn at random, shape (kinds, `DRAWN`); −1 if there are fewer
    drawn: NDArray[np.int64]

    def samples(self, indices: NDArray[np.int64], kinds: Sequence[int]) -> NDArray[np.int64]:
        """Return samples (s,) of kinds among `nearest` or `drawn` (t, m), of their pieces in proportion to sizes."""
        members = np.maximum(self.counts.members[list(kinds)], 1)
        pieces = indices[list(kinds)]
        # In turns by the sizes of the pieces; each index once.
        rank = ((np.arange(pieces.shape[1]) + 0.5) / members[:, None]).ravel()
        samples = pieces.ravel()[rank.argsort(kind="stable")]
        _, first = np.unique(samples, return_index=True)
        samples = samples[np.sort(first)]
        return np.asarray(samples[samples >= 0])

    def examples(self, embeddings: Embeddings, *kinds: int) -> Examples:
        """Return samples that show a kind, or a kind of several pieces, with the embeddings that were counted."""
        top, drawn = (self.samples(indices, kinds)[:MAX_SHOWN] for indices in (self.nearest, self.drawn))
        return Examples(tuple(top.tolist()), embeddings.ids_at(top), tuple(drawn.tolist()), embeddings.ids_at(drawn))


class Counter:
    """Counts a set in one pass; with `far`, samples far from all kinds are a last kind, which later sets need."""

    def __init__(self, partition: KindTree, *, far: bool = False, run: Run | None = None) -> None:
        self.partition, self._far, self._run = partition, far, Run.of(run)
        self._assign = Assignment(partition, self._run.torch_device)
        self._waiting: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self._counted = 0
        self._size = partition.tree.leaves + far
        self._cells: list[NDArray[np.int16]] = []
        self._nearest = np.full((self._size, KEPT), -1)
        self._squared = np.full(self._nearest.shape, np.inf, np.float32)

    def of(self, embeddings: Embeddings) -> Counted:
        """Count a whole set."""
        for batch in embeddings.batches(self._run.portion, partial(send, device=self._assign.device)):
            self._waiting.append(self._assign(batch.rows))
            if sum(len(kinds) for kinds, *_ in self._waiting) >= COPIED_ROWS:
                self._count()
            self._run.progress("count", batch.start + len(batch.rows), embeddings.n)
        kinds = self.kinds()
        counts = Counts.of(self._size, kinds, embeddings.group_hashes())
        return Counted(counts, self._nearest, draw_members(kinds, self._size))

    def _count(self) -> None:
        """Count the rows that wait on the device, and keep those nearest to the middle of each kind."""
        if not self._waiting:
            return
        kinds, squared, middle = (torch.cat(parts).cpu().numpy() for parts in zip(*self._waiting, strict=True))
        self._waiting.clear()
        start, self._counted = self._counted, self._counted + len(kinds)
        if self._far:
            kinds = np.where(self.partition.far(squared), np.int32(self.partition.tree.leaves), kinds)
        self._cells.append(kinds.astype(np.int16))
        for part in range(0, len(kinds), SORTED_ROWS):
            rows = slice(part, part + SORTED_ROWS)
            near = np.flatnonzero(middle[rows] < self._squared[kinds[rows], -1]) + part
            kind, squared = kinds[near], middle[near]
            order = np.lexsort((squared, kind))
            present, first = np.unique(kind[order], return_index=True)
            rank = np.arange(len(order)) - np.repeat(first, np.diff([*first, len(order)]))
            order, rank = order[rank < KEPT], rank[rank < KEPT]
            row = np.searchsorted(present, kind[order])
            indices, distances = np.full((len(present), KEPT), -1), np.full((len(present), KEPT), np.inf, np.float32)
            indices[row, rank], distances[row, rank] = near[order] + start, squared[order]
            distances = np.concatenate([self._squared[present], distances], 1)
            indices = np.concatenate([self._nearest[present], indices], 1)
            kept = distances.argsort(1, kind="stable")[:, :KEPT]
            self._squared[present] = np.take_along_axis(distances, kept, 1)
            self._nearest[present] = np.take_along_axis(indices, kept, 1)

    def kinds(self) -> NDArray[np.int32]:
        """Return the kind of each row, shape (n,)."""
        self._count()
        return np.concatenate(self._cells, dtype=np.int32)


def draw_members(kinds: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """Draw samples of each kind (n,) at random, and return their indices as `Counted` has them, (t, `DRAWN`)."""
    order = np.random.default_rng(0).permutation(len(kinds))
    kinds, members = kinds[order], np.bincount(kinds, minlength=count)
    row = np.arange(DRAWN) + (members.cumsum() - members)[:, None]
    by_kind = kinds.astype(np.min_scalar_type(count)).argsort(kind="stable")
    first = np.where(np.arange(DRAWN) < members[:, None], by_kind[np.minimum(row, len(kinds) - 1)], -1)
    return np.append(order, -1)[first]


def count(embeddings: Embeddings, partition: KindTree, *, far: bool = False, run: Run | None = None) -> Counted:
    """Count a set by the kinds of a partition, in one pass."""
    return Counter(partition, far=far, run=run).of(embeddings)


@dataclass(frozen=True, eq=False)
class KindsOfSamples:
    """A tree of kinds, and which of its nodes a result lists."""

    tree: KindTree
    place: NDArray[np.int64]  # place of each leaf's kind among the listed kinds, shape (leaves,); −1 for none
    tallies: Mapping[str, Tally]

    def assign(self, embeddings: object, run: Run | None = None) -> NDArray[np.int64]:
        """Return the place of the kind of each sample, shape (n,); −1 for samples of no listed kind."""
        rows = as_embeddings(embeddings, "the embeddings")
        return np.concatenate([self.places(batch.rows, run) for batch in rows.batches()])

    def places(self, rows: torch.Tensor, run: Run | None = None) -> NDArray[np.int64]:
        """Return what `assign` does, of rows that are known to be embeddings, shape (n, d)."""
        return self.place[self.tree.assign(rows, run)[0]]

    def named(self, ids: Sequence[str], rows: torch.Tensor, run: Run | None = None) -> list[str]:
        """Return, of the ids of the listed kinds, that of each row, shape (n, d); "" for rows of no listed kind."""
        known = [*ids, ""]  # the last is for the place −1
        return [known[number] for number in self.places(rows, run).tolist()]

    def write(self, file: NewFile) -> None:
        """Write the tree, the places and the tallies into a file."""
        self.tree.write(file)
        file.array("kinds/place", self.place)
        file.header["tallies"] = {label: tally.n for label, tally in self.tallies.items()}
        for number, tally in enumerate(self.tallies.values()):
            file.array(f"kinds/members/{number}", tally.members)
            file.array(f"kinds/effects/{number}", np.stack([tally.effects, tally.even, tally.within]))


def read_kinds(file: StoredFile, listed: int) -> KindsOfSamples:
    """Read what `KindsOfSamples.write` wrote, of a result with this many kinds; call it in `content_of`."""
    tree = KindTree.read(file)
    place = file.array("kinds/place", tree.tree.leaves, dtype="<i8")
    if not ((place >= -1) & (place < listed)).all():
        raise ValueError("its kinds do not match its tree")
    nodes, tallies = tree.tree.nodes, dict[str, Tally]()
    for number, (label, n) in enumerate(file.header["tallies"].items()):
        members = file.array(f"kinds/members/{number}", nodes, dtype="<i8")
        effects, even, within = file.array(f"kinds/effects/{number}", 3, nodes, dtype="<f8")
        fit = (members >= 0).all() and members[-1] == n and min(effects.min(), even.min()) >= 1 and (within >= 0).all()
        if not fit:
            raise ValueError("its counts are not of its kinds")
        tallies[str(label)] = Tally(int(n), members, effects, even, within)
    return KindsOfSamples(tree, place, tallies)


MIN_SAMPLES = 20
"""Samples that each set needs. With 20 in each, a kind of one set alone is found from a share of .42 on; with 8,
from .70."""


def _notes_on(opened: OpenedSet[SetInput]) -> list[str]:
    """Warn of a sketch that holds only some of its samples, and of samples in few groups."""
    label, rows = opened.label, opened.at_hand
    notes = notes_on(label, rows)
    if isinstance(opened.held, Sketch) and rows.n != opened.held.n:
        held = f"{rows.n:,} embeddings that it holds are counted, of {opened.held.n:,} samples"
        notes.append(f"{label} is a sketch: the {held}, so smaller differences are missed")
    return notes + few_groups(label, rows.n, mean_group_size(rows), rows.grouping)


def countable_sets(
    sources: Mapping[str, object],
    groups: str | None,
    run: Run,
    extractor: AnyExtractor = None,
    preferred: str | None = None,
    spaces: Iterable[str] = (),
    columns: Iterable[str | None] = (),
    checks: Sequence[Check] = (),
) -> tuple[Sets[SetInput], tuple[str, ...]]:
    """Open sets whose samples are counted, with groups of what is not independent, and return sentences on them.

    `preferred` is the extractor where none is named, and all sets are samples; `spaces` and `checks` as in
    `open_sets`. All sets must have `columns`; None is not a column.
    """
    if len(sources) < 2:
        raise UsageError(f"at least two sets are needed to compare, got {len(sources)}")
    checks = [
        needs_columns(*columns),
        needs_groups(groups, len(sources)),
        needs_samples(MIN_SAMPLES, _too_few),
        *checks,
    ]
    opened = open_sets(sources, openers_of(groups), extractor, run, spaces, preferred=preferred, checks=checks)
    grouped, sentences = group_sets(opened.at_hand, groups, run)
    countable = opened.with_rows(grouped)
    return countable, (*(note for opened_set in countable.values() for note in _notes_on(opened_set)), *sentences)


def openers_of(groups: str | None = None) -> Mapping[Form, Opener[SetInput]]:
    """Return how sets to count are opened: of a sketch, the samples that it keeps are counted, without groups."""

    def open_counted(source: object, label: str) -> OpenedSet[Embeddings]:
        opened = open_embedded(source, label)
        if opened.held.n < MIN_SAMPLES:
            raise _too_few(label, opened.held.n)
        return opened

    def open_kept(source: object, label: str) -> OpenedSet[Sketch]:
        sketch = open_sketch(source)
        if groups is not None:
            raise UsageError(
                f"{label} is a sketch, which does not keep the column {groups!r} that groups asks for: pass its "
                "embeddings, or leave groups out"
            )
        opened = OpenedSet(label, sketch)
        if opened.at_hand.n < MIN_SAMPLES:
            raise _too_few(label, opened.at_hand.n)
        return replace(opened, stand_in=opened.at_hand)

    return {**OF_EMBEDDINGS, "embeddings": open_counted, "sketch": open_kept}


def _too_few(label: str, n: int) -> DataError:
    return DataError(f"{label} has {plural(n, 'sample')}: at least {MIN_SAMPLES} of each set are needed")
