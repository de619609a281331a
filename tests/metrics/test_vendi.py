from math import inf

import pytest
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.measures import vendi as module
from finc_eval.measures.vendi import gaussian_vendi, rke_interval, vendi, vendi_interval
from finc_eval.numerics.kernels import gaussian_kernel

ORDERS = [0.5, 1, 2, 3.5, inf]


def drawn(n, dim=8, seed=0):
    return 0.5 + torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


def by_definition(kernel, order):
    """Return the score of a kernel matrix with ones on its diagonal: exp of the Rényi entropy of its eigenvalues."""
    p = torch.linalg.eigvalsh(kernel.double() / len(kernel))
    p = p[p > 1e-14]
    if order == 1:
        return float((p**-p).prod())
    return 1 / float(p.max()) if order == inf else float((p**order).sum() ** (1 / (1 - order)))


def rows_of(kernel):
    """Return rows whose products are a kernel matrix."""
    values, vectors = torch.linalg.eigh(kernel.double())
    return vectors * values.clamp_min(0).sqrt()


def test_the_examples_of_its_authors():
    labels = torch.tensor([0.0, 0.0, 10.0, 10.0, 20.0, 20.0])
    kernel = torch.exp(-(labels[:, None] - labels).abs())
    assert vendi(rows_of(kernel)) == pytest.approx(2.9999, abs=1e-4)  # digits after the fourth are cut off
    kernel = torch.tensor([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert vendi(rows_of(kernel)) == pytest.approx(2.1573, abs=5e-5)


@pytest.mark.parametrize("order", ORDERS)
def test_it_counts_kinds_that_are_equally_frequent_and_unlike(order):
    x = torch.eye(6)[torch.arange(300) % 4] * torch.arange(1, 301)[:, None]
    assert vendi(x, order=order) == pytest.approx(4, rel=1e-9)
    assert gaussian_vendi(100 * torch.eye(6)[torch.arange(300) % 4], 1.0, order=order) == pytest.approx(4)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [5, 8, 9, 60])
def test_the_smaller_matrix_has_the_score_of_the_kernel(n, order):
    x = drawn(n)
    unit = torch.nn.functional.normalize(x.double())
    assert vendi(x, order=order) == pytest.approx(by_definition(unit @ unit.T, order), rel=1e-9)


def test_an_interval_ends_at_the_most_kinds_that_samples_and_dimensions_allow():
    assert vendi_interval(torch.eye(12).repeat(5, 1)).high <= 12
    assert rke_interval(drawn(30, dim=400), 0.5).high <= 30


@pytest.mark.parametrize("order", ORDERS)
def test_the_gaussian_kernel_has_the_convention_with_the_two(order):
    x = drawn(60).double()
    squared = (x[:, None] - x).square().sum(2)
    expected = by_definition(torch.exp(-squared / (2 * 1.5**2)), order)
    assert gaussian_vendi(x.float(), 1.5, order=order) == pytest.approx(expected, rel=1e-5)


def test_of_order_two_it_needs_no_matrix(monkeypatch):
    monkeypatch.setattr("finc_eval.measures.mmd.KERNEL_BLOCK", 7)
    monkeypatch.setattr(module, "MAX_KERNEL_SAMPLES", 10)
    x = drawn(60)
    expected = 1 / float(gaussian_kernel(x.double(), x.double(), 1.5).square().mean())
    assert gaussian_vendi(x, 1.5, order=2) == pytest.approx(expected, rel=1e-10)
    with pytest.raises(FincEvalError, match="has 60 samples, the Gaussian Vendi score takes at most 10"):
        gaussian_vendi(x, 1.5)


def test_larger_orders_are_lower():
    x = drawn(60)
    scores = [vendi(x, order=order) for order in ORDERS]
    assert scores == sorted(scores, reverse=True)
    assert 1 <= scores[-1] < scores[0] <= 8


@pytest.mark.long
@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize("order", [1, 2, inf])
def test_intervals_hold_the_mean_score_of_as_many_samples(order, n):
    # One of more, one of fewer samples than dimensions.
    found = [vendi_interval(drawn(n, 100, seed), order=order) for seed in range(25)]
    mean = sum(one.value for one in found) / len(found)
    assert found[0].value == pytest.approx(vendi(drawn(n, 100), order=order), rel=1e-9)
    assert sum(one.low <= mean <= one.high for one in found) >= 21
    assert sum(one.high - one.low for one in found) / len(found) < 0.6 * mean


def test_the_gain_is_what_more_samples_add():
    few, many = vendi_interval(drawn(200, 30)), vendi(drawn(20_000, 30, seed=1))
    assert few.gain > 0.03
    assert few.value * (1 + few.gain) == pytest.approx(many, rel=0.05)


def test_so_do_those_of_the_rke_score():
    found = [rke_interval(drawn(150, seed=seed), 2.0) for seed in range(25)]
    mean = sum(one.value for one in found) / len(found)
    assert found[0].value == pytest.approx(gaussian_vendi(drawn(150), 2.0, order=2), rel=1e-12)
    assert sum(one.low <= mean <= one.high for one in found) >= 21
    more = gaussian_vendi(drawn(3000, seed=1), 2.0, order=2)
    assert sum(one.value * (1 + one.gain) for one in found) / len(found) == pytest.approx(more, rel=0.05)
