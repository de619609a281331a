"""`PrincipalAxes`: coordinates of embeddings on the axes of largest variance."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log2
from typing import Self

import torch

from finc_eval.core.device import sent
from finc_eval.numerics.eigen import LowRank, top_eigenpairs

MAX_AXES = 64
"""Principal axes that are kept. Without the noise in all other directions k-means finds small kinds more often, and
neighbors are faster to find."""


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """Axes of largest variance of some rows; what is beyond them is mostly noise.

    Attributes:
        origin: mean of the rows, shape (d,).
        axes: orthonormal axes as columns, shape (d, k).
        unit: length that coordinates are in.
    """

    origin: torch.Tensor
    axes: torch.Tensor
    unit: float

    @classmethod
    def of(cls, rows: torch.Tensor) -> Self:
        """Fit the axes, at most `MAX_AXES`, to rows of shape (m, d)."""
        origin = rows.double().mean(0).float()
        centered = (rows - origin).cpu()
        unit = unit_of(centered)
        return cls(origin, leading_axes(centered / unit), unit)

    def to(self, device: torch.device) -> Self:
        """Return the same axes on a device."""
        return type(self)(sent(self.origin, device), sent(self.axes, device), self.unit)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the coordinates of rows, (n, d) → (n, k), on the device of the axes."""
        return (rows - self.origin) / self.unit @ self.axes

    def points(self, coordinates: torch.Tensor) -> torch.Tensor:
        """Return the points that have these coordinates, relative to the origin: (n, k) → (n, d)."""
        return coordinates @ self.axes.T * self.unit


def unit_of(rows: torch.Tensor) -> float:
    """Return a power of two near the largest entry: squares of rows over it neither overflow nor vanish."""
    largest = float(rows.abs().max())
    return 2.0 ** floor(log2(largest)) if largest > 0 else 1.0


def leading_axes(centered: torch.Tensor) -> torch.Tensor:
    """Return the axes of largest variance of rows of mean 0, (m, d) → (d, k), or all where they are few."""
    m, dim = centered.shape
    if dim <= MAX_AXES:
        return torch.eye(dim)
    covariance = LowRank(centered, centered.new_full((m,), 1 / m)) if m < dim else centered.T @ centered / m
    _, axes = top_eigenpairs(covariance, MAX_AXES)
    return axes.float()
