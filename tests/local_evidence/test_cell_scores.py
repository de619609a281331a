"""Scores of cells for all permutations at once equal those of a fit for each permutation, by the formulas."""

import numpy as np
import pytest
from _planted_cells import cells

from finc_eval.local_evidence.cell_scores import RIDGE, SQUARES, score_cells
from finc_eval.local_evidence.inputs import LocalInput
from finc_eval.local_evidence.permutations import permute
from finc_eval.local_evidence.placed_scores import PENALTY, score_places


def numbers_of(values):
    """Return the numbers of all windows with their places, scaled and centered."""
    n, windows, _ = values.shape
    at = np.linspace(-1, 1, int(windows**0.5))
    place = np.array([(y, x, (y * y + x * x) ** 0.5 / 2**0.5) for y in at for x in at])
    numbers = values.astype(float)
    numbers *= (SQUARES / (numbers**2).sum(2).mean()) ** 0.5
    numbers = np.concatenate([numbers, np.broadcast_to(place, (n, windows, 3))], 2)
    return numbers - numbers.mean((0, 1))


def by_the_formulas(values, permuted, row):
    """Fit without each picture for one permutation, and score it: mean, three highest, three lowest."""
    numbers = numbers_of(values)
    gram = np.einsum("npd,npe->de", numbers, numbers)
    gram += RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    scores = np.empty((3, len(values)))
    for place, of_picture in enumerate(numbers):
        others = permuted.apart != permuted.apart[place]
        beta = np.linalg.solve(gram, permuted.weights[row, others] @ numbers[others].sum(1))
        of_windows = np.sort(of_picture @ beta)
        scores[:, place] = of_windows.mean(), of_windows[-3:].mean(), of_windows[:3].mean()
    return (scores - np.median(scores, 1, keepdims=True)) / scores.std(1, keepdims=True)


def drawn(grouping):
    """Return cells and permutations of two sets of single pictures, groups, or prompts."""
    rng = np.random.default_rng(2)
    gen, ref = cells(rng, 26, planted=5), cells(rng, 33)
    kept = {"single": {}, "groups": {"units": np.arange(33) // 2}, "prompts": {"blocks": np.arange(33) // 3}}[grouping]
    inputs = [LocalInput(cells=each, **{name: of[: len(each)] for name, of in kept.items()}) for each in (gen, ref)]
    permuted = permute(*inputs, seed=1, draws=7)
    return np.concatenate([gen, ref])[permuted.rows], permuted


GROUPINGS = pytest.mark.parametrize("grouping", ["single", "groups", "prompts"])


@GROUPINGS
def test_scores_are_those_of_a_fit_for_each_picture_and_permutation(grouping):
    values, permuted = drawn(grouping)
    found = score_cells(values, permuted)
    for row in range(8):
        expected = by_the_formulas(values, permuted, row)
        for score, of_row in zip((found.mean, found.high, found.low), expected, strict=True):
            np.testing.assert_allclose(score[row], of_row, atol=2e-3)


@GROUPINGS
def test_scores_of_places_are_those_of_a_ridge_regression_for_each_picture_and_permutation(grouping):
    values, permuted = drawn(grouping)
    found = score_places(values, permuted)
    numbers = values.reshape(len(values), -1).astype(float)
    spread = numbers.std(0)
    numbers = (numbers - numbers.mean(0)) / np.where(spread > 0, spread, 1)
    products = numbers @ numbers.T
    products *= len(values) / np.trace(products)
    for row in range(8):
        for place in range(len(values)):
            others = permuted.apart != permuted.apart[place]
            inner = products[np.ix_(others, others)] + PENALTY * np.eye(others.sum())
            expected = products[place, others] @ np.linalg.solve(inner, permuted.weights[row, others])
            assert found[row, place] == pytest.approx(expected, abs=1e-5)


@GROUPINGS
def test_the_map_of_a_picture_has_its_scores(grouping):
    values, permuted = drawn(grouping)
    found = score_cells(values, permuted)
    heat = found.windows.heat(3)
    center, spread = found.windows.usual
    assert np.sort(heat.ravel())[-3:].mean() - center / spread == pytest.approx(found.high[0, 3], abs=1e-3)


def test_cells_without_any_difference_have_scores_of_zero():
    values = np.zeros((40, 9, 4), np.int8)
    permuted = permute(*[LocalInput(cells=values[:20])] * 2, seed=0, draws=3)
    assert np.isfinite(score_cells(values, permuted).high).all()
    assert np.isfinite(score_places(values, permuted)).all()
