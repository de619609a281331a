"""Axes on which kinds are looked for."""

import numpy as np
import pytest
import torch

from finc_eval.numerics.eigen import MAX_AXES, PrincipalAxes, leading_axes, unit_of, varimax, whitening


@pytest.mark.parametrize("shape", [(50, 200), (300, 200)])
def test_principal_axes_are_the_leading_right_singular_vectors(shape):
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=shape) * np.geomspace(4, 0.1, shape[1])).float()
    rows -= rows.mean(0)
    axes = leading_axes(rows)
    expected = torch.linalg.svd(rows.double(), full_matrices=False).Vh[: min(MAX_AXES, shape[0] - 1)].T
    overlap = torch.linalg.svdvals(expected.float().T @ axes[:, : expected.shape[1]])
    assert axes.shape == (200, min(MAX_AXES, shape[0]))
    assert overlap.numpy() == pytest.approx(1, abs=1e-4)


def test_few_dimensions_are_taken_as_they_are():
    assert torch.equal(leading_axes(torch.randn(100, MAX_AXES)), torch.eye(MAX_AXES))


def test_wide_rows_need_no_matrix_of_their_dimension():
    assert leading_axes(torch.randn(20, 300_000)).shape == (300_000, 20)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_coordinates_are_in_their_unit_and_give_the_points_back(scale):
    rows = torch.from_numpy(np.random.default_rng(1).normal(3, 1, (500, 8)) * scale).float()
    axes = PrincipalAxes.of(rows)
    assert axes.unit == unit_of(rows - rows.mean(0)) and 0.5 < axes(rows).abs().max() <= 2
    assert (axes.points(axes(rows)) + axes.origin).numpy() == pytest.approx(rows.numpy(), rel=1e-4)


@pytest.mark.parametrize(("largest", "unit"), [(0.0, 1), (1.0, 1), (1.99, 1), (2.0, 2), (0.49, 0.25), (-5.0, 4)])
def test_a_unit_is_the_power_of_two_below_the_largest_entry(largest, unit):
    assert unit_of(torch.tensor([[largest, largest / 3], [0.0, 0.0]])) == unit


def criterion(scores):
    return float(scores.square().var(0, correction=0).sum())


@pytest.mark.parametrize("seed", range(4))
def test_varimax_finds_the_angle_at_which_squares_vary_most(seed):
    rng = np.random.default_rng(seed)
    loadings = torch.from_numpy(rng.gamma(0.5, size=(60, 2)) * rng.choice([-1, 1], (60, 2)) @ rng.normal(size=(2, 2)))
    rotation = varimax(loadings)
    np.testing.assert_allclose(rotation.T @ rotation, torch.eye(2), atol=1e-9)
    angles = torch.linspace(0, np.pi / 2, 2001).double()
    best = max(
        criterion(loadings @ torch.tensor([[c, -s], [s, c]])) for c, s in zip(angles.cos(), angles.sin(), strict=True)
    )
    assert criterion(loadings @ rotation) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_after_varimax_no_two_directions_can_be_turned_to_gain(seed):
    rng = np.random.default_rng(seed)
    loadings = torch.from_numpy(rng.standard_t(4, size=(80, 5)))
    turned = loadings @ varimax(loadings)
    for one, other in ((a, b) for a in range(5) for b in range(a)):
        for angle in (-0.02, 0.02):
            pair = turned[:, [one, other]]
            turn = torch.tensor([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            assert criterion(pair @ turn) < criterion(pair)


@pytest.mark.parametrize("shape", [(40, 6), (6, 40), (6, 6), (2, 3)])
@pytest.mark.parametrize("components", [2, 50])
def test_whitened_samples_have_the_covariance_one_along_their_principal_axes(shape, components):
    rows = torch.from_numpy(np.random.default_rng(3).normal(size=shape) * np.geomspace(5, 1, shape[1]))
    centered = rows - rows.mean(0)
    found = centered @ whitening(centered, components)
    n = min(components, shape[1], shape[0] - 1)
    assert found.shape[1] == n
    np.testing.assert_allclose(found.T @ found / (shape[0] - 1), torch.eye(n), atol=1e-8)
    left = torch.linalg.svd(centered, full_matrices=False).U[:, :n]
    np.testing.assert_allclose((left.T @ found).abs(), np.eye(n) * (shape[0] - 1) ** 0.5, atol=1e-6)


@pytest.mark.parametrize("shape", [(30, 4), (5, 9)])
def test_directions_without_variance_are_left_out_of_whitening(shape):
    """A variance of 1e-10 of the largest comes from rounding; a floor leaves out more."""
    rows = torch.linalg.qr(torch.from_numpy(np.random.default_rng(4).normal(size=(shape[0], 4)))).Q
    rows = torch.linalg.qr(rows - rows.mean(0)).Q[:, : min(4, shape[0] - 1)]
    variances = torch.tensor([9.0, 4.0, 9e-10 * 2, 9e-10 / 2]).double()
    centered = torch.zeros(shape).double()
    centered[:, :4] = rows * (variances * (shape[0] - 1)).sqrt()
    assert whitening(centered, 9).shape == (shape[1], 3)
    assert whitening(centered, 9, floor=3.9).shape[1] == 2
    assert whitening(centered, 9, floor=4.1).shape[1] == 1
    assert whitening(1e6 * centered, 9).shape[1] == whitening(1e-6 * centered, 9).shape[1] == 3


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_axes_of_entries_whose_squares_float32_cannot_hold_are_the_same(scale):
    rows = torch.from_numpy(np.random.default_rng(5).normal(size=(80, 70)) * np.geomspace(9, 1, 70)).float()
    plain, scaled = PrincipalAxes.of(rows), PrincipalAxes.of(rows * scale)
    np.testing.assert_allclose((plain.axes[:, :9] * scaled.axes[:, :9]).sum(0).abs(), 1, atol=1e-3)
