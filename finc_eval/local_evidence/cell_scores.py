"""Scores of pictures by a classifier of their cells, fitted on other pictures, for all permutations of labels at once.

With f_ip the numbers of window p of picture i, centered, h_i = Σ_p f_ip, and w_i the weight of i in the difference of
both sets, a ridge regression that leaves out the labels of the pictures L(i) that are left out with i has the
coefficients

    β_i = A · Σ_{j ∉ L(i)} w_j·h_j,   A = (G + λ·tr(G)/D·I)⁻¹,   G = Σ_j Σ_p f_jp·f_jpᵀ,

which are linear in w: all permutations are columns of one right side. G knows no label, so that it is of all pictures.
The score of a window is s_ip = f_ip·β_i. Of forty faults in 150 against 150 pictures, 64 % were found so, and 54 %
where fifths of the pictures were left out (80 draws, cells alone).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from finc_eval.local_evidence.inputs import Indices, grid_of
from finc_eval.local_evidence.permutations import Array, Permutations, Scores

RIDGE = 0.03
"""λ, in parts of the mean eigenvalue of G: .003 to 1 find 62 to 68 % of forty faults (150 against 150 photographs)."""

SQUARES = 10.0  # mean sum of squares of the numbers of a window; its place, in −1 … 1, has at most 3 beside them

OUTER = 3  # highest windows of a picture, and lowest, of 49: a patch of 18 of 64 pixels touches 4 to 9 of them

PORTION = 8  # pictures whose windows are scored at once: 8 · 49 · 500 scores are .8 MB


@dataclass(frozen=True, eq=False)
class CellScores:
    """Scores of pictures, under the labels as they are and permuted.

    Attributes:
        mean: mean score of the windows, shape (1 + r, n), less the median and in units of the deviation.
        high: mean of the three highest windows, in the same way.
        low: mean of the three lowest.
        windows: how far each window is from the usual score of a picture, by the labels as they are, for rows of
            samples; see `Windows`.
    """

    mean: Scores
    high: Scores
    low: Scores
    windows: Windows


@dataclass(frozen=True, eq=False)
class Windows:
    """Scores of single windows by the labels as they are.

    Attributes:
        cells: cells of both sets, with their scale and mean.
        classifier: classifier by these labels, whose right side has one column.
        usual: median and deviation of "high".
    """

    cells: CenteredCells
    classifier: CellRegression
    usual: tuple[float, float]

    def heat(self, place: int) -> Array:
        """Return the scores of the windows of a sample, shape (g, g), in units of the deviation of pictures.

        Of three grids, each window has its score farthest from 0.
        """
        places = np.array([place])
        scores = self.classifier.score(self.cells.rows(places), places)[0, :, 0] / self.usual[1]
        grids, side = grid_of(len(scores))
        by_time = scores.reshape(grids, side * side)
        farthest = np.take_along_axis(by_time, np.abs(by_time).argmax(0)[None], 0)
        return np.asarray(farthest.reshape(side, side), np.float64)

    def high_of(self, values: NDArray[np.int8]) -> Array:
        """Return "high" of the pictures of a further set, (m,), from cells, (m, w, c)."""
        cells, coefficients = replace(self.cells, values=values), self.classifier.coefficients
        found = np.empty(len(values))
        for part, numbers in cells.portions(np.arange(len(values)), 4 * PORTION):
            found[part] = _outer(numbers @ coefficients)[:, 0]
        center, spread = self.usual
        return np.asarray((found - center) / spread)


@dataclass(frozen=True, eq=False)
class CellRegression:
    """Ridge regressions for all permutations, from which the labels of some pictures can be left out.

    Attributes:
        solved: A·h_i of each picture, shape (c + 3, n).
        weights: weights of the pictures under each permutation, shape (1 + r, n).
        apart: number of what is left out together, for each picture, shape (n,).
        coefficients: coefficients β by all labels, shape (c + 3, 1 + r).
    """

    solved: Scores
    weights: Scores
    apart: Indices
    coefficients: Scores

    @classmethod
    def fit(cls, cells: CenteredCells, permuted: Permutations) -> CellRegression:
        """Fit on all pictures."""
        width = len(cells.mean)
        product, sums = np.zeros((width, width)), np.empty((len(permuted.rows), width), np.float32)
        for part, numbers in cells.portions(np.arange(len(permuted.rows)), 4 * PORTION):
            flat = numbers.reshape(-1, width)
            product += flat.T @ flat
            sums[part] = numbers.sum(1)
        product.flat[:: width + 1] += max(RIDGE * np.trace(product) / width, 1e-9)
        solved = cho_solve(cho_factor(product), sums.T).astype(np.float32)
        return cls(solved, permuted.weights, permuted.apart, solved @ permuted.weights.T)

    def score(self, numbers: Scores, places: Indices) -> Scores:
        """Return scores of windows, (k, w, 1 + r), without the labels of what is left out with their picture.

        Args:
            numbers: numbers of the windows of some pictures, shape (k, w, c + 3).
            places: places of these pictures, shape (k,).
        """
        flat = numbers.reshape(-1, numbers.shape[2])
        others = np.flatnonzero(np.isin(self.apart, self.apart[places]))
        by_other = (flat @ self.solved[:, others]).reshape(*numbers.shape[:2], -1)
        by_other *= self.apart[places, None, None] == self.apart[others]
        scores = flat @ self.coefficients
        scores -= by_other.reshape(len(flat), -1) @ self.weights[:, others].T
        return scores.reshape(*numbers.shape[:2], -1)

    def first(self) -> CellRegression:
        """Return the classifier by the labels as they are."""
        return replace(self, weights=self.weights[:1], coefficients=self.coefficients[:, :1])


@dataclass(frozen=True, eq=False)
class CenteredCells:
    """Cells of pictures with the place of each window, scaled and centered as they are read.

    Attributes:
        values: shape (n, w, c).
        scale: factor of all numbers.
        place: row, column and distance from the center of each window, in −1 … 1, shape (w, 3).
        mean: mean over all windows of all pictures, shape (c + 3,).
    """

    values: NDArray[np.int8]
    scale: float
    place: Scores
    mean: Scores

    @classmethod
    def of(cls, values: NDArray[np.int8]) -> CenteredCells:
        """Take the scale and the mean from the cells of both sets together."""
        n, windows = values.shape[:2]
        portions = [values[start : start + 256].astype(np.float32) for start in range(0, n, 256)]
        total = np.sum([portion.sum((0, 1), dtype=np.float64) for portion in portions], 0)
        squares = sum(float(np.square(portion).sum(dtype=np.float64)) for portion in portions) / (n * windows)
        scale = (SQUARES / squares) ** 0.5 if squares > 0 else 1.0
        grids, side = grid_of(windows)
        place = np.tile(_places(side), (grids, 1))
        mean = np.concatenate([total / (n * windows) * scale, place.mean(0)]).astype(np.float32)
        return cls(values, scale, place, mean)

    def rows(self, places: Indices) -> Scores:
        """Return the numbers of all windows of some pictures, shape (k, w, c + 3)."""
        channels = self.values.shape[2]
        numbers = np.empty((len(places), self.values.shape[1], channels + 3), np.float32)
        np.multiply(self.values[places], np.float32(self.scale), out=numbers[..., :channels])
        numbers[..., channels:] = self.place
        numbers -= self.mean
        return numbers

    def portions(self, places: Indices, size: int) -> Iterator[tuple[Indices, Scores]]:
        """Yield some pictures at a time, and their numbers."""
        for start in range(0, len(places), size):
            part = places[start : start + size]
            yield part, self.rows(part)


def _places(side: int) -> Scores:
    at = np.linspace(-1, 1, side) if side > 1 else np.zeros(1)
    row, column = np.meshgrid(at, at, indexing="ij")
    return np.stack([row, column, np.hypot(row, column) / 2**0.5], -1).reshape(-1, 3).astype(np.float32)


def score_cells(values: NDArray[np.int8], permuted: Permutations) -> CellScores:
    """Score pictures by classifiers that know the labels of other pictures, for all permutations.

    Args:
        values: cells of both sets in the order of `permuted`, shape (n, w, c).
        permuted: labels, and what is left out together.
    """
    cells = CenteredCells.of(values)
    classifier = CellRegression.fit(cells, permuted)
    raw = np.empty((3, *permuted.is_gen.shape), np.float32)
    for part, numbers in cells.portions(np.argsort(permuted.apart, kind="stable"), PORTION):
        scores = classifier.score(numbers, part)
        for into, summary in zip(raw, (scores.mean(1), _outer(scores), -_outer(-scores)), strict=True):
            into[:, part] = summary.T
    mean, high, low = raw
    usual = [standardize(score) for score in raw][1]
    return CellScores(mean, high, low, Windows(cells, classifier.first(), usual))


def _outer(scores: Scores) -> Scores:
    """Return the mean of the three highest scores of the windows, shape (k, r), from (k, w, r).

    They are kept while windows pass by: ten times as fast as sorting.
    """
    kept = np.full((min(OUTER, scores.shape[1]), scores.shape[0], scores.shape[2]), -np.inf, np.float32)
    for window in range(scores.shape[1]):
        rest = scores[:, window]
        for place in kept:
            lower = np.minimum(place, rest)
            np.maximum(place, rest, out=place)
            rest = lower
    return np.asarray(kept.mean(0))


def standardize(scores: Scores) -> tuple[float, float]:
    """Center scores, (1 + r, n), by their medians and divide them by their deviations, in place.

    Returns:
        Median and deviation of the first row.
    """
    spread = scores.std(1, keepdims=True)
    spread[spread == 0] = 1
    center = np.median(scores, axis=1, keepdims=True)
    scores -= center
    scores /= spread
    return float(center[0, 0]), float(spread[0, 0])
