"""The bias and the error of Fréchet distances: from distances without a block, and from the influence of samples."""

import numpy as np
import pytest
import torch

from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.estimates.estimate import difference
from finc_eval.estimates.of_statistic import BLOCKS
from finc_eval.measures.frechet import distance_of_gaussians, frechet_interval
from finc_eval.measures.gaussians.frechet_estimate import FrechetSet, estimate_frechet
from finc_eval.measures.gaussians.gaussian import GaussianStatistics, blocks_of_embeddings
from finc_eval.numerics.inference import jackknife_bias


def drawn(n, dim, seed, gain=1.0, shift=0.0):
    rows = np.random.default_rng(seed).normal(size=(n, dim))
    return ArrayEmbeddings((np.arange(1, dim + 1) ** -0.5 * (shift + gain * rows)).astype(np.float32))


@pytest.mark.parametrize(("n", "dim", "part"), [(300, 12, 1e-6), (40, 60, 1e-6), (420, 300, 0.15)])
def test_the_bias_is_that_of_ten_distances_without_a_block(n, dim, part):
    """Computed again from nothing; in many dimensions three exact distances are enough."""
    x, y = drawn(n, dim, 0, 1.1, 0.1), drawn(n + 20, dim, 1)
    of_x, of_y = (blocks_of_embeddings(one, BLOCKS) for one in (x, y))
    whole = [one.statistics() for one in (of_x, of_y)]
    without = (
        [distance_of_gaussians(of_x.statistics(k), whole[1]).value for k in range(BLOCKS)],
        [distance_of_gaussians(whole[0], of_y.statistics(k)).value for k in range(BLOCKS)],
    )
    found = frechet_interval(x, y)
    assert found.value == pytest.approx(distance_of_gaussians(*whole).value, rel=1e-8)
    wanted = jackknife_bias(distance_of_gaussians(*whole).value, *without)
    assert found.bias == pytest.approx(wanted, abs=part * found.standard_error)


@pytest.mark.parametrize("group", [4, pytest.param(1, marks=pytest.mark.long)])
def test_the_error_is_the_spread_of_fresh_sets(group):
    def fresh(seed):
        one = drawn(400 // group, 20, seed, 1.2, 0.2)
        rows = ArrayEmbeddings(one.rows_at(np.arange(one.n)).repeat_interleave(group, 0))
        return rows.with_groups(np.arange(400, dtype=np.uint64) // np.uint64(group), "video")

    found = [frechet_interval(fresh(2 * seed), drawn(400, 20, 2 * seed + 1)) for seed in range(25)]
    spread = np.std([one.corrected for one in found])
    assert np.mean([one.standard_error for one in found]) == pytest.approx(spread, rel=0.35)


def test_what_two_distances_share_leaves_their_difference():
    ref, old = FrechetSet.of(drawn(400, 10, 0)), drawn(300, 10, 1, 1.2)
    rows = old.rows_at(np.arange(300))
    new = ArrayEmbeddings(rows + 0.02 * torch.randn(300, 10, generator=torch.Generator().manual_seed(0)))
    estimates = [estimate_frechet(FrechetSet.of(one), ref) for one in (new, old)]
    change = difference(*estimates)
    assert change.value == pytest.approx(estimates[0].value - estimates[1].value)
    assert change.standard_error < 0.2 * estimates[0].standard_error
    assert change.interval[0] < change.value < change.interval[1]
    nothing = difference(estimates[0], estimates[0])
    assert (nothing.standard_error, nothing.interval) == (0, (0, 0))


def test_equal_sets_have_an_interval_although_the_derivative_is_zero():
    x = drawn(300, 8, 0)
    found = frechet_interval(x, x)
    assert (found.value, found.corrected, found.low) == (0, 0, 0)
    assert found.high > 0.001


def test_the_factor_of_a_nearly_singular_covariance_leaves_out_what_is_rounding():
    rows = torch.randn(50, 6, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    rows[:, 5] = rows[:, 0] + 1e-9 * rows[:, 5]
    one = GaussianStatistics(50, rows.mean(0), rows.T.cov(), "the law", "array-6")
    assert len(one.root) == 5 and not one.has_full_rank
    torch.testing.assert_close(one.root.T @ one.root, one.covariance, rtol=0, atol=1e-12)
