"""`HashCounts`: numbers of samples by hash, as a sum over workers, and what two sets share."""

from functools import reduce

import numpy as np
import pytest

from finc_eval.numerics.hash_counts import MOST_HASHES, HashCounts, drawable


def hashes_of(values, seed=0):
    """Even hashes of whole numbers."""
    drawn = np.random.default_rng(seed).integers(0, 2**64, int(values.max()) + 1, dtype=np.uint64, endpoint=False)
    return drawn[values]


def test_the_squared_sizes_of_many_groups_are_an_estimate_without_bias():
    rng, ratios = np.random.default_rng(0), []
    sizes = rng.integers(1, 10, 100_000)
    for _ in range(20):
        hashes = rng.integers(0, 2**64, len(sizes), dtype=np.uint64, endpoint=False)
        halves = [np.minimum(sizes, 4), sizes - np.minimum(sizes, 4)]  # most groups are at two workers
        counts = [HashCounts.of(np.repeat(hashes, half)) for half in halves]
        total = counts[0] + counts[1]
        assert (total.n, len(total.hashes)) == (sizes.sum(), MOST_HASHES)
        ratios.append(total.squared_sizes / (sizes**2).sum())
    assert abs(np.mean(ratios) - 1) < 3 * 0.01 / np.sqrt(20)
    assert np.std(ratios) < 0.01


@pytest.mark.parametrize("values", [50, 20_000])
def test_parts_add_up_in_any_order(values):
    hashes = hashes_of(np.random.default_rng(1).integers(0, values, 30_000))
    whole, parts = HashCounts.of(hashes), [HashCounts.of(part) for part in np.array_split(hashes, 7)]
    for order in (range(7), (3, 0, 6, 2, 5, 1, 4)):
        total = reduce(HashCounts.__add__, [parts[number] for number in order])
        assert total.n == 30_000 and total.is_whole == (values < MOST_HASHES)
        assert np.array_equal(total.hashes, whole.hashes) and np.array_equal(total.counts, whole.counts)
    assert whole.distinct == pytest.approx(len(np.unique(hashes)), rel=0.05)
    assert (HashCounts() + whole).counts.tolist() == whole.counts.tolist()


def test_sets_of_unlike_sizes_are_seen_by_the_same_hashes():
    both, own, others = np.arange(3000), np.arange(3000, 30_000), np.arange(30_000, 33_000)
    large = HashCounts.of(hashes_of(np.concatenate([both, own]), 3))
    small = HashCounts.of(hashes_of(np.concatenate([both, both, others]), 3))
    values, first, second = large.beside(small)
    assert len(values) == len(first) == len(second) and (np.diff(values.astype(float)) > 0).all()
    shared = (first > 0) & (second > 0)
    assert set(second[shared]) == {2} and set(second[~shared]) == {0, 1}
    assert first[shared].sum() / first.sum() == pytest.approx(0.1, abs=0.02)
    assert second[shared].sum() / second.sum() == pytest.approx(2 / 3, abs=0.06)


def test_values_of_too_many_samples_to_draw_are_left_out():
    own, others = np.array([1, 5 * 10**8, 2]), np.array([1, 5 * 10**8, 0])
    assert [counts.tolist() for counts in drawable(own, others)] == [[1, 2], [1, 0]]


def test_a_hash_of_many_samples_leaves_the_numbers_of_others_as_they_are():
    rng, distinct, squared = np.random.default_rng(5), [], []
    for _ in range(20):
        hashes = rng.integers(0, 2**64, 11_401, dtype=np.uint64, endpoint=False)
        hashes[0] = rng.integers(0, 2**60)  # one of those that are counted
        counts = HashCounts.of(np.concatenate([hashes, np.repeat(hashes[:1], 599)]))
        assert counts.n == 12_000 and not counts.is_whole
        distinct.append(counts.distinct)
        squared.append(counts.squared_sizes)
    assert set(distinct) == {11_401} and set(squared) == {600**2 + 11_400}
