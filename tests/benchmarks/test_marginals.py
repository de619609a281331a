import numpy as np
import pytest
from _marginals import marginal_distance, merge_highest

from finc_eval.core.errors import UsageError

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


@pytest.mark.parametrize(
    ("other", "columns", "message"),
    [(OTHER[:, :1], 1, "same columns"), (OTHER[:0], 1, "some rows"), (OTHER, 3, "of 1 to 2 columns, got 3")],
)
def test_tables_that_do_not_fit_are_refused(other, columns, message):
    with pytest.raises(UsageError, match=message):
        marginal_distance(ONE, other, columns)
