"""Kinds that differ are as large as they are one thing, do not overlap, and are found where the sets differ alone."""

from types import SimpleNamespace

import numpy as np
import pytest
from _blobs import CENTERS, blobs
from _pages import a_kind, named
from test_tree import FIVE, random_tree

import finc_eval as fe
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.partitions import answer
from finc_eval.partitions.answer import Answer, Choice, choose, divide, headings, name_heading, node_tallies, rest_of
from finc_eval.partitions.counts import Counts, tally_sets
from finc_eval.partitions.kind_tree import KindTree, Tree
from finc_eval.partitions.tests import test_kinds as tests_of

TOGETHER = Tree(FIVE.joins, np.array([9.0, 3.0, 2.0, 1.5]))
"""All nodes of the tree lie together."""


def answered(tree, gen, ref):
    """Tests of a tree whose leaves have so many samples in each set; its chosen kinds, the others, and the headings."""

    def counted(members):
        return Counts.of(tree.leaves, np.repeat(np.arange(tree.leaves), members).astype(np.int32))

    tests = tests_of(node_tallies(tree, {"gen": counted(gen), "ref": counted(ref)}))
    found = Choice.of(tree, tests)
    return tests, found.differing, found.others, found.headings


# FIVE: 5 = {0, 1}, 6 = {0, 1, 2}, 7 = {3, 4}, 8 = all; 8 stands apart.
CASES = {
    "nothing": (FIVE, [99] * 5, [101] * 5, [], {}),
    "halves of one ratio that lie together are one": (FIVE, [60, 60, 100, 140, 140], [10, 10, 100, 190, 190], [5], {}),
    "halves pay for their choice, so that they do not win by being two": (
        FIVE,
        [30, 30, 100, 400, 400],
        [10, 10, 100, 420, 420],
        [5],
        {},
    ),
    "a blend of unlike ratios is divided": (FIVE, [40, 100, 100, 480, 480], [0, 100, 100, 500, 500], [0], {}),
    "the ratios of a blend differ, and it has the same sum": (
        FIVE,
        [80, 0, 100, 110, 110],
        [0, 80, 100, 110, 110],
        [0, 1],
        {},
    ),
    "three pieces of one kind": (FIVE, [40, 40, 40, 190, 190], [0, 0, 0, 250, 250], [6], {}),
    "what most samples of both sets are is not told beside the kind that one lacks": (
        FIVE,
        [40, 0, 10, 475, 475],
        [0, 0, 10, 495, 495],
        [5],
        {},
    ),
    "a kind of one leaf": (FIVE, [100, 100, 40, 480, 480], [100, 100, 0, 500, 500], [2], {}),
    "halves of one ratio that lie apart stay two": (
        Tree(FIVE.joins, np.array([0.4, 3.0, 2.0, 0.4])),
        [60, 60, 100, 140, 140],
        [0, 0, 100, 200, 200],
        [0, 1],
        {5: (0, 1)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_kinds_are_chosen_by_hand(name):
    tree, gen, ref, expected, heads = CASES[name]
    _, differing, _, found = answered(tree, gen, ref)
    assert sorted(differing) == expected
    assert {node: tuple(sorted(inside)) for node, inside in found.items()} == heads


def test_kinds_of_unlike_ratios_that_all_have_more_are_under_one_heading():
    """A heading holds all samples that have the cause: 0 and 1 are in gen alone; of 1 the other set has some."""
    _, differing, others, found = answered(FIVE, [200, 200, 100, 150, 150], [0, 90, 100, 305, 305])
    assert {0, 1} <= set(differing) and 5 in found and set(found[5]) == {0, 1}
    assert 2 in others


@pytest.mark.parametrize("seed", range(12))
def test_every_sample_is_of_one_listed_kind(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(30, seed, density=rng.choice([0.05, 0.3, 1]))
    gen, ref = rng.integers(0, 60, 30), rng.integers(0, 60, 30)
    ref[::3] = gen[::3]
    tests, differing, others, found = answered(tree, gen, ref)
    listed = [*differing, *others]
    held = tree.members[listed].sum(0)
    assert (held <= 1).all() and (held[gen + ref > 0] == 1).all()
    assert tests.members[:, listed].sum(1).tolist() == [gen.sum(), ref.sum()]
    assert (tests.adjusted[:, list(differing)].min(0) <= 0.05).all()
    for node, inside in found.items():
        assert len(inside) > 1 and (tree.members[list(inside)].sum(0) <= tree.members[node]).all()
        assert len(set(tests.raw[:, list(inside)].argmin(0))) == 1


@pytest.mark.parametrize("seed", range(4))
def test_every_node_is_tested_in_one_family(seed):
    """Node i is column i: its counts are those of its leaves, and its p-value is that of the counts."""
    rng = np.random.default_rng(seed)
    tree, gen, ref = random_tree(12, seed), rng.integers(0, 40, 12), rng.integers(0, 40, 12)
    tests = answered(tree, gen, ref)[0]
    assert (tests.members == np.stack([gen, ref]) @ tree.members.T).all()
    level = np.stack([tree.members @ gen, gen.sum() - tree.members @ gen], 1)
    other = np.stack([tree.members @ ref, ref.sum() - tree.members @ ref], 1)
    for node in range(tree.nodes):
        cells = [np.repeat([0, 1], one[node]).astype(np.int32) for one in (level, other)]
        alone = tests_of(tally_sets({label: Counts.of(2, one) for label, one in zip("ab", cells, strict=True)}))
        assert tests.raw[:, node] == pytest.approx(alone.raw[:, 0])
    assert (tests.adjusted >= tests.raw).all()


def test_tests_that_spend_a_part_of_the_error_have_larger_p_values():
    sets = {
        label: Counts.of(5, np.repeat(np.arange(5), many).astype(np.int32))
        for label, many in (("gen", [30, 9, 9, 9, 9]), ("ref", [9, 9, 9, 9, 9]))
    }
    whole, part = (tests_of(node_tallies(FIVE, sets), part=part).adjusted for part in (1.0, 0.5))
    assert part == pytest.approx(np.minimum(2 * whole, 1))


@pytest.mark.one_of_each
@pytest.mark.parametrize("seed", range(4))
def test_a_separate_blob_of_two_percent_is_found_and_nothing_else(seed):
    found = fe.kinds({"gen": blobs(1000, 10 + seed, novel=20), "ref": blobs(1000, 50 + seed)})
    (kind,) = found.significant()
    assert (kind.shares["gen"].count, kind.shares["ref"].count) == pytest.approx((20, 0), abs=2)
    assert kind.set_with_most == "gen" and found.headings == ()


def planted(seed, n=1000, **many):
    return {"gen": blobs(n, 200 + seed, **many), "ref": blobs(n, 300 + seed)}


def members(found, kind, rows):
    return found.assign(rows) == found.kinds.index(kind)


@pytest.mark.one_of_each
@pytest.mark.parametrize("seed", range(3))
def test_two_blobs_of_one_ratio_that_lie_apart_are_two_kinds(seed):
    sets = planted(seed, novel=60, other=60)
    found = fe.kinds(sets)
    gained = [kind for kind in found.significant() if kind.share_difference > 0]
    assert len(gained) == 2
    of_each = [set(np.flatnonzero(members(found, kind, sets["gen"])) // 60) for kind in gained]
    assert sorted(map(sorted, of_each)) == [[0], [1]]


@pytest.mark.one_of_each
@pytest.mark.parametrize("seed", range(3))
def test_two_blobs_that_are_linked_are_one_kind(seed):
    """Between the blobs, samples link them."""
    sets, rng = planted(seed), np.random.default_rng(seed)
    way = rng.uniform(0, 1, (180, 1))
    sets["gen"][:180] = (1 - way) * CENTERS[20] + way * (CENTERS[20] + 0.25 * CENTERS[21]) + rng.normal(size=(180, 80))
    gained = [kind for kind in fe.kinds(sets).significant() if kind.share_difference > 0]
    assert len(gained) == 1
    assert gained[0].shares["gen"].count == pytest.approx(180, abs=5)


@pytest.mark.long
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("n, m", [(500, 500), (60, 1500)])
def test_sets_of_one_law_seldom_have_a_kind_that_differs(n, m):
    false = sum(bool(fe.kinds({"a": blobs(n, run), "b": blobs(m, 1000 + run)}).significant()) for run in range(30))
    assert false <= 5


@pytest.mark.long
def test_windows_of_videos_of_one_law_seldom_have_a_kind_that_differs():
    """Each video has eight windows that are nearly alike: as independent samples, nearly every run has a kind."""

    def windows(seed):
        rows = np.repeat(blobs(60, seed), 8, 0)
        return rows + 0.1 * np.random.default_rng(seed).normal(size=rows.shape).astype(np.float32)

    names = [f"{place // 8}.mp4#{place % 8}" for place in range(480)]
    sets = [{"a": windows(run), "b": windows(1000 + run)} for run in range(20)]
    told = [{label: fe.EmbeddingSet(rows, names) for label, rows in both.items()} for both in sets]
    assert sum(bool(fe.kinds(both).significant()) for both in told) <= 4
    assert sum(bool(fe.kinds(both).significant()) for both in sets[:5]) >= 2


@pytest.mark.one_of_each("rows", "columns")
@pytest.mark.parametrize("rows", [20, 25])
@pytest.mark.parametrize("columns", [1, 2, 80])
def test_small_sets_have_kinds_that_add_up(rows, columns):
    found = fe.kinds({"a": blobs(rows, 1)[:, :columns], "b": blobs(rows, 2)[:, :columns]})
    assert [share.sum() for share in found.shares.values()] == pytest.approx([1, 1])


@pytest.mark.parametrize(
    "rows",
    [np.ones((60, 8)), np.zeros((60, 8)), np.repeat(np.eye(8), 10, 0)],
    ids=["constant", "zeros", "eight points"],
)
def test_repeated_rows_do_not_differ(rows):
    found = fe.kinds({"a": rows.astype(np.float32), "b": rows[::-1].astype(np.float32)})
    assert found.difference == 0 and not found.significant()
    assert len(found.kinds) == len(np.unique(rows, axis=0))


def test_later_sets_are_counted_by_a_tree_that_was_made_before():
    kinds = KindTree.fit(as_embeddings(blobs(800, 1)).rows_at(np.arange(800)))
    sets = {label: as_embeddings(blobs(500, seed)) for seed, label in enumerate("ab")}
    answer = divide(sets, kinds=kinds)
    assert answer.kinds is kinds
    leaves = kinds.assign(blobs(500, 0))[0]
    assert (answer.counted["a"].counts.members == np.bincount(leaves, minlength=kinds.tree.leaves)).all()


RED, GRAY = ("red 0", "red 1"), ("gray 0",)


@pytest.mark.parametrize(
    ("kinds", "others", "found"),
    [
        (RED, GRAY, ("red", True)),
        (RED, ("red 2",), (None, False)),  # the other kinds are red, too
        (("red 0", "blue 1"), GRAY, (None, False)),  # two causes
        (("", ""), GRAY, (None, True)),  # kinds without a name that lie together
    ],
)
def test_a_heading_is_of_kinds_that_are_one_thing(kinds, others, found):
    inside = [
        named(a_kind(word, 0.1, 0.0), word, ("label", word)) if word else a_kind("k1", 0.1, 0.0) for word in kinds
    ]
    less = [named(a_kind(word, 0.0, 0.1), word, ("label", word)) for word in others]
    assert name_heading(a_kind("k9", 0.2, 0.0), inside, [*inside, *less]) == found


def labelled(parts, seed, names=None):
    """A set with a number of samples around each of 8 far centers, each with the label of its center."""
    rng = np.random.default_rng(seed)
    centers = 20 * np.random.default_rng(0).normal(size=(8, 6))
    where = np.repeat(np.arange(8), parts)
    rows = (centers[where] + rng.normal(size=(len(where), 6))).astype(np.float32)
    return fe.EmbeddingSet(rows, metadata={"label": [(names or "aabbcdef")[place] for place in where]})


def test_a_kind_is_told_to_be_a_part_of_its_label_and_kinds_of_one_label_have_one_row():
    """The label "a" lies at two centers, of which gen has more; of "b", at two others, it has less at one alone."""
    gen = labelled([150, 140, 60, 0, 60, 60, 60, 60], 1)
    ref = labelled([30, 40, 90, 90, 85, 85, 85, 85], 2)
    found = fe.kinds({"gen": gen, "ref": ref})
    (heading,) = found.headings
    assert heading.name == "a" and len(heading.children) == 2 and "+" in heading.id
    assert heading.p_value == min(kind.p_value for kind in found.kinds if kind.id in heading.children)
    assert heading.shares["gen"].share == pytest.approx(290 / 590, abs=0.01)
    inside = [kind for kind in found.kinds if kind.id in heading.children]
    for kind in inside:
        assert kind.part_of.name == "a" and kind.part_of.shares == pytest.approx({"gen": 290 / 590, "ref": 70 / 590})
        low, high = kind.part_of.seen_from("gen")[1]
        assert 0.25 < low < 220 / 590 < high < 0.5
    (lost,) = [kind for kind in found.significant() if kind.name and kind.name.startswith("mostly b")]
    assert lost.part_of.shares == pytest.approx({"gen": 60 / 590, "ref": 180 / 590})
    others = [kind for kind in found.kinds if kind.name is None or kind.name[7] not in "ab"]
    assert all(kind.part_of is None for kind in others)


def test_kinds_that_share_a_word_of_their_labels_have_one_heading_and_two_causes_have_none():
    names = ["red 0", "red 1", "red 2", "gray 0", "gray 1", "blue 0", "gray 2", "gray 3"]
    gen = labelled([60, 60, 60, 60, 60, 90, 60, 60], 1, names)
    ref = labelled([0, 0, 0, 90, 90, 20, 150, 150], 2, names)
    found = fe.kinds({"gen": gen, "ref": ref})
    heads = {heading.name: len(heading.children) for heading in found.headings}
    assert heads["red"] == 3 and not any(" and " in name for name in heads)
    blue = next(kind for kind in found.significant() if kind.name and "blue" in kind.name)
    assert not any(blue.id in heading.children for heading in found.headings)


def test_two_lost_classes_are_not_one_cause_because_a_word_is_common_to_them_and_to_many_others():
    names = ["wild cat", "wild dog", "wild ox", "wild ass", "wild hog", "wild bee", "hen", "cow"]
    gen = labelled([0, 0, 100, 100, 100, 100, 100, 100], 1, names)
    ref = labelled([60, 60, 80, 80, 80, 80, 80, 80], 2, names)
    lost = [kind for kind in fe.kinds({"gen": gen, "ref": ref}).headings if kind.side == "most in ref"]
    assert not any(kind.name == "wild" for kind in lost)


def of_p_values(p, members=None, adjusted=None):
    """Tests of nodes by p-values of "the first set has more"; negative numbers are those of "has less"."""
    p = np.array(p)
    raw = np.stack([np.where(p > 0, p, 1), np.where(p < 0, -p, 1)])
    adjusted = raw if adjusted is None else np.where(raw < 1, adjusted, 1)
    members = np.ones(p.shape) if members is None else np.array(members)
    return SimpleNamespace(raw=raw, adjusted=adjusted, members=members[None], shares=np.full(raw.shape, 0.1))


def test_kinds_that_differ_come_by_their_adjusted_p_values_then_by_their_own():
    tests = of_p_values(
        [0.001, 0.002, -0.003, 0.004, -0.0005, 1, 1, 1, 1], adjusted=[0.04, 0.03, 0.03, 0.05, 0.051, 1, 1, 1, 1]
    )
    assert choose(FIVE, tests) == (1, 2, 0, 3)


def test_what_differs_but_is_not_chosen_is_not_among_the_rest_as_a_whole():
    assert sorted(rest_of(FIVE, of_p_values([1.0] * 9), (2,))) == [5, 7]
    for p in (0.01, -0.01):
        assert sorted(rest_of(FIVE, of_p_values([1, 1, 1, 1, 1, p, 1, 1, 1]), (2,))) == [0, 1, 7]
    sizes = [3, 3, 1, 0, 0, 6, 7, 9, 16]
    assert rest_of(FIVE, of_p_values([1.0] * 9, sizes), (2,)) == (7, 5)
    assert rest_of(FIVE, of_p_values([1, 1, 1, 1, 1, 0.01, 1, 1, 1], sizes), (2,)) == (7, 0, 1)


@pytest.mark.parametrize(("rest", "expected"), [(0, {8: (0, 1, 2)}), (5, {8: (0, 1, 2)}), (6, {6: (0, 1, 2)})])
def test_a_heading_is_the_largest_node_of_which_95_percent_are_kinds_that_differ_alike(rest, expected):
    sizes = [30, 30, 35, rest, 0, 60, 95, rest, 95 + rest]
    assert headings(FIVE, of_p_values([0.01] * 9, sizes), (0, 1, 2)) == expected
    mixed = of_p_values([0.01, 0.01, -0.01, *[0.01] * 6], sizes)
    assert headings(FIVE, mixed, (0, 1, 2)) == {5: (0, 1)}


def test_a_part_of_the_tree_has_the_name_of_the_listed_kind_with_most_of_its_leaves(monkeypatch):
    monkeypatch.setattr(answer, "MAIN_LEVEL", 2)
    own = SimpleNamespace(cells=np.array([0, 4, 2, 3]), kinds=SimpleNamespace(tree=FIVE))
    listed = [SimpleNamespace(name="cats", id="k1"), SimpleNamespace(name=None, id="k2")]
    named = lambda *place: Answer.cells_of_names(own, listed, SimpleNamespace(place=np.array(place)))  # noqa: E731
    cells, names = named(0, 0, 1, -1, -1)
    assert cells.tolist() == [0, 1, 0, 1] and names == ["cats (k1)", "kind 2"]
    assert named(1, 0, 1, -1, 0)[1] == ["samples (k2)", "cats (k1)"]
