"""A tree of kinds: each node has one parent, the most closely linked join first, counts add up at every cut."""

import numpy as np
import pytest

from finc_eval.partitions.counts import Counts
from finc_eval.partitions.kind_tree import Tree

#        8            depth 0
#     6     7         depth 1
#   5  2   3 4        depth 2
#  0 1                depth 3
FIVE = Tree(np.array([[0, 1], [5, 2], [3, 4], [6, 7]]), np.array([9.0, 3.0, 2.0, 0.5]))
ALONE = Tree(np.empty((0, 2), np.int64), np.empty(0))


def random_tree(leaves, seed, density=0.3):
    rng = np.random.default_rng(seed)
    links = rng.exponential(size=(leaves, leaves)) * (rng.random((leaves, leaves)) < density)
    return Tree.of(links + links.T)


@pytest.mark.parametrize("leaves, density", [(1, 1), (2, 1), (2, 0), (7, 0), (30, 0.05), (60, 0.3), (25, 1)])
def test_each_node_has_one_parent_and_is_the_union_of_its_children(leaves, density):
    tree = random_tree(leaves, 0, density)
    assert sorted(tree.joins.ravel()) == list(range(tree.nodes - 1))
    for node, (one, other) in enumerate(tree.joins, tree.leaves):
        assert max(one, other) < node
        assert tree.parents[one] == tree.parents[other] == node
        assert not (tree.members[one] & tree.members[other]).any()
        assert (tree.members[node] == tree.members[one] | tree.members[other]).all()
    assert tree.members[-1].all() and tree.parents[-1] == -1
    assert np.isfinite(tree.closeness).all()


@pytest.mark.parametrize(
    "most, nodes",
    [(0, [8]), (1, [8]), (2, [6, 7]), (3, [3, 4, 6]), (4, [2, 3, 4, 5]), (5, [0, 1, 2, 3, 4]), (9, range(5))],
)
def test_a_cut_takes_the_latest_joins_apart(most, nodes):
    assert FIVE.cut(most).tolist() == list(nodes)


@pytest.mark.parametrize("most", [1, 3, 8, 20, 40, 100])
def test_the_kinds_of_every_cut_hold_each_leaf_once(most):
    tree = random_tree(40, 1)
    nodes = tree.cut(most)
    assert len(nodes) == min(most, 40)
    assert (tree.members[nodes].sum(0) == 1).all()


@pytest.mark.parametrize("tree", [FIVE, ALONE, random_tree(40, 2), random_tree(40, 3, 0.01)])
def test_counts_of_nodes_are_those_of_their_leaves(tree):
    rng = np.random.default_rng(0)
    leaf = rng.integers(0, tree.leaves, 500).astype(np.int32)
    groups = rng.integers(0, 90, 500).astype(np.uint64)
    by_node = Counts.of(tree.leaves, leaf, groups).of_unions(tree.members)
    assert (by_node.members == tree.members @ np.bincount(leaf, minlength=tree.leaves)).all()
    for node in range(tree.nodes):  # the groups of a node are those of its samples
        held = Counts.of(2, tree.members[node][leaf].astype(np.int32), groups).grouped()
        assert by_node.grouped().seen[node] == pytest.approx(held.seen[1])
        assert by_node.grouped().within[node] == held.within[1]
    for most in (1, 3, 10, 40):
        assert by_node.members[tree.cut(most)].sum() == 500


def test_the_most_closely_linked_for_their_sizes_join_first():
    """Of two equal links, the one between lesser communities is the closer: the larger have more links anyhow."""
    links = np.diag([10.0, 10, 1, 1])
    links[0, 1] = links[1, 0] = links[2, 3] = links[3, 2] = 2
    tree = Tree.of(links)
    assert sorted(tree.joins[0]) == [2, 3] and sorted(tree.joins[1]) == [0, 1]
    assert tree.closeness[0] == pytest.approx(2 * links.sum() / (3 * 3))
    assert tree.closeness[2] == 0
    assert [tree.lies_together(node) for node in (0, 4, 6)] == [True, True, False]


@pytest.mark.parametrize("tree", [FIVE, ALONE, random_tree(40, 4), random_tree(40, 5, 0.01)])
@pytest.mark.parametrize("most", [1, 2, 3, 7, 40, 90])
def test_a_pruned_tree_has_the_nodes_of_the_cut_as_leaves(tree, most):
    kept, small = tree.cut(most), tree.pruned(most)
    assert small.leaves == len(kept) and small.nodes == 2 * len(kept) - 1
    for node in range(small.nodes):
        held = tree.members[kept[small.members[node]]].any(0)
        whole = kept[node] if node < small.leaves else tree.nodes - small.nodes + node
        assert (held == tree.members[whole]).all()


@pytest.mark.parametrize("tree", [FIVE, ALONE, random_tree(9, 6)])
def test_a_further_leaf_stands_apart_from_all_others(tree):
    more = tree.with_another()
    assert more.leaves == tree.leaves + 1
    assert sorted(more.joins.ravel()) == list(range(more.nodes - 1))
    assert more.closeness[-1] == 0 and tree.leaves in more.joins[-1]
    assert (more.members[more.leaves : -1, : tree.leaves] == tree.members[tree.leaves :]).all()
