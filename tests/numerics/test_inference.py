"""Intervals and quantiles, against published values and scipy."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t

from finc_eval.core.errors import UsageError
from finc_eval.numerics.inference import mean_interval, normal_interval, normal_quantile, student_quantile, wilson


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_quantiles_are_those_of_scipy(confidence):
    assert normal_quantile(confidence) == pytest.approx(norm.ppf((1 + confidence) / 2), rel=1e-12)
    assert student_quantile(7.5, confidence) == pytest.approx(t.ppf((1 + confidence) / 2, 7.5), rel=1e-12)


def test_a_normal_interval_is_two_errors_wide_on_either_side():
    assert normal_interval(1.0, 0.5) == pytest.approx((1 - 1.96 * 0.5, 1 + 1.96 * 0.5), abs=1e-4)


@pytest.mark.parametrize(("found", "n"), [(0, 10), (3, 10), (10, 10), (81, 263)])
def test_wilsons_interval_is_that_of_scipy(found, n):
    expected = binomtest(found, n).proportion_ci(0.95, method="wilson")
    assert wilson(found / n, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_an_interval_of_a_mean_of_nonnegative_numbers_never_begins_below_zero():
    low, high = mean_interval(np.array([0.0, 0.0, 0.0, 4.0]))
    assert low == 0
    assert high == pytest.approx(1 + 1.96, abs=1e-3)
    assert mean_interval(np.array([2.0])) == (2.0, 2.0)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_a_confidence_is_refused_unless_it_lies_between_0_and_1(confidence):
    with pytest.raises(UsageError, match=f"confidence must lie between 0 and 1, got {confidence}"):
        normal_quantile(confidence)
