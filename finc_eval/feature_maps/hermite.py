"""Hermite-polynomial features of the Gaussian kernel (Vinaroz et al., ICML 2022, arXiv 2106.05042).

Mehler's formula writes k(x, y) = exp(−(x−y)²/(2l²)) as Σ_c φ_c(x) φ_c(y), where φ_c² falls with c: a few features do
what takes thousands of random ones. They are ordered by degree, so that a mean of them shows which moments differ. All
functions work on float32 and float64 tensors on any device, and have gradients.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, log, log1p, sqrt
from typing import Any, ClassVar, Self

import torch
from numpy.typing import ArrayLike

from finc_eval.core.checks import check_count, check_fraction, check_positive
from finc_eval.core.errors import UsageError
from finc_eval.feature_maps.base import FeatureMap, as_center
from finc_eval.feature_maps.hermite_series import hermite, length_scale_of, rho_of
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.names import Kernel

MAX_HERMITE_FEATURES = 20_000
"""Maximum number of features of a map."""


class HermiteFeatures(FeatureMap):
    """Map of embeddings to products of Hermite features of their coordinates.

    ‖φ(x)‖ ≤ 1; it is less where x is so far out that its mass lies in degrees that are cut off. Two images are at most
    √2 apart, because the kernel is never negative and cutting off degrees is a projection.

    Args:
        dim: number of entries of an embedding, d.
        order: highest degree, of each coordinate or in total, depending on the map.
        length_scale: length scale l > 0 of the Gaussian kernel, in the units of the embedding.
        rho: ρ in (0, 1); default: the paper's `rho_of(length_scale)`. Others give the same kernel by another series.
        center: center μ, shape (d,), subtracted first; default: zero.
        device: device on which φ is computed.
    """

    kernel: Kernel = "gaussian"
    kind: ClassVar[str]

    diameter: ClassVar[float] = sqrt(2)
    """sup ‖φ(x) − φ(y)‖ over all x, y: a mean of m images changes by at most diameter/m when one is replaced."""

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
        for name, value in (("dim", dim), ("length_scale", length_scale)):
            check_positive(name, value)
        check_count("order", order, least=0)
        chosen = rho_of(length_scale) if rho is None else rho
        check_fraction("rho", chosen)
        self.order, self.length_scale, self.rho = int(order), float(length_scale), float(chosen)
        self.sigma = self.length_scale
        self.center = as_center(center, dim).to(device)
        if self.size > MAX_HERMITE_FEATURES:
            raise UsageError(
                f"{self.kind} features of {dim} entries to order {order} are {self.size:,}, more than "
                f"{MAX_HERMITE_FEATURES:,}: take a lower order, or project the embeddings to fewer entries"
            )

    @property
    def unit(self) -> float:
        """Factor s of the centered coordinates before `hermite`."""
        return length_scale_of(self.rho) / self.length_scale

    @property
    @abstractmethod
    def degrees(self) -> torch.Tensor:
        """Degree of each feature, shape (q,)."""

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Compute the Gaussian kernel."""
        return gaussian_kernel(x - self.center, y - self.center, self.length_scale)

    def in_double(self, x: torch.Tensor) -> torch.Tensor:
        """Compute φ of every row in float64, where rounding must not matter: (n, d) → (n, q)."""
        return self._features(x.to(self.device, torch.double))

    def tail(self, x: torch.Tensor) -> torch.Tensor:
        """Compute 1 − ‖φ(x)‖² of every row, the mass in degrees that are cut off; |k − φ·φ'| ≤ √(tail · tail')."""
        return 1 - self._features(x).square().sum(-1)

    @property
    def parameters(self) -> dict[str, Any]:
        """Name of the map in `HERMITE_MAPS`, and arguments of the constructor except center and device."""
        return {
            "kind": self.kind,
            "dim": self.dim,
            "order": self.order,
            "length_scale": self.length_scale,
            "rho": self.rho,
        }

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Center of the map."""
        return {"center": self.center}

    def to(self, device: str | torch.device) -> Self:
        """Return the same map on another device."""
        numbers = {name: value for name, value in self.parameters.items() if name != "kind"}
        return type(self)(**numbers, center=self.center, device=device)

    def signature(self) -> tuple[tuple[str, str], ...]:
        """Return kernel, length scale, name of the map, order, ρ, and the map's digest."""
        return (
            ("kernel", self.kernel),
            ("sigma", f"{self.length_scale:.6g}"),
            ("map", self.kind),
            ("order", str(self.order)),
            ("rho", f"{self.rho:.6g}"),
            ("phi", self.digest[:12]),
        )

    def _centered(self, rows: torch.Tensor) -> torch.Tensor:
        """Return rows in the unit of `hermite`."""
        return (rows - self.center.to(rows.dtype)) * self.unit

    def _defining(self) -> tuple[torch.Tensor, ...]:
        text = json.dumps(self.parameters, sort_keys=True)
        return torch.tensor(list(text.encode()), dtype=torch.uint8), self.center

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value}" for name, value in self.parameters.items() if name != "kind")
        return f"{type(self).__name__}({numbers})"


class TotalDegree(HermiteFeatures):
    """All products of one-dimensional features whose degrees add to at most T: C(d+T, T) of them.

    They are the features of the kernel exp(−‖x−y‖²/(2l²)) with the largest eigenvalues, ρ^degree, so that they
    approximate it better than any other choice of as many features.
    """

    kind = "total-degree"

    @property
    def size(self) -> int:
        """Number of features, C(d+T, T)."""
        return comb(self.dim + self.order, self.order)

    @property
    def degrees(self) -> torch.Tensor:
        """Degree of each feature, ascending."""
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

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        # Every feature is Π φ_0(x_d) times ratios φ_c/φ_0, which are polynomials. Where the product underflows, the
        # features are 0, and x is drawn back to the radius where it begins to: a polynomial must not overflow.
        x = self._centered(rows)
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


class CoordinateSum(HermiteFeatures):
    """One-dimensional features of every coordinate, concatenated and divided by √d (eq. 10 of the paper).

    Their kernel is the mean of Gaussian kernels of single coordinates: it sees marginals only.
    """

    kind = "sum"

    @property
    def size(self) -> int:
        """Number of features, d·(C+1)."""
        return self.dim * (self.order + 1)

    @property
    def degrees(self) -> torch.Tensor:
        """Degree of each feature: 0, …, C for every coordinate."""
        return torch.arange(self.order + 1).repeat(self.dim)

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Compute the mean of the Gaussian kernels of all coordinates."""
        total = x.new_zeros(len(x), len(y))
        for one, other in zip(x.T, y.T, strict=True):
            total += gaussian_kernel(one[:, None], other[:, None], self.length_scale)
        return total / self.dim

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        return hermite(self._centered(rows), self.order, self.rho).flatten(1) / sqrt(self.dim)


class CoordinateProduct(HermiteFeatures):
    """All products of one-dimensional features, one of each of D coordinates (eq. 8 of the paper).

    Their kernel is the Gaussian kernel on those coordinates; the paper draws two to seven of them every time.

    Args:
        coordinates: indices of the coordinates; default: all.
    """

    kind = "product"

    def __init__(self, dim: int, order: int, *, coordinates: Sequence[int] | None = None, **rest: Any) -> None:
        chosen = range(dim) if coordinates is None else coordinates
        if not len(chosen) or not all(0 <= place < dim for place in chosen) or len(set(chosen)) < len(chosen):
            raise UsageError(f"coordinates must be some of 0 to {dim - 1}, each once, got {list(chosen)}")
        self.coordinates = tuple(int(place) for place in chosen)
        super().__init__(dim, order, **rest)

    @property
    def size(self) -> int:
        """Number of features, (C+1)^D."""
        return int((self.order + 1) ** len(self.coordinates))

    @property
    def degrees(self) -> torch.Tensor:
        """Total degree of each feature; the degree of the last coordinate changes fastest."""
        degrees = torch.zeros(1, dtype=torch.long)
        for _ in self.coordinates:
            degrees = (degrees[:, None] + torch.arange(self.order + 1)).flatten()
        return degrees

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of every map, and the coordinates."""
        return super().parameters | {"coordinates": list(self.coordinates)}

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Compute the Gaussian kernel on the coordinates."""
        chosen = list(self.coordinates)
        return gaussian_kernel(x[:, chosen], y[:, chosen], self.length_scale)

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        single = hermite(self._centered(rows)[:, list(self.coordinates)], self.order, self.rho)
        features = single[:, 0]
        for place in range(1, single.shape[1]):
            features = (features[:, :, None] * single[:, place, None, :]).flatten(1)
        return features


class SumAndProduct(HermiteFeatures):
    """Features of `CoordinateSum` and of `CoordinateProduct`, concatenated and divided by √2 (eq. 12 of the paper).

    Their kernel is the mean of the two kernels. The paper's is the sum, with images √2 times as far apart, so that the
    noise relative to the distances is the same.

    Args:
        coordinates: indices of the coordinates of the products; default: all.
    """

    kind = "combined"

    def __init__(self, dim: int, order: int, *, coordinates: Sequence[int] | None = None, **rest: Any) -> None:
        self.sum = CoordinateSum(dim, order, **rest)
        self.product = CoordinateProduct(dim, order, coordinates=coordinates, **rest)
        super().__init__(dim, order, **rest)

    @property
    def size(self) -> int:
        """Number of features, d·(C+1) + (C+1)^D."""
        return self.sum.size + self.product.size

    @property
    def degrees(self) -> torch.Tensor:
        """Degree of each feature."""
        return torch.cat([self.sum.degrees, self.product.degrees])

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of every map, and the coordinates of the products."""
        return super().parameters | {"coordinates": list(self.product.coordinates)}

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Compute the mean of both kernels."""
        return (self.sum.exact(x, y) + self.product.exact(x, y)) / 2

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.sum._features(rows), self.product._features(rows)], 1) / sqrt(2)


HERMITE_MAPS: dict[str, type[HermiteFeatures]] = {
    one.kind: one for one in (TotalDegree, CoordinateSum, CoordinateProduct, SumAndProduct)
}
"""Hermite feature maps by their name in signatures and files."""
