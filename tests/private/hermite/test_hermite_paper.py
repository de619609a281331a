"""What the DP-HP paper (arXiv 2106.05042) says of Hermite and random Fourier features, on numbers of one dimension."""

import math

import numpy as np
import pytest
import torch

from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.private.hermite.coordinate_kernels import CoordinateProduct, CoordinateSum
from finc_eval.private.hermite.hermite import hermite, length_scale_of

RHO = 1 / 3  # of proposition B.1, where a standard normal distribution makes the features orthogonal


@pytest.fixture(scope="module")
def figure_1():
    """100 numbers of N(0, 1) and 100 of N(1, 1), and the median heuristic: the setting of the paper's Fig. 1."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(100, 1, generator=generator)
    y = torch.randn(100, 1, generator=generator) + 1
    return x, y, float(torch.pdist(torch.cat([x, y])).median())


def errors(phi, x, y, length_scale):
    off = phi(x) @ phi(y).T - gaussian_kernel(x, y, length_scale)
    return float(off.abs().mean()), float(off.norm())


@pytest.mark.parametrize("norm", [0, 1], ids=["mean absolute error, as its caption says", "Frobenius, as its code has"])
def test_figure_1_order_2_nearly_equals_500_fourier_features_and_3_beats_them(figure_1, norm):
    """Mean absolute errors .028 and .023, where the figure has both in one place: its code draws order i + 1 over i."""
    x, y, length_scale = figure_1
    fourier = np.median(
        [
            errors(RandomFourierFeatures(1, 250, sigma=length_scale, seed=seed, orthogonal=False), x, y, length_scale)
            for seed in range(20)
        ],
        0,
    )
    by_order = [errors(CoordinateSum(1, order, length_scale=length_scale), x, y, length_scale) for order in range(5)]
    assert min(order for order, error in enumerate(by_order) if error[norm] < fourier[norm]) == 3
    assert 1 < by_order[2][norm] / fourier[norm] < 2.5 < by_order[1][norm] / fourier[norm]


@pytest.mark.parametrize("order", range(6))
def test_proposition_b1_its_bound_is_the_root_mean_square_error(order):
    """E (k − φ·φ)² = (1−ρ)/(1+ρ) ρ^{2C+2} for standard normal x and y, with quadrature exact to 1e-12: 3^{−C}/(3√2)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    x, w = torch.from_numpy(nodes), torch.from_numpy(weights / weights.sum())
    phi = hermite(x, order, RHO)
    kernel = torch.exp(-((x[:, None] - x) ** 2) / (2 * length_scale_of(RHO) ** 2))
    mean_square = float(w @ (kernel - phi @ phi.T).square() @ w)
    assert math.sqrt(mean_square) == pytest.approx(3.0**-order / (3 * math.sqrt(2)), rel=1e-9)


def test_proposition_b1_the_mean_absolute_error_is_below_the_bound_and_falls_threefold_with_each_order():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 100_000, generator=generator, dtype=torch.double)
    kernel = torch.exp(-((x - y) ** 2) / (2 * length_scale_of(RHO) ** 2))
    products = (hermite(x, 4, RHO) * hermite(y, 4, RHO)).cumsum(1)
    found = (kernel[:, None] - products).abs().mean(0)
    bound = 3.0 ** -torch.arange(5.0) / (3 * math.sqrt(2))
    # 0.79, 0.68, 0.59, 0.52 and 0.47 of the bound.
    assert (found / bound).tolist() == pytest.approx([0.79, 0.68, 0.59, 0.52, 0.47], abs=0.01)


@pytest.mark.parametrize("frequencies", [25, pytest.param(100, marks=pytest.mark.long)])
def test_proposition_b1_fourier_features_err_by_the_root_of_their_number_above_the_bound_of_its_inverse(frequencies):
    """With A = 2 · frequencies features the mean absolute error is 0.40/√A; the proposition's lower bound is 1/(8A)."""
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(2, 500, 1, generator=generator)
    length_scale, features = length_scale_of(RHO), 2 * frequencies
    kernel = torch.exp(-((x - y)[:, 0] ** 2) / (2 * length_scale**2))
    found = []
    for seed in range(500):
        phi = RandomFourierFeatures(1, frequencies, sigma=length_scale, seed=seed, orthogonal=False)
        found.append(float(((phi(x) * phi(y)).sum(1) - kernel).abs().mean()))
    assert np.mean(found) * math.sqrt(features) == pytest.approx(0.40, abs=0.04)
    assert np.mean(found) > 1 / (8 * features)


def test_equation_61_is_not_a_feature_of_the_kernel_nor_is_equation_60_that_counts_from_1():
    """Eq. 61 has its exponent ¼ around the whole coefficient, and no 2^c. Eq. 60 leaves out the term of order 0."""
    x, rho = torch.linspace(-1, 1, 9, dtype=torch.double), RHO
    kernel = torch.exp(-((x[:, None] - x) ** 2) / (2 * length_scale_of(rho) ** 2))
    polynomials = np.polynomial.hermite.hermvander(x.numpy(), 29)
    coefficients = np.array([((1 - rho**2) * rho**c / math.factorial(c)) ** 0.25 for c in range(30)])
    printed = polynomials * coefficients * np.exp(-rho / (1 + rho) * x.numpy()[:, None] ** 2)
    assert np.abs(printed @ printed.T - kernel.numpy()).max() > 1e10
    eq_6 = hermite(x, 29, rho)
    assert float((eq_6 @ eq_6.T - kernel).abs().max()) < 1e-11
    assert float((eq_6[:, 1:] @ eq_6[:, 1:].T - kernel).abs().max()) > 0.8


def square_mmds(x, y, kernel):
    """Squared MMD of the points x and y under a kernel, each pair of points with the same weight."""
    return float(kernel(x, x).mean() - 2 * kernel(x, y).mean() + kernel(y, y).mean())


@pytest.mark.parametrize("order", [2, 5, 10, 20])
def test_lemma_c1_holds_where_its_assumption_does(order):
    """|MMD² − MMD_n²| ≤ 4 sup |k − k_n|: on [−3, 3] order 20 errs by less than 1e-4."""
    rho, generator = math.sqrt(2) - 1, torch.Generator().manual_seed(order)
    grid = torch.linspace(-3, 3, 241, dtype=torch.double)[:, None]

    def truncated(x, y):
        return hermite(x[:, 0], order, rho) @ hermite(y[:, 0], order, rho).T

    def exact(x, y):
        return gaussian_kernel(x, y, 1.0)

    largest = float((truncated(grid, grid) - exact(grid, grid)).abs().max())
    assert order < 20 or largest < 1e-4
    for _ in range(50):
        places = torch.randint(0, 241, (2, 12), generator=generator)
        x, y = grid[places[0]], grid[places[1]]
        assert abs(square_mmds(x, y, exact) - square_mmds(x, y, truncated)) <= 4 * largest * (1 + 1e-12)


def test_remark_1_is_false_the_assumption_of_lemma_c1_fails_on_unbounded_supports():
    """Section 3.1, Proposition C.3 and Remark 1 say that it holds for every P and Q. Between the points x and x + 3 the
    squared MMD is 1.98 everywhere; features of order 10 lose it as x grows."""
    x = torch.tensor([2.0, 5.0, 10.0], dtype=torch.double)
    features = hermite(torch.stack([x, x + 3]), 10, math.sqrt(2) - 1)  # a length scale of 1
    found = (features[0] - features[1]).square().sum(-1)
    exact = 2 - 2 * math.exp(-9 / 2)
    assert float(found[0]) == pytest.approx(1.4, abs=0.3) and float(found[1]) < 0.7 < exact
    assert float(found[2]) < 1e-6


def test_proposition_c3_a_mahalanobis_kernel_is_the_product_kernel_of_a_linear_view():
    """k(x, y, A) = exp(−(x−y)ᵀA(x−y)/2) with A = LLᵀ is the Gaussian kernel of Lᵀx: `Statistic.view` is L."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 20, 2, generator=generator, dtype=torch.double)
    root = torch.tensor([[0.8, 0.0], [0.5, 0.4]], dtype=torch.double)
    off = (x[:, None] - y) @ (root @ root.T)
    exact = (-(off * (x[:, None] - y)).sum(2) / 2).exp()
    phi = CoordinateProduct(2, 25, length_scale=1.0)
    torch.testing.assert_close(phi.apply(x @ root) @ phi.apply(y @ root).T, exact, atol=1e-6, rtol=0)


def test_appendix_d_a_product_kernel_is_at_most_the_sum_kernel_of_a_root_d_smaller_length_scale():
    """A geometric mean is at most the arithmetic one: ∏ k(x_d, y_d) ≤ (1/D) Σ k(x_d, y_d)^D."""
    x, y = torch.randn(2, 1000, 7, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    squares = (x - y).square()
    product, total = (-squares.sum(1) / 2).exp(), (-7 * squares / 2).exp().mean(1)
    assert (product <= total * (1 + 1e-12)).all()
    same = torch.full((1, 7), 0.3, dtype=torch.double).square()
    torch.testing.assert_close((-same.sum(1) / 2).exp(), (-7 * same / 2).exp().mean(1))


@pytest.mark.parametrize("dim", [2, 5, 11])
def test_lemma_d1_holds_in_both_directions(dim):
    """(i) ‖E_P φ − E_Q φ‖ ≤ ε of the sum map makes each marginal's MMD ≤ √(D+1) ε; (ii) MMDs ≤ ε make it ≤ √2 ε.

    The order is high enough for P and Q, as the lemma allows. Its proof drops a D in (89) and has one too many in (87).
    """
    phi, generator = CoordinateSum(dim, 60, length_scale=1.0), torch.Generator().manual_seed(dim)
    for number in range(20):
        x, y = torch.randn(2, 40, dim, generator=generator, dtype=torch.double)
        shift = torch.randn(dim, generator=generator, dtype=torch.double).abs()
        y += torch.eye(dim)[0] * shift if number < 2 else shift  # at first in one coordinate alone
        if number < 2:
            y[:, 1:] = x[:, 1:]
        whole = float((phi(x).double().mean(0) - phi(y).double().mean(0)).norm())
        marginals = [
            square_mmds(x[:, place : place + 1], y[:, place : place + 1], lambda a, b: gaussian_kernel(a, b, 1.0))
            ** 0.5
            for place in range(dim)
        ]
        ratios = max(marginals) / (math.sqrt(dim + 1) * whole), whole / (math.sqrt(2) * max(marginals))
        assert max(ratios) <= 1
        assert number >= 2 or ratios[0] == pytest.approx(math.sqrt(dim / (dim + 1)), rel=1e-3)  # .957 for D = 11
