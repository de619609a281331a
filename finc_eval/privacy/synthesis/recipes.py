"""Which statistics to release of which data: ours, and the settings of the DP-HP paper and of DP-MERF.

All numbers here are constants or follow from public descriptions; none is fitted to the data that are released.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Literal

import numpy as np
import torch

from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.feature_maps.hermite import MAX_HERMITE_FEATURES, CoordinateProduct, CoordinateSum, TotalDegree
from finc_eval.feature_maps.hermite_series import best_rho, rho_of
from finc_eval.privacy.synthesis.bounded_moments import BoundedMoments
from finc_eval.privacy.synthesis.dp_hp import Statistic
from finc_eval.privacy.synthesis.tabular import POSITIONS, Table

Degree = Literal[1, 2]

Shape = tuple[int, int, int]
"""Height, width and channels of an image."""

LEVEL_SCALE = 0.5
"""Length scale of the sum kernel over positions: levels 1 apart have a kernel of 0.14."""

JOINT_BUDGET = 3.0
"""Of the features of pairs, against 1 for those of single columns, which need less (benchmarks/dp_hp_marginals.py)."""

OUTLYING = 2.0
"""Mean square of a rare class's records, relative to all: they are what first moments are released for."""

FLAT = 0.05
"""ρ of total-degree features at most: near 0 all their weight of one degree is in one polynomial."""

DRAWN = 0.125
"""Mean square of a pixel of a drawing in white on black, such as a digit."""

SECOND_BUDGET = 2.0
"""Of second moments, against 1 for first ones, of which each is known better (benchmarks/dp_hp_mnist.py)."""

COARSE = 7
"""Cells of a pooled image in each direction."""

FREQUENCIES = 1000
"""Of random Fourier features, as many as the code of DP-MERF takes for discretized tables: 2 000 features."""


def total_degree(dim: int, degree: int, mean_square: float, center: torch.Tensor | None = None) -> TotalDegree:
    """Total-degree features with most of their weight on the highest degree T.

    For small ρ the weight of degree k at x is Poisson with mean ‖x‖²/l², so l² = mean square / T.
    """
    scale = sqrt(mean_square / degree)
    return TotalDegree(dim, degree, length_scale=scale, rho=min(FLAT, rho_of(scale)), center=center)


def table_recipe(table: Table, degree: Degree = 2) -> tuple[Statistic, ...]:
    """Ours for tables: total-degree features of the codes, to degree 2 next to the sum kernel over the positions.

    Degree 1 is for a few hundred records: bounded first moments alone, what a class has to do with each column.
    """
    if degree == 1:
        scale = sqrt(OUTLYING * table.mean_square(table.amounts))
        return (Statistic(BoundedMoments(table.amounts.shape[1], 1, length_scale=scale), table.amounts),)
    mean_square = table.mean_square(table.codes)
    joint = Statistic(total_degree(table.codes.shape[1], degree, mean_square), table.codes, JOINT_BUDGET)
    order = round(3.5 * POSITIONS)
    single = CoordinateSum(len(table.columns), order, length_scale=LEVEL_SCALE, rho=best_rho(POSITIONS, LEVEL_SCALE))
    return Statistic(single, table.positions), joint


def paper_table_recipe(
    table: Table,
    seed: int,
    *,
    order: int = 100,
    product_order: int = 10,
    product_columns: int = 3,
    epochs: int = 8,
    sum_share: float = 0.6,
) -> tuple[Statistic, ...]:
    """The paper's for tables: a sum kernel of high order, and product kernels of a few columns drawn anew each epoch.

    One number for each column and its paper's orders, but length scales from the public positions where the paper's
    code takes medians of the private data; all epochs' products are released at once and fitted together.
    """
    rng = np.random.default_rng(seed)
    count, rho = len(table.columns), rho_of(LEVEL_SCALE)
    single = Statistic(
        CoordinateSum(count, order, length_scale=LEVEL_SCALE, rho=rho), table.positions, sum_share * epochs
    )
    products = [
        Statistic(
            CoordinateProduct(
                count,
                product_order,
                length_scale=LEVEL_SCALE,
                rho=rho,
                coordinates=sorted(rng.choice(count, min(product_columns, count), replace=False).tolist()),
            ),
            table.positions,
            1 - sum_share,
        )
        for _ in range(epochs)
    ]
    return (single, *products)


def fourier_table_recipe(table: Table, seed: int, frequencies: int = FREQUENCIES) -> tuple[Statistic, ...]:
    """DP-MERF for tables: random Fourier features of the codes, with the length scale of our own recipe."""
    scale = sqrt(table.mean_square(table.codes) / 2)
    phi = RandomFourierFeatures(table.codes.shape[1], frequencies, sigma=scale, seed=seed, orthogonal=False)
    return (Statistic(phi, table.codes),)


def image_recipe(shape: Shape, mean_square: float = DRAWN) -> tuple[Statistic, ...]:
    """Ours for images: first moments of all pixels, second moments of a coarser image, both bounded.

    Args:
        shape: height, width and channels; records are channels first.
        mean_square: of a pixel, publicly known: lines on black by default, about 0.3 for photographs.
    """
    view = pooled(shape)
    pixels = shape[0] * shape[1] * shape[2]
    first = BoundedMoments(pixels, 1, length_scale=sqrt(pixels * mean_square))
    # The norm of the pooled image is at most that of the image.
    second = BoundedMoments(view.shape[1], 2, lowest=2, length_scale=sqrt(pixels * mean_square / 2))
    return Statistic(first), Statistic(second, view, SECOND_BUDGET)


def fourier_image_recipe(
    shape: Shape, seed: int, mean_square: float = DRAWN, frequencies: int = FREQUENCIES
) -> tuple[Statistic, ...]:
    """DP-MERF for images: random Fourier features of the pixels."""
    pixels = shape[0] * shape[1] * shape[2]
    scale = sqrt(pixels * mean_square) / 2
    return (Statistic(RandomFourierFeatures(pixels, frequencies, sigma=scale, seed=seed, orthogonal=False)),)


def paper_image_recipe(
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
    """The paper's for images (Table 9): a sum kernel of high order, products of a few pixels drawn anew each epoch.

    Its pixels are neither centered nor scaled, so order 100 holds two thirds of ‖φ‖². All epochs' products are
    released at once and fitted together, which is what their accounting comes to.
    """
    rng = np.random.default_rng(seed)
    pixels = shape[0] * shape[1] * shape[2]
    # The sum kernel has too many features for one map. Those of parts of the pixels, each with a part of the budget and
    # pixels √parts times as large in it, are the same release.
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


def cosine_basis(height: int, width: int, count: int) -> torch.Tensor:
    """The lowest frequencies of the discrete cosine transform of images: (height · width, count), orthonormal."""
    every = torch.kron(_cosines(height), _cosines(width))
    frequency = (torch.arange(height)[:, None] / height) ** 2 + (torch.arange(width) / width) ** 2
    return every[:, frequency.flatten().argsort(stable=True)[:count]]


def pooled(shape: Shape) -> torch.Tensor:
    """The view of an image as one of `COARSE` cells in each direction, each a sum of pixels: (c·h·w, cells).

    Columns have norm 1 and no pixel in common, so norms do not grow.
    """
    height, width, channels = shape
    return channel_by_channel(torch.kron(_cells(height), _cells(width)), channels)


def channel_by_channel(view: torch.Tensor, channels: int) -> torch.Tensor:
    """The same view of every channel of a record."""
    return torch.kron(torch.eye(channels), view)


def _cosines(side: int) -> torch.Tensor:
    place = torch.arange(side)
    waves = torch.cos(pi / side * (place[:, None] + 0.5) * place) * sqrt(2 / side)
    waves[:, 0] /= sqrt(2)
    return waves


def _cells(side: int) -> torch.Tensor:
    count = min(COARSE, side)
    cells = torch.nn.functional.one_hot(torch.arange(side) * count // side, count).float()
    return cells / cells.sum(0).sqrt()
