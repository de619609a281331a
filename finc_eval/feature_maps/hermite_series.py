"""Hermite functions of Mehler's formula, and the order that a domain needs (Vinaroz et al., arXiv 2106.05042)."""

from __future__ import annotations

from math import ceil, lgamma, log, log1p, sqrt

import numpy as np
import torch

REACH_DEVIATIONS = 3.5
"""Standard deviations beyond the mean degree that a value of ρ must reach; it serves to skip hopeless values of ρ."""

RHO_CANDIDATES = 100
"""Number of values of ρ among which the best is searched."""


def rho_of(length_scale: float) -> float:
    """Return ρ in (0, 1) with ρ/(1−ρ²) = 1/(2l²), without cancellation for large l."""
    a = 1 / (2 * length_scale**2)
    return 2 * a / (1 + sqrt(1 + 4 * a * a))


def length_scale_of(rho: float) -> float:
    """Return the length scale l for which `rho_of` returns ρ."""
    return sqrt((1 - rho * rho) / (2 * rho))


def hermite(x: torch.Tensor, order: int, rho: float | torch.Tensor) -> torch.Tensor:
    """Compute φ_0(x), …, φ_C(x) of every number: any shape (…) → (…, C+1).

    φ_c(x) = (1−ρ²)^¼ √(ρ^c / (2^c c!)) H_c(x) exp(−ρx²/(1+ρ)), H_c the physicists' polynomials (eq. 6 of the paper),
    by the recursion of its appendix E: φ_{c+1} = √(2ρ/(c+1)) x φ_c − ρ √(c/(c+1)) φ_{c−1}. The exponential is kept
    apart as a logarithm: for |x| > 14 it underflows in float32, where features of high order do not.

    Args:
        x: numbers, in units in which the kernel has the length scale `length_scale_of(rho)`.
        order: highest degree C ≥ 0.
        rho: ρ in (0, 1), one for all numbers, or a tensor of the type of x that has one for each entry of its last
            dimension.
    """
    large = torch.finfo(x.dtype).max ** 0.25
    base = log1p(-rho * rho) if isinstance(rho, float) else torch.log1p(-rho * rho)
    logarithm = 0.25 * base - rho / (1 + rho) * x.square()
    before, current = torch.zeros_like(x), torch.ones_like(x)
    features = [logarithm.exp()]
    for c in range(order):
        following = (2 * rho / (c + 1)) ** 0.5 * x * current - rho * sqrt(c / (c + 1)) * before
        before, current = current, following
        size = torch.maximum(before.detach().abs(), current.detach().abs())
        if bool((size > large).any()):
            factor = torch.where(size > large, size, 1.0)
            before, current, logarithm = before / factor, current / factor, logarithm + factor.log()
        features.append(current * logarithm.exp())
    return torch.stack(features, -1)


def degree_probabilities(radius: float, length_scale: float, rho: float, order: int, dims: int = 1) -> torch.Tensor:
    """Return the distribution of ‖φ(x)‖² = 1 over total degrees 0, …, C at a point of this norm: (C+1,), float64.

    Degrees and kernel do not change under rotations, so the point may lie on one axis. The other coordinates, which are
    0, together have a negative binomial distribution. The mass beyond the order is exactly 1 − the sum.

    Args:
        radius: norm ‖x − μ‖, in the units of the length scale.
        length_scale: length scale l > 0.
        rho: ρ in (0, 1), as in `HermiteFeatures`.
        order: highest degree C.
        dims: number of coordinates.
    """
    scaled = torch.tensor(radius * length_scale_of(rho) / length_scale, dtype=torch.double)
    on_axis = hermite(scaled, order, rho).square()
    if dims == 1:
        return on_axis
    shape, half = (dims - 1) / 2, torch.arange(order // 2 + 1, dtype=torch.double)
    others = torch.zeros_like(on_axis)
    others[::2] = (
        shape * log1p(-rho * rho)
        + 2 * half * log(rho)
        + torch.lgamma(half + shape)
        - lgamma(shape)
        - torch.lgamma(half + 1)
    ).exp()
    return torch.from_numpy(np.convolve(on_axis.numpy(), others.numpy())[: order + 1])


def order_for(radius: float, length_scale: float, rho: float, dims: int = 1, tail: float = 1e-3) -> int:
    """Return the smallest order that cuts off at most `tail` of ‖φ(x)‖² wherever ‖x − μ‖ is at most `radius`."""
    most = ceil(_reach(radius, length_scale, rho, dims, 2 / sqrt(tail)))
    kept = degree_probabilities(radius, length_scale, rho, most, dims).cumsum(0)
    return int((kept < 1 - tail).sum())


def best_rho(radius: float, length_scale: float, dims: int = 1, tail: float = 1e-3) -> float:
    """Return the ρ, of a hundred candidates, with the smallest `order_for`; near ρ = 0 the features are Taylor's."""
    candidates = [float(rho) for rho in np.geomspace(1e-3, 0.999, RHO_CANDIDATES)]
    reach = [_reach(radius, length_scale, rho, dims, REACH_DEVIATIONS) for rho in candidates]
    likely = [rho for rho, far in zip(candidates, reach, strict=True) if far <= 1.5 * min(reach)]
    return min(likely, key=lambda rho: order_for(radius, length_scale, rho, dims, tail))


def _reach(radius: float, length_scale: float, rho: float, dims: int, deviations: float) -> float:
    """Return the mean plus some standard deviations of the total degree, in closed form."""
    square, tilt = (radius / length_scale) ** 2, (1 - rho) / (1 + rho)
    mean = dims * rho**2 / (1 - rho**2) + square * tilt
    variance = dims * 2 * rho**2 / (1 - rho**2) ** 2 + square * tilt**2
    return mean + deviations * sqrt(variance)
