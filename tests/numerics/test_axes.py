"""Axes on which kinds are looked for."""

import numpy as np
import pytest
import torch

from finc_eval.numerics.eigen import MAX_AXES, PrincipalAxes, leading_axes, unit_of


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
