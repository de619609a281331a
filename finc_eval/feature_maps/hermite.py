"""Hermite-polynomial features of the Gaussian kernel (Vinaroz et al., ICML 2022, arXiv 2106.05042).

Mehler's formula writes k(x, y) = exp(−(x−y)²/(2l²)) as Σ_c φ_c(x) φ_c(y), where φ_c² falls with c: few features do what
takes thousands of random ones, and they are ordered, so that a mean of them says which moments differ. All functions
work on float32 and float64 tensors on any device, and have gradients.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, inf, log, log1p, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.feature_maps.hermite_series import hermite, length_scale_of, rho_of
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.names import Kernel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


LARGEST_MAP = 20_000
"""Features of a map, at most."""


class HermiteFeatures(FeatureMap):
    """A map of embeddings to products of Hermite features of their coordinates.

    ‖φ(x)‖ ≤ 1, and less where x is so far out that its mass lies in degrees that are cut off. Two images are at most
    √2 apart, since the kernel that φ cuts off is nowhere negative and cutting is a projection.

    Args:
        dim: d, the number of entries of an embedding.
        order: the highest degree: of each coordinate, or in all, as the map says.
        length_scale: l > 0 of the Gaussian kernel, in the units of the embedding.
        rho: ρ in (0, 1); `rho_of(length_scale)` is the paper's; any other gives the same kernel by another series.
        center: μ, shape (d,), subtracted first; zero when left out.
        device: where φ is computed.

    Raises:
        FincEvalError: an argument is out of range, or there would be too many features.
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
            if not 0 < value < inf:
                raise FincEvalError(f"{name} must be a positive number, got {value}")
        if order < 0:
            raise FincEvalError(f"order must be 0 or more, got {order}")
        chosen = rho_of(length_scale) if rho is None else rho
        if not 0 < chosen < 1:
            raise FincEvalError(f"rho must lie between 0 and 1, got {chosen}")
        mu = torch.zeros(dim) if center is None else torch.as_tensor(center, dtype=torch.float32).cpu()
        if mu.shape != (dim,):
            raise FincEvalError(f"the center must have shape ({dim},), got {tuple(mu.shape)}")
        self.order, self.length_scale, self.rho = int(order), float(length_scale), float(chosen)
        self.sigma = self.length_scale
        self.center = mu.to(device)
        if self.size > LARGEST_MAP:
            raise FincEvalError(
                f"{self.kind} features of {dim} entries to order {order} are {self.size:,}, more than {LARGEST_MAP:,}: "
                "take a lower order, or project the embeddings to fewer entries"
            )

    @property
    def unit(self) -> float:
        """s, by which centered coordinates are multiplied before `hermite`."""
        return length_scale_of(self.rho) / self.length_scale

    @property
    @abstractmethod
    def degrees(self) -> torch.Tensor:
        """The degree of each feature, shape (q,)."""

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The Gaussian kernel."""
        return gaussian_kernel(x - self.center, y - self.center, self.length_scale)

    def in_double(self, x: torch.Tensor) -> torch.Tensor:
        """φ of every row in float64, where rounding must not matter: (n, d) → (n, q)."""
        return self._features(x.to(self.device, torch.double))

    def tail(self, x: torch.Tensor) -> torch.Tensor:
        """1 − ‖φ(x)‖², of every row: what the order leaves out; |k − φ·φ'| ≤ √(tail · tail')."""
        return 1 - self._features(x).square().sum(-1)

    @property
    def parameters(self) -> dict[str, Any]:
        """Which of `MAPS` it is, and what the constructor takes, save the center and the device."""
        return {
            "kind": self.kind,
            "dim": self.dim,
            "order": self.order,
            "length_scale": self.length_scale,
            "rho": self.rho,
        }

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The center."""
        return {"center": self.center}

    def to(self, device: str | torch.device) -> Self:
        """The same map on another device."""
        numbers = {name: value for name, value in self.parameters.items() if name != "kind"}
        return type(self)(**numbers, center=self.center, device=device)

    def signature(self) -> tuple[tuple[str, str], ...]:
        """Kind, kernel, length scale, order and ρ."""
        return (
            ("kernel", self.kernel),
            ("sigma", f"{self.length_scale:.6g}"),
            ("map", self.kind),
            ("order", str(self.order)),
            ("rho", f"{self.rho:.6g}"),
            ("phi", self.digest[:12]),
        )

    def _centered(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows in the unit of `hermite`."""
        return (rows - self.center.to(rows.dtype)) * self.unit

    def _defining(self) -> tuple[torch.Tensor, ...]:
        text = json.dumps(self.parameters, sort_keys=True)
        return torch.tensor(list(text.encode()), dtype=torch.uint8), self.center

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value}" for name, value in self.parameters.items() if name != "kind")
        return f"{type(self).__name__}({numbers})"


class TotalDegree(HermiteFeatures):
    """All products of one-dimensional features whose degrees add to at most T: C(d+T, T) of them.

    They are the features of the kernel exp(−‖x−y‖²/(2l²)) with the largest eigenvalues, ρ^degree, so no other choice
    of as many comes nearer to it.
    """

    kind = "total-degree"

    @property
    def size(self) -> int:
        """C(d+T, T)."""
        return comb(self.dim + self.order, self.order)

    @property
    def degrees(self) -> torch.Tensor:
        """The degree of each feature, ascending."""
        counts = [comb(self.dim + degree - 1, degree) for degree in range(self.order + 1)]
        return torch.arange(self.order + 1).repeat_interleave(torch.tensor(counts))

    @cached_property
    def _steps(self) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """For each degree from 1: of each feature the one without its last coordinate, that coordinate, its power."""
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
        # Every feature is Π φ_0(x_d) times ratios φ_c/φ_0, which are polynomials. Beyond the radius where the product
        # leaves the range of the type the features are 0, and x is drawn back to it: a polynomial must not overflow.
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
    """One-dimensional features of every coordinate, side by side, over √d: d·(C+1) (eq. 10 of the paper).

    Their kernel is the mean of Gaussian kernels of single coordinates: it sees marginals, and nothing joint.
    """

    kind = "sum"

    @property
    def size(self) -> int:
        """d·(C+1)."""
        return self.dim * (self.order + 1)

    @property
    def degrees(self) -> torch.Tensor:
        """The degree of each feature: 0, …, C for every coordinate."""
        return torch.arange(self.order + 1).repeat(self.dim)

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The mean over coordinates of Gaussian kernels."""
        total = x.new_zeros(len(x), len(y))
        for one, other in zip(x.T, y.T, strict=True):
            total += gaussian_kernel(one[:, None], other[:, None], self.length_scale)
        return total / self.dim

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        return hermite(self._centered(rows), self.order, self.rho).flatten(1) / sqrt(self.dim)


class CoordinateProduct(HermiteFeatures):
    """All products of one-dimensional features, one of each of some coordinates: (C+1)^D (eq. 8 of the paper).

    Their kernel is the Gaussian one on those coordinates; the paper draws two to seven anew each time.

    Args:
        coordinates: which entries; all of them when left out.
    """

    kind = "product"

    def __init__(self, dim: int, order: int, *, coordinates: Sequence[int] | None = None, **rest: Any) -> None:
        chosen = range(dim) if coordinates is None else coordinates
        if not len(chosen) or not all(0 <= place < dim for place in chosen) or len(set(chosen)) < len(chosen):
            raise FincEvalError(f"coordinates must be some of 0 to {dim - 1}, each once, got {list(chosen)}")
        self.coordinates = tuple(int(place) for place in chosen)
        super().__init__(dim, order, **rest)

    @property
    def size(self) -> int:
        """(C+1)^D."""
        return int((self.order + 1) ** len(self.coordinates))

    @property
    def degrees(self) -> torch.Tensor:
        """The degree of each feature, over all coordinates; the last coordinate's changes fastest."""
        degrees = torch.zeros(1, dtype=torch.long)
        for _ in self.coordinates:
            degrees = (degrees[:, None] + torch.arange(self.order + 1)).flatten()
        return degrees

    @property
    def parameters(self) -> dict[str, Any]:
        """With the coordinates."""
        return super().parameters | {"coordinates": list(self.coordinates)}

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The Gaussian kernel on the coordinates."""
        chosen = list(self.coordinates)
        return gaussian_kernel(x[:, chosen], y[:, chosen], self.length_scale)

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        single = hermite(self._centered(rows)[:, list(self.coordinates)], self.order, self.rho)
        features = single[:, 0]
        for place in range(1, single.shape[1]):
            features = (features[:, :, None] * single[:, place, None, :]).flatten(1)
        return features


class SumAndProduct(HermiteFeatures):
    """The features of `CoordinateSum` and of `CoordinateProduct` side by side, over √2 (eq. 12 of the paper).

    Their kernel is the mean of the two; the paper's is the sum, with images √2 times as far apart, and so the same
    noise relative to them.

    Args:
        coordinates: those of the products; all of them when left out.
    """

    kind = "combined"

    def __init__(self, dim: int, order: int, *, coordinates: Sequence[int] | None = None, **rest: Any) -> None:
        self.sum = CoordinateSum(dim, order, **rest)
        self.product = CoordinateProduct(dim, order, coordinates=coordinates, **rest)
        super().__init__(dim, order, **rest)

    @property
    def size(self) -> int:
        """d·(C+1) + (C+1)^D."""
        return self.sum.size + self.product.size

    @property
    def degrees(self) -> torch.Tensor:
        """The degree of each feature."""
        return torch.cat([self.sum.degrees, self.product.degrees])

    @property
    def parameters(self) -> dict[str, Any]:
        """With the coordinates of the products."""
        return super().parameters | {"coordinates": list(self.product.coordinates)}

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The mean of both kernels."""
        return (self.sum.exact(x, y) + self.product.exact(x, y)) / 2

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.sum._features(rows), self.product._features(rows)], 1) / sqrt(2)


MAPS: dict[str, type[HermiteFeatures]] = {
    one.kind: one for one in (TotalDegree, CoordinateSum, CoordinateProduct, SumAndProduct)
}
"""By the name that signatures and files give them."""
