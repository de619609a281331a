"""What the DP-HP paper (arXiv 2106.05042) says of Hermite and random Fourier features, on numbers of one dimension."""

import math

import numpy as np
import pytest
import torch

from finc_eval.feature_maps.coordinate_kernels import CoordinateProduct, CoordinateSum
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.feature_maps.hermite_series import hermite, length_scale_of
from finc_eval.numerics.kernels import gaussian_kernel

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
def test_figure_1_the_first_order_to_beat_500_fourier_features_is_3(figure_1, norm):
    """The figure says 2: its code draws order i + 1 over the abscissa i."""
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


@pytest.mark.parametrize("frequencies", [25, 100])
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


def test_equation_61_is_not_a_feature_of_the_kernel():
    """It has its exponent ¼ around the whole coefficient, and no 2^c: 30 terms miss the kernel by far, those of eq. 6
    do not."""
    x, rho = torch.linspace(-1, 1, 9, dtype=torch.double), RHO
    kernel = torch.exp(-((x[:, None] - x) ** 2) / (2 * length_scale_of(rho) ** 2))
    polynomials = np.polynomial.hermite.hermvander(x.numpy(), 29)
    coefficients = np.array([((1 - rho**2) * rho**c / math.factorial(c)) ** 0.25 for c in range(30)])
    printed = polynomials * coefficients * np.exp(-rho / (1 + rho) * x.numpy()[:, None] ** 2)
    assert np.abs(printed @ printed.T - kernel.numpy()).max() > 1e10
    eq_6 = hermite(x, 29, rho)
    assert float((eq_6 @ eq_6.T - kernel).abs().max()) < 1e-11


def test_lemma_c1_is_not_uniform_over_distributions():
    """Between points x and x + 3 the squared MMD is 1.98 everywhere; features of order 10 lose it as x grows."""
    x = torch.tensor([2.0, 5.0, 10.0], dtype=torch.double)
    features = hermite(torch.stack([x, x + 3]), 10, math.sqrt(2) - 1)  # a length scale of 1
    found = (features[0] - features[1]).square().sum(-1)
    exact = 2 - 2 * math.exp(-9 / 2)
    assert float(found[0]) == pytest.approx(1.4, abs=0.3) and float(found[1]) < 0.7 < exact
    assert float(found[2]) < 1e-6


def test_theorem_c1_a_mahalanobis_kernel_is_the_product_kernel_of_a_linear_view():
    """k(x, y, A) = exp(−(x−y)ᵀA(x−y)/2) with A = LLᵀ is the Gaussian kernel of Lᵀx: `Statistic.view` is L."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 20, 2, generator=generator, dtype=torch.double)
    root = torch.tensor([[0.8, 0.0], [0.5, 0.4]], dtype=torch.double)
    off = (x[:, None] - y) @ (root @ root.T)
    exact = (-(off * (x[:, None] - y)).sum(2) / 2).exp()
    phi = CoordinateProduct(2, 25, length_scale=1.0)
    torch.testing.assert_close(phi._features(x @ root) @ phi._features(y @ root).T, exact, atol=1e-6, rtol=0)


def test_appendix_d_a_product_kernel_is_at_most_the_sum_kernel_of_a_root_d_smaller_length_scale():
    """A geometric mean is at most the arithmetic one: ∏ k(x_d, y_d) ≤ (1/D) Σ k(x_d, y_d)^D."""
    x, y = torch.randn(2, 1000, 7, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    squares = (x - y).square()
    product, total = (-squares.sum(1) / 2).exp(), (-7 * squares / 2).exp().mean(1)
    assert (product <= total * (1 + 1e-12)).all()
    same = torch.full((1, 7), 0.3, dtype=torch.double).square()
    torch.testing.assert_close((-same.sum(1) / 2).exp(), (-7 * same / 2).exp().mean(1))


@pytest.mark.parametrize("dim", [2, 7, 784])
def test_lemma_d1_points_near_in_the_sum_kernel_are_near_in_the_product_kernel_but_by_a_constant_that_grows(dim):
    """Distances of features whose sum kernel is 1 − ε²: at most √(2D) ε for the product kernel, √(D+1) ε for both.

    For 1 − ∏(1 − δ_d) ≤ Σ δ_d. Coordinates that all differ by little reach both, so that a constant without D is wrong.
    """
    x = torch.randn(500, dim, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    spread = torch.logspace(-4, 1, 500, dtype=torch.double)[:, None]
    for off, least in ((spread * x, 0.0), (torch.full((1, dim), 1e-4, dtype=torch.double), 0.999)):
        logs = -off.square() / 2
        sum_off, product_off = -torch.expm1(logs).mean(1), -torch.expm1(logs.sum(1))  # 1 − kernel, without rounding
        both = (sum_off + product_off).sqrt()  # of features over √2: the squared distance is 2 (1 − the mean kernel)
        ratios = (2 * product_off / sum_off).sqrt() / math.sqrt(2 * dim), both / sum_off.sqrt() / math.sqrt(dim + 1)
        for ratio in ratios:
            assert least <= float(ratio.min()) and float(ratio.max()) <= 1 + 1e-9


def test_lemma_d1_has_no_constant_for_distributions():
    """Two with equal marginals have a mean embedding in common under the sum kernel, and not under the product."""
    same = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    crossed = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    distances = [
        float((phi(same).mean(0) - phi(crossed).mean(0)).norm())
        for phi in (CoordinateSum(2, 20, length_scale=1.0), CoordinateProduct(2, 20, length_scale=1.0))
    ]
    assert distances[0] < 1e-6 and distances[1] == pytest.approx(1 - math.exp(-0.5), abs=1e-5)
