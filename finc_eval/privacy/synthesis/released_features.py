"""Feature maps to release of tables and images: ours, those of the DP-HP paper, and those of DP-MERF.

All numbers here are constants or follow from public descriptions. None is fitted to the private data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.feature_maps.hermite import (
    MAX_HERMITE_FEATURES,
    CoordinateProduct,
    CoordinateSum,
    TotalDegree,
)
from finc_eval.feature_maps.hermite_series import best_rho, rho_of
from finc_eval.privacy.synthesis.bounded_moments import BoundedMoments
from finc_eval.privacy.synthesis.image_views import Shape, pooled
from finc_eval.privacy.synthesis.tabular import MAX_POSITION, Table

if TYPE_CHECKING:
    from finc_eval.feature_maps.base import FeatureMap

LEVEL_SCALE = 0.5
"""Length scale of the sum kernel over positions: levels 1 apart have a kernel value of 0.14."""

JOINT_BUDGET = 3.0
"""Budget of the features of pairs, relative to those of single columns, which need less
(benchmarks/dp_hp_marginals.py)."""

RARE_CLASS_SQUARE = 2.0
"""Mean square of the records of a rare class, relative to all records: first moments are released for such classes."""

MAX_MEHLER_RHO = 0.05
"""Largest Mehler ρ of total-degree features: near 0, all their weight of one degree is in one polynomial."""

DRAWING_SQUARE = 0.125
"""Mean square of a pixel of a drawing in white on black, such as a digit."""

SECOND_BUDGET = 2.0
"""Budget of second moments, relative to first ones, each of which is known better (benchmarks/dp_hp_mnist.py)."""

FREQUENCIES = 1000
"""Number of random frequencies, as in the code of DP-MERF for discretized tables: 2 000 features."""


@dataclass(frozen=True)
class Statistic:
    """A feature map of records whose mean is released: φ(view(x)), by class.

    Attributes:
        phi: feature map, made of public numbers.
        view: (k, d), public linear map from records to the input of φ; None for the record itself.
        budget: share of the budget, in units of μ², relative to the other statistics.
        by_class: release one mean per class. Otherwise one mean of all records is released, in which the noise is
            smaller than in the mean of one class by that class's share.
    """

    phi: FeatureMap
    view: torch.Tensor | None = None
    budget: float = 1.0
    by_class: bool = True

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Compute the features of records: (n, k) → (n, q), with gradients."""
        return self.phi(rows if self.view is None else rows @ self.view)

    def to(self, device: str | torch.device) -> Statistic:
        """Return the same statistic on another device."""
        return replace(self, phi=self.phi.to(device), view=None if self.view is None else self.view.to(device))


def table_statistics(table: Table, degree: Literal[1, 2] = 2) -> tuple[Statistic, ...]:
    """Return our statistics of a table.

    Args:
        table: description of the table.
        degree: 2 for a sum kernel over the positions and total-degree features of the codes. 1 for bounded first
            moments alone, the relation of the class to each column, which suits a few hundred records.
    """
    if degree == 1:
        scale = sqrt(RARE_CLASS_SQUARE * table.mean_square(table.amounts))
        return (Statistic(BoundedMoments(table.amounts.shape[1], 1, length_scale=scale), table.amounts),)
    joint = Statistic(_codes_to_degree_2(table), table.codes, JOINT_BUDGET)
    order, mehler_rho = round(3.5 * MAX_POSITION), best_rho(MAX_POSITION, LEVEL_SCALE)
    single = CoordinateSum(len(table.columns), order, length_scale=LEVEL_SCALE, rho=mehler_rho)
    return Statistic(single, table.positions), joint


def paper_table_statistics(
    table: Table,
    seed: int,
    *,
    order: int = 100,
    product_order: int = 10,
    product_columns: int = 3,
    epochs: int = 8,
    sum_share: float = 0.6,
) -> tuple[Statistic, ...]:
    """Return the paper's statistics of a table: a sum kernel of high order, and products of a few random columns.

    Each column is one number, and the orders are the paper's. Length scales come from the public positions, where the
    paper's code takes medians of the private data. The products of all epochs are released at once and fitted together.
    """
    rng = np.random.default_rng(seed)
    count, mehler_rho = len(table.columns), rho_of(LEVEL_SCALE)
    single = Statistic(
        CoordinateSum(count, order, length_scale=LEVEL_SCALE, rho=mehler_rho), table.positions, sum_share * epochs
    )
    products = [
        Statistic(
            CoordinateProduct(
                count,
                product_order,
                length_scale=LEVEL_SCALE,
                rho=mehler_rho,
                coordinates=sorted(rng.choice(count, min(product_columns, count), replace=False).tolist()),
            ),
            table.positions,
            1 - sum_share,
        )
        for _ in range(epochs)
    ]
    return (single, *products)


def fourier_table_statistics(table: Table, seed: int) -> tuple[Statistic, ...]:
    """Return the statistics of DP-MERF of a table: random Fourier features of the codes, with our length scale."""
    scale = sqrt(table.mean_square(table.codes) / 2)
    phi = RandomFourierFeatures(table.codes.shape[1], FREQUENCIES, sigma=scale, seed=seed, orthogonal=False)
    return (Statistic(phi, table.codes),)


def image_statistics(shape: Shape) -> tuple[Statistic, ...]:
    """Return our statistics of images: first moments of all pixels, second moments of a coarser image, both bounded.

    Records are channels first.
    """
    view = pooled(shape)
    pixels = shape[0] * shape[1] * shape[2]
    first = BoundedMoments(pixels, 1, length_scale=sqrt(pixels * DRAWING_SQUARE))
    # The norm of the pooled image is at most that of the image.
    second = BoundedMoments(view.shape[1], 2, lowest=2, length_scale=sqrt(pixels * DRAWING_SQUARE / 2))
    return Statistic(first), Statistic(second, view, SECOND_BUDGET)


def paper_image_statistics(
    shape: Shape,
    seed: int,
    *,
    order: int = 100,
    length_scale: float = sqrt(0.005),
    product_order: int = 20,
    product_pixels: int = 2,
    product_length_scale: float = sqrt(0.15),
    epochs: int = 10,
    sum_share: float = 0.8,
) -> tuple[Statistic, ...]:
    """Return the paper's statistics of images (Table 9): a sum kernel of high order, and products of random pixels.

    The paper's pixels are neither centered nor scaled, so order 100 holds two thirds of ‖φ‖². The products of all
    epochs are released at once and fitted together, which is what the paper's accounting comes to.
    """
    rng = np.random.default_rng(seed)
    pixels = shape[0] * shape[1] * shape[2]
    # The sum kernel has too many features for one map. Maps of some of the pixels, each with its share of the budget
    # and features √parts times as large, are the same release.
    parts = torch.eye(pixels).chunk(-(-pixels * (order + 1) // MAX_HERMITE_FEATURES), 1)
    sums = [
        Statistic(
            CoordinateSum(part.shape[1], order, length_scale=length_scale),
            part,
            sum_share * epochs * part.shape[1] / pixels,
        )
        for part in parts
    ]
    products = [
        Statistic(
            CoordinateProduct(
                pixels,
                product_order,
                length_scale=product_length_scale,
                coordinates=sorted(rng.choice(pixels, product_pixels, replace=False).tolist()),
            ),
            budget=1 - sum_share,
        )
        for _ in range(epochs)
    ]
    return (*sums, *products)


def fourier_image_statistics(shape: Shape, seed: int) -> tuple[Statistic, ...]:
    """Return the statistics of DP-MERF of images: random Fourier features of the pixels."""
    pixels = shape[0] * shape[1] * shape[2]
    scale = sqrt(pixels * DRAWING_SQUARE) / 2
    return (Statistic(RandomFourierFeatures(pixels, FREQUENCIES, sigma=scale, seed=seed, orthogonal=False)),)


def _codes_to_degree_2(table: Table) -> TotalDegree:
    """Return total-degree features of the codes with most of their weight on degree 2.

    For a small Mehler ρ the weight of degree k at x is Poisson with mean ‖x‖²/l², so l² is half the mean square.
    """
    scale = sqrt(table.mean_square(table.codes) / 2)
    return TotalDegree(table.codes.shape[1], 2, length_scale=scale, rho=min(MAX_MEHLER_RHO, rho_of(scale)))
