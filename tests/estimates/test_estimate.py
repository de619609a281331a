"""Errors from influences are those of textbooks: Welch's test, paired differences, clusters, and the jackknife."""

from math import inf

import numpy as np
import pytest
from scipy import stats

from finc_eval.estimates.error_source import GEN, REF, TRAINING, ErrorSource, of_uneven_units, unit_influences
from finc_eval.estimates.estimate import Estimate, difference, mean_of

FIRST, SECOND = np.random.default_rng(0).normal(size=9) + 5, 3 * np.random.default_rng(1).normal(size=14) + 2


of_mean = Estimate.of_mean


def test_a_difference_of_two_means_has_the_interval_of_welch():
    influences = (unit_influences(FIRST, None), -unit_influences(SECOND, None))
    found = Estimate.of(FIRST.mean() - SECOND.mean(), influences)
    welch = stats.ttest_ind(FIRST, SECOND, equal_var=False)
    low, high = welch.confidence_interval(0.95)
    assert found.interval == pytest.approx((low, high))
    assert found.half == pytest.approx((high - low) / 2)
    assert found.degrees == pytest.approx(welch.df)
    variances = FIRST.var(ddof=1) / 9, SECOND.var(ddof=1) / 14
    assert (found.variance_of(GEN), found.variance_of(REF)) == pytest.approx(variances)
    assert found.standard_error == pytest.approx(np.sqrt(sum(variances))) == np.sqrt(found.variance_of(GEN, REF))
    assert found.p_value == pytest.approx(welch.pvalue)
    apart = difference(of_mean(FIRST), of_mean(SECOND), is_paired=False)
    assert apart.interval == pytest.approx((low, high))


def test_without_any_error_the_interval_is_a_point():
    constant = of_mean(np.ones(5))
    assert (constant.degrees, constant.half, constant.interval) == (np.inf, 0, (1, 1))


@pytest.mark.parametrize("factor", [1.0, 0.25, -2.0])
def test_a_difference_from_the_same_units_has_the_error_of_the_paired_differences(factor):
    new, old = FIRST, FIRST + SECOND[:9]
    found, expected = difference(of_mean(new), of_mean(old), factor), of_mean(new - factor * old)
    assert found.value == pytest.approx(expected.value)
    assert found.interval == pytest.approx(expected.interval)


def test_the_samples_of_a_group_are_one_unit():
    """Groups of one size: the mean of all samples is the mean of the means of groups."""
    values, units = SECOND[:12], np.arange(12) % 4
    means = np.array([values[units == unit].mean() for unit in range(4)])
    found = of_mean(values, units)
    assert found.standard_error == pytest.approx(means.std(ddof=1) / 2)
    assert found.degrees == 3
    assert sum(found.sources[0].parts) == pytest.approx(0)


def test_a_mean_has_the_interval_of_student_at_any_confidence_and_within_what_can_be():
    found, low = of_mean(FIRST), float(FIRST.min())
    for confidence in (0.5, 0.95, 0.999):
        wanted = stats.t.interval(confidence, 8, FIRST.mean(), stats.sem(FIRST))
        assert found.interval_at(confidence) == pytest.approx(wanted)
        assert found.half_at(confidence) == pytest.approx((wanted[1] - wanted[0]) / 2)
    assert found.interval == found.interval_at(0.95)
    assert found.within(low, 5.0) == (max(low, found.interval[0]), min(5.0, found.interval[1]))
    assert of_mean(np.array([-1.0, 1.0])).within(-2.0, 2.0) == (-2.0, 2.0)


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
    of_rows = of_mean(rows, units)
    assert (of_rows.value, of_rows.half) == pytest.approx((found.value, found.half))


def test_equal_values_have_the_least_variance_that_is_given():
    found = of_mean(np.ones(5), least=0.04)
    assert (found.standard_error, found.degrees) == (0.2, 4)
    assert found.half == pytest.approx(stats.t.ppf(0.975, 4) * 0.2)
    assert of_mean(FIRST, least=1e-9).half == of_mean(FIRST).half


@pytest.mark.parametrize("units", [None, np.zeros(1, int), np.zeros(9, int)])
def test_one_unit_knows_no_error(units):
    values = FIRST if units is not None and len(units) == 9 else FIRST[:1]
    found = of_mean(values, units)
    assert found.standard_error == np.inf and found.interval == (-np.inf, np.inf)


def test_units_without_a_sample_of_a_mean_have_no_influence():
    inside = np.array([True, True, False, True])
    units = np.array([0, 0, 1, 2])
    found = unit_influences(FIRST[:4][inside], units[inside], 5)
    assert len(found) == 5 and found[[1, 3, 4]].tolist() == [0, 0, 0]
    assert found[[0, 2]].tolist() == unit_influences(FIRST[:4][inside], np.array([0, 0, 1])).tolist()


def test_left_out_blocks_give_the_error_of_the_jackknife():
    parts = [np.array([np.delete(one, k).mean() for k in range(len(one))]) for one in (FIRST, SECOND)]
    found = Estimate.of_blocks(0.0, *parts)
    welch = stats.ttest_ind(FIRST, SECOND, equal_var=False).confidence_interval(0.9)
    assert found.half_at(0.9) == pytest.approx((welch.high - welch.low) / 2)
    assert found.standard_error == pytest.approx(np.hypot(stats.sem(FIRST), stats.sem(SECOND)))
    # What a block adds has the sign of its own value.
    assert np.corrcoef(found.sources[0].parts, FIRST)[0, 1] == pytest.approx(1)
    assert Estimate.of_blocks(1.0, [2.0, 2.0, 2.0]).half == 0


def test_a_number_times_a_factor_has_its_error_and_the_signs_of_its_influences():
    found, wanted = of_mean(FIRST).times(-2.0), of_mean(-2 * FIRST)
    assert (found.value, *found.interval) == pytest.approx((wanted.value, *wanted.interval))
    assert found.sources[0].parts == pytest.approx(wanted.sources[0].parts)
    assert of_mean(np.ones(4), least=0.04).times(3.0).standard_error == pytest.approx(0.6)


def test_a_mean_of_estimates_averages_what_they_share_and_adds_what_they_do_not():
    """Three models, of 9 samples each, against one reference of 14: all errors are those of means of samples."""
    sets = [FIRST, FIRST * 2 + 1, FIRST[::-1] ** 2]
    names = (GEN, REF)
    each = [
        Estimate.of(
            one.mean() - SECOND.mean(),
            [
                ErrorSource.of_samples(values, None, name=name)
                for name, values in zip(names, (one, -SECOND), strict=True)
            ],
        )
        for one in sets
    ]
    found = mean_of(each, shared=(REF,))
    assert found.value == pytest.approx(np.mean(sets) - SECOND.mean())
    assert found.variance_of(GEN) == pytest.approx(sum(stats.sem(one) ** 2 for one in sets) / 9)
    assert found.variance_of(REF) == pytest.approx(stats.sem(SECOND) ** 2)
    few = Estimate.of(1.0, [ErrorSource.of_variance(REF, 1.0, 3.0)])
    assert found.source(GEN).degrees == 8 and mean_of([few, each[0]]).source(REF).degrees == 3
    assert mean_of(each).variance_of(REF) == pytest.approx(stats.sem(SECOND) ** 2 / 3)
    trained = Estimate.of(0.0, [ErrorSource.of_variance(TRAINING, 4.0, 2.0)])
    both = mean_of([trained, each[0]])
    assert (both.variance_of(TRAINING), both.source(TRAINING).degrees) == (1.0, 2.0)
    assert both.variance_of(GEN) == pytest.approx(stats.sem(FIRST) ** 2 / 4) and both.source("other") is None


def test_a_p_value_is_that_of_student_and_certain_without_an_error():
    assert of_mean(FIRST).p_value == pytest.approx(stats.ttest_1samp(FIRST, 0).pvalue)
    assert of_mean(FIRST).p_value == of_mean(-FIRST).p_value
    assert [of_mean(np.full(3, value)).p_value for value in (0.0, 1.0)] == [1, 0]
    assert of_mean(FIRST[:1]).p_value == 1


def test_degrees_can_be_those_of_a_part_of_the_error():
    found = of_mean(FIRST)
    half = stats.t.ppf(0.975, 2.5) * stats.sem(FIRST)
    assert found.half_at(degrees=2.5) == pytest.approx(half)
    assert found.interval_at(degrees=2.5) == pytest.approx((found.value - half, found.value + half))


SIZES = {"even": [4] * 7, "two": [2, 12] * 8, "one of half": [10] + [1] * 10, "doubled": [1, 2, 4, 8, 16, 32, 64, 128]}


@pytest.mark.parametrize("name", SIZES)
def test_units_of_uneven_sizes_have_the_moments_of_their_quadratic_form(name):
    """Σ I² = xᵀKx for means x of units: its mean is tr K times the variance of x, and its variance 2·tr K²."""
    sizes = np.array(SIZES[name])
    w = sizes / sizes.sum()
    root = np.diag(w) - np.outer(w, w)
    form = root.T @ root
    factor, degrees = of_uneven_units(sizes)
    assert factor == pytest.approx(w @ w / np.trace(form))
    assert degrees == pytest.approx(np.trace(form) ** 2 / np.trace(form @ form))
    assert of_uneven_units(np.append(sizes, 0)) == pytest.approx((factor, degrees))
    values = np.random.default_rng(0).normal(size=sizes.sum())
    found = of_mean(values, np.arange(len(sizes)).repeat(sizes))
    sums = np.add.reduceat(values, np.append(0, sizes.cumsum())[:-1])
    assert found.standard_error == pytest.approx(
        np.sqrt(factor * ((sums / len(values) - w * values.mean()) ** 2).sum())
    )
    assert found.degrees == pytest.approx(degrees)
    of_ratio = Estimate.of_ratio(sums, sizes)
    assert (of_ratio.interval, of_ratio.degrees) == (pytest.approx(found.interval), pytest.approx(degrees))


def test_a_unit_that_is_nearly_all_has_one_degree_and_a_finite_error():
    for largest in (10**4, 10**6):
        factor, degrees = of_uneven_units(np.array([largest, 1, 1, 1]))
        assert degrees == 1 and factor == pytest.approx(largest**2 / 18, rel=0.01)


@pytest.mark.parametrize("cluster", [0.0, 1.0])
def test_a_mean_over_uneven_units_errs_at_most_as_often_as_stated(cluster):
    """16 groups of 2 and 12 samples; with 15 degrees of freedom 1.1 % of 20 000 runs were beyond the bound at 0.5 %."""
    rng, sizes, runs = np.random.default_rng(0), np.array(SIZES["two"]), 4000
    units = np.arange(16).repeat(sizes)
    found = []
    for _ in range(runs):
        values = np.sqrt(cluster) * rng.normal(size=16)[units] + np.sqrt(1 - cluster) * rng.normal(size=len(units))
        found.append(of_mean(values, units))
    for level in (0.005, 0.05):
        beyond = sum(one.interval_at(1 - 2 * level)[0] > 0 for one in found)
        assert stats.binom.ppf(0.0005, runs, level * (0.4 + 0.6 * cluster)) <= beyond
        assert beyond <= stats.binom.ppf(0.999, runs, level)


@pytest.mark.parametrize(
    "value, variance, both, upper",
    [
        (0.0, 0.0, 1.0, 1.0),
        (1e-9, 0.0, 0.0, 0.0),
        (-1e-9, 0.0, 0.0, 1.0),
        (1.96, 1.0, 0.05, 0.025),
        (1.0, inf, 1.0, 1.0),
    ],
)
def test_a_p_value_is_one_where_there_is_nothing_to_tell(value, variance, both, upper):
    found = Estimate.of(value, (ErrorSource.of_variance("noise", variance),))
    assert (found.p_value, found.upper_p) == pytest.approx((both, upper), abs=1e-4)


@pytest.mark.parametrize("degrees", [3.0, 40.0, inf])
def test_a_one_sided_p_value_is_half_of_the_two_sided_one_or_the_rest(degrees):
    for value in (0.3, 2.0, 9.0):
        found, below = (Estimate.of(sign * value, (ErrorSource.of_variance("a", 1.0, degrees),)) for sign in (1, -1))
        assert found.upper_p == pytest.approx(found.p_value / 2, rel=1e-9)
        assert below.upper_p == pytest.approx(1 - found.upper_p)


@pytest.mark.parametrize("least", [0.0, 4.0])
def test_an_estimate_at_another_value_keeps_its_error_its_units_and_its_degrees(least):
    found = Estimate.of_mean(np.array([1.0, 2.0, 4.0, 9.0]), least=least)
    moved = found.at(0.0)
    assert moved.value == 0 and moved.degrees == found.degrees == 3
    assert moved.standard_error == pytest.approx(found.standard_error)
    assert sum(moved.interval) == pytest.approx(0) and moved.half == pytest.approx(found.half)
    # What is the least error belongs to the sources: a difference adds it up.
    assert difference(moved, moved, is_paired=False).standard_error == pytest.approx(found.standard_error * 2**0.5)
