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
from math import comb, log, log1p, sqrt
from typing import Any, ClassVar, Self

import torch
from numpy.typing import ArrayLike

from finc_eval.core.checks import check_count, check_fraction, check_positive
from finc_eval.core.errors import UsageError
from finc_eval.feature_maps.base import FeatureMap, as_center
from finc_eval.feature_maps.hermite_series import length_scale_of, rho_of
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.names import Kernel

MAX_TOTAL_DEGREE_FEATURES = 20_000
"""Maximum number of features of total degree; each has its own place in a table."""


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

    def tail(self, x: torch.Tensor) -> torch.Tensor:
        """Compute 1 − ‖φ(x)‖² of every row, the mass in degrees that are cut off; |k − φ·φ'| ≤ √(tail · tail')."""
        return 1 - self.apply(x).square().sum(-1)

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
    most = MAX_TOTAL_DEGREE_FEATURES
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
