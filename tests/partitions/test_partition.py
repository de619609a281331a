"""A partition by k-means: counts of its cells add, and do not depend on portions; its sample treats sets alike."""

import numpy as np
import pytest
import torch
from _blobs import CENTERS, blobs
from _portions import portions_of

import finc_eval as fe
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.partitions.counts import NEAREST, Counts, count, tallied
from finc_eval.partitions.kmeans import kmeans, spread_rows
from finc_eval.partitions.partition import Partition, pooled_sample
from finc_eval.partitions.tests import test_kinds as tests_of


def test_a_level_is_chosen_by_its_number_of_kinds_or_the_next_lower_one():
    partition = Partition.fit(torch.from_numpy(blobs(1000, 1)), (10, 20, 50))
    assert [partition.place_of(kinds) for kinds in (5, 10, 20, 49, 50, 200)] == [0, 0, 1, 1, 2, 2]


def test_false_findings_at_very_unequal_sizes_stay_at_their_level():
    """100 against 3 000 samples: the wrong kinds form around single samples of the small set if it is drawn whole."""
    runs = 40
    false = 0
    for run in range(runs):
        sets = {"a": blobs(60, run), "b": blobs(1500, 1000 + run)}
        one, other = (as_embeddings(rows) for rows in sets.values())
        partition = Partition.fit(pooled_sample([one, other], 800), (20, 50, 100), seed=run)
        tests = tests_of(tallied({"a": count(one, partition).counts, "b": count(other, partition).counts}))
        false += tests.adjusted.min() <= 0.05
    assert false <= 6


def test_the_sample_that_kinds_are_fitted_to_is_in_proportion_to_the_sets():
    a, b = blobs(300, 1), blobs(2700, 2) + 100
    rows = pooled_sample([as_embeddings(a), as_embeddings(b)], 1000)
    assert 70 < int((rows.mean(1) < 50).sum()) < 130
    assert torch.equal(rows, pooled_sample([as_embeddings(a), as_embeddings(b)], 1000))


def test_counts_of_shards_add():
    rng = np.random.default_rng(0)
    cells, groups = rng.integers(0, 4, (90, 2)), np.repeat(np.arange(30), 3).astype(np.uint64)
    whole = Counts.of((4, 4), cells, groups)
    parts = Counts.of((4, 4), cells[:50], groups[:50]) + Counts.of((4, 4), cells[50:], groups[50:])
    assert parts.n == whole.n == 90
    assert (parts.members(1) == whole.members(1)).all()
    assert parts.tally().effects == pytest.approx(whole.tally().effects)
    with pytest.raises(fe.IncompatibleError, match="group both, or neither"):
        whole + Counts.of((4, 4), cells)


def test_the_nearest_samples_do_not_depend_on_the_portions():
    rows = as_embeddings(blobs(500, 5))
    partition = Partition.fit(pooled_sample([rows]), (20,))
    whole = count(rows, partition, run=fe.Run(device="cpu"))
    with portions_of(64):
        portions = count(rows, partition, run=fe.Run(device="cpu"))
    assert (whole.nearest == portions.nearest).all()
    kinds, squared = partition.assign(blobs(500, 5))
    mine = np.flatnonzero(kinds[:, 0] == 3)
    assert (whole.nearest[3, : len(mine)] == mine[squared[mine, 0].argsort(kind="stable")][:50]).all()


def test_kinds_are_found_without_faiss_too(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    rows = blobs(1000, 1) * 3
    centers = kmeans(rows, 40, 0, torch.device("cpu"))
    nearest = np.sqrt(((CENTERS[:20, None] * 3 - centers) ** 2).sum(-1)).min(1)
    assert centers.shape == (40, 80)
    assert np.median(nearest) < 12  # the clusters' own radius is 3 · √80 = 27


def test_a_kind_that_the_fitted_sample_hardly_holds_is_not_called_detectable():
    counts = {name: Counts.of((2,), np.repeat([[0], [1]], 25_000, 0)) for name in ("a", "b")}
    assert tests_of(tallied(counts)).detectable() == pytest.approx(10.2 / 5000, rel=0.1)


def test_first_centers_that_are_spread_do_not_miss_a_few_samples_far_from_all_others():
    x = blobs(2000, 0)
    x[:20] += 30
    drawn = [spread_rows(x, 30, seed) for seed in range(10)]
    assert all((np.linalg.norm(rows, axis=1) > 100).any() for rows in drawn)
    same = np.ones((5, 3), np.float32)
    assert spread_rows(same, 4, 0).shape == (4, 3)


@pytest.mark.parametrize("together", [64, 1 << 13])
def test_the_samples_nearest_to_a_center_are_kept_whatever_is_sorted_together(together, monkeypatch):
    monkeypatch.setattr("finc_eval.partitions.counts.SORTED_ROWS", together)
    rows = torch.from_numpy(np.random.default_rng(3).normal(size=(700, 4)).astype(np.float32))
    partition = Partition.fit(rows, (4, 8), 0)
    kinds, squared = partition.assign(rows)
    nearest = count(as_embeddings(rows), partition).nearest
    first = 0
    for level, number in enumerate(partition.levels):
        for kind in range(number):
            members = np.flatnonzero(kinds[:, level] == kind)
            expected = members[squared[members, level].argsort(kind="stable")][:NEAREST]
            found = nearest[first + kind]
            assert found[found >= 0].tolist() == expected.tolist()
        first += number
