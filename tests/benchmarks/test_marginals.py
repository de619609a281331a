from math import comb

import numpy as np
import pytest
from _marginals import merge_highest, published_distance
from _real import asset

from finc_eval.core.errors import UsageError
from finc_eval.private.synthesis.marginals import marginal_distance

ONE = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
OTHER = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])


def test_distances_of_one_and_two_columns_by_hand():
    """Both columns are half zeros in both tables; of their pairs, half of OTHER lies where ONE has none."""
    assert marginal_distance(ONE, OTHER, 1) == 0
    assert marginal_distance(ONE, OTHER, 2) == pytest.approx(0.5)


def test_tables_without_a_common_record_are_as_far_apart_as_can_be():
    assert marginal_distance(ONE, ONE + 5, 2) == pytest.approx(1)


def test_the_mean_is_over_all_choices_of_columns_or_a_sample_of_them():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 3, (200, 5)), rng.integers(0, 3, (150, 5))
    every = np.mean([marginal_distance(one[:, [a, b]], other[:, [a, b]], 2) for a in range(5) for b in range(a)])
    assert marginal_distance(one, other, 2) == pytest.approx(every)
    some = marginal_distance(one, other, 2, at_most=4, seed=3)
    assert some == marginal_distance(one, other, 2, at_most=4, seed=3) != marginal_distance(one, other, 2)


def test_the_papers_evaluation_does_not_see_columns_of_two_values():
    merged = [merge_highest(table, np.array([0, 0]), np.array([1, 1])) for table in (ONE, OTHER)]
    assert marginal_distance(*merged, 2) == 0


def by_the_papers_code(real, synthetic, alpha):
    """Return the distance by the steps of the paper's code (marginals_eval.py), and the number of its tuples."""
    width, domain = real.shape[1], real.max(0) - real.min(0)
    tuples = [(first,) for first in range(width + 1 - alpha)]
    for _ in range(alpha):
        tuples = [(*one, place) for one in tuples for place in range(one[-1] + 1, width)]
    found = []
    for one in tuples:
        places = list(one)
        bins = [*domain[places]]
        cells = [(column.min(), column.max()) for column in real[:, places].T]
        p, q = (np.histogramdd(table[:, places], bins, cells)[0] / len(table) for table in (real, synthetic))
        found.append(np.abs(p - q).sum() / 2)
    return float(np.mean(found)), len(tuples)


def test_the_papers_code_joins_one_column_more_than_it_says():
    """For α = 3 of 15 columns it has C(15, 4) tuples of four."""
    rng = np.random.default_rng(0)
    real, synthetic = rng.integers(0, 4, (60, 15)), rng.integers(0, 4, (40, 15))
    _, tuples = by_the_papers_code(np.minimum(real, 2), np.minimum(synthetic, 2), 3)
    assert tuples == comb(15, 4) == 1365


@pytest.mark.parametrize("alpha", [1, 2, 3])
def test_published_distances_are_those_of_the_papers_code(alpha):
    rng = np.random.default_rng(alpha)
    real = rng.integers([0, 1, 0, 5, 2], [2, 4, 4, 10, 9], (300, 5))
    synthetic = np.stack([rng.permutation(column) for column in real.T], 1)
    distance, _ = by_the_papers_code(real, synthetic, alpha)
    assert published_distance(real, synthetic, alpha) == pytest.approx(distance, abs=1e-12)


@pytest.mark.parametrize(
    ("columns", "two", "three"),
    [((0, 2, 4, 6, 8), 0.1504, 0.2626), ((1, 3, 5, 7, 9), 0.2147, 0.3625), ((0, 5, 8, 10, 12), 0.1217, 0.2093)],
)
def test_on_adult_the_papers_two_and_three_way_distances_are_of_three_and_four_columns(columns, two, three):
    """Independent columns; the values were found with the paper's code."""
    path = asset("tabular", "adult_discretized.npz")
    if path is None:
        pytest.skip("needs the test assets")
    real = np.load(path)["simple"].astype(np.int64)
    rng = np.random.default_rng(0)
    mixed = np.stack([rng.permutation(column) for column in real.T], 1)
    real, mixed = real[:, columns], mixed[:, columns]
    merged = [merge_highest(table, real.min(0), real.max(0)) for table in (real, mixed)]
    for alpha, value in ((2, two), (3, three)):
        assert published_distance(real, mixed, alpha) == pytest.approx(value, abs=5.1e-5)
        assert marginal_distance(*merged, alpha + 1) == pytest.approx(value, abs=5.1e-5)


@pytest.mark.parametrize(
    ("other", "columns", "message"),
    [(OTHER[:, :1], 1, "same columns"), (OTHER[:0], 1, "some rows"), (OTHER, 3, "of 1 to 2 columns, got 3")],
)
def test_tables_that_do_not_fit_are_refused(other, columns, message):
    with pytest.raises(UsageError, match=message):
        marginal_distance(ONE, other, columns)
