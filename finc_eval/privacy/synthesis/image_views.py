"""Linear views of images: pooled to a few cells, or low frequencies of the discrete cosine transform."""

from __future__ import annotations

from math import pi, sqrt

import torch

Shape = tuple[int, int, int]
"""Height, width and channels of an image."""

POOLED_CELLS = 7
"""Cells of a pooled image in each direction."""


def pool(shape: Shape) -> torch.Tensor:
    """Return the view of an image as `POOLED_CELLS` cells in each direction, each a sum of pixels: (c·h·w, cells).

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
    place = torch.arange(side)
    waves = torch.cos(pi / side * (place[:, None] + 0.5) * place) * sqrt(2 / side)
    waves[:, 0] /= sqrt(2)
    return waves


def _cells(side: int) -> torch.Tensor:
    count = min(POOLED_CELLS, side)
    cells = torch.nn.functional.one_hot(torch.arange(side) * count // side, count).float()
    return cells / cells.sum(0).sqrt()
