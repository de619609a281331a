"""Scores of pictures by a classifier of their cells, fitted on other pictures, for all permutations of labels at once.

With f_ip the numbers of window p of picture i, centered, h_i = Σ_p f_ip, and w_i the weight of i in the difference of
both sets, a ridge regression without the pictures of fold k has the coefficients

    β_k = (G + λ·tr(G)/D·I)⁻¹ · Σ_{i ∉ k} w_i·h_i,   G = Σ_{i ∉ k} Σ_p f_ip·f_ipᵀ,

which are linear in w: all permutations are columns of one right side. The score of a window is s_ip = f_ip·β_k(i).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from finc_eval.local_evidence.inputs import Indices, grid_of
from finc_eval.local_evidence.permutations import FOLDS, Array, Permutations, Scores

RIDGE = 0.003  # λ, in parts of the mean eigenvalue of G

SQUARES = 10.0  # mean sum of squares of the numbers of a window; its place, in −1 … 1, has at most 3 beside them

OUTER = 3  # highest windows of a picture, and lowest, of 49: a patch of 18 of 64 pixels touches 4 to 9 of them

PORTION = 8  # pictures whose windows are scored at once: 8 · 49 · 500 scores are .8 MB


@dataclass(frozen=True, eq=False)
class CellScores:
    """Scores of pictures, under the labels as they are and permuted.

    Attributes:
        mean: mean score of the windows, shape (1 + r, n), less the median of its fold and in units of its deviation.
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
        coefficients: coefficients β without each fold, shape (folds, c + 3).
        folds: number of the fold of each sample, shape (n,).
        usual: median and deviation of "high" by fold, shape (2, folds).
    """

    cells: CenteredCells
    coefficients: Scores
    folds: Indices
    usual: Array

    def heat(self, place: int) -> Array:
        """Return the scores of the windows of a sample, shape (g, g), in units of the deviation of its fold.

        Of three grids, each window has its score farthest from 0.
        """
        fold = self.folds[place]
        scores = self.cells.rows(np.array([place]))[0] @ self.coefficients[fold] / self.usual[1, fold]
        grids, side = grid_of(len(scores))
        by_time = scores.reshape(grids, side * side)
        farthest = np.take_along_axis(by_time, np.abs(by_time).argmax(0)[None], 0)
        return np.asarray(farthest.reshape(side, side), np.float64)

    def high_of(self, values: NDArray[np.int8]) -> Array:
        """Return "high" of the pictures of a further set, (m,), from cells, (m, w, c), by each classifier in turn."""
        cells, folds = replace(self.cells, values=values), fold_in_turn(len(values))
        found = np.empty(len(values))
        for part, numbers in cells.portions(np.arange(len(values)), 4 * PORTION):
            scores = np.einsum("kwc,kc->kw", numbers, self.coefficients[folds[part]])
            found[part] = _outer(scores[..., None])[:, 0]
        center, spread = self.usual[:, folds]
        return np.asarray((found - center) / spread)


def fold_in_turn(count: int) -> Indices:
    """Return the fold whose classifier and threshold a picture of a further set is given, for each, shape (count,)."""
    return np.arange(count) % FOLDS


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
    """Score pictures by classifiers of the other folds, for all permutations.

    Args:
        values: cells of both sets in the order of `permuted`, shape (n, w, c).
        permuted: labels and folds.
    """
    cells = CenteredCells.of(values)
    coefficients = fit_folds(cells, permuted)
    raw = np.empty((3, *permuted.is_gen.shape), np.float32)
    for fold, beta in enumerate(coefficients):
        for part, numbers in cells.portions(np.flatnonzero(permuted.folds == fold), PORTION):
            scores = (numbers.reshape(-1, numbers.shape[2]) @ beta).reshape(*numbers.shape[:2], -1)
            for into, summary in zip(raw, (scores.mean(1), _outer(scores), -_outer(-scores)), strict=True):
                into[:, part] = summary.T
    mean, high, low = raw
    usual = [standardize_folds(score, permuted.folds) for score in raw][1]
    windows = Windows(cells, np.stack([beta[:, 0] for beta in coefficients]), permuted.folds, usual)
    return CellScores(mean, high, low, windows)


def fit_folds(cells: CenteredCells, permuted: Permutations) -> list[Scores]:
    """Return the coefficients β without each fold, under all permutations, each of shape (c + 3, 1 + r)."""
    width = len(cells.mean)
    products, sums = np.zeros((FOLDS, width, width)), np.empty((len(permuted.rows), width), np.float32)
    for fold, product in enumerate(products):
        for part, numbers in cells.portions(np.flatnonzero(permuted.folds == fold), 4 * PORTION):
            flat = numbers.reshape(-1, width)
            product += flat.T @ flat
            sums[part] = numbers.sum(1)
    coefficients = []
    for fold in range(FOLDS):
        others = permuted.folds != fold
        product = products.sum(0) - products[fold]
        product.flat[:: width + 1] += max(RIDGE * np.trace(product) / width, 1e-9)
        right = sums[others].T @ permuted.weights[:, others].T
        coefficients.append(cho_solve(cho_factor(product), right).astype(np.float32))
    return coefficients


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


def standardize_folds(scores: Scores, folds: Indices) -> Array:
    """Center scores, (1 + r, n), by the median of their fold and divide them by its deviation, in place.

    Returns:
        Medians and deviations of the first row, shape (2, folds).
    """
    usual = np.stack([np.zeros(FOLDS), np.ones(FOLDS)])
    for fold in range(FOLDS):
        own = folds == fold
        if not own.any():
            continue
        part = scores[:, own]
        spread = part.std(1, keepdims=True)
        spread[spread == 0] = 1
        center = np.median(part, axis=1, keepdims=True)
        scores[:, own] = (part - center) / spread
        usual[:, fold] = center[0, 0], spread[0, 0]
    return usual
