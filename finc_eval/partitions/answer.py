"""`divide`: sets divided into one tree of kinds, all nodes tested, and the kinds that answer how the sets differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.naming.in_common import in_common
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.counts import Counted, Examples, count, tallied
from finc_eval.partitions.difference import Difference, total_variation
from finc_eval.partitions.kind_tree import FIT_SAMPLES, KindTree
from finc_eval.partitions.modes import Kind, described_kinds, names_of_unions
from finc_eval.partitions.partition import pooled_sample
from finc_eval.partitions.settings import MAIN_LEVEL
from finc_eval.partitions.tally import EffectiveCounts, Tally
from finc_eval.partitions.tests import KindTests, test_kinds

COVERED = 0.9
"""Part of a heading's members that must be of kinds below it that differ in the same way."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The kinds of some sets, tested.

    Attributes:
        kinds: the tree.
        counted: counts of the leaves in each set, by label.
        tallies: counts of all nodes, by label; node i is kind i.
        tests: tests of all nodes; node i is column i.
        differing: nodes that differ: no two overlap, the clearest first.
        others: nodes that hold all other samples, the largest first.
        headings: nodes above kinds that all differ in the same way, with these kinds, the largest first.
    """

    kinds: KindTree
    counted: dict[str, Counted]
    tallies: dict[str, Tally]
    tests: KindTests
    differing: tuple[int, ...]
    others: tuple[int, ...]
    headings: dict[int, tuple[int, ...]]

    @property
    def listed(self) -> tuple[int, ...]:
        """All kinds: their shares of each set add to 1."""
        return self.differing + self.others

    def described(self, embeddings: Mapping[str, Embeddings]) -> tuple[tuple[Kind, ...], tuple[Kind, ...]]:
        """Return all listed kinds, those that differ first, and the headings, with shares, names and samples.

        Args:
            embeddings: the sets that were counted, by label.
        """
        members = self.kinds.tree.members
        leaves = {node: np.flatnonzero(members[node]).tolist() for node in (*self.listed, *self.headings)}
        named = {node: leaves[node] for node in (*self.differing, *self.headings)}
        names = names_of_unions(named, self.counted, embeddings)

        def examples(label: str, node: int) -> Examples:
            return self.counted[label].examples(embeddings[label], *leaves[node])

        found = {kind.id: kind for kind in described_kinds(self.tests, leaves, names, examples, kind_id)}
        differing = [found[kind_id(node)] for node in self.differing]
        heads = tuple(
            _heading(found[kind_id(node)], [found[kind_id(one)] for one in inside], differing)
            for node, inside in self.headings.items()
        )
        return tuple(found[kind_id(node)] for node in self.listed), heads

    def place_of_leaves(self) -> NDArray[np.int64]:
        """Return the place of each leaf's kind among the listed kinds, shape (leaves,)."""
        found = np.full(self.kinds.tree.leaves, -1)
        for place, node in enumerate(self.listed):
            found[self.kinds.tree.members[node]] = place
        return found

    def differences(self, seed: int) -> dict[str, Difference]:
        """Return how different each set is from all others together, by their shares of at most `MAIN_LEVEL` kinds."""
        effective = main_counts(self.kinds, self.tallies)
        others = {label: [one for other, one in effective.items() if other != label] for label in effective}
        return {label: total_variation(own, reduce(add, others[label]), seed) for label, own in effective.items()}


def _heading(kind: Kind, inside: Sequence[Kind], differing: Sequence[Kind]) -> Kind:
    """Return a kind as the heading of some that differ, with what their names have in common as its name."""
    others = [one for one in differing if one.side != kind.side]
    common = in_common(inside, others)
    named = kind if common is None else replace(kind, name=common, evidence=())
    return replace(named, children=tuple(one.id for one in inside))


def kind_id(node: int) -> str:
    """Return the id of a node of the tree."""
    return f"k{node}"


def divide(
    sets: Mapping[str, Embeddings],
    *,
    kinds: KindTree | None = None,
    rho: float = 1.0,
    part: float = 1.0,
    seed: int = 0,
    run: Run | None = None,
) -> Answer:
    """Divide sets into kinds, count them, and choose the kinds that answer how the sets differ.

    Args:
        sets: the sets by label.
        kinds: kinds that were made before; default: those of the sets.
        rho: ρ, factor that a share must exceed.
        part: part of the family-wise error that the tests may spend.
        seed: random seed.
        run: device, portions and progress.
    """
    run = Run.of(run)
    kinds = fitted(sets, seed, run) if kinds is None else kinds
    counted = {label: count(one, kinds, run=run.named(f"count {label}")) for label, one in sets.items()}
    tallies = node_tallies(kinds, counted)
    tests = node_tests(tallies, rho, part)
    differing = chosen(kinds, tests)
    rest, heads = rest_of(kinds, tests, differing), headings(kinds, tests, differing)
    return Answer(kinds, counted, tallies, tests, differing, rest, heads)


def fitted(sets: Mapping[str, Embeddings], seed: int, run: Run) -> KindTree:
    """Divide a sample of all sets together into kinds."""
    run.progress("partition", 0, 1)
    kinds = KindTree.fit(pooled_sample(list(sets.values()), FIT_SAMPLES), seed, run)
    run.progress("partition", 1, 1)
    return kinds


def kind_counts(sets: Mapping[str, Embeddings], seed: int, run: Run) -> dict[str, EffectiveCounts]:
    """Divide sets into kinds, and return effective counts of at most `MAIN_LEVEL` of them, by label.

    The total variation of those of two sets is the difference that a comparison of these sets finds.
    """
    kinds = fitted(sets, seed, run)
    counted = {label: count(one, kinds, run=run.named(f"count {label}")) for label, one in sets.items()}
    return main_counts(kinds, node_tallies(kinds, counted))


def main_counts(kinds: KindTree, tallies: Mapping[str, Tally]) -> dict[str, EffectiveCounts]:
    """Return effective counts of at most `MAIN_LEVEL` kinds that hold all samples, by label."""
    nodes = kinds.tree.cut(MAIN_LEVEL)
    return {label: one.only(nodes).effective(0) for label, one in tallies.items()}


def node_tallies(kinds: KindTree, counted: Mapping[str, Counted]) -> dict[str, Tally]:
    """Return the counts of all nodes of a tree by the label of the set; node i is kind i of one level."""
    tree = kinds.tree
    found = tallied({label: one.counts.at_nodes(tree) for label, one in counted.items()})
    order = np.empty(tree.nodes, np.int64)
    order[tree.numbers[tree.numbers >= 0]] = np.flatnonzero(tree.numbers >= 0)
    return {label: one.only(order) for label, one in found.items()}


def node_tests(tallies: Mapping[str, Tally], rho: float, part: float) -> KindTests:
    """Test all nodes of a tree as one family; column i of the tests is node i."""
    found = test_kinds(dict(tallies), rho)
    return replace(found, adjusted=np.minimum(found.adjusted / part, 1.0))


def chosen(kinds: KindTree, tests: KindTests) -> tuple[int, ...]:
    """Choose the nodes that differ, as large as they are one thing, the clearest first.

    The tree is read from its leaves up. A node is one kind if its own evidence is at least that of the kinds below it
    together, where each kind pays for its choice among all: then one ratio describes them. A node whose children stand
    apart is never one kind. One with most of every set is not listed beside others that explain what it lacks. Evidence
    is −log p. All nodes are tested as one family, so any choice among the significant ones keeps the family-wise error.

    Args:
        kinds: the tree.
        tests: tests of all nodes.
    """
    tree, p = kinds.tree, np.maximum(tests.raw.min(0), np.finfo(float).tiny)
    significant = tests.adjusted.min(0) <= ALPHA
    own = np.where(significant, np.maximum(-np.log(p) - np.log(tree.nodes), np.finfo(float).eps), 0.0)
    best = own.copy()
    below: list[tuple[int, ...]] = [(node,) if own[node] > 0 else () for node in range(tree.leaves)]
    for node, (one, other) in enumerate(tree.joins.tolist(), tree.leaves):
        parts = best[one] + best[other]
        whole = own[node] > 0 and own[node] >= parts and tree.lies_together(node)
        below.append((node,) if whole else below[one] + below[other])
        best[node] = own[node] if whole else parts
    found, row = below[-1], tests.raw.argmin(0)
    most = [node for node in found if tests.shares[:, node].min() > 0.5]
    found = tuple(node for node in found if node not in most or all(row[one] == row[node] for one in found))
    return tuple(sorted(found, key=lambda node: (tests.adjusted[:, node].min(), p[node])))


def rest_of(kinds: KindTree, tests: KindTests, differing: tuple[int, ...]) -> tuple[int, ...]:
    """Return the largest nodes that lie together and do not differ: they hold all other samples."""
    tree, found = kinds.tree, []
    taken = tree.members[list(differing)].any(0) if differing else np.zeros(tree.leaves, bool)
    waiting = [tree.nodes - 1]
    while waiting:
        node = waiting.pop()
        if node in differing:
            continue
        alike = tests.adjusted[:, node].min() > ALPHA and tree.lies_together(node)
        if node < tree.leaves or (alike and not (tree.members[node] & taken).any()):
            found.append(node)
        else:
            waiting += tree.joins[node - tree.leaves].tolist()
    size = tests.members.sum(0)
    return tuple(sorted((node for node in found if size[node]), key=lambda node: (-size[node], node)))


def headings(kinds: KindTree, tests: KindTests, differing: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """Return the largest nodes whose members are of two or more kinds that differ in the same way, with these kinds."""
    tree, row, size = kinds.tree, tests.raw.argmin(0), tests.members.sum(0)
    found: dict[int, tuple[int, ...]] = {}
    for node in range(tree.nodes - 1, tree.leaves - 1, -1):
        inside = tuple(kind for kind in differing if tree.members[node][tree.members[kind]].all())
        alike = len(inside) > 1 and len({row[kind] for kind in inside}) == 1
        if not alike or any(set(inside) <= set(one) for one in found.values()):
            continue
        if size[list(inside)].sum() >= COVERED * size[node]:
            found[node] = inside
    return found
