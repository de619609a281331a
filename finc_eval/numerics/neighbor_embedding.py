"""Points of many dimensions laid out in the plane so that neighbors stay neighbors: t-SNE of few landmarks."""

from __future__ import annotations

from math import log

import torch

from finc_eval.numerics.precision import single_threaded

PERPLEXITY = 15.0
"""Neighbors that a landmark has in effect. With 5, 10, 15 and 30, the trustworthiness of 10 neighbors is .960, .965,
.964, .961 on digits, .968, .969, .971, .970 on photographs, and .986, .986, .987, .986 on clips."""

STEPS = 150
"""Steps of the descent, the first third of them exaggerated. After 150, 200 and 500 steps, the trustworthiness is .964,
.964, .964 on digits, .971, .971, .970 on photographs, and .987, .987, .988 on clips."""

EXAGGERATION = 4.0  # factor of the attraction at first, so that clusters form before they spread

PLACED_BY = 3
"""Landmarks between which a point is placed. With 2, 3, 5 and 8, the trustworthiness is .993, .991, .987, .981 on
clips; between 2, points would lie on lines."""


def embed_neighbors(points: torch.Tensor) -> torch.Tensor:
    """Lay out points in the plane by t-SNE (van der Maaten and Hinton 2008).

    The descent begins at the first two principal axes, and draws no numbers: equal points have equal places. It holds
    all pairs of points, so that they should be a few thousand at most.

    Args:
        points: coordinates, shape (m, d).

    Returns:
        Places, float32, shape (m, 2), between −1 and 1 around 0.
    """
    with single_threaded():
        start = first_two_axes(points.float().cpu())
        # 4: points from which on there are neighbors to choose among.
        places = _descend(_affinities(points.float().cpu()), start) if len(points) > 4 else start
        places = places - (places.amax(0) + places.amin(0)) / 2
        return places / places.abs().max().clamp_min(torch.finfo(places.dtype).tiny)


def place_between(points: torch.Tensor, landmarks: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Place points between their nearest landmarks: (n, d), (m, d), (m, 2) → (n, 2).

    A place is the mean of the places of the nearest landmarks, with Gaussian weights of a width that these have.
    """
    squared, near = _nearest(points, landmarks, min(PLACED_BY, len(landmarks)))
    beyond = squared - squared[:, :1]
    weights = torch.exp(-2 * beyond / beyond.mean(1, keepdim=True).clamp_min(torch.finfo(beyond.dtype).tiny))
    return ((weights / weights.sum(1, keepdim=True))[:, :, None] * places[near].double()).sum(1).float()


def first_two_axes(points: torch.Tensor) -> torch.Tensor:
    """Return the coordinates on the first two principal axes, (m, d) → (m, 2); 0 on axes that are not there.

    Of each axis, the largest entry is positive.
    """
    centered = points.double() - points.double().mean(0)
    _, axes = torch.linalg.eigh(centered.T @ centered)
    axes = axes.flip(1)[:, :2]
    axes = axes * axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    plane = torch.zeros(len(points), 2, dtype=torch.float64)
    plane[:, : axes.shape[1]] = centered @ axes
    return plane.float()


def _nearest(points: torch.Tensor, base: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return squared distances of the k nearest rows of a base, ascending, float64, and which these are, (n, k)."""
    squared = torch.cdist(points.double(), base.double()).square()
    nearest = squared.topk(k, 1, largest=False)
    return nearest.values, nearest.indices


def _affinities(points: torch.Tensor) -> torch.Tensor:
    """Return the symmetric affinities of all pairs, shape (m, m), of sum 1: of near neighbors alone, else 0."""
    m = len(points)
    # 3: neighbors for each one in effect; the Gaussian weights of others are next to nothing.
    k = min(int(3 * PERPLEXITY), m - 1)
    squared, near = (nearest[:, 1:] for nearest in _nearest(points, points, k + 1))
    beyond = squared - squared[:, :1]
    wanted = log(min(PERPLEXITY, k / 3))
    beta = 1 / beyond.mean(1, keepdim=True).clamp_min(torch.finfo(beyond.dtype).tiny)
    low, high = torch.zeros_like(beta), torch.full_like(beta, torch.inf)
    for _ in range(50):  # halvings of an interval, beyond what float32 resolves
        weights = torch.exp(-beyond * beta)
        total = weights.sum(1, keepdim=True)
        entropy = total.log() + beta * (beyond * weights).sum(1, keepdim=True) / total
        low, high = torch.where(entropy > wanted, beta, low), torch.where(entropy > wanted, high, beta)
        beta = torch.where(high.isinf(), 2 * beta, (low + high) / 2).clamp_max(torch.finfo(torch.float32).max)
    weights = torch.exp(-beyond * beta)
    affinities = torch.zeros(m, m, dtype=torch.float64).scatter_(1, near, weights / weights.sum(1, keepdim=True))
    return ((affinities + affinities.T) / (2 * m)).float()


def _descend(affinities: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
    """Descend from (m, 2) along the gradient of t-SNE, with momentum and a gain of each coordinate (Jacobs 1988)."""
    m = len(start)
    # 0.01: spread of the start, so that all points attract each other at first.
    y = 0.01 * start / start.std(0)[0].clamp_min(torch.finfo(start.dtype).tiny)
    velocity, gains = torch.zeros_like(y), torch.ones_like(y)
    rate = max(m / EXAGGERATION, 50.0)  # Belkina et al. 2019; of few points, van der Maaten's
    for step in range(STEPS):
        is_early = step < STEPS // 3
        norms = y.square().sum(1)
        near = torch.addmm(norms[:, None] + 1 + norms, y, y.T, alpha=-2).reciprocal_()
        near.fill_diagonal_(0)
        forces = (affinities * (EXAGGERATION if is_early else 1.0)).sub_(near / near.sum()).mul_(near)
        gradient = 4 * (y * forces.sum(1, keepdim=True) - forces @ y)
        gains = torch.where(gradient * velocity < 0, gains + 0.2, gains * 0.8).clamp_min(0.01)
        velocity = (0.5 if is_early else 0.8) * velocity - rate * gains * gradient
        y = y + velocity
        y = y - y.mean(0)
    return y
