from functools import partial

import numpy as np
import pytest
import torch
from scipy.stats import t
from sklearn.metrics.pairwise import polynomial_kernel as sklearn_kernel

import finc_eval as fe
from finc_eval.measures import mmd as module
from finc_eval.measures.kid import jedi, kid, kid_interval, polynomial_kernel


def drawn(n, shift=0.0, seed=0, dim=12):
    return shift + torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


def by_definition(x, y):
    kernel = lambda a, b: (a.double() @ b.double().T / a.shape[1] + 1) ** 3  # noqa: E731
    n, m = len(x), len(y)
    xx, yy = kernel(x, x).fill_diagonal_(0), kernel(y, y).fill_diagonal_(0)
    return float(xx.sum() / (n * (n - 1)) + yy.sum() / (m * (m - 1)) - 2 * kernel(x, y).mean())


@pytest.mark.parametrize("block", [7, 50, 2048])
def test_all_pairs_give_the_u_statistic_whatever_the_blocks(block, monkeypatch):
    monkeypatch.setattr(module, "KERNEL_BLOCK", block)
    x, y = drawn(50, 0.2), drawn(33, seed=1)
    assert kid_interval(x, y).value == pytest.approx(by_definition(x, y), rel=1e-10)


@pytest.mark.parametrize(("subsets", "block"), [(4, 2048), (9, 2048), (9, 7)], ids=["each", "all pairs", "blocks"])
def test_the_mean_over_subsets_is_that_of_u_statistics_of_the_subsets_drawn(subsets, block, monkeypatch):
    monkeypatch.setattr(module, "KERNEL_BLOCK", block)
    x, y = drawn(50, 0.2), drawn(33, seed=1)
    draw, values = np.random.RandomState(5), []
    for _ in range(subsets):
        left, right = (draw.choice(n, 20, replace=False) for n in (50, 33))
        values.append(by_definition(x[left], y[right]))
    found = kid(x, y, subsets=subsets, subset_size=20, seed=5)
    assert (found.mean, found.std) == pytest.approx((np.mean(values), np.std(values)), rel=1e-10)


def test_its_jackknife_is_the_one_that_leaves_samples_out():
    x, y = drawn(20, 0.2), drawn(15, seed=1)
    variance = 0.0
    for rows, value in ((x, lambda left: by_definition(x[left], y)), (y, lambda left: by_definition(x, y[left]))):
        n = len(rows)
        without = [value(torch.arange(n) != i) for i in range(n)]
        variance += (n - 1) * np.var(without)
    assert kid_interval(x, y).standard_error == pytest.approx(variance**0.5, rel=1e-9)


def test_it_is_unbiased_and_its_error_is_the_spread_over_draws():
    # E k(x, x') of a law against itself cancels, so KID of two sets of one law is zero on average.
    same = [kid_interval(drawn(60, seed=2 * i), drawn(40, seed=2 * i + 1)) for i in range(200)]
    values = np.array([one.value for one in same])
    assert abs(values.mean()) < 3 * values.std() / 200**0.5
    assert sum(one.low <= 0 <= one.high for one in same) >= 185
    unlike = [kid_interval(drawn(60, 0.5, seed=2 * i), drawn(40, seed=2 * i + 1)) for i in range(200)]
    values = np.array([one.value for one in unlike])
    assert np.mean([one.standard_error for one in unlike]) == pytest.approx(values.std(), rel=0.2)


def test_an_interval_is_that_of_students_t_as_few_samples_know_their_error_poorly():
    found = kid_interval(drawn(50, 0.2), drawn(33, seed=1))
    half = (found.high - found.value) / found.standard_error
    assert t.isf(0.025, 50 + 33 - 2) < half < t.isf(0.025, 32)  # by Welch and Satterthwaite
    assert found.value - found.low == pytest.approx(found.high - found.value)


def test_the_kernel_is_the_cube_with_gamma_one_over_d():
    x = torch.tensor([[1.0, 2.0]]).double()
    assert float(polynomial_kernel(x, 2 * x)) == pytest.approx((10 / 2 + 1) ** 3)


@pytest.mark.parametrize(("degree", "gamma", "coef"), [(3, None, 1.0), (2, 0.3, 0.0), (1, 1.0, 5.0)])
def test_degree_gamma_and_coef_are_those_of_scikit_learn(degree, gamma, coef):
    x, y = drawn(50, 0.2).numpy(), drawn(33, seed=1).numpy()
    kernel = partial(sklearn_kernel, degree=degree, gamma=gamma, coef0=coef)
    xx, yy, xy = (kernel(a.astype(float), b.astype(float)) for a, b in ((x, x), (y, y), (x, y)))
    expected = (xx.sum() - xx.trace()) / (50 * 49) + (yy.sum() - yy.trace()) / (33 * 32) - 2 * xy.mean()
    assert kid_interval(x, y, degree=degree, gamma=gamma, coef=coef).value == pytest.approx(expected, rel=1e-6)
    found = fe.metrics.kid(x, y, degree=degree, gamma=gamma, coef=coef)
    assert found.value == pytest.approx(expected, rel=1e-6)
    assert ("degree" in str(found["kid_mean"].signature)) == (degree != 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 0}, "degree must be a whole number of at least 1, got 0"),
        ({"gamma": -1}, "gamma must be .*, got -1"),
        ({"coef": -1}, "coef must be a finite number of at least 0, got -1"),
        ({"gama": 1}, r"kid has no parameter 'gama', did you mean gamma\?|kid has no parameter 'gama'"),
    ],
)
def test_parameters_of_kid_are_checked(options, message):
    with pytest.raises(fe.UsageError, match=message):
        fe.metrics.kid(drawn(50), drawn(33), **options)


def test_sets_of_one_subset_have_no_deviation_over_subsets():
    rows = drawn(1001).numpy()
    for n, names in ((1000, ["kid_mean"]), (1001, ["kid_mean", "kid_std"])):
        assert [one.key for one in fe.metrics(rows[:n], rows[:n] + 1, "kid").scores] == names


def test_jedi_is_a_hundred_times_the_biased_mmd_of_scikit_learns_square_kernel():
    rng = np.random.default_rng(3)
    x, y = (one.astype(np.float32).astype(float) for one in (rng.normal(0.3, 1, (40, 7)), rng.gamma(2, 0.5, (55, 7))))
    xx, yy, xy = (sklearn_kernel(a, b, degree=2, coef0=0) for a, b in ((x, x), (y, y), (x, y)))
    assert jedi(x, y) == pytest.approx(100 * (xx.mean() + yy.mean() - 2 * xy.mean()), rel=1e-9)
    moments = x.T @ x / len(x) - y.T @ y / len(y)
    assert jedi(x, y) == pytest.approx(100 * (moments**2).sum() / 7**2, rel=1e-9)
    assert jedi(x, -x) == pytest.approx(0, abs=1e-9)  # it does not see means
