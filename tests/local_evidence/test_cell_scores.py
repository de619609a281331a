"""Scores of cells for all permutations at once equal those of a fit for each permutation, by the formulas."""

import numpy as np
import pytest
from _planted_cells import cells

from finc_eval.local_evidence.cell_scores import RIDGE, SQUARES, score_cells
from finc_eval.local_evidence.inputs import LocalInput
from finc_eval.local_evidence.permutations import FOLDS, permute


def by_the_formulas(values, permuted, row):
    """Fit each fold for one permutation, and score its pictures: mean, three highest, three lowest."""
    n, windows, _ = values.shape
    at = np.linspace(-1, 1, int(windows**0.5))
    place = np.array([(y, x, (y * y + x * x) ** 0.5 / 2**0.5) for y in at for x in at])
    numbers = values.astype(float)
    numbers *= (SQUARES / (numbers**2).sum(2).mean()) ** 0.5
    numbers = np.concatenate([numbers, np.broadcast_to(place, (n, windows, 3))], 2)
    numbers -= numbers.mean((0, 1))
    scores = np.empty((3, n))
    for fold in range(FOLDS):
        inside = permuted.folds == fold
        others = numbers[~inside]
        gram = np.einsum("npd,npe->de", others, others)
        gram += RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
        beta = np.linalg.solve(gram, permuted.weights[row, ~inside] @ others.sum(1))
        of_windows = np.sort(numbers[inside] @ beta, 1)
        scores[:, inside] = of_windows.mean(1), of_windows[:, -3:].mean(1), of_windows[:, :3].mean(1)
        part = scores[:, inside]
        scores[:, inside] = (part - np.median(part, 1, keepdims=True)) / part.std(1, keepdims=True)
    return scores


@pytest.mark.parametrize("grouping", ["single", "groups", "prompts"])
def test_scores_are_those_of_a_fit_for_each_permutation(grouping):
    rng = np.random.default_rng(2)
    gen, ref = cells(rng, 26, planted=5), cells(rng, 33)
    kept = {"single": {}, "groups": {"units": np.arange(33) // 2}, "prompts": {"blocks": np.arange(33) // 3}}[grouping]
    inputs = [LocalInput(cells=each, **{name: of[: len(each)] for name, of in kept.items()}) for each in (gen, ref)]
    permuted = permute(*inputs, seed=1, draws=7)
    values = np.concatenate([gen, ref])[permuted.rows]
    found = score_cells(values, permuted)
    for row in range(8):
        expected = by_the_formulas(values, permuted, row)
        for score, of_row in zip((found.mean, found.high, found.low), expected, strict=True):
            np.testing.assert_allclose(score[row], of_row, atol=2e-3)


def test_cells_without_any_difference_have_scores_of_zero():
    values = np.zeros((40, 9, 4), np.int8)
    permuted = permute(*[LocalInput(cells=values[:20])] * 2, seed=0, draws=3)
    assert np.isfinite(score_cells(values, permuted).high).all()
