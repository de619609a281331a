"""Scores of looks are standard normal and independent if nothing changes; small cases are enumerated."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from finc_eval.monitoring.exchange import BINS, DRAWS, bins_of, score_of_ranks, score_of_shares


def bag_of(values):
    return np.bincount(bins_of(np.asarray(values, float)), minlength=BINS)


def test_a_share_has_the_law_of_all_parts_of_the_bag():
    """All ways to take 4 of 9 samples, 3 of which have it: the p-value of each count, ties at random."""
    has = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0])
    counts = np.array([has[list(part)].sum() for part in combinations(range(9), 4)])
    rng = np.random.default_rng(0)
    for count in range(4):
        look, before = np.array([[count, 4]]), np.array([[3 - count, 5]])
        p = stats.norm.cdf([score_of_shares(look, before, rng)[0] for _ in range(500)])
        below, own = (counts < count).mean(), (counts == count).mean()
        assert below - 1e-9 <= p.min() and p.max() <= below + own + 1e-9
        assert abs(p.mean() - below - own / 2) < 0.05 * own


def test_a_mean_rank_has_the_law_of_all_parts_of_the_bag():
    values = np.arange(10.0) ** 2
    look = np.array([3, 7, 9])
    sums = np.array([sum(place * 16 // 10 for place in part) for part in combinations(range(10), 3)])
    own = sum(int(place) * 16 // 10 for place in look)
    rng, rest = np.random.default_rng(0), np.delete(values, look)
    p = stats.norm.cdf([score_of_ranks(bins_of(values[look]), bag_of(rest), rng) for _ in range(300)])
    below, equal = (sums < own).mean(), (sums == own).mean()
    error = 4 / np.sqrt(DRAWS)
    assert below - error <= p.min() and p.max() <= below + equal + error
    assert abs(p.mean() - below - equal / 2) < 0.02


def check_normal_and_independent(scores):
    """Scores of runs by look, (runs, looks): the luck of a small reference would show in their sums."""
    assert stats.kstest(scores.ravel(), "norm").pvalue > 0.001
    assert stats.kstest(scores.sum(1) / scores.shape[1] ** 0.5, "norm").pvalue > 0.001


def test_scores_of_unchanged_shares_are_standard_normal_and_independent():
    rng, runs = np.random.default_rng(1), 3000
    bag = np.column_stack([rng.binomial(40, 0.1, runs), np.full(runs, 40)])
    found = []
    for _ in range(12):
        look = np.column_stack([rng.binomial(16, 0.1, runs), np.full(runs, 16)])
        found.append(score_of_shares(look, bag, rng))
        bag = bag + look
    known = np.isfinite(found).all(0)  # without runs of a bag in which no sample has it at first
    assert known.mean() > 0.9
    check_normal_and_independent(np.array(found).T[known])


@pytest.mark.long
def test_scores_of_unchanged_ranks_are_standard_normal_and_independent():
    """With heavy ties."""
    rng, found = np.random.default_rng(1), np.empty((200, 8))
    for one in range(len(found)):
        bag = bag_of(rng.poisson(1.5, 40))
        for look in range(found.shape[1]):
            values = bins_of(rng.poisson(1.5, 16).astype(float))
            found[one, look] = score_of_ranks(values, bag, rng)
            bag = bag + np.bincount(values, minlength=BINS)
    check_normal_and_independent(found)


def test_what_no_sample_or_every_sample_has_says_nothing():
    rng = np.random.default_rng(0)
    look, before = np.array([[0, 8], [8, 8], [2, 8]]), np.array([[0, 40], [40, 40], [0, 0]])
    assert np.isnan(score_of_shares(look, before, rng)).all()
    assert np.isnan(score_of_ranks(bins_of(np.ones(8)), bag_of(np.ones(40)), rng))
    assert np.isnan(score_of_ranks(bins_of(np.arange(8.0)), np.zeros(BINS, np.int64), rng))


def test_bins_keep_the_order_and_are_narrow():
    values = np.sort(np.r_[-np.geomspace(1e-4, 1e3, 500), 0, np.geomspace(1e-4, 1e3, 500)])
    bins = bins_of(values)
    assert (np.diff(bins) >= 0).all() and bins.min() >= 0 and bins.max() < BINS
    assert bins_of(np.array([1.0]))[0] != bins_of(np.array([1.006]))[0]
