"""Feature maps to release of tables and images, ours, the DP-HP paper's and DP-MERF's, with bounded moments.

All numbers here are constants or follow from public descriptions. None is fitted to the private data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, exp, factorial, pi, prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from finc_eval.core.errors import UsageError
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.private.hermite.coordinate_kernels import CoordinateProduct, CoordinateSum
from finc_eval.private.hermite.hermite import TotalDegree, best_rho, rho_of
from finc_eval.private.settings import AnySynthesis, DpHp, DpHpFew, DpHpPaper, DpMerf, ImageDataSet
from finc_eval.private.synthesis.tabular import MAX_POSITION, Table

if TYPE_CHECKING:
    from finc_eval.feature_maps.base import FeatureMap


LEVEL_SCALE = 0.5  # length scale of the sum kernel over positions: levels 1 apart have a kernel value of 0.14

JOINT_BUDGET = 3.0
"""Budget of the features of pairs, relative to features of single columns, which need less
(benchmarks/dp_hp_marginals.py)."""


MAX_MEHLER_RHO = 0.05
"""Largest Mehler ρ of total-degree features: near 0, all their weight of one degree is in one polynomial."""

DRAWING_SQUARE = 0.125  # mean square of a pixel of a drawing in white on black, such as a digit

GAMMAS = {"mnist": 20.0, "fashion-mnist": 10.0}  # γ of private runs, Table 9
PIXEL_SCALES: dict[ImageDataSet, float] = {"mnist": sqrt(0.005), "fashion-mnist": sqrt(0.15)}
"""Length scale of the paper's sum and product kernels of pixels by data set (Table 9, which has the squares)."""

SECOND_BUDGET = 2.0
"""Budget of second moments, relative to first ones, each of which is known better (benchmarks/dp_hp_mnist.py)."""


TAYLOR_RHO = 1e-6
"""Mehler's ρ at which features equal Taylor's, exp(−‖x‖²/(2l²)) Π (x_d/l)^{k_d} / √(k_d!), to six digits."""

DIAMETER_MARGIN = 1e-5
"""Relative margin of the diameter over the diameter of Taylor's features, for the digits that follow."""


@dataclass(frozen=True)
class Statistic:
    """A feature map of records whose mean is released: φ(view(x)), by class."""

    phi: FeatureMap  # feature map, made of public numbers
    # (k, d), public linear map from records to the input of φ; None for the record itself
    view: torch.Tensor | None = None
    budget: float = 1.0  # share of the budget, in units of μ², relative to the other statistics
    # release one mean per class. Otherwise one mean of all records is released, in which the noise is smaller than in
    # the mean of one class by that class's share.
    by_class: bool = True
    # factor of the squared distance from the mean in a fit; default: one over the variance of its noise
    weight: float | None = None

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Compute the features of records: (n, k) → (n, q), with gradients."""
        return self.phi(self._seen(rows))

    def class_sums(
        self, rows: torch.Tensor, labels: torch.Tensor, classes: int, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """Sum the features of the records of each class, with gradients: (n, k), (n,) → (classes, q)."""
        return self.phi.class_sums(self._seen(rows), labels, classes, dtype)

    def to(self, device: str | torch.device) -> Statistic:
        """Return the same statistic on another device."""
        return replace(self, phi=self.phi.to(device), view=None if self.view is None else self.view.to(device))

    def _seen(self, rows: torch.Tensor) -> torch.Tensor:
        return rows if self.view is None else rows @ self.view


def table_statistics(method: AnySynthesis, table: Table, seed: int = 0) -> tuple[Statistic, ...]:
    """Return the statistics that a method releases of a table."""
    match method:
        case DpHp():
            # For a small Mehler ρ the weight of degree k at x is Poisson with mean ‖x‖²/l²: l² is half the mean square.
            scale = sqrt(table.mean_square(table.codes) / 2)
            pairs = TotalDegree(table.codes.shape[1], 2, length_scale=scale, rho=min(MAX_MEHLER_RHO, rho_of(scale)))
            order, mehler_rho = round(3.5 * MAX_POSITION), best_rho(MAX_POSITION, LEVEL_SCALE)
            single = CoordinateSum(len(table.columns), order, length_scale=LEVEL_SCALE, rho=mehler_rho)
            return Statistic(single, table.positions), Statistic(pairs, table.codes, JOINT_BUDGET)
        case DpHpFew():
            # The relation of the class to each column: bounded first moments suit a few hundred records.
            # 2.0: mean square of the records of a rare class, relative to all records: first moments are released for
            # such classes.
            scale = sqrt(2.0 * table.mean_square(table.amounts))
            return (Statistic(BoundedMoments(table.amounts.shape[1], 1, length_scale=scale), table.amounts),)
        case DpHpPaper():
            # The published code, adult (and Table 6). Each column is one number. Length scales come from the public
            # positions, where the code takes medians of the private data.
            defaults = DpHpPaper(product_order=5, product_columns=5, draws=20, sum_share=0.6, gamma=0.1)
            return _paper_statistics(method, defaults, len(table.columns), LEVEL_SCALE, seed, table.positions)
        case DpMerf():
            scale, dim = sqrt(table.mean_square(table.codes) / 2), table.codes.shape[1]
            phi = RandomFourierFeatures(dim, method.frequencies, sigma=scale, seed=seed, orthogonal=False)
            return (Statistic(phi, table.codes),)


def image_statistics(method: AnySynthesis, shape: Shape, seed: int = 0) -> tuple[Statistic, ...]:
    """Return the statistics that a method releases of images."""
    pixels = prod(shape)
    match method:
        case DpHp():
            # First moments of all pixels, second moments of a coarser image, whose norm is at most the image's.
            view = pool(shape)
            first = BoundedMoments(pixels, 1, length_scale=sqrt(pixels * DRAWING_SQUARE))
            second = BoundedMoments(view.shape[1], 2, lowest=2, length_scale=sqrt(pixels * DRAWING_SQUARE / 2))
            return Statistic(first), Statistic(second, view, SECOND_BUDGET)
        case DpHpFew():
            raise UsageError("the method dp-hp-few is for tables: for images choose dp-hp, dp-hp-paper or dp-merf")
        case DpHpPaper():
            # Table 9. Pixels are neither centered nor scaled, so order 100 holds two thirds of ‖φ‖².
            defaults = DpHpPaper(
                product_order=20, product_columns=2, draws=10, sum_share=0.8, gamma=GAMMAS[method.data_set]
            )
            return _paper_statistics(method, defaults, pixels, PIXEL_SCALES[method.data_set], seed)
        case DpMerf():
            scale = sqrt(pixels * DRAWING_SQUARE) / 2
            phi = RandomFourierFeatures(pixels, method.frequencies, sigma=scale, seed=seed, orthogonal=False)
            return (Statistic(phi),)


def _paper_statistics(
    asked: DpHpPaper, defaults: DpHpPaper, dim: int, scale: float, seed: int, view: torch.Tensor | None = None
) -> tuple[Statistic, ...]:
    """Return a sum kernel and the products of all epochs, which are released at once and fitted together.

    An epoch's loss is the weighted sum of the squared distances of the sum and of one product. Over all epochs, each
    product has its weight divided by their number. γ weighs the products of tables (eq. 16), whose records have a view,
    and the sum of images (Section H.2).
    """

    def of(name: str) -> Any:
        return getattr(asked, name) or getattr(defaults, name)

    rng, columns, draws = np.random.default_rng(seed), min(of("product_columns"), dim), of("draws")
    places = [sorted(rng.choice(dim, columns, replace=False).tolist()) for _ in range(draws)]
    gamma = of("gamma")
    weight, each = (gamma, 1 / draws) if view is None else (1.0, gamma / draws)
    single = CoordinateSum(dim, asked.sum_order, length_scale=scale)
    products = [
        CoordinateProduct(dim, of("product_order"), length_scale=scale, coordinates=chosen) for chosen in places
    ]
    return (
        Statistic(single, view, of("sum_share") * draws, weight=weight),
        *(Statistic(product, view, 1 - of("sum_share"), weight=each) for product in products),
    )


Shape = tuple[int, int, int]  # Height, width and channels of an image


def pool(shape: Shape) -> torch.Tensor:
    """Return the view of an image as 7 cells in each direction, each a sum of pixels: (c·h·w, cells).

    Its columns have norm 1 and no pixel in common, so norms do not grow.
    """
    height, width, channels = shape
    return channel_by_channel(torch.kron(_cells(height), _cells(width)), channels)


def cosine_basis(height: int, width: int, count: int) -> torch.Tensor:
    """Return the lowest frequencies of the discrete cosine transform: (height · width, count), orthonormal."""
    every = torch.kron(_cosines(height), _cosines(width))
    frequency = (torch.arange(height)[:, None] / height) ** 2 + (torch.arange(width) / width) ** 2
    return every[:, frequency.flatten().argsort(stable=True)[:count]]


def channel_by_channel(view: torch.Tensor, channels: int) -> torch.Tensor:
    """Apply a view to every channel of a record."""
    return torch.kron(torch.eye(channels), view)


def _cosines(side: int) -> torch.Tensor:
    position = torch.arange(side)
    waves = torch.cos(pi / side * (position[:, None] + 0.5) * position) * sqrt(2 / side)
    waves[:, 0] /= sqrt(2)
    return waves


def _cells(side: int) -> torch.Tensor:
    # 7: cells of a pooled image in each direction.
    count = min(7, side)
    cells = torch.nn.functional.one_hot(torch.arange(side) * count // side, count).float()
    return cells / cells.sum(0).sqrt()


class BoundedMoments(TotalDegree):
    """Features of total degrees a, …, T of max(x, 0).

    The squares of the features of degree k add to the Poisson probability e^{−λ} λ^k/k! with λ = ‖x‖²/l². Inner
    products of two images are positive. So images are at most √(2 · max_λ Σ_k e^{−λ} λ^k/k!) apart: 0.86 for degree 1
    alone, 0.74 for degree 2, 1.08 for both. All total-degree features together need √2. Degree 0 says little more than
    how many records there are. Without it, and for records without negative entries (pixels, shares, one-hot vectors),
    less noise hides them. `lowest` is a, `order` is T. Images are longest where ‖x‖² is about l² times the degree.
    """

    kind = "bounded-moments"

    def __init__(
        self, dim: int, order: int, *, lowest: int = 1, length_scale: float, device: str | torch.device = "cpu"
    ) -> None:
        if not 1 <= lowest <= order:
            raise UsageError(f"degrees must go from 1 or more to as many or more, got {lowest} to {order}")
        self.lowest = int(lowest)
        super().__init__(dim, order, length_scale=length_scale, rho=TAYLOR_RHO, device=device)

    @property
    def diameter(self) -> float:  # type: ignore[override]
        """Sup ‖φ(x) − φ(y)‖ over all x, y."""

        def keep(square: float) -> float:
            return exp(-square) * sum(square**k / factorial(k) for k in range(self.lowest, self.order + 1))

        # There is one maximum: the probability of an interval under a Poisson distribution rises, then falls, with its
        # mean.
        best = minimize_scalar(lambda square: -keep(square), bounds=(0, 2 * self.order), method="bounded")
        return (1 + DIAMETER_MARGIN) * sqrt(2 * keep(float(best.x)))

    @property
    def left_out(self) -> int:
        """Number of features of lower degrees."""
        return comb(self.dim + self.lowest - 1, self.dim)

    @property
    def size(self) -> int:
        """Number of features: C(d+T, T) − C(d+a−1, a−1)."""
        return super().size - self.left_out

    @property
    def degrees(self) -> torch.Tensor:
        """Degree of each feature, ascending."""
        return super().degrees[self.left_out :]

    @property
    def parameters(self) -> dict[str, Any]:
        """Arguments of the constructor, except for the device."""
        return {name: value for name, value in super().parameters.items() if name != "rho"} | {"lowest": self.lowest}

    def to(self, device: str | torch.device) -> BoundedMoments:
        """Return the same map on another device."""
        return BoundedMoments(self.dim, self.order, lowest=self.lowest, length_scale=self.length_scale, device=device)

    def apply(self, rows: torch.Tensor) -> torch.Tensor:
        """Compute the features of records without negative entries, but those that are left out."""
        return super().apply(rows.clamp_min(0))[:, self.left_out :]
