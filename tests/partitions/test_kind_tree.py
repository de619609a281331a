"""Samples are of the same kinds whatever their order and batches; a damaged tree of kinds is refused."""

import numpy as np
import pytest
import torch
from _blobs import CENTERS, blobs
from _files import forge
from _portions import portions_of

import finc_eval as fe
from finc_eval.core.files.stored import StoredFile, content_of
from finc_eval.core.files.writing import fill_file
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.partitions.counts import count
from finc_eval.partitions.kind_tree import NEIGHBORS, KindTree, communities, shared_neighbors

ROWS = torch.from_numpy(blobs(1200, 1))


@pytest.fixture(scope="module")
def kinds() -> KindTree:
    return KindTree.fit(ROWS)


def test_a_seed_gives_one_tree(kinds):
    assert KindTree.fit(ROWS).digest == kinds.digest
    assert kinds.seed == 0 and KindTree.fit(ROWS, 1).seed == 1


@pytest.mark.parametrize("portion", [7, 5000, *(pytest.param(one, marks=pytest.mark.long) for one in (1, 64))])
def test_the_kinds_of_samples_do_not_depend_on_the_portions(kinds, portion):
    leaves, squared = kinds.assign(ROWS, fe.Run(device="cpu"))
    with portions_of(portion):
        again = KindTree.fit(ROWS, run=fe.Run(device="cpu"))
        other_leaves, other_squared = kinds.assign(ROWS, fe.Run(device="cpu"))
        counted = count(as_embeddings(ROWS), kinds, run=fe.Run(device="cpu"))
    assert again.digest == kinds.digest
    assert (other_leaves == leaves).all() and other_squared == pytest.approx(squared, rel=1e-4, abs=1e-6)
    assert (counted.counts.members == np.bincount(leaves, minlength=kinds.tree.leaves)).all()


def test_the_kinds_of_samples_do_not_depend_on_their_order():
    rows, names, order = (
        blobs(400, 3),
        [f"{place}.png" for place in range(400)],
        np.random.default_rng(0).permutation(400),
    )
    other = blobs(400, 4, novel=40)
    one = fe.kinds({"a": fe.EmbeddingSet(rows, names), "b": other})
    two = fe.kinds({"b": other, "a": fe.EmbeddingSet(rows[order], [names[place] for place in order])})
    assert one.divided.tree.digest == two.divided.tree.digest
    assert [kind.id for kind in one.kinds] == [kind.id for kind in two.kinds]
    assert (one.assign(rows)[order] == two.assign(rows[order])).all()


def test_samples_of_one_blob_are_of_one_kind_of_the_cut(kinds):
    """Its leaves are parts of blobs: of a cut into as many kinds as there are blobs, each is a blob."""
    rng = np.random.default_rng(5)
    fresh = torch.from_numpy((CENTERS[:20].repeat(50, 0) + rng.normal(0, 1, (1000, 80))).astype(np.float32))
    nodes, leaves = kinds.tree.cut(20), kinds.assign(fresh)[0]
    kind = kinds.tree.members[nodes][:, leaves].argmax(0).reshape(20, 50)
    assert np.mean([np.bincount(own).max() for own in kind]) > 47
    assert len({np.bincount(own).argmax() for own in kind}) >= 18


@pytest.mark.parametrize("factor", [1e-20, 1e-3, 7, 1e20])
def test_kinds_are_of_directions_and_not_of_lengths(kinds, factor):
    lengths = factor * torch.from_numpy(np.random.default_rng(0).uniform(0.5, 2, (1200, 1)).astype(np.float32))
    assert (kinds.assign(ROWS * lengths)[0] == kinds.assign(ROWS)[0]).all()


def test_rows_of_few_entries_keep_their_lengths():
    """They are not embeddings: of points on a line, those near 0 are not those near 9."""
    rows = torch.from_numpy(np.repeat([[1.0], [9.0]], 30, 0).astype(np.float32))
    rows += 0.1 * torch.randn(60, 1, generator=torch.Generator().manual_seed(0))
    leaves = KindTree.fit(rows).assign(rows)[0]
    assert not set(leaves[:30]) & set(leaves[30:])


def test_a_sample_far_from_all_fitted_ones_is_told(kinds):
    near, far = kinds.assign(ROWS)[1], kinds.assign(-ROWS)[1]
    assert not kinds.far(near).any() and kinds.far(far).mean() > 0.9


def test_samples_of_another_extractor_are_refused(kinds):
    with pytest.raises(fe.IncompatibleError, match="the kinds divide embeddings of 80 entries, got shape"):
        kinds.assign(ROWS[:, :9])


RNG = np.random.default_rng(0)
DEGENERATE = {
    "constant": np.ones((60, 8)),
    "zeros": np.zeros((60, 8)),
    "eight points": np.repeat(np.eye(8), 20, 0),
    "many constant": np.ones((4000, 3)),
    "one column": RNG.normal(size=(2000, 1)),
    "two columns": RNG.normal(size=(400, 2)),
    "four rows": RNG.normal(size=(4, 5)),
    "one other row": np.concatenate([np.ones((99, 6)), -np.ones((1, 6))]),
    "heavy tails": RNG.standard_cauchy((500, 20)),
    "binary": RNG.integers(0, 2, (900, 6)),
    "wide": RNG.normal(size=(50, 900)),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_any_rows_give_a_tree_that_is_read_back(name, tmp_path):
    rows = torch.from_numpy(DEGENERATE[name].astype(np.float32))
    kinds = KindTree.fit(rows)
    assert kinds.tree.leaves < 600
    assert np.isfinite(kinds.tree.closeness).all() and kinds.prototypes.isfinite().all()
    leaves, squared = kinds.assign(rows)
    assert ((leaves >= 0) & (leaves < kinds.tree.leaves)).all() and not kinds.far(squared).any()
    assert len({tuple(row) for row in rows.numpy()}) > 1 or len(set(leaves)) == 1
    assert read(written(kinds, tmp_path)).digest == kinds.digest


def test_too_few_rows_are_refused():
    with pytest.raises(fe.DataError, match="3 samples cannot be divided into kinds: at least 4 are needed"):
        KindTree.fit(ROWS[:3])


def test_a_sample_that_is_repeated_often_is_a_kind_nearly_of_its_own():
    """Each of its neighbors is a repeat. Of the others, those to whom its repeats are the nearest may be of it."""
    few, many = (
        torch.from_numpy(np.concatenate([np.repeat(blobs(1, 9), repeats, 0), blobs(600, 1)])) for repeats in (20, 300)
    )
    tree = KindTree.fit(many)
    leaves = tree.assign(many)[0]
    assert len(set(leaves[:300])) == 1 and np.sum(leaves[300:] == leaves[0]) < 20
    assert torch.equal(tree.prototypes, KindTree.fit(few).prototypes)  # more repeats leave no fewer kinds to the others


def test_communities_are_of_samples_that_share_neighbors():
    rng = np.random.default_rng(0)
    which = rng.integers(0, 5, 300)
    x = torch.from_numpy((20 * np.eye(5)[which] + rng.normal(size=(300, 5))).astype(np.float32))
    labels, links = communities(x, 0, torch.device("cpu"))
    assert all(len(set(which[labels == label])) == 1 for label in range(len(links)))
    assert links == pytest.approx(links.T)
    same = which[[np.flatnonzero(labels == label)[0] for label in range(len(links))]]
    assert links[same[:, None] != same].sum() == 0
    assert NEIGHBORS < 300 / 5


def test_links_weigh_the_jaccard_index_of_neighbors_and_only_neighbors_are_linked():
    found = shared_neighbors(np.array([[1, 2], [0, 2], [0, 1], [0, 1]])).toarray()
    expected = np.full((4, 4), 1 / 3)
    expected[2, 3] = expected[3, 2] = 0
    assert found == pytest.approx(expected * (1 - np.eye(4)))


def damaged_leaf(_, arrays):
    arrays["kinds/leaf"][3] = len(arrays["kinds/joins"]) + 1


def negative_leaf(_, arrays):
    arrays["kinds/leaf"][3] = -1


def leaf_without_prototype(_, arrays):
    arrays["kinds/leaf"][arrays["kinds/leaf"] == 1] = 0


def joins_of_a_later_node(_, arrays):
    arrays["kinds/joins"][[0, -1]] = arrays["kinds/joins"][[-1, 0]]


def joins_twice(_, arrays):
    arrays["kinds/joins"][0, 0] = arrays["kinds/joins"][0, 1]


def joins_below_zero(_, arrays):
    arrays["kinds/joins"][0, 0] = -1


def joins_too_few(_, arrays):
    arrays["kinds/joins"], arrays["kinds/closeness"] = arrays["kinds/joins"][:-1], arrays["kinds/closeness"][:-1]


def closeness_of_others(_, arrays):
    arrays["kinds/closeness"] = arrays["kinds/closeness"][:-1]


def of_another_type(_, arrays):
    arrays["kinds/joins"] = arrays["kinds/joins"].astype(np.float64)


def of_another_dimension(_, arrays):
    arrays["kinds/axes"] = arrays["kinds/axes"][:-1]


def missing(_, arrays):
    del arrays["kinds/prototypes"]


def without_header(header, _):
    del header["kinds"]


def not_finite(name):
    def change(_, arrays):
        arrays[f"kinds/{name}"].flat[0] = np.nan

    change.__name__ = f"not_finite_{name}"
    return change


def in_header(name, value):
    def change(header, _):
        header["kinds"][name] = value

    change.__name__ = f"{name}_{value}"[:12]
    return change


@pytest.mark.parametrize(
    "change",
    [
        damaged_leaf,
        negative_leaf,
        leaf_without_prototype,
        joins_of_a_later_node,
        joins_twice,
        joins_below_zero,
        joins_too_few,
        closeness_of_others,
        of_another_type,
        of_another_dimension,
        missing,
        without_header,
        *map(not_finite, ("origin", "axes", "prototypes", "closeness")),
        *(in_header("radius", value) for value in ("wide", None, -1.0, 10**400)),
        *(in_header("unit", value) for value in ("x", 0.0, -1.0, 10**400)),
        in_header("seed", "first"),
    ],
    ids=lambda change: change.__name__,
)
def test_a_damaged_tree_is_refused_in_one_sentence(kinds, change, tmp_path):
    forge(written(kinds, tmp_path), change)
    with pytest.raises(fe.DataError, match="damaged"):
        read(tmp_path / "tree.h5")


def written(kinds, folder):
    with fill_file(folder / "tree.h5", "kinds", 1) as file:
        kinds.write(file)
    return folder / "tree.h5"


def read(path):
    with StoredFile(path, "kinds", 1) as file, content_of(path):
        return KindTree.read(file)


@pytest.mark.parametrize("most", [1, 5, 20, 1000])
def test_samples_of_a_pruned_tree_are_of_the_unions_of_those_of_the_whole(kinds, most):
    small = kinds.pruned(most)
    leaves, pruned = kinds.assign(ROWS)[0], small.assign(ROWS)[0]
    assert (pruned == kinds.tree.members[kinds.tree.cut(most)].argmax(0)[leaves]).all()
    assert small.tree.leaves == min(most, kinds.tree.leaves)
