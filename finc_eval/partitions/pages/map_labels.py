"""The places of the labels of a map: near what they name, over no other label or its line, and over few cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GRID = 6.0  # pixels from one place that is tried to the next
FAR = 60.0  # pixels from a label to what it names, from which a label without its picture is tried

Array = NDArray[np.float64]


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
    """Size of a label in pixels, the point that it names, and its height without its picture, if it may go."""

    width: float
    height: float
    x: float
    y: float
    bare: float | None = None


def place_labels(labels: Sequence[Label], size: tuple[float, float], cells: Array, weights: Array) -> list[Box | None]:
    """Place labels one after the other, the first ones best; None for a label without room.

    No label lies on another, on the line from another to what it names, or has a line across another. A label that is
    far from what it names has the height without its picture, if it is nearer then.

    Args:
        labels: the labels, the most important first.
        size: width and height of the drawing.
        cells: centers of the cells that the drawing shows, shape (c, 2).
        weights: pixels that a label may rather stand away than cover a cell, shape (c,).
    """
    taken: list[tuple[Box, Label]] = []
    found: list[Box | None] = []
    for one in labels:
        tried = [_place(one, one.height, size, cells, weights, taken)]
        if one.bare is not None and tried[0][1] > FAR:
            tried.append(_place(one, one.bare, size, cells, weights, taken))
        box, away = min(tried, key=lambda each: each[1])
        found.append(box if np.isfinite(away) else None)
        taken += [(box, one)] * bool(np.isfinite(away))
    return found


def _place(
    one: Label,
    height: float,
    size: tuple[float, float],
    cells: Array,
    weights: Array,
    taken: Sequence[tuple[Box, Label]],
) -> tuple[Box, float]:
    """Return the best place of a label of a height, and how far it is from what it names; infinite without room."""
    xs = np.arange(0, max(size[0] - one.width, 0) + 1, GRID)
    ys = np.arange(0, max(size[1] - height, 0) + 1, GRID)
    left, top = (each.ravel() for each in np.meshgrid(xs, ys))
    right, bottom = left + one.width, top + height
    end = np.stack([np.clip(one.x, left, right), np.clip(one.y, top, bottom)])
    away = np.hypot(end[0] - one.x, end[1] - one.y)
    over = (
        (cells[:, 0] >= left[:, None])
        & (cells[:, 0] <= right[:, None])
        & (cells[:, 1] >= top[:, None])
        & (cells[:, 1] <= bottom[:, None])
    )
    cost = away + over @ weights
    # 2: pixels between two labels at least.
    around = np.stack([left - 2, top - 2, right + 2, bottom + 2])
    for box, other in taken:
        held = np.array([box.left, box.top, box.left + box.width, box.top + box.height])
        meets = (around[:2] < held[2:, None]).all(0) & (around[2:] > held[:2, None]).all(0)
        meets |= _crosses(np.array([[one.x], [one.y]]), end, held[:, None])
        own = np.array(box.nearest(other.x, other.y))
        meets |= _crosses(np.array([[other.x], [other.y]]), own[:, None], around)
        cost = np.where(meets, np.inf, cost)
    best = int(cost.argmin())
    box = Box(float(left[best]), float(top[best]), one.width, height)
    return box, float(away[best]) if np.isfinite(cost[best]) else np.inf


def _crosses(start: Array, end: Array, boxes: Array) -> NDArray[np.bool_]:
    """Return whether lines, (2, n) to (2, n), meet boxes, (4, n): left, top, right, bottom (Liang and Barsky 1984)."""
    step = end - start
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.stack([(boxes[:2] - start) / step, (boxes[2:] - start) / step])
    inside = (boxes[:2] <= start) & (start <= boxes[2:])
    first = np.where(step == 0, np.where(inside, -np.inf, np.inf), times.min(0)).max(0)
    last = np.where(step == 0, np.where(inside, np.inf, -np.inf), times.max(0)).min(0)
    return np.asarray((first <= last) & (last >= 0) & (first <= 1))
