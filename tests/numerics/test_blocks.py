"""Differences within blocks: exact where all exchanges are tried, in weights that unlike blocks need, and valid."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from finc_eval.numerics import blocks
from finc_eval.numerics.blocks import Blocked, WithinBlocks
from finc_eval.numerics.exchanges import step_down


def blocked(sizes, is_whole=False):
    """Samples of sets of these sizes in each block, shape (B, s), one set after the other."""
    sizes = np.asarray(sizes)
    block = np.concatenate([np.repeat(np.arange(len(sizes)), one) for one in sizes.T])
    return Blocked(block, np.repeat(np.arange(sizes.shape[1]), sizes.sum(0)), is_whole)


def test_all_exchanges_of_few_pairs_are_tried_and_give_the_binomial_p_value():
    pairs = blocked(np.ones((8, 2), int))
    cells = np.r_[np.ones(8, int), np.zeros(8, int)]  # all eight of the first set are of the kind
    found = WithinBlocks.of(pairs, cells, np.eye(2, dtype=bool))
    assert found.is_exact
    assert len(found.drawn) == 2**8
    np.testing.assert_allclose(found.difference, [[-1.0, 1.0]])
    assert found.p_value()[0] == pytest.approx(2 / 2**8)
    assert step_down(found.z.ravel(), found.drawn[:, 0], is_exact=True).max() == pytest.approx(2 / 2**8)


def test_shares_of_unlike_blocks_are_weighted_as_cochran_mantel_and_haenszel_do():
    sizes = np.array([[1, 3], [2, 2], [5, 1], [4, 4], [2, 1], [1, 1]])
    rng = np.random.default_rng(0)
    one = blocked(sizes)
    cells = rng.integers(0, 3, len(one.block))
    found = WithinBlocks.of(one, cells, np.eye(3, dtype=bool))
    weights = sizes.prod(1) / sizes.sum(1)
    expected = [
        sum(w * np.mean(cells[(one.block == b) & (one.owner == s)] == 1) for b, w in enumerate(weights / weights.sum()))
        for s in (0, 1)
    ]
    np.testing.assert_allclose(found.shares[:, 1], expected)
    np.testing.assert_allclose(found.difference[0, 1], expected[0] - expected[1])
    np.testing.assert_allclose(found.shares.sum(1), 1)


def test_exchanges_have_the_variance_that_is_computed():
    sizes = np.random.default_rng(1).integers(1, 6, (60, 2))
    one = blocked(sizes)
    cells = (np.random.default_rng(2).random(len(one.block)) < 0.3).astype(int)
    found = WithinBlocks.of(one, cells, np.eye(2, dtype=bool))
    np.testing.assert_allclose(found.drawn[:, 0, 1].std(), 1, atol=0.06)
    assert abs(found.drawn[:, 0, 1].mean()) < 0.08


@pytest.mark.by_turns(2)
@pytest.mark.parametrize(
    ("sizes", "is_whole", "runs"),
    [
        ((4, 4), False, 20),
        ((3, 3), True, 30),
        pytest.param((3, 3), True, 300, marks=pytest.mark.long),
        *(pytest.param(sizes, False, 300, marks=pytest.mark.long) for sizes in ((1, 1), (1, 5), (2, 2, 2), (4, 4))),
    ],
)
def test_sets_of_one_law_within_their_blocks_differ_as_rarely_as_promised(sizes, is_whole, runs):
    """Prompts decide nearly all; as many false families as chance has of 5 %, in 300 runs 28 at most."""
    rng, false, overall = np.random.default_rng(3), 0, 0
    one = blocked([sizes] * 40, is_whole)
    for seed in range(runs):
        laws = rng.dirichlet(np.full(6, 0.2), 40)
        cells = np.array([rng.choice(6, p=laws[block]) for block in one.block])
        found = WithinBlocks.of(one, cells, np.eye(6, dtype=bool), seed)
        false += bool(step_down(found.z.ravel(), found.drawn.reshape(len(found.drawn), -1)).min() <= 0.05)
        overall += bool(found.p_value()[0] <= 0.05)
    most = stats.binom.ppf(0.999, runs, 0.05)
    assert max(false, overall) <= most


@pytest.mark.long
def test_intervals_hold_the_difference_of_the_same_prompts():
    rng, missed, runs = np.random.default_rng(4), 0, 200
    one = blocked([[4, 4]] * 60)
    for seed in range(runs):
        laws = rng.dirichlet(np.full(4, 0.3), (60, 2))
        cells = np.array(
            [rng.choice(4, p=laws[block, owner]) for block, owner in zip(one.block, one.owner, strict=True)]
        )
        low, high = WithinBlocks.of(one, cells, np.eye(4, dtype=bool), seed).intervals(0.95)
        truth = (laws[:, 0] - laws[:, 1]).mean(0)
        missed += int(((truth < low[0]) | (truth > high[0])).sum())
    assert missed <= stats.binom.ppf(0.999, 4 * runs, 0.05)


def test_samples_of_a_block_that_hang_together_are_exchanged_as_a_whole():
    sizes = np.full((7, 2), 3)
    cells = np.repeat([*(1, 1, 1, 1, 1, 1, 1), *(0, 0, 0, 0, 0, 0, 0)], 3)
    alone, together = (
        WithinBlocks.of(blocked(sizes, is_whole), cells, np.eye(2, dtype=bool)).p_value()[0]
        for is_whole in (False, True)
    )
    assert together == pytest.approx(2 / 2**7)
    assert alone < together


def test_step_down_counts_all_exchanges_of_larger_statistics():
    drawn = np.array(list(product((-1.0, 1.0), repeat=3)), np.float32) @ np.diag([3, 2, 1]).astype(np.float32)
    found = step_down(np.array([3.0, 2.0, 0.5]), drawn, is_exact=True)
    np.testing.assert_allclose(found, [1, 1, 1])
    assert step_down(np.array([9.0, 2.0, 0.5]), drawn)[0] == pytest.approx(1 / 9)


def difference_in(block, cells, pairs):
    """Difference of the shares of kind 1 of both sets in a block."""
    first, second = (cells[(pairs.block == block) & (pairs.owner == owner)] for owner in (0, 1))
    return (first == 1).mean() - (second == 1).mean()


def test_the_variance_of_pairs_is_that_of_their_differences_and_of_one_block_under_exchanges():
    pairs, cells = blocked(np.ones((9, 2), int)), np.random.default_rng(2).integers(0, 3, 18)
    found = WithinBlocks.of(pairs, cells, np.eye(3, dtype=bool))
    d = np.array([difference_in(block, cells, pairs) for block in range(9)])
    np.testing.assert_allclose(found.variance[0, 1], d.var(ddof=1) / 9 + (d**2).max() / 81)
    np.testing.assert_allclose(found.null[0, 1], (d**2).sum() / 81)
    assert found.samples == pytest.approx(9) and found._units == pytest.approx(9)


def test_the_variance_of_independent_samples_is_that_within_their_blocks():
    sizes = np.array([[2, 3], [4, 2], [3, 3]])
    one, cells = blocked(sizes), np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1])
    found = WithinBlocks.of(one, cells, np.eye(2, dtype=bool))
    weights = sizes.prod(1) / sizes.sum(1) / (sizes.prod(1) / sizes.sum(1)).sum()
    within, exchanged = [], []
    for block in range(3):
        labels = (cells == 1)[one.block == block].astype(float)
        parts = [(cells == 1)[(one.block == block) & (one.owner == owner)].astype(float) for owner in (0, 1)]
        within.append(sum(part.var(ddof=1) / len(part) for part in parts))
        n = len(parts[0])
        changes = [
            labels[list(chosen)].mean() - np.delete(labels, list(chosen)).mean()
            for chosen in combinations(range(len(labels)), n)
        ]
        exchanged.append(np.var(changes))
    np.testing.assert_allclose(found.null[0, 1], weights**2 @ exchanged)
    np.testing.assert_allclose(found.variance[0, 1], weights**2 @ within + (weights**2 * exchanged).max())
    assert found.samples == pytest.approx(1 / (weights**2 / sizes.min(1)).sum())


def test_each_of_three_sets_is_compared_with_all_others_together():
    sizes = np.array([[2, 3, 4], [5, 2, 2]])
    one, cells = blocked(sizes), np.random.default_rng(4).integers(0, 2, 18)
    found = WithinBlocks.of(one, cells, np.eye(2, dtype=bool))
    weights = 1 / (1 / sizes).sum(1)
    weights /= weights.sum()
    for own in range(3):
        difference = within = 0.0
        for block in range(2):
            parts = [(cells == 1)[(one.block == block) & (one.owner == each)].astype(float) for each in range(3)]
            rest = np.concatenate([part for each, part in enumerate(parts) if each != own])
            others = [part for each, part in enumerate(parts) if each != own]
            error = sum(len(part) * part.var(ddof=1) for part in others) / len(rest) ** 2
            difference += weights[block] * (parts[own].mean() - rest.mean())
            within += weights[block] ** 2 * (parts[own].var(ddof=1) / len(parts[own]) + error)
        np.testing.assert_allclose(found.difference[own, 1], difference)
        np.testing.assert_allclose(one.within_variances(cells, 2, np.eye(2))[own, 1], within)


def within(difference, variance, units, drawn=((1.0,),), is_exact=False):
    """The same result for one kind of two sets, of which all but these numbers does not matter."""
    one = np.array([[difference]])
    values = np.array(drawn, np.float32)[:, :, None]
    return WithinBlocks(np.full((2, 1), 0.5), one, one * 0 + variance, one * 0 + 1, values, is_exact, units, units)


@pytest.mark.parametrize("n", [1, 30, 300])
def test_a_kind_without_samples_may_have_as_many_as_the_exact_interval_of_no_member_allows(n):
    low, high = within(0.0, 0.0, n).intervals(0.9)
    expected = stats.binomtest(0, n).proportion_ci(0.9, "exact").high
    assert (low.item(), high.item()) == pytest.approx((-expected, expected))


def test_intervals_are_normal_for_many_samples_and_end_at_one():
    low, high = within(0.2, 0.03**2, 1e9).intervals(0.95)
    assert (low.item(), high.item()) == pytest.approx((0.2 - 1.96 * 0.03, 0.2 + 1.96 * 0.03), abs=1e-5)
    for value in (-0.9, 0.9):
        low, high = within(value, 0.2**2, 1e9).intervals(0.95)
        assert max(abs(low.item()), abs(high.item())) == 1 and low < value < high


def test_twice_as_many_blocks_have_half_the_variance_and_twice_the_samples():
    one = within(0.2, 0.04, 30)
    more = one.times(2)
    assert (more.variance.item(), more.null.item(), more.samples, more._units) == (0.02, 0.5, 60, 60)
    assert more.difference == one.difference


def test_a_kind_that_is_detectable_is_found_in_four_of_five_sets_of_pairs():
    drawn = np.linspace(-3, 3, 1001)[:, None]
    critical = np.quantile(np.abs(drawn), 0.95)
    found = within(0.0, 0.1, 40, drawn).detectable(0.05)
    count = int(np.floor(critical**2)) + 1  # m pairs of one sign have z = √m
    assert stats.binom.sf(count - 1, 40, found) == pytest.approx(0.8)
    assert within(0.0, 0.1, 8, drawn).detectable(0.05) == 1
    assert within(0.0, 0.1, 9, drawn).detectable(0.05) < 1
    # Of several kinds, the largest difference of each exchange decides.
    more = replace(within(0.0, 0.1, 40), drawn=np.stack([drawn, drawn[::-1] / 2], 2))
    assert more.detectable(0.05) == found


@pytest.mark.parametrize("seed", range(6))
def test_the_p_value_of_all_kinds_is_that_of_an_enumeration_of_both_statistics(seed):
    pairs = blocked(np.ones((7, 2), int))
    cells = np.random.default_rng(seed).choice(4, 14, p=(0.55, 0.25, 0.1, 0.1))
    cells[7:][cells[:7] == 1] = 0  # so that one kind differs
    found = WithinBlocks.of(pairs, cells, np.eye(4, dtype=bool))
    first, second = (np.eye(4)[cells[pairs.owner == owner]] for owner in (0, 1))
    d, share = (first - second) / 7, (first.mean(0) + second.mean(0)) / 2
    squares = (np.array(list(product((1, -1), repeat=7))) @ d) ** 2 / np.maximum((d**2).sum(0), 1e-300)
    both = np.stack([squares @ (1 - share), squares.max(1)])
    ranks = (both[:, None, :] >= both[:, :, None] - 1e-4).mean(2).min(0)
    assert found.p_value()[0] == pytest.approx((ranks <= ranks[0] + 1e-9).mean())


def test_a_block_of_two_samples_counts_next_to_a_block_of_many():
    one = blocked([[1, 1], [100_000, 100_000]], is_whole=True)
    cells = np.zeros(len(one.block), int)
    cells[0] = 1
    found = WithinBlocks.of(one, cells, np.eye(2, dtype=bool))
    assert found.difference[0, 1] == pytest.approx(0.5 / (0.5 + 50_000)) and abs(found.z).min() == pytest.approx(1)


@pytest.mark.parametrize("entries", [1, 60 * 700, 1 << 24])
def test_exchanges_are_as_many_however_few_are_held_at_once(entries, monkeypatch):
    monkeypatch.setattr(blocks, "MAX_ENTRIES", entries)
    monkeypatch.setattr(blocks, "EXCHANGES", 1999 if entries > 1 else 19)
    one, cells = blocked([[1, 1], [2, 1]] * 12), np.tile([0, 1, 1, 0, 0], 12)
    found = WithinBlocks.of(one, cells, np.eye(2, dtype=bool))
    assert len(found.drawn) == blocks.EXCHANGES
