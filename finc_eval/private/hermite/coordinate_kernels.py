"""Kernels of single coordinates: their sum, their product, and both (section 3.1 of arXiv 2106.05042).

A product has (C+1)^D features. The features of a point are an outer product of two short vectors, so that sums over
points are one matrix product, and the features of many points never exist at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import reduce
from math import prod, sqrt
from typing import Any

import torch
from numpy.typing import ArrayLike

from finc_eval.core.errors import UsageError, check_count, check_fraction, check_positive
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.private.hermite.hermite import HermiteFeatures, TotalDegree, hermite, length_scale_of, rho_of

MAX_COORDINATE_FEATURES = 1_000_000
"""Maximum number of features of a sum, a product, or both; the largest of the paper's has 537 824."""

Orders = int | Sequence[int]  # one order for all coordinates, or one for each
Scales = float | Sequence[float]  # one length scale or ρ for all coordinates, or one for each


def factors_of(parts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two matrices, (n, a) and (n, b), whose outer products by row have all parts, each (n, c)."""
    half = (len(parts) + 1) // 2
    left = reduce(_by_row, parts[:half])
    return left, reduce(_by_row, parts[half:], torch.ones_like(left[:, :1]))


def _by_row(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the outer product of (n, a) and (n, b) in each row, flattened to (n, a b)."""
    return (left[:, :, None] * right[:, None]).flatten(1)


class CoordinateFeatures(HermiteFeatures):
    """Features made of the one-dimensional features of coordinates.

    Order, length scale and ρ are one number, or one for each coordinate (footnote 6 of the paper). The default of ρ is
    the paper's `rho_of(length_scale)`; others give the same kernel by another series.
    """

    most = MAX_COORDINATE_FEATURES

    def __init__(
        self,
        dim: int,
        order: Orders,
        *,
        length_scale: Scales,
        rho: Scales | None = None,
        center: ArrayLike | torch.Tensor | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        check_positive("dim", dim)
        self.orders = tuple(check_count("order", limit, least=0) for limit in _each("order", order, dim))
        scales = [check_positive("length_scale", scale) for scale in _each("length_scale", length_scale, dim)]
        given = [rho_of(scale) for scale in scales] if rho is None else _each("rho", rho, dim)
        rhos = [float(check_fraction("rho", fraction)) for fraction in given]
        self.order = _one_or_all(self.orders)
        self.length_scale = _one_or_all(tuple(map(float, scales)))
        self.rho = _one_or_all(tuple(rhos))
        super().__init__(dim, center, device)
        units = [length_scale_of(fraction) / scale for fraction, scale in zip(rhos, scales, strict=True)]
        self._series = torch.tensor([rhos, units, scales], dtype=torch.double, device=self.device)

    def single(self, number: int, numbers: torch.Tensor) -> torch.Tensor:
        """Compute the features of one coordinate, before any factor: (n,) → (n, C+1)."""
        rho, unit, _ = self._series[:, number].tolist()
        return hermite((numbers - self.center[number].to(numbers.dtype)) * unit, self.orders[number], rho)

    @property
    @abstractmethod
    def coordinates(self) -> tuple[int, ...]:
        """Indices of the coordinates that the kernel sees."""

    def _singles(self, rows: torch.Tensor) -> torch.Tensor:
        """Compute the features of the coordinates to the highest of their orders: (n, d) → (n, D, C+1)."""
        places = list(self.coordinates)
        rhos, units, _ = self._series.to(rows.dtype)[:, places]
        rho = self.rho if isinstance(self.rho, float) else rhos
        centered = (rows - self.center.to(rows.dtype))[:, places]
        return hermite(centered * units, max(self.orders[number] for number in places), rho)


class CoordinateSum(CoordinateFeatures):
    """One-dimensional features of every coordinate, concatenated and divided by √d (eq. 10 of the paper).

    Their kernel is the mean of Gaussian kernels of single coordinates: it sees marginals only.
    """

    kind = "sum"

    @property
    def coordinates(self) -> tuple[int, ...]:
        return tuple(range(self.dim))

    @property
    def size(self) -> int:
        return sum(self.orders) + self.dim

    @property
    def degrees(self) -> torch.Tensor:
        return torch.cat([torch.arange(order + 1) for order in self.orders])

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        total = x.new_zeros(len(x), len(y))
        for column, other, scale in zip(x.T, y.T, self._series[2].tolist(), strict=True):
            total += gaussian_kernel(column[:, None], other[:, None], scale)
        return total / self.dim

    def apply(self, rows: torch.Tensor) -> torch.Tensor:
        features = self._singles(rows).flatten(1) / sqrt(self.dim)
        if features.shape[1] == self.size:
            return features
        orders = torch.tensor(self.orders, device=rows.device)
        return features[:, (torch.arange(max(self.orders) + 1, device=rows.device) <= orders[:, None]).flatten()]


class CoordinateProduct(CoordinateFeatures):
    """All products of one-dimensional features, one of each of D coordinates (eq. 8 of the paper); default: of all.

    Their kernel is the Gaussian kernel on those coordinates; the paper draws two to seven of them every time.
    """

    kind = "product"

    def __init__(self, dim: int, order: Orders, *, coordinates: Sequence[int] | None = None, **rest: Any) -> None:
        chosen = range(dim) if coordinates is None else coordinates
        if not len(chosen) or not all(0 <= number < dim for number in chosen) or len(set(chosen)) < len(chosen):
            raise UsageError(f"coordinates must be some of 0 to {dim - 1}, each once, got {list(chosen)}")
        self._coordinates = tuple(int(number) for number in chosen)
        super().__init__(dim, order, **rest)

    @property
    def coordinates(self) -> tuple[int, ...]:
        return self._coordinates

    @property
    def size(self) -> int:
        return prod(self.orders[number] + 1 for number in self.coordinates)

    @property
    def width(self) -> int:
        sizes = [self.orders[number] + 1 for number in self.coordinates]
        half = (len(sizes) + 1) // 2
        return prod(sizes[:half]) + prod(sizes[half:])

    @property
    def degrees(self) -> torch.Tensor:
        """Total degree of each feature; the degree of the last coordinate changes fastest."""
        degrees = torch.zeros(1, dtype=torch.long)
        for number in self.coordinates:
            degrees = (degrees[:, None] + torch.arange(self.orders[number] + 1)).flatten()
        return degrees

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | {"coordinates": list(self.coordinates)}

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        chosen = list(self.coordinates)
        scales = self._series[2, chosen].to(x.dtype)
        return gaussian_kernel(x[:, chosen] / scales, y[:, chosen] / scales, 1.0)

    def class_sums(
        self, rows: torch.Tensor, labels: torch.Tensor, classes: int, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """Sum φ over the rows of each class by one matrix product a class: (n, d), (n,) → (classes, q)."""
        left, right = (factor.to(dtype) for factor in self._factors(self.prepared(rows)))
        chosen = [labels == label for label in range(classes)]
        return torch.stack([(left[is_in_class].T @ right[is_in_class]).flatten() for is_in_class in chosen])

    def _factors(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return two matrices, (n, a) and (n, b), whose products by row are the features of rows (n, d)."""
        singles = zip(self._singles(rows).unbind(1), self.coordinates, strict=True)
        return factors_of([features[:, : self.orders[number] + 1] for features, number in singles])

    def apply(self, rows: torch.Tensor) -> torch.Tensor:
        return _by_row(*self._factors(rows))


class SumAndProduct(HermiteFeatures):
    """Features of `CoordinateSum` and of `CoordinateProduct`, concatenated and divided by √2 (eq. 12 of the paper).

    Their kernel is the mean of the two kernels. The paper's is the sum, with images √2 times as far apart, so that the
    noise relative to the distances is the same. Products have the numbers of the sum unless they get their own: Table 9
    of the paper has the orders 100 and 20. With a length scale of their own, the default of their ρ follows from it.
    """

    kind = "combined"
    most = MAX_COORDINATE_FEATURES

    def __init__(
        self,
        dim: int,
        order: Orders,
        *,
        length_scale: Scales,
        rho: Scales | None = None,
        product_order: Orders | None = None,
        product_length_scale: Scales | None = None,
        product_rho: Scales | None = None,
        coordinates: Sequence[int] | None = None,
        center: ArrayLike | torch.Tensor | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        self.sum = CoordinateSum(dim, order, length_scale=length_scale, rho=rho, center=center, device=device)
        self.product = CoordinateProduct(
            dim,
            order if product_order is None else product_order,
            length_scale=length_scale if product_length_scale is None else product_length_scale,
            rho=rho if product_rho is None and product_length_scale is None else product_rho,
            coordinates=coordinates,
            center=center,
            device=device,
        )
        self.order, self.length_scale, self.rho = self.sum.order, self.sum.length_scale, self.sum.rho
        super().__init__(dim, center, device)
        self.sigma = self.sum.sigma if self.sum.sigma == self.product.sigma else None

    @property
    def size(self) -> int:
        return self.sum.size + self.product.size

    @property
    def width(self) -> int:
        return self.sum.width + self.product.width

    @property
    def degrees(self) -> torch.Tensor:
        return torch.cat([self.sum.degrees, self.product.degrees])

    @property
    def parameters(self) -> dict[str, Any]:
        product = self.product.parameters
        names = ("order", "length_scale", "rho")
        of_product = {f"product_{name}": product[name] for name in names}
        return super().parameters | of_product | {"coordinates": product["coordinates"]}

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (self.sum.exact(x, y) + self.product.exact(x, y)) / 2

    def class_sums(
        self, rows: torch.Tensor, labels: torch.Tensor, classes: int, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        return torch.cat(
            [part.class_sums(rows, labels, classes, dtype) for part in (self.sum, self.product)], 1
        ) / sqrt(2)

    def apply(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.sum.apply(rows), self.product.apply(rows)], 1) / sqrt(2)


def _each(name: str, value: Any, dim: int) -> Sequence[Any]:
    """Return one value for each coordinate."""
    if not isinstance(value, Sequence):
        return (value,) * dim
    if len(value) != dim:
        raise UsageError(f"{name} must be one number, or one for each of {dim} coordinates, got {len(value)}")
    return value


def _one_or_all(values: tuple[Any, ...]) -> Any:
    """Return the one value of all coordinates, or the tuple of theirs."""
    return values[0] if len(set(values)) == 1 else values


HERMITE_MAPS: dict[str, type[HermiteFeatures]] = {
    features.kind: features for features in (TotalDegree, CoordinateSum, CoordinateProduct, SumAndProduct)
}
"""Hermite feature maps by their name in signatures and files."""
