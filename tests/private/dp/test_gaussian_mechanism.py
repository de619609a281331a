"""Gaussian differential privacy: calibration, composition, ceilings, and the noise that keeps the promise."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
import torch
from scipy.stats import kstest, norm

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.record import plain
from finc_eval.private.dp.gaussian_mechanism import GRID_BITS, add_gaussian_noise, secure_normal
from finc_eval.private.dp.guarantee import Guarantee, ceilings, compose, epsilon_of, log_delta, mu_of, remaining

GOLDEN = {
    (1, 1e-5): 3.7306316348,
    (0.1, 1e-5): 30.7495661320,
    (0.3, 1e-5): 11.2380444645,
    (3, 1e-5): 1.3905934567,
    (8, 1e-5): 0.6002290722,
    (1, 1e-6): 4.2246788893,
}


@pytest.mark.parametrize(("promise", "sigma"), GOLDEN.items())
def test_noise_is_calibrated_exactly(promise, sigma):
    assert 1 / mu_of(*promise) == pytest.approx(sigma, abs=1e-10)


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1, 10, 300])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
def test_conversions_undo_each_other(epsilon, delta):
    mu = mu_of(epsilon, delta)
    assert exp(log_delta(mu, epsilon)) == pytest.approx(delta, rel=1e-9)
    assert epsilon_of(mu, delta) == pytest.approx(epsilon, rel=1e-9)


def test_an_epsilon_of_zero_is_enough_where_delta_alone_covers_it():
    assert epsilon_of(1e-6, 1e-5) == 0.0


def test_delta_is_the_integral_of_the_excess_over_the_privacy_loss():
    mu, epsilon = 0.8, 1.3
    x = np.linspace(-12, 12, 400_001)
    excess = np.clip(norm.pdf(x, mu) - np.exp(epsilon) * norm.pdf(x), 0, None)
    assert exp(log_delta(mu, epsilon)) == pytest.approx(np.trapezoid(excess, x), rel=1e-6)


def test_ten_releases_compose_as_the_numerical_accountant_says():
    assert epsilon_of(compose([1 / 4] * 10), 1e-5) == pytest.approx(3.341409469, abs=1e-9)


def test_what_remains_composes_with_what_was_spent_to_the_budget():
    assert compose([remaining(0.5, 0.3), 0.3]) == pytest.approx(0.5)
    assert remaining(0.3, 0.5) == 0.0


def test_conversions_agree_with_another_library():
    accounting = pytest.importorskip(
        "dp_accounting", reason="needs the package dp-accounting (pip install dp-accounting)"
    )
    theirs = accounting.gaussian_mechanism.get_sigma_gaussian
    assert 1 / mu_of(0.7, 1e-7) == pytest.approx(theirs(0.7, 1e-7), rel=1e-8)


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [(1, (0.575, 0.107, 0.0198, 0.0024)), (3, (0.694, 0.281, 0.054, 0.0089)), (8, (0.881, 0.595, 0.254, 0.077))],
)
def test_ceilings_have_the_known_values(epsilon, expected):
    found = ceilings(mu_of(epsilon, 1e-5))
    values = (found.auc, found.advantage, found.tpr_at_1_percent, found.tpr_at_01_percent)
    np.testing.assert_allclose(values, expected, rtol=0.01)


def test_the_best_attack_reaches_the_ceilings_and_no_more():
    mu = mu_of(3, 1e-5)
    out, member = secure_normal((400_000,)), secure_normal((400_000,)) + mu
    ranks = torch.cat([out, member]).argsort().argsort()[len(out) :].double() + 1
    auc = float((ranks.sum() - len(member) * (len(member) + 1) / 2) / len(member) / len(out))
    most = ceilings(mu)
    assert auc == pytest.approx(most.auc, abs=4e-3)
    threshold = torch.quantile(out, 0.99)
    assert float((member > threshold).double().mean()) == pytest.approx(most.tpr_at_1_percent, abs=3e-3)


def test_the_noise_is_normal_with_independent_signs_and_never_the_same():
    z = secure_normal((200_000,))
    assert kstest(z.numpy(), "norm").pvalue > 1e-6
    assert abs(float(torch.corrcoef(torch.stack([z[:-1], z[1:]]))[0, 1])) < 5 / len(z) ** 0.5
    assert not torch.equal(z[:100], secure_normal((100,)))


def test_noise_does_not_come_from_any_seedable_generator():
    torch.manual_seed(0)
    np.random.seed(0)
    first = secure_normal((50,))
    torch.manual_seed(0)
    np.random.seed(0)
    assert not torch.equal(first, secure_normal((50,)))


def test_a_release_has_the_noise_it_promises_and_lies_on_a_grid():
    noisy = add_gaussian_noise(torch.full((100_000,), 7.0), 0.3)
    assert float(noisy.mean()) == pytest.approx(7, abs=5 * 0.3 / len(noisy) ** 0.5)
    assert float(noisy.std()) == pytest.approx(0.3, rel=0.02)
    steps = noisy / 2.0 ** (-2 - GRID_BITS)
    assert torch.equal(steps, steps.round())


def test_a_statistic_that_is_not_finite_is_never_released():
    with pytest.raises(DataError, match="holds NaN or infinity"):
        add_gaussian_noise(torch.tensor([1.0, float("nan")]), 1.0)


def test_a_guarantee_says_what_it_means():
    promise = Guarantee.of(1, 1e-5)
    assert promise.noise(2**0.5 / 7000) == pytest.approx(2**0.5 / 7000 * GOLDEN[1, 1e-5], rel=1e-9)
    assert "AUC ≤ 0.575" in str(promise) and "replace adjacency" in str(promise)
    assert plain(promise)["ceilings"]["advantage"] == pytest.approx(0.107, abs=5e-4)
    assert epsilon_of(promise.mu, 1e-5) == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mu_of(0, 1e-5), "epsilon must be a positive number, got 0"),
        (lambda: mu_of(float("nan"), 1e-5), "epsilon must be a positive number, got nan"),
        (lambda: mu_of(1, 0), "delta must lie between 0 and 1, got 0"),
        (lambda: mu_of(1e9, 1e-5), "epsilon 1e\\+09 protects nothing"),
        (lambda: epsilon_of(0, 1e-5), "mu must be a positive number, got 0"),
        (lambda: Guarantee.of(1, 1e-5, "replaced"), "adjacency must be one of replace, zero-out, got 'replaced'"),
        (lambda: Guarantee.of(1, 1e-5).noise(0), "sensitivity must be a positive number, got 0"),
    ],
)
def test_what_is_out_of_range_is_refused_in_a_sentence(call, words):
    with pytest.raises(UsageError, match=words):
        call()


def test_the_recipe_of_dp_hps_code_for_an_epsilon_of_1_costs_less_by_exact_accounting():
    """ε is split 80/20 and δ halved; each part is calibrated by Rényi privacy, converted with log(1/δ)/(α − 1)."""
    size = 2 * log(2 / 1e-5)
    by_renyi = [sqrt(size + 2 * part) - sqrt(size) for part in (0.8, 0.2)]  # μ with μ²/2 + μ√(2 ln 1/δ) = ε
    assert epsilon_of(compose(by_renyi), 1e-5) == pytest.approx(0.585, abs=0.002)
    assert epsilon_of(compose(by_renyi) / sqrt(2), 1e-5) == pytest.approx(0.401, abs=0.002)
