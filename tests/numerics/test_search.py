"""The smallest number that holds is found by doubling and halving, or there is none."""

import pytest

from finc_eval.numerics.thresholds import smallest, smallest_between


@pytest.mark.parametrize("limit", [1.0, 3.7, 600.0])
def test_the_smallest_number_that_holds_is_found(limit):
    assert smallest(lambda number: number >= limit, 1024.0) == pytest.approx(limit)
    assert smallest_between(lambda number: number >= limit, 0.0, 1000.0) == pytest.approx(limit)


def test_what_does_not_hold_up_to_the_most_is_not_found():
    assert smallest(lambda number: number >= 5.0, 4.0) is None
    assert smallest(lambda _: False, 1e7) is None


def test_few_halvings_end_on_a_number_that_holds():
    assert 3.7 <= smallest(lambda number: number >= 3.7, 1000.0, halvings=3) < 4.0
