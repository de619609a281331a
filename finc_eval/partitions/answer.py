"""`divide`: sets divided into one tree of kinds, all nodes tested, and the kinds that answer how the sets differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.naming.evidence import TRAIT, Name, in_common
from finc_eval.naming.parts import said_by, shared_by
from finc_eval.numerics.blocks import WithinBlocks
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.blocks import Pairing, designs
from finc_eval.partitions.counts import COUNT, Counted, Counter, Counts, Examples, KindsOfSamples, count, tally_sets
from finc_eval.partitions.difference import Difference, paired_variation, total_variation
from finc_eval.partitions.kind import Kind, describe_kinds, names_of_unions
from finc_eval.partitions.kind_tree import KindTree, Tree
from finc_eval.partitions.settings import MAIN_LEVEL
from finc_eval.partitions.tests import EffectiveCounts, KindTests, Mixes, Tally, test_kinds, test_within_blocks
from finc_eval.partitions.values import count_values
from finc_eval.partitions.wholes import Group, Wholes, group_kinds

LARGEST = 3  # largest findings that a headline names


def kind_id(node: int) -> str:
    """Return the id of a node of the tree."""
    return f"k{node}"


@dataclass(frozen=True, eq=False)
class Choice:
    """The nodes of a tree of kinds that answer how sets differ."""

    tree: Tree
    tests: KindTests  # tests of all nodes; node i is column i
    differing: tuple[int, ...]  # nodes that differ: no two overlap, the clearest first
    others: tuple[int, ...]  # nodes that hold all other samples, the largest first
    # nodes above kinds that all differ in the same way, with these kinds, the largest first
    headings: dict[int, tuple[int, ...]]

    @classmethod
    def of(cls, tree: Tree, tests: KindTests) -> Choice:
        """Choose among the nodes of a tree by their tests."""
        differing = choose(tree, tests)
        return cls(tree, tests, differing, rest_of(tree, tests, differing), headings(tree, tests, differing))

    @property
    def listed(self) -> tuple[int, ...]:
        """All kinds: their shares of each set add to 1."""
        return self.differing + self.others

    def described(
        self, names: Mapping[int, Name], examples: Callable[[str, int], Examples], id_of: Callable[[int], str] = kind_id
    ) -> tuple[tuple[Kind, ...], tuple[Kind, ...]]:
        """Return all listed kinds, those that differ first, and the headings, with shares, names and samples."""
        nodes = (*self.listed, *self.headings)
        described = dict(zip(nodes, describe_kinds(self.tests, nodes, names, examples, id_of), strict=True))
        differing = [described[node] for node in self.differing]
        inside = {node: [described[node] for node in below] for node, below in self.headings.items()}
        heads = tuple(
            replace(described[node], name=name, children=tuple(heading.id for heading in below))
            for node, below in inside.items()
            for name, is_one in [name_heading(described[node], below, differing)]
            if is_one
        )
        return tuple(described[node] for node in self.listed), heads


@dataclass(frozen=True, eq=False)
class Answer:
    """The kinds of some sets, tested."""

    kinds: KindTree
    counted: dict[str, Counted]
    tallies: dict[str, Tally]
    choice: Choice
    seed: int
    is_design: bool = False
    pairing: Pairing | None = None
    cells: NDArray[np.int64] | None = None  # leaf of each sample of paired sets, one set after the other

    def cells_of_names(
        self, listed: Sequence[Kind], divided: KindsOfSamples | None
    ) -> tuple[NDArray[np.int64], list[str]] | None:
        """Return the kind of each sample of paired sets, of at most `MAIN_LEVEL`, and the names of these kinds.

        A kind without a name of its own has that of the largest listed kind in it, or else its number.
        """
        if self.cells is None:
            return None
        members = self.kinds.tree.members[self.kinds.tree.cut(MAIN_LEVEL)]
        place = None if divided is None else divided.place
        names = []
        for number, leaves in enumerate(members):
            inside = [] if place is None else [number for number in place[leaves].tolist() if number >= 0]
            kind = listed[max(set(inside), key=inside.count)] if inside else None
            names.append(f"kind {number + 1}" if kind is None else f"{kind.name or 'samples'} ({kind.id})")
        return members.argmax(0)[self.cells], names

    def described(
        self, embeddings: Mapping[str, Embeddings]
    ) -> tuple[tuple[Kind, ...], tuple[Kind, ...], KindsOfSamples]:
        """Return all listed kinds and the headings (`Choice.described`), and which samples are of the listed kinds."""
        names = names_of_nodes(
            self.kinds.tree, (*self.choice.differing, *self.choice.headings), self.counted, embeddings
        )

        def examples(label: str, node: int) -> Examples:
            return self.counted[label].examples(embeddings[label], *self.kinds.tree.leaves_of(node))

        listed, above = self.choice.described(names, examples)
        differing = dict(zip(self.choice.differing, listed, strict=False))
        shared = {node: shared_by(names[node]) for node in differing}
        wholes = Wholes.of(
            [heading for each in shared.values() for heading in each],
            embeddings,
            self.choice.tests.family.rho,
            self.pairing,
            self.seed,
        )
        parts = [wholes.part_of(kind, said_by(names[node])) for node, kind in differing.items()]
        kinds = [
            *(replace(heading, part_of=part) for heading, part in zip(listed, parts, strict=False)),
            *listed[len(parts) :],
        ]
        heads = self._headings(group_kinds(differing, shared, wholes), differing, wholes, embeddings)
        taken = {name for head in heads for name in head.children}
        heads += (head for head in above if taken.isdisjoint(head.children))
        listed_kind = np.asarray(self.kinds.tree.members[list(self.choice.listed)].argmax(0))
        return (
            tuple(kinds),
            tuple(sorted(heads, key=lambda head: -abs(head.difference))),
            KindsOfSamples(self.kinds, listed_kind, self.tallies),
        )

    def _headings(
        self, groups: Sequence[Group], kinds: Mapping[int, Kind], wholes: Wholes, embeddings: Mapping[str, Embeddings]
    ) -> list[Kind]:
        """Return headings of kinds that are parts of one whole, with the shares of these kinds together."""
        if not groups:
            return []
        tree = self.kinds.tree
        unions = np.array([tree.members[list(group.kinds)].any(0) for group in groups])
        counts = {label: counted.counts.of_unions(unions) for label, counted in self.counted.items()}
        tests = test_kinds(tally_sets(counts), self.choice.tests.family.rho)
        if self.pairing is not None and self.cells is not None:
            tests = test_within_blocks(tests, WithinBlocks.of(self.pairing.blocked, self.cells, unions, self.seed))

        def examples(label: str, number: int) -> Examples:
            return self.counted[label].examples(embeddings[label], *np.flatnonzero(unions[number]).tolist())

        names = {number: Name(group.shared.words) for number, group in enumerate(groups)}
        described = describe_kinds(tests, range(len(groups)), names, examples, str)
        heads = []
        for group, found_heading in zip(groups, described, strict=True):
            inside = [kinds[node] for node in group.kinds]
            heads.append(
                replace(
                    found_heading,
                    id=f"{inside[0].id}+{len(inside) - 1}",
                    p_value=min(kind.p_value for kind in inside),
                    children=tuple(kind.id for kind in inside),
                    part_of=wholes.found[group.shared],
                )
            )
        return heads

    def differences(self, seed: int) -> dict[str, Difference]:
        """Return how different each set is from all others together, by their shares of at most `MAIN_LEVEL` kinds."""
        if (within := self.choice.tests.within) is not None:
            differences = paired_variation(within.at(self.kinds.tree.cut(MAIN_LEVEL)))
            both = differences * 2 if len(differences) == 1 else differences
            return dict(zip(self.tallies, both, strict=True))
        effective = main_counts(self.kinds.tree, self.tallies)
        others = {label: [counts for other, counts in effective.items() if other != label] for label in effective}
        return {
            label: total_variation(counts, reduce(add, others[label]), seed, is_design=self.is_design)
            for label, counts in effective.items()
        }


def name_heading(heading: Kind, inside: Sequence[Kind], differing: Sequence[Kind]) -> tuple[str | None, bool]:
    """Return the name of a heading, and whether its kinds are one thing: two causes have no heading.

    They are if their names have words in common that names of kinds of the other side have not, if a single value
    describes the members of all, or if none of them has a name.
    """
    if (common := in_common(inside, [other for other in differing if other.side != heading.side])) is not None:
        return common, True
    reasons = [reason for reason in heading.evidence if reason.in_name and reason.source != TRAIT]
    return heading.name, len(reasons) == 1 or not any(kind.name for kind in inside)


def divide(
    sets: Mapping[str, Embeddings],
    *,
    kinds: KindTree | None = None,
    rho: float = 1.0,
    part: float = 1.0,
    seed: int = 0,
    run: Run | None = None,
    pairing: Pairing | None = None,
) -> Answer:
    """Divide sets into kinds, or into the given kinds, count them, and choose the kinds that answer how they differ.

    Paired sets are compared within the blocks of their pairing.
    """
    run = Run.of(run)
    kinds = kinds or KindTree.of_sets(list(sets.values()) if pairing is None else pairing.fitted_to, seed, run)
    counted, cells = {}, {}
    for (label, embeddings), each in zip(
        sets.items(), run.over(COUNT, [embeddings.n for embeddings in sets.values()]), strict=True
    ):
        counted[label], cells[label] = _count_cells(embeddings, kinds, each)
    tallies = node_tallies(kinds.tree, {label: counted_set.counts for label, counted_set in counted.items()})
    tests = test_kinds(tallies, rho, part)
    if pairing is not None:
        members = kinds.tree.members
        within = WithinBlocks.of(pairing.blocked, np.concatenate([*cells.values()]), members, seed)
        tests = replace(
            test_within_blocks(tests, within, part), mixes=_divide_mixes(pairing, cells, members, kinds, run)
        )
    return Answer(
        kinds,
        counted,
        tallies,
        Choice.of(kinds.tree, tests),
        seed,
        is_design=pairing is None and bool(designs(sets)),
        pairing=pairing,
        cells=None if pairing is None else np.concatenate([*cells.values()]),
    )


def _count_cells(embeddings: Embeddings, kinds: KindTree, run: Run) -> tuple[Counted, NDArray[np.int64]]:
    """Count a set, and return the leaf of each sample, too."""
    counter = Counter(kinds, run=run)
    return counter.of(embeddings), counter.kinds().astype(np.int64)


def _divide_mixes(
    pairing: Pairing, cells: Mapping[str, NDArray[np.int64]], members: NDArray[np.bool_], kinds: KindTree, run: Run
) -> Mixes | None:
    """Return the parts of differences that unlike mixes of the paired values make; None if all sets have one mix."""
    blocks = len(pairing.names)
    values = 1 + max([blocks - 1, *(int(block_of.max()) for _, block_of in pairing.apart.values())])
    counts, sizes = [], []
    for label, block in pairing.block.items():
        where, leaf = block, cells[label]
        if label in pairing.apart:
            rest, block_of = pairing.apart[label]
            where = np.concatenate([where, block_of])
            leaf = np.concatenate([leaf, _count_cells(rest, kinds, run.named(f"count {label} apart"))[1]])
        table = np.bincount(where * members.shape[1] + leaf, minlength=values * members.shape[1])
        counts.append(table.reshape(values, -1) @ members.T.astype(float))
        sizes.append(np.bincount(where, minlength=values).astype(float))
    weights = np.concatenate([pairing.blocked.weights, np.zeros(values - blocks)])
    return Mixes.of(np.array(counts), np.array([*sizes, weights]), is_whole=pairing.is_whole)


def kind_counts(sets: Mapping[str, Embeddings], seed: int, run: Run) -> dict[str, EffectiveCounts]:
    """Divide sets into kinds, and return effective counts of at most `MAIN_LEVEL` of them, by label.

    The total variation of two sets' counts is the difference that a comparison of these sets finds.
    """
    kinds = KindTree.of_sets(list(sets.values()), seed, run)
    runs = run.over(COUNT, [embeddings.n for embeddings in sets.values()])
    counts = {
        label: count(embeddings, kinds, run=each).counts
        for (label, embeddings), each in zip(sets.items(), runs, strict=True)
    }
    return main_counts(kinds.tree, node_tallies(kinds.tree, counts))


def within_blocks(pairing: Pairing, column: str | None, seed: int, run: Run) -> WithinBlocks:
    """Return differences within blocks of at most `MAIN_LEVEL` kinds of paired sets, or of the values of a column."""
    if column is not None:
        return count_values(pairing.sets, column).within(pairing, seed)
    kinds = KindTree.of_sets(pairing.fitted_to, seed, run)
    members = kinds.tree.members[kinds.tree.cut(MAIN_LEVEL)]
    return WithinBlocks.of(pairing.blocked, cells_of(pairing, kinds, run), members, seed)


def cells_of(pairing: Pairing, kinds: KindTree, run: Run) -> NDArray[np.int64]:
    """Return the leaf of each sample of paired sets, one set after the other."""
    runs = run.over(COUNT, [embeddings.n for embeddings in pairing.sets.values()])
    return np.concatenate(
        [_count_cells(embeddings, kinds, each)[1] for embeddings, each in zip(pairing.sets.values(), runs, strict=True)]
    )


def main_counts(tree: Tree, tallies: Mapping[str, Tally]) -> dict[str, EffectiveCounts]:
    """Return effective counts of at most `MAIN_LEVEL` kinds that hold all samples, by label."""
    nodes = tree.cut(MAIN_LEVEL)
    return {label: tally.at(nodes).effective() for label, tally in tallies.items()}


def node_tallies(tree: Tree, counts: Mapping[str, Counts]) -> dict[str, Tally]:
    """Return the tallies of all nodes of a tree, node i at place i, from counts of its leaves."""
    return tally_sets({label: counts_of_set.of_unions(tree.members) for label, counts_of_set in counts.items()})


def names_of_nodes(
    tree: Tree, nodes: Iterable[int], counted: Mapping[str, Counted], embeddings: Mapping[str, Embeddings]
) -> dict[int, Name]:
    """Name nodes of a tree whose leaves were counted; see `names_of_unions`."""
    return names_of_unions({node: tree.leaves_of(node) for node in nodes}, counted, embeddings)


def choose(tree: Tree, tests: KindTests) -> tuple[int, ...]:
    """Choose the nodes that differ, as large as they are one thing, the clearest first.

    The tree is read from its leaves up. A node is one kind if its own evidence is at least the evidence of the kinds
    below it together, where each kind pays for its choice among all: then one ratio describes them. A node whose
    children stand apart is never one kind. A node with most of every set is not listed next to others that explain what
    it lacks. Evidence is −log p. All nodes are tested as one family, so any choice among the significant nodes keeps
    the family-wise error.
    """
    p = np.maximum(tests.raw.min(0), np.finfo(float).tiny)
    significant = tests.adjusted.min(0) <= ALPHA
    worth = np.where(significant, np.maximum(-np.log(p) - np.log(tree.nodes), np.finfo(float).eps), 0.0)
    best = worth.copy()
    below: list[tuple[int, ...]] = [(node,) if worth[node] > 0 else () for node in range(tree.leaves)]
    for node, (left, right) in enumerate(tree.joins.tolist(), tree.leaves):
        parts = best[left] + best[right]
        whole = worth[node] > 0 and worth[node] >= parts and tree.lies_together(node)
        below.append((node,) if whole else below[left] + below[right])
        best[node] = worth[node] if whole else parts
    chosen, row = below[-1], tests.raw.argmin(0)
    most = [node for node in chosen if tests.shares[:, node].min() > 0.5]
    chosen = tuple(
        node for node in chosen if node not in most or all(row[ancestor] == row[node] for ancestor in chosen)
    )
    return tuple(sorted(chosen, key=lambda node: (tests.adjusted[:, node].min(), p[node])))


def rest_of(tree: Tree, tests: KindTests, differing: tuple[int, ...]) -> tuple[int, ...]:
    """Return the largest nodes that lie together and do not differ: they hold all other samples."""
    rest = []
    taken = tree.members[list(differing)].any(0) if differing else np.zeros(tree.leaves, bool)
    waiting = [tree.nodes - 1]
    while waiting:
        node = waiting.pop()
        if node in differing:
            continue
        alike = tests.adjusted[:, node].min() > ALPHA and tree.lies_together(node)
        if node < tree.leaves or (alike and not (tree.members[node] & taken).any()):
            rest.append(node)
        else:
            waiting += tree.joins[node - tree.leaves].tolist()
    size = tests.members.sum(0)
    return tuple(sorted((node for node in rest if size[node]), key=lambda node: (-size[node], node)))


def headings(tree: Tree, tests: KindTests, differing: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """Return the largest nodes above two or more kinds that differ in the same way, with these kinds.

    All members but a part α are of these kinds. With any part from .03 to .25, the headings are the same on digits and
    clips: the kinds below a node are nearly all of it, or at most three quarters.
    """
    row, size = tests.raw.argmin(0), tests.members.sum(0)
    by_node: dict[int, tuple[int, ...]] = {}
    for node in range(tree.nodes - 1, tree.leaves - 1, -1):
        inside = tuple(kind for kind in differing if tree.members[node][tree.members[kind]].all())
        alike = len(inside) > 1 and len({row[kind] for kind in inside}) == 1
        if not alike or any(set(inside) <= set(members) for members in by_node.values()):
            continue
        if size[list(inside)].sum() >= (1 - ALPHA) * size[node]:
            by_node[node] = inside
    return by_node
