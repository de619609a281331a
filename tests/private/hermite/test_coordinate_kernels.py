"""Kernels of single coordinates: with numbers of their own for each, and summed without the features of a point."""

import pytest
import torch

from finc_eval.core.errors import DataError, UsageError
from finc_eval.private.hermite.coordinate_kernels import CoordinateProduct, CoordinateSum, SumAndProduct
from finc_eval.private.hermite.hermite import hermite, length_scale_of, rho_of
from finc_eval.sketches.sketch import Sketch

OWN = {"order": (4, 6, 9), "length_scale": (0.7, 1.5, 3.0), "center": [0.5, 0, 1]}


def points(n, dim=3, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def test_each_coordinate_may_have_its_own_order_and_length_scale():
    x, center = points(20), torch.tensor(OWN["center"])
    singles = [
        hermite((x[:, place] - center[place]) * length_scale_of(rho_of(scale)) / scale, order, rho_of(scale))
        for place, (order, scale) in enumerate(zip(OWN["order"], OWN["length_scale"], strict=True))
    ]
    total, product = CoordinateSum(3, **OWN), CoordinateProduct(3, **OWN)
    assert (total.size, product.size) == (5 + 7 + 10, 5 * 7 * 10)
    torch.testing.assert_close(total.apply(x), torch.cat(singles, 1) / 3**0.5)
    outer = torch.einsum("na,nb,nc->nabc", *singles).flatten(1)
    torch.testing.assert_close(product.apply(x), outer)
    assert (len(total.degrees), len(product.degrees)) == (total.size, product.size)
    assert total.degrees.max() == 9 and product.degrees[-1] == 4 + 6 + 9


@pytest.mark.parametrize("kind", [CoordinateSum, CoordinateProduct, SumAndProduct])
def test_their_kernel_has_the_length_scale_of_each_coordinate(kind):
    phi = kind(3, 30, length_scale=(1.5, 2.0, 3.0), center=[0.5, 0, 1])
    x, y = points(12), points(9, seed=1)
    torch.testing.assert_close(phi.apply(x) @ phi.apply(y).T, phi.exact(x, y), atol=1e-6, rtol=0)


def test_a_combined_kernel_has_an_order_and_a_length_scale_for_each_part():
    phi = SumAndProduct(5, 100, length_scale=0.5, product_order=20, product_length_scale=1.2, coordinates=[1, 3])
    single = CoordinateSum(5, 100, length_scale=0.5)
    product = CoordinateProduct(5, 20, length_scale=1.2, coordinates=[1, 3])
    x = points(7, 5)
    both = torch.cat([single.apply(x), product.apply(x)], 1) / 2**0.5
    torch.testing.assert_close(phi.apply(x), both)
    assert phi.sigma is None  # two kernels, two length scales
    again = phi.to("cpu")
    assert again.digest == phi.digest and again.product.order == 20


def test_numbers_that_are_all_the_same_are_one_number():
    one, three = CoordinateSum(3, 4, length_scale=2.0), CoordinateSum(3, [4] * 3, length_scale=[2.0] * 3)
    assert one.digest == three.digest and three.sigma == 2.0
    own = CoordinateSum(3, **OWN)
    assert own.sigma is None and dict(own.signature())["order"] == "4,6,9"


def test_a_map_with_numbers_of_its_own_is_stored_and_read_back(tmp_path):
    phi = SumAndProduct(3, **OWN, product_order=2, coordinates=[0, 2])
    Sketch.of(points(30), phi).save(tmp_path / "s.h5")
    again = Sketch.load(tmp_path / "s.h5").feature_map
    assert again.digest == phi.digest
    torch.testing.assert_close(again(points(4)), phi(points(4)))


def test_a_file_that_claims_a_trillion_coordinates_is_refused_before_they_are_made(tmp_path, monkeypatch):
    phi = CoordinateSum(3, 2, length_scale=1.0)
    forged = phi.parameters | {"dim": 10**12}
    with monkeypatch.context() as patch:
        patch.setattr(CoordinateSum, "parameters", property(lambda self: forged))
        Sketch.of(points(30), phi).save(tmp_path / "s.h5")
    with pytest.raises(DataError, match="1000000000000 entries and a center of 3"):
        Sketch.load(tmp_path / "s.h5")


@pytest.mark.parametrize(
    "phi",
    [
        CoordinateSum(3, **OWN),
        CoordinateProduct(3, 4, length_scale=1.0),
        CoordinateProduct(3, **OWN, coordinates=[2]),
        SumAndProduct(3, 5, length_scale=1.0, product_order=2),
    ],
    ids=lambda phi: phi.kind,
)
def test_sums_by_class_are_those_of_the_features_and_have_their_gradients(phi):
    labels = torch.tensor([0, 2, 2, 0, 2])
    x = points(5).float().requires_grad_()
    expected = torch.zeros(3, phi.size).index_add(0, labels, phi(x))
    found = phi.class_sums(x, labels, 3)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(3, phi.size, generator=torch.Generator().manual_seed(1))
    slopes = [torch.autograd.grad((one * weights).sum(), x, retain_graph=True)[0] for one in (found, expected)]
    torch.testing.assert_close(*slopes, atol=1e-5, rtol=1e-4)


def test_the_largest_product_of_the_paper_is_summed_without_features_of_a_point():
    """537 824 features of 500 points would take a gigabyte."""
    phi = CoordinateProduct(5, 13, length_scale=1.0)
    assert (phi.size, phi.width) == (537_824, 14**3 + 14**2)
    x = points(500, 5).float()
    left, right = phi._factors(x)
    assert left.numel() + right.numel() == 500 * phi.width
    sums = phi.class_sums(x, torch.zeros(500, dtype=torch.long), 1)
    place = 13 * 14**4 + 7  # degree 13 of the first coordinate, 7 of the last
    singles = [phi.single(coordinate, x[:, coordinate]) for coordinate in range(5)]
    expected = (singles[0][:, 13] * singles[1][:, 0] * singles[2][:, 0] * singles[3][:, 0] * singles[4][:, 7]).sum()
    assert float(sums[0, place]) == pytest.approx(float(expected), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(("dim", "width"), [(1, 5 + 1), (2, 5 + 5), (3, 25 + 5), (4, 25 + 25)])
def test_the_factors_of_a_product_are_as_few_numbers_as_two_can_be(dim, width):
    product, both = CoordinateProduct(dim, 4, length_scale=1.0), SumAndProduct(dim, 4, length_scale=1.0)
    assert product.width == sum(factor.shape[1] for factor in product._factors(points(2, dim))) == width
    assert both.width == 5 * dim + width


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CoordinateSum(3, [1, 2], length_scale=1.0), "order must be one number, or one for each of 3"),
        (lambda: CoordinateSum(2, 1, length_scale=[1.0, -1.0]), "length_scale must be a positive number, got -1"),
        (lambda: CoordinateProduct(8, 6, length_scale=1.0), "product features of 8 entries to order 6 are 5,764,801"),
        (lambda: Sketch(CoordinateProduct(5, 10, length_scale=1.0)), "the feature map has 161,051 features, and a"),
    ],
)
def test_what_cannot_be_had_is_refused_in_a_sentence(make, words):
    with pytest.raises(UsageError, match=words):
        make()
