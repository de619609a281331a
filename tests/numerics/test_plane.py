"""Points in the plane: t-SNE by its definition, step by step, and places between landmarks."""

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.spatial.distance import cdist

from finc_eval.numerics import neighbor_embedding as plane
from finc_eval.numerics.neighbor_embedding import embed_neighbors, first_two_axes, place_between


def normals(m, d=3, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(m, d)) * np.arange(d, 0, -1)).float()


def expected_affinities(points, perplexity, neighbors):
    """Gaussian weights of the nearest neighbors, as wide as the perplexity says, averaged over both directions."""
    squared, m = cdist(points, points) ** 2, len(points)
    own = np.zeros((m, m))
    for row in range(m):
        near = np.argsort(squared[row])[1 : 1 + neighbors]
        beyond = squared[row, near] - squared[row, near].min()

        def weights(log_beta, beyond=beyond):
            found = np.exp(-beyond * np.exp(log_beta))
            return found / found.sum()

        def excess(log_beta, weights=weights):
            p = weights(log_beta)
            return -(p * np.log(np.maximum(p, 1e-300))).sum() - np.log(perplexity)

        own[row, near] = weights(brentq(excess, -12, 12))
    return (own + own.T) / (2 * m)


@pytest.mark.parametrize(("m", "neighbors", "perplexity"), [(60, 45, 15), (46, 45, 15), (25, 24, 8), (7, 6, 2)])
def test_each_point_has_as_many_neighbors_in_effect_as_the_perplexity_says(m, neighbors, perplexity):
    points = normals(m)
    found = plane._affinities(points)
    np.testing.assert_allclose(found, expected_affinities(points.numpy(), perplexity, neighbors), atol=1e-6)
    assert float(found.sum()) == pytest.approx(1, abs=1e-5)


def divergence(y, affinities, exaggeration):
    """Kullback-Leibler divergence of Student's t in the plane from the affinities, up to a constant (2008, eq. 5)."""
    squared = (y[:, None] - y[None]).square().sum(2)
    near = (1 / (1 + squared)).masked_fill(torch.eye(len(y), dtype=torch.bool), 0)
    return exaggeration * (affinities * (1 + squared).log()).sum() + near.sum().log()


@pytest.mark.parametrize("m", [12, 230])
def test_steps_descend_along_the_gradient_of_the_divergence_with_momentum_and_gains(m, monkeypatch):
    """The first third of the steps is exaggerated; the rate is m / 4, and at least 50 (Belkina et al. 2019)."""
    monkeypatch.setattr(plane, "STEPS", 9)
    affinities, start = plane._affinities(normals(m)).double(), first_two_axes(normals(m)).double()
    y = 0.01 * start / start[:, 0].std()
    velocity, gains = torch.zeros_like(y), torch.ones_like(y)
    for step in range(9):
        exaggeration, momentum = (4, 0.5) if step < 3 else (1, 0.8)
        place = y.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(divergence(place, affinities, exaggeration), place)
        gains = torch.where(gradient.sign() * velocity.sign() < 0, gains + 0.2, gains * 0.8)
        velocity = momentum * velocity - max(m / 4, 50) * gains * gradient
        y = y + velocity
    np.testing.assert_allclose(plane._descend(affinities, start), y - y.mean(0), rtol=1e-3, atol=1e-6)


def test_places_fill_the_plane_from_minus_one_to_one_and_keep_clusters_together():
    centers = 20 * torch.eye(3)
    labels = torch.arange(60) % 3
    places = embed_neighbors(centers[labels] + normals(60) / 3)
    assert places.amax(0) + places.amin(0) == pytest.approx(0, abs=1e-6) and float(places.abs().max()) == 1
    apart = torch.cdist(places, places) + 9 * torch.eye(60)
    assert (labels[apart.argmin(1)] == labels).all()
    assert torch.equal(places, embed_neighbors(centers[labels] + normals(60) / 3))


@pytest.mark.parametrize("m", [1, 2, 4])
def test_few_points_lie_on_their_principal_axes(m):
    points = normals(m, 5)
    found = embed_neighbors(points)
    centered = points - points.mean(0)
    expected = cdist(centered, centered)[0]
    if m < 4:  # at most two axes: all distances are kept, up to a factor
        apart = cdist(found, found)[0]
        np.testing.assert_allclose(apart * expected.max(), expected * apart.max(), rtol=1e-4)
    assert float(found.abs().max()) == pytest.approx(0 if m == 1 else 1)


def test_five_points_are_laid_out_by_their_neighbors_and_four_are_not(monkeypatch):
    counted = []
    monkeypatch.setattr(plane, "_descend", lambda affinities, start: counted.append(len(start)) or start)
    for m in (3, 4, 5, 6):
        embed_neighbors(normals(m))
    assert counted == [5, 6]


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_first_two_axes_are_those_of_a_singular_value_decomposition(d):
    points = normals(30, d) + 7
    found = first_two_axes(points).double()
    u, s, axes = torch.linalg.svd((points - points.mean(0)).double(), full_matrices=False)
    signs = axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign().squeeze(1)
    expected = torch.zeros(30, 2).double()
    expected[:, : min(d, 2)] = (u * s * signs)[:, :2]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_point_is_placed_between_its_three_nearest_landmarks():
    landmarks, points = normals(12), normals(40, seed=1)
    places = torch.from_numpy(np.random.default_rng(2).uniform(-1, 1, (12, 2))).float()
    squared = cdist(points, landmarks) ** 2
    for found, row in zip(place_between(points, landmarks, places), squared, strict=True):
        near = np.argsort(row)[:3]
        beyond = row[near] - row[near[0]]
        weights = np.exp(-2 * beyond / beyond.mean())
        np.testing.assert_allclose(found, weights @ places.numpy()[near] / weights.sum(), atol=1e-5)
    # A point as near to each has their mean place; where landmarks are few, all are used.
    two = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    np.testing.assert_allclose(place_between(torch.zeros(1, 2), two, places[:2])[0], places[:2].mean(0), atol=1e-6)
    np.testing.assert_allclose(place_between(two, two[:1], places[:1]), places[[0, 0]], atol=1e-6)
