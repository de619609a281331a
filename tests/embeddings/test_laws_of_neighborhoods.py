"""Laws of neighborhoods: exact distances whatever is computed at once, and what copies make of neighbors."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.repeats import are_drawn_alike, few_groups
from finc_eval.embeddings.search import distance_blocks
from finc_eval.embeddings.search.distance_blocks import blocks, blocks_within, true_pairs
from finc_eval.embeddings.search.near_repeats import (
    FAR,
    GAP,
    NEAR,
    STANDARD_ERRORS,
    TOLD_APART,
    _by_gap,
    _by_rank,
    near_repeats,
)
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.numerics.hash_counts import HashCounts


def rows(n, seed, dim=5, scale=3.0):
    return np.float32(10 + scale * np.random.default_rng(seed).normal(size=(n, dim)))


def squares(x, y):
    return ((x[:, None].astype(float) - y[None]) ** 2).sum(2)


@pytest.fixture(params=[7, 4096])
def block_rows(request, monkeypatch):
    monkeypatch.setattr(distance_blocks, "BLOCK_ROWS", request.param)


@pytest.mark.usefixtures("block_rows")
def test_blocks_bound_and_give_all_squared_distances():
    x, y = rows(20, 0), rows(33, 1)
    x[3] = y[5]
    wanted, seen = squares(x, y), np.zeros((20, 33), int)
    for block in blocks(as_embeddings(x), as_embeddings(y), "cpu"):
        here = wanted[block.rows, block.columns]
        lower = block.lower.numpy() * block.unit**2
        slack = block.slack(block.x.norms[:, None] + block.y.norms).numpy() * block.unit**2
        assert (lower <= here + 1e-12).all() and (here <= lower + slack + 1e-12).all()
        assert slack.max() < 1e-2 * wanted.max()
        i, j = torch.from_numpy(np.indices(here.shape).reshape(2, -1))
        assert block.exact(i, j).numpy() == pytest.approx(here.ravel(), rel=1e-12)
        assert block.approximate(slice(1, 5), 1e-4).numpy() == pytest.approx(here[1:5], rel=1e-4, abs=1e-12)
        seen[block.rows, block.columns] += 1
        assert block.transposed.lower.shape == here.T.shape
    assert (seen == 1).all()


@pytest.mark.usefixtures("block_rows")
def test_blocks_of_one_set_have_each_pair_once_and_no_sample_with_itself():
    x = rows(25, 0)
    wanted, seen = squares(x, x), np.zeros((25, 25), int)
    for block in blocks_within(as_embeddings(x), "cpu"):
        finite = np.isfinite(block.lower.numpy())
        own = np.equal.outer(np.arange(25)[block.rows], np.arange(25)[block.columns])
        assert (finite == ~own).all()
        i, j = block.within(column_radii=np.full(finite.shape[1], 4.0))
        near = np.zeros(finite.shape, bool)
        near[i, j] = True
        assert (near == ((wanted[block.rows, block.columns] < 4.0) & ~own)).all()
        seen[block.rows, block.columns] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("closed", [False, True])
def test_radii_are_of_rows_or_of_columns_and_closed_or_open(closed):
    x, y = np.float32([[0, 0], [3, 4], [6, 8]]), np.float32([[0, 0], [3, 0]])
    (block,) = blocks(as_embeddings(x), as_embeddings(y), "cpu")
    wanted = squares(x, y)
    for radii, axis in ((np.array([9.0, 25.0, 90.0]), "row_radii"), (np.array([25.0, 16.0]), "column_radii")):
        limits = radii[:, None] if axis == "row_radii" else radii
        inside = wanted <= limits if closed else wanted < limits
        assert sorted(zip(*(one.tolist() for one in block.within(**{axis: radii}, closed=closed)), strict=True)) == [
            *map(tuple, np.argwhere(inside).tolist())
        ]


def test_pairs_of_a_mask_are_those_of_numpy_whatever_its_layout():
    mask = np.random.default_rng(0).random((6, 11)) < 0.3
    for one in (torch.from_numpy(mask), torch.from_numpy(mask.T.copy()).T):
        assert sorted(zip(*(part.tolist() for part in true_pairs(one)), strict=True)) == [
            *map(tuple, np.argwhere(mask).tolist())
        ]


@pytest.mark.usefixtures("block_rows")
@pytest.mark.parametrize("k", [1, 4, 33])
def test_nearest_samples_are_those_of_all_distances(k):
    x, y = rows(20, 0), rows(33, 1)
    found = nearest(as_embeddings(x), as_embeddings(y), k, device="cpu")
    order = squares(x, y).argsort(1, kind="stable")[:, :k]
    assert (found.indices == order).all()
    assert found.distances == pytest.approx(np.sqrt(np.take_along_axis(squares(x, y), order, 1)), rel=1e-6)
    far = nearest(as_embeddings(x), as_embeddings(x), min(k, 19), exclude_self=True, device="cpu")
    assert (far.indices != np.arange(20)[:, None]).all() and far.distances.min() > 0


Q = 400
SPACINGS = np.ones((Q, FAR))
SCALE = np.ones(Q)


def gapped(first, own_before, count=Q):
    """Spacings with a gap after the neighbor `first`, and whether neighbors up to it are of the own set."""
    spacings = SPACINGS.copy()
    spacings[:count, first] = 1.01 * GAP
    own = np.random.default_rng(0).random((Q, FAR + 1)) < 0.5
    own[:count, : first + 1] = own_before
    return spacings, own


def test_neighbors_of_the_own_set_before_a_gap_are_copies_beyond_chance():
    for first in (0, 1, NEAR - 1):
        spacings, own = gapped(first, True, 100)
        assert _by_gap(spacings, SCALE, own, 0.5) == pytest.approx(0.25)
        spacings[:100, first] = 0.99 * GAP
        assert _by_gap(spacings, SCALE, own, 0.5) == 0
    spacings, own = gapped(1, True)
    own[:200, 0] = False  # half of the gaps have other samples before them: 1/4 is chance
    assert _by_gap(spacings, SCALE, own, 0.5) == pytest.approx((0.5 - 0.25) / 0.75)
    error = np.sqrt(0.25 * 0.75 / Q)
    for beyond, found in ((1.2, True), (0.8, False)):
        alone = 0.25 + beyond * STANDARD_ERRORS * error
        own[:, 0] = np.arange(Q) < round(alone * Q)
        assert (_by_gap(spacings, SCALE, own, 0.5) > 0) == found
    near = 1.02 * TOLD_APART  # nearly all neighbors are of the own set: what is alone is a copy
    assert _by_gap(*(spacings, SCALE, own), near**0.5) == pytest.approx(own[:, :2].all(1).mean())
    assert _by_gap(SPACINGS, SCALE, own, 0.5) == 0


def test_first_neighbors_of_the_own_set_are_copies_where_they_are_nearer_than_others_let_expect():
    spacings, own = SPACINGS.copy(), np.zeros((Q, FAR + 1), bool)
    own[:, 1::2] = True
    far = own[:, NEAR:].mean()
    own[:, 0] = np.arange(Q) < 300
    spacings[:, 0] = 2.0
    surely = np.ones(own.shape, bool)
    assert _by_rank(spacings, SCALE, own, surely) == pytest.approx((0.75 - far) / (1 - far))
    assert _by_rank(spacings, 4 * SCALE, own, surely) == 0  # not nearer than the others let expect
    assert _by_rank(spacings, SCALE, own, ~surely) == 0
    error = np.sqrt(max(far * (1 - far), 0.25) / Q)
    for beyond, found in ((1.2, True), (0.8, False)):
        own[:, 0] = np.arange(Q) < round((far + beyond * STANDARD_ERRORS * error) * Q)
        assert (_by_rank(spacings, SCALE, own, surely) > 0) == found
    own[:, 0] = np.arange(Q) < 300
    for more, found in ((1.2, True), (0.8, False)):
        spacings[:, 0] = 1 + more * STANDARD_ERRORS / 300**0.5
        assert (_by_rank(spacings, SCALE, own, surely) > 0) == found


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_the_share_of_near_copies_is_that_which_was_planted(share):
    sets = {label: rows(200, seed, 6) for seed, label in enumerate(("gen", "ref"))}
    count = round(share * 100)
    sets["gen"][:count] = sets["gen"][100 : 100 + count] + np.float32(0.01)
    found = near_repeats({label: fe.EmbeddingSet(one) for label, one in sets.items()}, ["gen"])
    assert found["gen"] == pytest.approx(2 * count / 200, abs=0.08)
    few = {label: fe.EmbeddingSet(one[:FAR]) for label, one in sets.items()}
    assert near_repeats(few, ["gen"]) == {}
    enough = {"gen": few["gen"], "ref": fe.EmbeddingSet(sets["ref"][: FAR + 1])}
    assert set(near_repeats(enough, ["gen"])) == {"gen"} and near_repeats(sets | few, []) == {}
    assert near_repeats({"gen": fe.EmbeddingSet(sets["gen"]), "ref": fe.EmbeddingSet(sets["ref"][:1])}, ["gen"]) == {}


def test_sets_of_a_law_of_few_values_are_drawn_alike_and_copies_are_not():
    rng = np.random.default_rng(0)
    own, other = (rng.integers(0, 40, 300) for _ in range(2))

    def counts(values):
        return HashCounts.of(values.astype(np.uint64), most=None)

    assert are_drawn_alike(counts(own), counts(other))
    assert are_drawn_alike(counts(np.arange(9)), counts(other))
    assert not are_drawn_alike(counts(own), counts(other + 25))  # of 40 values, 15 in common
    assert are_drawn_alike(counts(own), counts(other + 8))
    assert not are_drawn_alike(counts(own), counts(np.arange(300)))


@pytest.mark.parametrize(("n", "size", "said"), [(80, 2.0, False), (79, 2.0, True), (30, 1.0, False), (9, 2.0, True)])
def test_groups_are_few_below_forty_independent_samples(n, size, said):
    found = few_groups("gen", n, size, "video")
    assert bool(found) == said
    if said:
        assert f"equivalent to {n / size:.0f} independent" in found[0]
