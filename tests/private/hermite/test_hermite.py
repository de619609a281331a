"""Hermite features: golden values, the kernel they make, how far apart images get, and what an order leaves out."""

from __future__ import annotations

from math import comb, sqrt

import mpmath
import numpy as np
import pytest
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.private.hermite.coordinate_kernels import HERMITE_MAPS, CoordinateProduct, CoordinateSum, SumAndProduct
from finc_eval.private.hermite.hermite import (
    TotalDegree,
    best_rho,
    degree_probabilities,
    hermite,
    length_scale_of,
    order_for,
    rho_of,
)
from finc_eval.sketches.sketch import Sketch

RHOS = (0.1, 1 / 3, 0.9, 0.99)


def points(n, dim, scale=1.0, seed=0, dtype=torch.double):
    return scale * torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def defined(x, c, rho):
    """φ_c(x) by its definition, in 50 digits."""
    with mpmath.workdps(50):
        rho, x = mpmath.mpf(rho), mpmath.mpf(x)
        scale = (1 - rho**2) ** mpmath.mpf(0.25) * mpmath.sqrt(rho**c / (mpmath.mpf(2) ** c * mpmath.factorial(c)))
        return float(scale * mpmath.hermite(c, x) * mpmath.exp(-rho * x**2 / (1 + rho)))


def test_rho_and_length_scale_have_the_known_values_and_undo_each_other():
    assert rho_of(1.0) == pytest.approx(0.41421356, abs=5e-9)
    assert length_scale_of(1 / 3) == pytest.approx(1.15470054, abs=5e-9)
    assert [rho_of(length_scale_of(rho)) for rho in RHOS] == pytest.approx(RHOS, rel=1e-12)
    assert rho_of(1e6) == pytest.approx(5e-13, rel=1e-9)


@pytest.mark.parametrize("rho", RHOS)
def test_the_recursion_agrees_with_the_definition(rho):
    x = torch.linspace(-5, 5, 7, dtype=torch.double)
    found = hermite(x, 60, rho)[:, ::12]
    expected = [[defined(float(value), c, rho) for c in range(0, 61, 12)] for value in x]
    np.testing.assert_allclose(found.numpy(), expected, atol=2e-15)


@pytest.mark.one_of_each("reach", "rho")
@pytest.mark.parametrize(
    "rho", [*RHOS, torch.tensor([0.3, 0.99], dtype=torch.double)], ids=[*map(str, RHOS), "by entry"]
)
@pytest.mark.parametrize("reach", [1.0, 30.0], ids=["near", "beyond float32's exponential"])
def test_the_gradient_is_that_of_finite_differences(rho, reach):
    x = (reach * points(3, 2)).requires_grad_()
    assert torch.autograd.gradcheck(lambda at: hermite(at, 40, rho), x, atol=1e-7)


@pytest.mark.one_of_each(by=lambda rho: rho > "0.5")
@pytest.mark.parametrize("rho", RHOS)
def test_squares_add_to_one_and_products_to_the_kernel(rho):
    x = torch.linspace(-3, 3, 13, dtype=torch.double)
    features = hermite(x, 2500, rho)
    kernel = torch.exp(-((x[:, None] - x) ** 2) / (2 * length_scale_of(rho) ** 2))
    torch.testing.assert_close(features @ features.T, kernel, atol=1e-11, rtol=0)


def test_float32_keeps_features_of_points_whose_exponential_it_cannot_hold():
    x = torch.tensor([14.5, 25.0])
    assert float(torch.exp(-0.995 / 1.995 * x[1] ** 2)) == 0.0
    torch.testing.assert_close(hermite(x, 2000, 0.995), hermite(x.double(), 2000, 0.995).float(), atol=2e-4, rtol=0)
    assert hermite(x, 4000, 0.995).square().sum(-1).tolist() == pytest.approx([1, 1], abs=1e-3)


@pytest.mark.parametrize(
    ("square", "radius", "paper", "free", "centered"),
    [(0.005, 1, 1083, 47, 23), (0.15, 1, 37, 8, 4), (0.25, 4, 29, 26, None), (1.0, 4, 14, 13, None)],
)
def test_the_order_that_leaves_out_a_thousandth(square, radius, paper, free, centered):
    scale = sqrt(square)
    assert order_for(radius, scale, rho_of(scale)) == pytest.approx(paper, abs=1)
    assert order_for(radius, scale, best_rho(radius, scale)) <= free
    if centered:
        assert order_for(radius / 2, scale, best_rho(radius / 2, scale)) <= centered


def test_the_order_is_the_smallest_and_holds_inside_the_radius():
    x = torch.linspace(0, 2, 50, dtype=torch.double)
    order = order_for(2.0, 0.7, rho_of(0.7))

    def tails(order):
        return 1 - hermite(x * length_scale_of(rho_of(0.7)) / 0.7, order, rho_of(0.7)).square().sum(-1)

    assert float(tails(order).max()) <= 1e-3 < float(tails(order - 1).max())


def test_probabilities_of_degrees_are_those_of_the_features_at_any_direction():
    phi = TotalDegree(5, 6, length_scale=2.0, rho=0.3, center=np.ones(5))
    x = points(1, 5)
    x = 1 + 3 * x / x.norm()
    squares = phi.apply(x)[0].square()
    found = torch.stack([squares[phi.degrees == degree].sum() for degree in range(7)])
    expected = degree_probabilities(3.0, 2.0, 0.3, 6, dims=5)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert 1 - float(phi.apply(x).square().sum()) == pytest.approx(1 - float(expected.sum()), abs=1e-6)
    assert float(degree_probabilities(3.0, 2.0, 0.3, 80, dims=5).sum()) == pytest.approx(1, abs=1e-12)


def test_total_degree_is_the_product_without_its_high_degrees():
    x, total = points(40, 3), TotalDegree(3, 4, length_scale=1.5)
    product = CoordinateProduct(3, 4, length_scale=1.5)
    assert (total.size, product.size) == (comb(7, 4), 5**3)
    mine, theirs = total.apply(x), product.apply(x)
    for degree in range(5):
        one, other = mine[:, total.degrees == degree], theirs[:, product.degrees == degree]
        torch.testing.assert_close(one @ one.T, other @ other.T, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", HERMITE_MAPS)
def test_maps_make_their_kernel_to_the_accuracy_that_tails_promise(kind):
    phi = HERMITE_MAPS[kind](3, 9, length_scale=2.0, center=[0.5, 0.0, -0.5])
    x, y = points(30, 3, seed=1), points(20, 3, seed=2)
    features, others = phi.apply(x), phi.apply(y)
    error = (features @ others.T - phi.exact(x, y)).abs()
    left, right = (1 - phi.apply(rows).square().sum(-1) for rows in (x, y))  # mass in degrees that are cut off
    assert bool((error <= (left[:, None] * right).clamp(min=0).sqrt() + 1e-7).all())
    assert float(error.max()) < 1e-2


@pytest.mark.one_of_each("rho", "kind")
@pytest.mark.parametrize("kind", HERMITE_MAPS)
@pytest.mark.parametrize("rho", [0.05, 1 / 3, 0.99])
def test_no_two_images_are_further_apart_than_the_diameter(kind, rho):
    phi = HERMITE_MAPS[kind](3, 5, length_scale=length_scale_of(rho))
    x = torch.cat([points(300, 3, scale) for scale in (0.1, 1, 5, 50, 1e4)] + [torch.full((1, 3), 1e20).double()])
    features = phi.apply(x)
    assert float(torch.cdist(features, features).max()) <= phi.diameter + 1e-12
    assert float(features.norm(dim=1).max()) <= 1 + 1e-12


def test_the_diameter_is_reached_and_the_cut_off_kernel_is_negative_somewhere():
    x = torch.linspace(-4, 4, 400, dtype=torch.double)[:, None]
    whole, cut = (TotalDegree(1, order, length_scale=1.0).apply(x) for order in (25, 3))
    assert float(torch.cdist(whole, whole).max()) == pytest.approx(sqrt(2), abs=1e-3)
    assert float((cut @ cut.T).min()) < -0.1


def test_images_of_two_classes_are_no_further_apart():
    phi, x, labels = TotalDegree(2, 8, length_scale=1.0), points(50, 2), torch.arange(50) % 3
    rows = torch.stack([phi.class_sums(one[None], y[None], 3).flatten() for one, y in zip(x, labels, strict=True)])
    assert float(torch.cdist(rows, rows).max()) <= sqrt(2) + 1e-6
    expected = torch.stack([phi(x)[labels == label].sum(0) for label in range(3)])
    torch.testing.assert_close(phi.class_sums(x, labels, 3), expected)


def test_few_features_of_total_degree_beat_as_many_and_many_more_random_ones():
    x = points(300, 20)
    scale = 6.25
    exact = TotalDegree(20, 0, length_scale=scale).exact(x, x)
    phi = TotalDegree(20, 2, length_scale=scale, rho=0.001)
    random = [RandomFourierFeatures(20, size // 2, sigma=scale, orthogonal=False) for size in (phi.size, 10_626)]
    errors = [float((m(x) @ m(x).T - exact).abs().mean()) for m in (phi, *random)]
    assert phi.size == 231
    assert errors[0] < 1e-3 < 5 * errors[0] < errors[2] < errors[1]


@pytest.mark.parametrize("kind", HERMITE_MAPS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.double])
def test_far_and_huge_points_have_finite_features_and_gradients(kind, dtype):
    phi = HERMITE_MAPS[kind](3, 4, length_scale=1.0)
    x = torch.tensor([[0.0, 0, 0], [1e3, -1e3, 0], [3e19, 0, 1], [-1e30, 1e30, 1e30]], dtype=dtype, requires_grad=True)
    features = phi.apply(x)
    (slopes,) = torch.autograd.grad(features.sum(), x)
    assert bool(features.isfinite().all()) and bool(slopes.isfinite().all())
    assert float(features[1:].detach().abs().max()) < (1e-6 if kind in ("total-degree", "product") else 1)


@pytest.mark.parametrize("kind", HERMITE_MAPS)
def test_gradients_are_those_of_differences(kind):
    phi = HERMITE_MAPS[kind](2, 3, length_scale=1.3)
    assert torch.autograd.gradcheck(phi.apply, points(4, 2).requires_grad_())


@pytest.mark.parametrize("kind", HERMITE_MAPS)
def test_a_sketch_with_the_map_is_stored_and_read_back(kind, tmp_path):
    extra = {"coordinates": [2, 0]} if kind in ("product", "combined") else {}
    phi = HERMITE_MAPS[kind](3, 3, length_scale=2.0, rho=0.2, center=[1, 2, 3], **extra)
    sketch = Sketch.of(points(50, 3), phi)
    sketch.save(tmp_path / "s.h5")
    loaded = Sketch.load(tmp_path / "s.h5")
    assert type(loaded.feature_map) is type(phi) and loaded.feature_map.parameters == phi.parameters
    assert loaded.feature_map.digest == phi.digest == phi.to("cpu").digest
    torch.testing.assert_close(loaded.covariance, sketch.covariance)


def test_maps_that_differ_in_anything_have_other_digests():
    maps = [
        TotalDegree(2, 3, length_scale=2.0),
        TotalDegree(2, 2, length_scale=2.0),
        TotalDegree(2, 3, length_scale=2.1),
        TotalDegree(2, 3, length_scale=2.0, rho=0.5),
        TotalDegree(2, 3, length_scale=2.0, center=[0, 1]),
        CoordinateSum(2, 3, length_scale=2.0),
        CoordinateProduct(2, 3, length_scale=2.0, coordinates=[0]),
        SumAndProduct(2, 3, length_scale=2.0, coordinates=[1]),
    ]
    assert len({phi.digest for phi in maps}) == len(maps)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TotalDegree(2, 3, length_scale=0.0), "length_scale must be a positive number, got 0"),
        (lambda: TotalDegree(2, -1, length_scale=1.0), "order must be a whole number of at least 0, got -1"),
        (lambda: TotalDegree(2, 3, length_scale=1.0, rho=1.0), "rho must lie between 0 and 1, got 1"),
        (lambda: TotalDegree(50, 5, length_scale=1.0), "total-degree features of 50 entries to order 5 are 3,478,761"),
        (lambda: CoordinateProduct(3, 1, length_scale=1.0, coordinates=[3]), "some of 0 to 2, each once, got [3]"),
        (lambda: TotalDegree(2, 3, length_scale=1.0, center=[1.0]), r"must have shape (2,), got (1,)"),
    ],
)
def test_what_is_out_of_range_is_refused_in_a_sentence(make, words):
    with pytest.raises(FincEvalError) as error:
        make()
    assert words in str(error.value)
