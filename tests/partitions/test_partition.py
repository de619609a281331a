"""Axes on which kinds are looked for."""

import numpy as np
import pytest
import torch

from finc_eval.partitions.partition import MAX_AXES, principal_axes


@pytest.mark.parametrize("shape", [(50, 200), (300, 200)])
def test_principal_axes_are_the_leading_right_singular_vectors(shape):
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=shape) * np.geomspace(4, 0.1, shape[1])).float()
    rows -= rows.mean(0)
    axes = principal_axes(rows)
    expected = torch.linalg.svd(rows.double(), full_matrices=False).Vh[: min(MAX_AXES, shape[0] - 1)].T
    overlap = torch.linalg.svdvals(expected.float().T @ axes[:, : expected.shape[1]])
    assert axes.shape == (200, min(MAX_AXES, shape[0]))
    assert overlap.numpy() == pytest.approx(1, abs=1e-4)


def test_few_dimensions_are_taken_as_they_are():
    assert torch.equal(principal_axes(torch.randn(100, MAX_AXES)), torch.eye(MAX_AXES))


def test_wide_rows_need_no_matrix_of_their_dimension():
    assert principal_axes(torch.randn(20, 300_000)).shape == (300_000, 20)
