"""The places of the labels of a map: near what they name, over no other label, and over few cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GRID = 6.0  # pixels from one place that is tried to the next


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    width: float
    height: float

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """Return the point of the box that is nearest to a point."""
        return min(max(x, self.left), self.left + self.width), min(max(y, self.top), self.top + self.height)


class Label(NamedTuple):
    """Size of a label in pixels, and the point that it names."""

    width: float
    height: float
    x: float
    y: float


def place_labels(
    labels: Sequence[Label], size: tuple[float, float], cells: NDArray[np.float64], weights: NDArray[np.float64]
) -> list[Box | None]:
    """Place labels one after the other, the first ones best; None for a label without room.

    Args:
        labels: the labels, the most important first.
        size: width and height of the drawing.
        cells: centers of the cells that the drawing shows, shape (c, 2).
        weights: pixels that a label may rather stand away than cover a cell, shape (c,).
    """
    taken: list[Box] = []
    found: list[Box | None] = []
    for one in labels:
        xs = np.arange(0, max(size[0] - one.width, 0) + 1, GRID)
        ys = np.arange(0, max(size[1] - one.height, 0) + 1, GRID)
        left, top = (each.ravel() for each in np.meshgrid(xs, ys))
        away = np.hypot(
            np.maximum(np.maximum(left - one.x, one.x - left - one.width), 0),
            np.maximum(np.maximum(top - one.y, one.y - top - one.height), 0),
        )
        over = (
            (cells[:, 0] >= left[:, None])
            & (cells[:, 0] <= left[:, None] + one.width)
            & (cells[:, 1] >= top[:, None])
            & (cells[:, 1] <= top[:, None] + one.height)
        )
        cost = away + over @ weights
        for box in taken:
            # 2: pixels between two labels at least.
            meets = (
                (left < box.left + box.width + 2)
                & (left + one.width + 2 > box.left)
                & (top < box.top + box.height + 2)
                & (top + one.height + 2 > box.top)
            )
            cost = np.where(meets, np.inf, cost)
        best = int(cost.argmin())
        if not np.isfinite(cost[best]):
            found.append(None)
            continue
        found.append(Box(float(left[best]), float(top[best]), one.width, one.height))
        taken.append(found[-1])  # type: ignore[arg-type]  # it was found
    return found
