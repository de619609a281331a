"""Near pairs of two sets, which the looks and the copies of a comparison ask for."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.core.digest import Latest
from finc_eval.naming import near_pairs, repeated
from finc_eval.naming.near_pairs import find_neighbors


def rows(seed, n=60):
    return np.random.default_rng(seed).standard_normal((n, 12)).astype(np.float32)


@pytest.fixture
def searches(monkeypatch):
    """The sizes of the sets among whose samples neighbors are searched, in order."""
    sizes = []

    def search(vectors, *args):
        sizes.append(len(vectors))
        return find_neighbors(vectors, *args)

    monkeypatch.setattr(repeated, "find_neighbors", search)
    return sizes


def test_neighbors_of_the_same_samples_are_searched_once(searches):
    first = fe.compare(rows(710), rows(711), features=20)
    assert searches == [120]
    other = fe.compare(rows(710), rows(712), features=20)
    assert searches == [120, 120], "another reference has other neighbors"
    again = fe.compare(rows(710), rows(711), features=20, seed=1)
    assert searches == [120, 120], "the seed of the exchanges moves no neighbor"
    assert first.findings == again.findings == other.findings == ()


X = rows(720, 130)
X[:20] = X[60:80] + np.float32(1e-3)  # near copies: exchanges are drawn twice
PICTURES = np.random.default_rng(1).integers(0, 256, (120, 16, 16, 3), np.uint8)
PARTS = {"gen": np.arange(60), "ref": np.arange(60)}


def sets_of(x, cut=60, images=None):
    images = {"gen": None, "ref": None} if images is None else {"gen": images[:cut], "ref": images[cut:120]}
    return {
        "gen": fe.EmbeddingSet(x[:cut], images=images["gen"]),
        "ref": fe.EmbeddingSet(x[cut:], images=images["ref"]),
    }


FIRST = {"sets": sets_of(X[:120]), "rows": PARTS, "blocks": None, "seed": 0, "exchanges": 999}
PICTURED = FIRST | {"sets": sets_of(X[:120], images=PICTURES)}
CASES = {
    "another seed": (FIRST, FIRST | {"seed": 1}),
    "fewer exchanges": (FIRST, FIRST | {"exchanges": 700}),
    "sets of other sizes": (
        FIRST,
        FIRST | {"sets": sets_of(X[:120], 50), "rows": {"gen": np.arange(50), "ref": np.arange(70)}},
    ),
    "blocks": (FIRST, FIRST | {"blocks": PARTS}),
    "a larger reference": (FIRST, FIRST | {"sets": sets_of(np.concatenate([X[:120], X[20:30] + np.float32(1e-3)]))}),
    "other embeddings of the same pictures": (PICTURED, FIRST | {"sets": sets_of(rows(721, 120), images=PICTURES)}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_was_counted_before_changes_nothing(case, monkeypatch):
    def count(asked):
        arguments = dict(asked)
        return repeated.pair_rows(
            arguments.pop("sets"), arguments.pop("rows"), arguments.pop("blocks"), **arguments
        ).pairs

    def forget():
        monkeypatch.setattr(repeated, "_NEIGHBORS", Latest())
        monkeypatch.setattr(repeated, "_COUNTED", Latest())

    first, other = CASES[case]
    forget()
    before, after = count(first), count(other)
    forget()
    alone = count(other)
    np.testing.assert_array_equal(after.statistics, alone.statistics)
    np.testing.assert_array_equal(after.near.distances, alone.near.distances)
    assert not np.array_equal(before.statistics, after.statistics)


def test_neighbors_do_not_depend_on_the_parts_in_which_they_are_searched(monkeypatch):
    vectors, units, keys = torch.from_numpy(rows(715)), np.arange(60) // 2, np.arange(60).astype(np.uint64)
    whole = find_neighbors(vectors, units, keys)
    monkeypatch.setattr(near_pairs, "IN_MEMORY", 7 * 60)
    parts = find_neighbors(vectors, units, keys)
    assert np.array_equal(whole.indices, parts.indices)
    np.testing.assert_allclose(whole.distances, parts.distances, rtol=1e-5)
    np.testing.assert_allclose(whole.scale, parts.scale, rtol=1e-5)
    assert not (units[whole.indices] == units[:, None])[np.isfinite(whole.distances)].any()
