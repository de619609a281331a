"""Hermite functions of Mehler's formula, and the order that a domain needs (Vinaroz et al., arXiv 2106.05042)."""

from __future__ import annotations

from math import ceil, lgamma, log, log1p, sqrt
from typing import Any

import numpy as np
import torch

REACH_DEVIATIONS = 3.5
"""Standard deviations beyond the mean degree that a value of ρ must reach; it serves to skip hopeless values of ρ."""

TAIL = 1e-3
"""Part of φ(x)² that an order may cut off."""

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

    φ_c(x) = (1−ρ²)^¼ √(ρ^c / (2^c c!)) H_c(x) exp(−ρx²/(1+ρ)), H_c the physicists' polynomials (eq. 6 of the paper), by
    the recursion of its appendix E: φ_{c+1} = √(2ρ/(c+1)) x φ_c − ρ √(c/(c+1)) φ_{c−1}. The exponential is kept apart
    as a logarithm: for |x| > 14 it underflows in float32, where features of high order do not. ρ is one number, or a
    tensor with one for each entry of the last dimension of x, in units in which the kernel has the length scale
    `length_scale_of(rho)`.
    """
    if x.requires_grad and torch.is_grad_enabled():
        features: torch.Tensor = _Hermite.apply(x, order, rho)
        return features
    return _hermite(x, order, rho)


class _Hermite(torch.autograd.Function):
    """`hermite` whose gradient follows from H_c' = 2c H_{c−1}, so that no step of the recursion is kept."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, order: int, rho: float | torch.Tensor) -> torch.Tensor:
        features = _hermite(x, order, rho)
        ctx.save_for_backward(x, features)
        ctx.rho = rho
        return features

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Return Σ_c g_c φ_c' with φ_c' = √(2cρ) φ_{c−1} − 2ρ/(1+ρ) x φ_c."""
        x, features = ctx.saved_tensors
        rho, (before, ahead) = ctx.rho, (features.movedim(-1, 0), grad.movedim(-1, 0))
        weights = torch.arange(1, len(before), dtype=x.dtype, device=x.device).sqrt()
        raised = torch.einsum("c,c...,c...->...", weights, before[:-1], ahead[1:]) * (2 * rho) ** 0.5
        return raised - 2 * rho / (1 + rho) * x * torch.einsum("c...,c...->...", before, ahead), None, None


def _hermite(x: torch.Tensor, order: int, rho: float | torch.Tensor) -> torch.Tensor:
    large = torch.finfo(x.dtype).max ** 0.25
    base = log1p(-rho * rho) if isinstance(rho, float) else torch.log1p(-rho * rho)
    logarithm = 0.25 * base - rho / (1 + rho) * x.square()
    # |φ_c| ≤ 1, so that no polynomial exceeds exp(−logarithm).
    near = bool((logarithm > -log(large)).all())
    features = x.new_empty(order + 1, *x.shape)
    torch.exp(logarithm, out=features[0])
    before, current = torch.zeros_like(x), features[0].clone() if near else torch.ones_like(x)
    for c in range(order):
        following = (2 * rho / (c + 1)) ** 0.5 * x * current - rho * sqrt(c / (c + 1)) * before
        before, current = current, following
        if not near:
            size = torch.maximum(before.abs(), current.abs()).clamp_min(1)
            factor = torch.where(size > large, size, 1.0)
            before, current, logarithm = before / factor, current / factor, logarithm + factor.log()
        features[c + 1] = current if near else current * logarithm.exp()
    return features.movedim(0, -1)


def degree_probabilities(radius: float, length_scale: float, rho: float, order: int, dims: int = 1) -> torch.Tensor:
    """Return the distribution of ‖φ(x)‖² = 1 over total degrees 0, …, C at a point of this norm: (C+1,), float64.

    Degrees and kernel do not change under rotations, so the point may lie on one axis. The other coordinates, which are
    0, together have a negative binomial distribution. The mass beyond the order is exactly 1 − the sum. `radius` is ‖x
    − μ‖ in the units of the length scale l.
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


def order_for(radius: float, length_scale: float, rho: float) -> int:
    """Return the smallest order that cuts off at most 1e-3 of φ(x)² wherever |x − μ| is at most `radius`."""
    most = ceil(_reach(radius, length_scale, rho, 2 / sqrt(TAIL)))
    kept = degree_probabilities(radius, length_scale, rho, most).cumsum(0)
    return int((kept < 1 - TAIL).sum())


def best_rho(radius: float, length_scale: float) -> float:
    """Return the ρ, of a hundred candidates, with the smallest `order_for`; near ρ = 0 the features are Taylor's."""
    candidates = [float(rho) for rho in np.geomspace(1e-3, 0.999, RHO_CANDIDATES)]
    reach = [_reach(radius, length_scale, rho, REACH_DEVIATIONS) for rho in candidates]
    likely = [rho for rho, far in zip(candidates, reach, strict=True) if far <= 1.5 * min(reach)]
    return min(likely, key=lambda rho: order_for(radius, length_scale, rho))


def _reach(radius: float, length_scale: float, rho: float, deviations: float) -> float:
    """Return the mean plus some standard deviations of the total degree, in closed form."""
    square, tilt = (radius / length_scale) ** 2, (1 - rho) / (1 + rho)
    mean = rho**2 / (1 - rho**2) + square * tilt
    variance = 2 * rho**2 / (1 - rho**2) ** 2 + square * tilt**2
    return mean + deviations * sqrt(variance)
