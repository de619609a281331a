"""Intervals and quantiles, against published values and scipy."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t

from finc_eval.core.errors import UsageError
from finc_eval.numerics.inference import (
    ALPHA,
    BESIDE_ALPHA,
    critical_value,
    jackknife_bias,
    normal_quantile,
    significant,
    student_quantile,
    upper_quantile,
    upper_tail,
    wilson,
)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_quantiles_are_those_of_scipy(confidence):
    assert normal_quantile(confidence) == pytest.approx(norm.ppf((1 + confidence) / 2), rel=1e-12)
    assert student_quantile(7.5, confidence) == pytest.approx(t.ppf((1 + confidence) / 2, 7.5), rel=1e-12)
    assert upper_quantile(confidence, 7.5) == pytest.approx(t.isf(confidence, 7.5), rel=1e-12, abs=1e-12)


def test_the_bias_of_a_jackknife_of_a_variance_leaves_none():
    values = np.random.default_rng(0).normal(size=12)
    variances = [np.delete(values, k).var() for k in range(12)]
    assert values.var() - jackknife_bias(values.var(), variances) == pytest.approx(values.var(ddof=1))


@pytest.mark.parametrize(("found", "n"), [(0, 10), (3, 10), (10, 10), (81, 263)])
def test_wilsons_interval_is_that_of_scipy(found, n):
    expected = binomtest(found, n).proportion_ci(0.95, method="wilson")
    assert wilson(found / n, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_a_confidence_is_refused_unless_it_lies_between_0_and_1(confidence):
    with pytest.raises(UsageError, match=f"confidence must lie between 0 and 1, got {confidence}"):
        normal_quantile(confidence)


def test_simultaneous_intervals_are_bonferronis():
    assert critical_value(1) == pytest.approx(norm.ppf(0.975))
    assert critical_value(20) == pytest.approx(norm.ppf(1 - 0.05 / 40))


def test_what_is_exactly_at_the_level_is_significant():
    found = [SimpleNamespace(p_value=p) for p in (0.01, 0.05, 0.0500001)]
    assert significant(found, 0.05) == tuple(found[:2])


def test_the_tests_of_a_headline_share_the_level():
    """Kinds or directions keep half of it in practice, and two further tests have a fourth each."""
    assert pytest.approx(ALPHA / 2) == 2 * BESIDE_ALPHA
    assert upper_tail(1.6448536) == pytest.approx(0.05)
