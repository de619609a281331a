"""Hermite-polynomial features of the Gaussian kernel (Vinaroz et al., ICML 2022, arXiv 2106.05042).

Mehler's formula writes k(x, y) = exp(−(x−y)²/(2l²)) as Σ_c φ_c(x) φ_c(y), where φ_c² falls with c: a few features do
what takes thousands of random ones. They are ordered by degree, so that a mean of them shows which moments differ. All
functions work on float32 and float64 tensors on any device, and have gradients.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from functools import cached_property
from itertools import combinations_with_replacement
from math import ceil, comb, lgamma, log, log1p, sqrt
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike

from finc_eval.core.errors import UsageError, check_count, check_fraction, check_positive
from finc_eval.feature_maps.base import FeatureMap, as_center
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.names import Kernel

SERIES_TAIL = 1e-3  # part of φ(x)² that an order may cut off


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
    """Compute φ_0 … φ_order of numbers of any shape, along a new first axis."""
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
    most = ceil(_reach(radius, length_scale, rho, 2 / sqrt(SERIES_TAIL)))
    kept = degree_probabilities(radius, length_scale, rho, most).cumsum(0)
    return int((kept < 1 - SERIES_TAIL).sum())


def best_rho(radius: float, length_scale: float) -> float:
    """Return the ρ, of a hundred candidates, with the smallest `order_for`; near ρ = 0 the features are Taylor's."""
    # 100: number of values of ρ among which the best is searched.
    candidates = [float(rho) for rho in np.geomspace(1e-3, 0.999, 100)]
    # 3.5: standard deviations beyond the mean degree that a value of ρ must reach; it serves to skip hopeless values of
    # ρ.
    reach = [_reach(radius, length_scale, rho, 3.5) for rho in candidates]
    likely = [rho for rho, far in zip(candidates, reach, strict=True) if far <= 1.5 * min(reach)]
    return min(likely, key=lambda rho: order_for(radius, length_scale, rho))


def _reach(radius: float, length_scale: float, rho: float, deviations: float) -> float:
    """Return the mean plus some standard deviations of the total degree, in closed form."""
    square, tilt = (radius / length_scale) ** 2, (1 - rho) / (1 + rho)
    mean = rho**2 / (1 - rho**2) + square * tilt
    variance = 2 * rho**2 / (1 - rho**2) ** 2 + square * tilt**2
    return mean + deviations * sqrt(variance)


class HermiteFeatures(FeatureMap):
    """Map of embeddings to products of Hermite features of their coordinates.

    ‖φ(x)‖ ≤ 1; it is less where x is so far out that its mass lies in degrees that are cut off. Two images are at most
    √2 apart, because the kernel is never negative and cutting off degrees is a projection.

    Args:
        dim: number of entries of an embedding, d.
        center: center μ, shape (d,), subtracted first; default: zero.
        device: device on which φ is computed.
    """

    kernel: Kernel = "gaussian"
    kind: ClassVar[str]
    order: int | tuple[int, ...]  # highest degree, of each coordinate or in total, depending on the map
    length_scale: float | tuple[float, ...]  # length scale l > 0 of the Gaussian kernel, in the units of the embedding
    rho: float | tuple[float, ...]  # ρ in (0, 1) of Mehler's formula

    diameter: ClassVar[float] = sqrt(2)
    """sup ‖φ(x) − φ(y)‖ over all x, y: a mean of m images changes by at most diameter/m when one is replaced."""

    most: ClassVar[int]
    """Maximum number of features of the map."""

    def __init__(self, dim: int, center: ArrayLike | torch.Tensor | None, device: str | torch.device) -> None:
        check_positive("dim", dim)
        self.center = as_center(center, dim).to(device)
        self.sigma = self.length_scale if isinstance(self.length_scale, float) else None
        if self.size > self.most:
            raise UsageError(
                f"{self.kind} features of {dim} entries to order {_text(self.order)} are {self.size:,}, more than "
                f"{self.most:,}: take a lower order, or fewer entries"
            )

    @property
    @abstractmethod
    def degrees(self) -> torch.Tensor:
        """Degree of each feature, shape (q,)."""

    def in_double(self, x: torch.Tensor) -> torch.Tensor:
        """Compute φ of every row in float64, where rounding must not matter: (n, d) → (n, q)."""
        return self.apply(x.to(self.device, torch.double))

    @property
    def parameters(self) -> dict[str, Any]:
        """Name of the map in `HERMITE_MAPS`, and arguments of the constructor except center and device."""
        numbers = {"order": self.order, "length_scale": self.length_scale, "rho": self.rho}
        return {"kind": self.kind, "dim": self.dim, **numbers}

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return {"center": self.center}

    def to(self, device: str | torch.device) -> Self:
        numbers = {name: value for name, value in self.parameters.items() if name != "kind"}
        return type(self)(**numbers, center=self.center, device=device)

    def signature(self) -> tuple[tuple[str, str], ...]:
        return (
            ("kernel", self.kernel),
            ("sigma", _text(self.length_scale)),
            ("map", self.kind),
            ("order", _text(self.order)),
            ("rho", _text(self.rho)),
            ("phi", self.digest[:12]),
        )

    def _defining(self) -> tuple[torch.Tensor, ...]:
        text = json.dumps(self.parameters, sort_keys=True)
        return torch.tensor(list(text.encode()), dtype=torch.uint8), self.center

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value}" for name, value in self.parameters.items() if name != "kind")
        return f"{type(self).__name__}({numbers})"


class TotalDegree(HermiteFeatures):
    """All products of one-dimensional features whose degrees add to at most T: C(d+T, T) of them.

    They are the features of the kernel exp(−‖x−y‖²/(2l²)) with the largest eigenvalues, ρ^degree, so that they
    approximate it better than any other choice of as many features. The default of ρ is the paper's
    `rho_of(length_scale)`; others give the same kernel by another series.
    """

    kind = "total-degree"
    # 20_000: maximum number of features of total degree; each has its own place in a table.
    most = 20_000
    order: int
    length_scale: float
    rho: float

    def __init__(
        self,
        dim: int,
        order: int,
        *,
        length_scale: float,
        rho: float | None = None,
        center: ArrayLike | torch.Tensor | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        self.order = check_count("order", order, least=0)
        self.length_scale = float(check_positive("length_scale", length_scale))
        self.rho = float(check_fraction("rho", rho_of(self.length_scale) if rho is None else rho))
        super().__init__(dim, center, device)

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return gaussian_kernel(x - self.center, y - self.center, self.length_scale)

    @property
    def size(self) -> int:
        return comb(self.dim + self.order, self.order)

    @property
    def degrees(self) -> torch.Tensor:
        counts = [comb(self.dim + degree - 1, degree) for degree in range(self.order + 1)]
        return torch.arange(self.order + 1).repeat_interleave(torch.tensor(counts))

    @cached_property
    def _steps(self) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """For each degree from 1, three indices per feature: its parent, its last coordinate, and that one's power.

        The parent of a feature is the feature without the last coordinate.
        """
        places: dict[tuple[int, ...], int] = {(): 0}
        steps = []
        for degree in range(1, self.order + 1):
            rows = []
            for index in combinations_with_replacement(range(self.dim), degree):
                power = index.count(index[-1])
                rows.append((places[index[:-power]], index[-1], power))
                places[index] = len(places)
            parents, dims, powers = torch.tensor(rows, device=self.device).unbind(1)
            steps.append((parents, dims, powers))
        return steps

    def apply(self, rows: torch.Tensor) -> torch.Tensor:
        # Every feature is Π φ_0(x_d) times ratios φ_c/φ_0, which are polynomials. Where the product underflows, the
        # features are 0, and x is drawn back to the radius where it begins to: a polynomial must not overflow.
        x = (rows - self.center.to(rows.dtype)) * (length_scale_of(self.rho) / self.length_scale)
        radius = sqrt(-log(torch.finfo(x.dtype).tiny) * (1 + self.rho) / self.rho)
        x = x.clamp(-radius, radius)  # or its square would overflow
        x = x * (x.square().sum(1, keepdim=True).clamp_min(radius**2).rsqrt() * radius)
        squared_norms = x.square().sum(1)
        base = (0.25 * self.dim * log1p(-(self.rho**2)) - self.rho / (1 + self.rho) * squared_norms).exp()
        ratios = [torch.ones_like(x), sqrt(2 * self.rho) * x]
        for c in range(1, self.order):
            scale, back = sqrt(2 * self.rho / (c + 1)), self.rho * sqrt(c / (c + 1))
            ratios.append(scale * x * ratios[-1] - back * ratios[-2])
        powers_of = torch.stack(ratios, -1)
        blocks = [base[:, None]]
        for parents, dims, powers in self._steps:
            below = torch.cat(blocks, 1)
            blocks.append(below[:, parents] * powers_of[:, dims, powers])
        return torch.cat(blocks, 1)


def _text(value: object) -> str:
    """Return a number, or one number for each coordinate, as the text of a signature."""
    return ",".join(map(_text, value)) if isinstance(value, tuple) else f"{value:.6g}"
