"""Errors from influences are those of textbooks: Welch's test, paired differences, clusters, and the jackknife."""

import numpy as np
import pytest
from scipy import stats

from finc_eval.estimates.estimate import Estimate, block_influences, difference, unit_influences
from finc_eval.numerics.inference import jackknife

FIRST, SECOND = np.random.default_rng(0).normal(size=9) + 5, 3 * np.random.default_rng(1).normal(size=14) + 2


mean_of = Estimate.of_mean


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
    found = mean_of(values, units)
    assert found.standard_error == pytest.approx(means.std(ddof=1) / 2)
    assert found.degrees == 3
    assert sum(found.influences[0]) == pytest.approx(0)


def test_a_mean_has_the_interval_of_student_at_any_confidence_and_within_what_can_be():
    found, low = mean_of(FIRST), float(FIRST.min())
    for confidence in (0.5, 0.95, 0.999):
        wanted = stats.t.interval(confidence, 8, FIRST.mean(), stats.sem(FIRST))
        assert found.interval_at(confidence) == pytest.approx(wanted)
        assert found.half_at(confidence) == pytest.approx((wanted[1] - wanted[0]) / 2)
    assert found.interval == found.interval_at(0.95)
    assert found.within(low, 5.0) == (max(low, found.interval[0]), min(5.0, found.interval[1]))
    assert mean_of(np.array([-1.0, 1.0])).within(-2.0, 2.0) == (-2.0, 2.0)


def test_a_ratio_has_the_interval_of_a_jackknife_over_units():
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 6, 60)
    sums = sizes * rng.normal(0.8, 0.1, 60)
    left = [(sums.sum() - own) / (sizes.sum() - size) for own, size in zip(sums, sizes, strict=True)]
    error = np.sqrt(59 / 60 * ((left - np.mean(left)) ** 2).sum())
    found = Estimate.of_ratio(sums, sizes)
    assert found.value == pytest.approx(sums.sum() / sizes.sum())
    assert found.half == pytest.approx(stats.t.ppf(0.975, 59) * error, rel=0.01)
    rows, units = np.repeat(sums / sizes, sizes), np.repeat(np.arange(60), sizes)
    of_rows = mean_of(rows, units)
    assert (of_rows.value, of_rows.half) == pytest.approx((found.value, found.half))


def test_equal_values_have_the_least_variance_that_is_given():
    found = mean_of(np.ones(5), least=0.04)
    assert (found.standard_error, found.degrees) == (0.2, 4)
    assert found.half == pytest.approx(stats.t.ppf(0.975, 4) * 0.2)
    assert mean_of(FIRST, least=1e-9).half == mean_of(FIRST).half


@pytest.mark.parametrize("units", [None, np.zeros(1, int), np.zeros(9, int)])
def test_one_unit_knows_no_error(units):
    values = FIRST if units is not None and len(units) == 9 else FIRST[:1]
    found = mean_of(values, units)
    assert found.standard_error == np.inf and found.interval == (-np.inf, np.inf)


def test_units_without_a_sample_of_a_mean_have_no_influence():
    inside = np.array([True, True, False, True])
    units = np.array([0, 0, 1, 2])
    found = unit_influences(FIRST[:4][inside], units[inside], 5)
    assert len(found) == 5 and found[[1, 3, 4]].tolist() == [0, 0, 0]
    assert found[[0, 2]].tolist() == unit_influences(FIRST[:4][inside], np.array([0, 0, 1])).tolist()


def test_left_out_blocks_give_the_error_of_the_jackknife():
    parts = [np.array([np.delete(one, k).mean() for k in range(len(one))]) for one in (FIRST, SECOND)]
    found = Estimate.of(0.0, tuple(block_influences(one) for one in parts))
    error, half = jackknife(*parts)
    assert (found.standard_error, found.half) == pytest.approx((error, half))
    # What a block adds has the sign of its own value.
    assert np.corrcoef(found.influences[0], FIRST)[0, 1] == pytest.approx(1)
