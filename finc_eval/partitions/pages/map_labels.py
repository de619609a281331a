"""The labels of a map: their names, made short where they differ least, and their places beside what they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LETTERS, LINES = 20, 2  # letters of a line, and lines of a name
GRID = 6.0  # pixels from one place that is tried to the next
COVERED = 40.0  # pixels that a label rather stands away than to cover a cell that is in color, or of what it names

PICTURE_COST = 40.0
"""Pixels that a label rather stands away than to be without its picture. Of 16 labels on five pages, 2 keep theirs with
0, 10 with 20, 11 with 40, and 12 with 80; half of all lines are 6 pixels long with each."""

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
    """Size of a label in pixels, and the points that it names, shape (k, 2)."""

    width: float
    height: float
    points: Array
    bare: float | None = None  # height without its picture; None if that may not go
    most: float = float("inf")  # pixels that its place may cost; where it costs more, the label is left out


class Placed(NamedTuple):
    """The box of a label, and the point of what it names that its line leads to."""

    box: Box
    point: tuple[float, float]

    @property
    def end(self) -> tuple[float, float]:
        """The end of the line at the label."""
        return self.box.nearest(*self.point)


def shorten_names(names: Sequence[str]) -> list[list[str]]:
    """Break names into two lines; what is too long loses its middle, or the words that it begins with like others.

    Example:
        >>> shorten_names(["gray", "looks like a barn spider on a web in the dark"])
        [['gray'], ['looks like a barn', '…a web in the dark']]
    """
    wrapped = [_wrap(name) for name in names]
    alike = Counter(map(tuple, wrapped))
    again = {tuple(lines) for lines in wrapped if alike[tuple(lines)] > 1}
    for lines in again:
        same = [number for number, found_lines in enumerate(wrapped) if tuple(found_lines) == lines]
        words = [names[number].split() for number in same]
        shared = sum(1 for _ in takewhile(lambda column: len({*column}) == 1, zip(*words, strict=False)))
        if all(len(own_words) > shared for own_words in words):
            for number, own_words in zip(same, words, strict=True):
                wrapped[number] = _wrap(f"…{' '.join(own_words[shared:])}")
    return wrapped


def _wrap(name: str) -> list[str]:
    """Break a name into lines; of a name that is too long, the last line has its end."""
    words = [_cut_middle(word, LETTERS) for word in name.split()]
    lines, rest = list[str](), words
    while rest and len(lines) < LINES - 1:
        count = _fitting(rest, LETTERS)
        lines.append(" ".join(rest[:count]))
        rest = rest[count:]
    if len(" ".join(rest)) > LETTERS:
        count = _fitting(rest[::-1], LETTERS - 1)
        rest = [f"…{' '.join(rest[len(rest) - count :])}"]
    return [*lines, *([" ".join(rest)] if rest else [])] or [""]


def _fitting(words: Sequence[str], letters: int) -> int:
    """Return how many of the first words fit into a line, at least 1."""
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    return max(1, int((ends <= letters).sum()))


def _cut_middle(word: str, letters: int) -> str:
    """Return a word, without its middle if it is too long."""
    half = (letters - 1) // 2
    return word if len(word) <= letters else f"{word[:half]}…{word[-half:]}"


def place_labels(
    labels: Sequence[Label], size: tuple[float, float], cells: Array, weights: Array
) -> list[Placed | None]:
    """Place labels one after the other, the first labels best; None for a label without room.

    No label lies on another, on the line from another to what it names, or has a line across another. A label stands
    beside what it names, and without its picture if it is much nearer then.

    Args:
        labels: the labels, the most important first.
        size: width and height of the drawing.
        cells: centers of the cells that the drawing shows, shape (c, 2).
        weights: pixels that a label may rather stand away than cover a cell, shape (c,).
    """
    taken = list[Placed]()
    placed_labels = list[Placed | None]()
    for label in labels:
        tried = [(_place(label, label.height, size, cells, weights, taken), 0.0)]
        if label.bare is not None and label.bare < label.height:
            tried.append((_place(label, label.bare, size, cells, weights, taken), PICTURE_COST))
        (best, cost), _ = min(tried, key=lambda each: each[0][1] + each[1])
        is_placed = bool(np.isfinite(cost)) and cost <= label.most
        placed_labels.append(best if is_placed else None)
        taken += [best] * is_placed
    return placed_labels


def _place(
    label: Label, height: float, size: tuple[float, float], cells: Array, weights: Array, taken: Sequence[Placed]
) -> tuple[Placed, float]:
    """Return the best place of a label of a height, and its cost in pixels; infinite without room."""
    xs = np.arange(0, max(size[0] - label.width, 0) + 1, GRID)
    ys = np.arange(0, max(size[1] - height, 0) + 1, GRID)
    left, top = (each.ravel() for each in np.meshgrid(xs, ys))
    right, bottom = left + label.width, top + height
    (x, y), (low, high) = label.points.T, (left[:, None], right[:, None])
    far = np.hypot(x - np.clip(x, low, high), y - np.clip(y, top[:, None], bottom[:, None]))
    nearest = far.argmin(1)
    start, away = label.points[nearest].T, far.min(1)
    end = np.stack([np.clip(start[0], left, right), np.clip(start[1], top, bottom)])
    # 4: pixels from the center of a cell to its edge, which a label leaves free.
    over = _inside(cells, left, right, top, bottom, 4) @ weights
    over += COVERED * _inside(label.points, left, right, top, bottom, 4).sum(1)
    cost = away + over
    # 2: pixels between two labels at least.
    around = np.stack([left - 2, top - 2, right + 2, bottom + 2])
    for other in taken:
        box = other.box
        held = np.array([box.left, box.top, box.left + box.width, box.top + box.height])
        meets = (around[:2] < held[2:, None]).all(0) & (around[2:] > held[:2, None]).all(0)
        meets |= _crosses(start, end, held[:, None])
        meets |= _crosses(np.array(other.point)[:, None], np.array(other.end)[:, None], around)
        cost = np.where(meets, np.inf, cost)
    best = int(cost.argmin())
    placed = Placed(Box(float(left[best]), float(top[best]), label.width, height), (start[0, best], start[1, best]))
    return placed, float(cost[best])


def _inside(points: Array, left: Array, right: Array, top: Array, bottom: Array, margin: float) -> NDArray[np.bool_]:
    """Return which points lie in which boxes, or next to them, shape (boxes, points)."""
    x, y = points.T
    across = (x >= left[:, None] - margin) & (x <= right[:, None] + margin)
    return np.asarray(across & (y >= top[:, None] - margin) & (y <= bottom[:, None] + margin))


def _crosses(start: Array, end: Array, boxes: Array) -> NDArray[np.bool_]:
    """Return whether lines, (2, n) to (2, n), meet boxes, (4, n): left, top, right, bottom (Liang and Barsky 1984)."""
    step = end - start
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.stack([(boxes[:2] - start) / step, (boxes[2:] - start) / step])
    inside = (boxes[:2] <= start) & (start <= boxes[2:])
    first = np.where(step == 0, np.where(inside, -np.inf, np.inf), times.min(0)).max(0)
    last = np.where(step == 0, np.where(inside, np.inf, -np.inf), times.max(0)).min(0)
    return np.asarray((first <= last) & (last >= 0) & (first <= 1))
