import math

import pytest
import torch

from finc_eval.core.errors import UsageError
from finc_eval.private.hermite.hermite import TotalDegree
from finc_eval.private.synthesis.released_features import DIAMETER_MARGIN, TAYLOR_RHO, BoundedMoments

RANGES = [(1, 1), (2, 2), (1, 2), (1, 3), (3, 4)]


@pytest.mark.parametrize(("lowest", "order"), RANGES)
def test_features_are_those_of_total_degree_without_the_lowest_degrees(lowest, order):
    x = torch.rand(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    phi = BoundedMoments(4, order, lowest=lowest, length_scale=0.8)
    whole = TotalDegree(4, order, length_scale=0.8, rho=TAYLOR_RHO)
    kept = whole.degrees >= lowest
    assert phi.size == int(kept.sum())
    assert torch.equal(phi.degrees, whole.degrees[kept])
    torch.testing.assert_close(phi.in_double(x), whole.in_double(x)[:, kept], rtol=0, atol=0)


@pytest.mark.one_of_each("lowest")
@pytest.mark.parametrize(("lowest", "order"), RANGES)
def test_no_two_images_are_farther_apart_than_the_diameter_and_some_are_as_far(lowest, order):
    phi = BoundedMoments(3, order, lowest=lowest, length_scale=1.3)
    generator = torch.Generator().manual_seed(0)
    x = 3 * torch.rand(1000, 3, generator=generator, dtype=torch.double)
    along = torch.linspace(0, 6, 2001, dtype=torch.double)[:, None] * torch.eye(3, dtype=torch.double)[0]
    across = torch.linspace(0, 6, 2001, dtype=torch.double)[:, None] * torch.eye(3, dtype=torch.double)[1]
    far = torch.cdist(phi.in_double(torch.cat([x, along])), phi.in_double(torch.cat([x, across]))).max()
    assert float(far) <= phi.diameter
    assert float(far) == pytest.approx(phi.diameter, rel=1e-4)


def test_the_diameter_of_first_and_second_moments_is_known_in_closed_form():
    """√(2/e) where λ = 1; √(4/e²) where λ = 2."""
    assert BoundedMoments(5, 1, length_scale=1).diameter / (1 + DIAMETER_MARGIN) == pytest.approx(
        math.sqrt(2 / math.e), rel=1e-9
    )
    assert BoundedMoments(5, 2, lowest=2, length_scale=1).diameter / (1 + DIAMETER_MARGIN) == pytest.approx(
        2 / math.e, rel=1e-9
    )


def test_negative_entries_count_as_zero_or_the_diameter_would_not_hold():
    phi = BoundedMoments(2, 1, length_scale=1.0)
    assert torch.equal(phi(torch.tensor([[-1.0, 0.5]])), phi(torch.tensor([[0.0, 0.5]])))


def test_a_copy_on_another_device_is_the_same_map():
    phi = BoundedMoments(3, 2, lowest=2, length_scale=0.7)
    assert phi.to("cpu").signature() == phi.signature()


@pytest.mark.parametrize(("lowest", "order"), [(0, 1), (3, 2)])
def test_degrees_that_do_not_ascend_from_1_are_refused(lowest, order):
    with pytest.raises(UsageError, match="degrees must go from 1"):
        BoundedMoments(3, order, lowest=lowest, length_scale=1)
