"""Estimates of models against one reference: without bias, with the right errors, and what their errors share."""

import numpy as np
import pytest
import torch
from scipy.linalg import sqrtm
from scipy.stats import norm

from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.estimates.error_source import GEN, unit_influences
from finc_eval.estimates.estimate import units_of
from finc_eval.leaderboards.ranks import joint_covariance, model_estimate
from finc_eval.leaderboards.shares import ShareRule, estimate_unmatched, share_estimates
from finc_eval.measures.frechet import frechet_interval
from finc_eval.measures.gaussians.frechet_estimate import FrechetSet, estimate_frechet
from finc_eval.measures.kid import polynomial_kernel
from finc_eval.measures.mmd import estimate_mmd, kernel_sums
from finc_eval.partitions.tests import EffectiveCounts

KINDS = 30
REF = 1 / np.arange(1, KINDS + 1)
REF /= REF.sum()
LACKING = np.where(np.arange(KINDS) % 5 == 1, 0.1 * REF, REF)
LACKING /= LACKING.sum()
MISSING, NOVEL, LESS, MORE = (ShareRule(of_ref, factor) for factor in (2.0, 1.0) for of_ref in (True, False))


def expected(rule, law, ref, choosing):
    """The number that is estimated, by its formula."""
    a, b = (-rule.factor, 1) if rule.of_ref else (1, -rule.factor)
    excess = a * law + b * ref
    error = np.sqrt(a**2 * law * (1 - law) / choosing[0] + b**2 * ref * (1 - ref) / choosing[1])
    return float((excess * norm.cdf(excess / error - 1)).sum())


@pytest.mark.one_of_each
@pytest.mark.parametrize("rule", [MISSING, NOVEL, LESS, MORE])
def test_shares_have_no_bias_at_any_size_and_covariances_that_hold(rule):
    rng, found, covariances = np.random.default_rng(0), [], []
    for _ in range(400):
        ref = rng.multinomial(3000, REF).astype(float)
        models = [rng.multinomial(n, law).astype(float) for n, law in ((1000, LACKING), (4000, LACKING), (1000, REF))]
        estimates = share_estimates(rule, models, ref)
        found.append([one.value for one in estimates])
        covariances.append(joint_covariance(estimates))
    truth = [expected(rule, law, REF, (500, 1500)) for law in (LACKING, LACKING, REF)]
    values, covariance = np.array(found), np.mean(covariances, 0)
    assert np.abs(values.mean(0) - truth).max() < 0.005
    for a, b in ((0, 1), (0, 2), (1, 2)):
        error = np.sqrt(covariance[a, a] + covariance[b, b] - 2 * covariance[a, b])
        assert error > 0.93 * np.std(values[:, a] - values[:, b])
    if rule is not NOVEL:
        assert covariance[0, 1] == pytest.approx(np.cov(values.T)[0, 1], rel=0.3)


def test_a_model_that_makes_nothing_of_a_kind_misses_about_its_share():
    ref, model = np.array([100.0, 300, 600]), np.array([0.0, 350, 650])
    (found,) = share_estimates(MISSING, [model], ref)
    assert found.value == pytest.approx(0.1, abs=0.005)
    low, high = found.interval
    assert low < 0.1 < high
    (same,) = share_estimates(MISSING, [ref], ref)
    assert same.value < 0.001


@pytest.mark.long
@pytest.mark.by_turns(2)
@pytest.mark.parametrize(
    "sizes, draws", [((300, 300, 600), 40), pytest.param((2000, 500, 1500), 100, marks=pytest.mark.long)]
)
@pytest.mark.parametrize(
    "first, second", [*(pytest.param(law, law, marks=pytest.mark.long) for law in (REF, LACKING)), (LACKING, REF)]
)
def test_the_error_of_a_difference_of_two_models_is_not_too_small(first, second, sizes, draws):
    rng, gaps, errors = np.random.default_rng(0), [], []
    for _ in range(draws):
        one, other, ref = (
            EffectiveCounts.of(rng.multinomial(n, law)) for n, law in zip(sizes, (first, second, REF), strict=True)
        )
        found = [estimate_unmatched(model, ref, 0) for model in (one, other)]
        covariance = joint_covariance(found)
        gaps.append(found[0].value - found[1].value)
        errors.append(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert np.mean(errors) ** 0.5 > 0.85 * np.std(gaps)


def test_what_two_models_share_makes_their_difference_more_exact():
    ref, model = REF * 500, LACKING * 5000
    one, other = (estimate_unmatched(EffectiveCounts.of(model), EffectiveCounts.of(ref), 0) for _ in range(2))
    covariance = joint_covariance([one, other])
    assert covariance[0, 1] > 0.8 * covariance[0, 0]


def frechet(x, weights_x, y, weights_y):
    """The Fréchet distance of weighted samples, by the textbook formula."""
    mean_x, mean_y = weights_x @ x, weights_y @ y
    one, other = (((w[:, None] * (z - m)).T @ (z - m)) for z, w, m in ((x, weights_x, mean_x), (y, weights_y, mean_y)))
    return float(((mean_x - mean_y) ** 2).sum() + np.trace(one + other - 2 * sqrtm(one @ other).real))


def test_the_error_of_a_frechet_distance_is_that_of_its_derivative():
    """The delta method, with derivatives by finite differences of the textbook formula."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 4)) * [1, 2, 0.5, 1] + 0.3, rng.normal(size=(80, 4))
    sets = [ArrayEmbeddings(one.astype(np.float32)) for one in (x, y)]
    found = estimate_frechet(*map(FrechetSet.of, sets)).as_known()
    even_x, even_y, step = np.full(60, 1 / 60), np.full(80, 1 / 80), 1e-5
    start = frechet(x, even_x, y, even_y)
    of_x = [frechet(x, (1 - step) * even_x + step * one, y, even_y) - start for one in np.eye(60)]
    of_y = np.array([frechet(x, even_x, y, (1 - step) * even_y + step * one) - start for one in np.eye(80)])
    assert found.variance_of(GEN) == pytest.approx(np.square(of_x).sum() / step**2 / 60**2, rel=0.1)
    assert found.source("ref").parts == pytest.approx(of_y / step / 80, rel=0.1, abs=0.003)


def test_a_frechet_distance_is_that_of_evaluate_without_its_bias():
    rng = np.random.default_rng(0)
    x, y = (
        ArrayEmbeddings(rng.normal(size=(n, 6)).astype(np.float32) * spread) for n, spread in ((300, 1), (400, 1.2))
    )
    wanted = frechet_interval(x, y)
    found = estimate_frechet(*map(FrechetSet.of, (x, y))).as_known()
    assert found.value == pytest.approx(wanted.corrected, rel=1e-9)
    assert found.standard_error == pytest.approx(wanted.standard_error, rel=0.4)


def test_influence_on_kid_gives_the_standard_error_of_the_jackknife():
    rng = np.random.default_rng(0)
    x, y = (ArrayEmbeddings(rng.normal(size=(n, 5)).astype(np.float32)) for n in (150, 200))
    sums = kernel_sums(x, y, polynomial_kernel)
    found = estimate_mmd(sums, x, y).as_known()
    assert found.standard_error == pytest.approx(sums.standard_error(), rel=0.03)


def test_errors_are_shared_through_the_reference_alone():
    one = model_estimate(1.0, 0.5, np.array([1.0, 0.0]))
    other = model_estimate(2.0, 0.2, np.array([0.5, 0.5]))
    apart = model_estimate(3.0, 0.7)
    wanted = [[1.5, 0.0, 0.5], [0.0, 0.7, 0.0], [0.5, 0.0, 0.7]]
    assert joint_covariance([one, apart, other]) == pytest.approx(np.array(wanted))


def test_samples_of_a_group_count_as_one_unit():
    rows, own = torch.randn(40, 3), np.linspace(-1, 1, 40)
    once, twice = ArrayEmbeddings(rows), ArrayEmbeddings(rows.repeat(2, 1))
    grouped = twice.with_groups(np.tile(np.arange(40, dtype=np.uint64), 2), "pair")
    alone = unit_influences(own, units_of(once))
    for rows_twice, variance in ((grouped, alone @ alone), (twice, alone @ alone / 2)):
        doubled = unit_influences(np.tile(own, 2), units_of(rows_twice))
        assert doubled @ doubled == pytest.approx(variance)
