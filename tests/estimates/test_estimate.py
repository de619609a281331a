"""Errors from influences are those of textbooks: Welch's test, paired differences, clusters, and the jackknife."""

import numpy as np
import pytest
from scipy import stats

from finc_eval.estimates.estimate import Estimate, block_influences, difference, unit_influences
from finc_eval.numerics.inference import jackknife

FIRST, SECOND = np.random.default_rng(0).normal(size=9) + 5, 3 * np.random.default_rng(1).normal(size=14) + 2


def mean_of(values):
    return Estimate.of(float(values.mean()), (unit_influences(values, None),))


def test_a_difference_of_two_means_has_the_interval_of_welch():
    influences = (unit_influences(FIRST, None), -unit_influences(SECOND, None))
    found = Estimate.of(FIRST.mean() - SECOND.mean(), influences)
    welch = stats.ttest_ind(FIRST, SECOND, equal_var=False)
    low, high = welch.confidence_interval(0.95)
    assert found.interval == pytest.approx((low, high))
    assert found.half == pytest.approx((high - low) / 2)
    assert found.degrees == pytest.approx(welch.df)
    assert found.variances == pytest.approx((FIRST.var(ddof=1) / 9, SECOND.var(ddof=1) / 14))
    assert found.standard_error == pytest.approx(np.sqrt(sum(found.variances)))
    assert found.value == found.unbiased


def test_without_any_error_the_interval_is_a_point():
    constant = mean_of(np.ones(5))
    assert (constant.degrees, constant.half, constant.interval) == (np.inf, 0, (1, 1))


@pytest.mark.parametrize("factor", [1.0, 0.25, -2.0])
def test_a_difference_from_the_same_units_has_the_error_of_the_paired_differences(factor):
    new, old = FIRST, FIRST + SECOND[:9]
    biased = Estimate.of(float(old.mean()), (unit_influences(old, None),), float(old.mean()) + 1)
    found, expected = difference(mean_of(new), biased, factor), mean_of(new - factor * old)
    assert found.unbiased == pytest.approx(expected.unbiased)
    assert found.value == pytest.approx(expected.value - factor)
    assert found.interval == pytest.approx(expected.interval)


def test_the_samples_of_a_group_are_one_unit():
    """Groups of one size: the mean of all samples is the mean of the means of groups."""
    values, units = SECOND[:12], np.arange(12) % 4
    means = np.array([values[units == unit].mean() for unit in range(4)])
    found = Estimate.of(float(values.mean()), (unit_influences(values, units),))
    assert found.standard_error == pytest.approx(means.std(ddof=1) / 2)
    assert sum(found.influences[0]) == pytest.approx(0)


def test_left_out_blocks_give_the_error_of_the_jackknife():
    parts = [np.array([np.delete(one, k).mean() for k in range(len(one))]) for one in (FIRST, SECOND)]
    found = Estimate.of(0.0, tuple(block_influences(one) for one in parts))
    error, half = jackknife(*parts)
    assert (found.standard_error, found.half) == pytest.approx((error, half))
    # What a block adds has the sign of its own value.
    assert np.corrcoef(found.influences[0], FIRST)[0, 1] == pytest.approx(1)
