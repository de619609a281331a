"""Differences within blocks: exact where all exchanges are tried, in weights that unlike blocks need, and valid."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

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


@pytest.mark.parametrize(
    ("sizes", "is_whole", "runs"),
    [
        ((4, 4), False, 30),
        ((3, 3), True, 50),
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
@pytest.mark.parametrize("runs", [30, pytest.param(200, marks=pytest.mark.long)])
def test_intervals_hold_the_difference_of_the_same_prompts(runs):
    rng, missed = np.random.default_rng(4), 0
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
