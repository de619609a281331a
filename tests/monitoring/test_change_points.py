"""Starts and sizes of changes: estimates are near, and intervals hold the truth as often as they say."""

import numpy as np
import pytest
from scipy.stats import binomtest

from finc_eval.monitoring.evidence.change_points import EARLIEST, estimate_change

REFERENCE, SAMPLES, LOOKS, START = 650, 64, 24, 8

DRIFTS = {
    "a class of 8 % that is lost": (0.08, 0.0, 1, 2),
    "a class of 8 % that fades over 8 looks": (0.08, 0.0, 8, 5),
    "a quarter that gets a look": (0.01, 0.25, 1, 1),
    "a quarter that gets a look over 12 looks": (0.01, 0.25, 12, 2),
    "a fifth that repeats": (0.0, 0.2, 1, 1),
    "a class of 8 % that is new": (0.0, 0.08, 1, 2),
}
"""Shares before and after, looks from one to the other, and looks by which nine of ten dates are wrong at most."""


def course(rng, before, after, length):
    """Return counts of all looks, those of the reference, and the true shares."""
    shares = before + (after - before) * np.clip((np.arange(LOOKS) - START + 1) / length, 0, 1)
    counts = np.column_stack([rng.binomial(SAMPLES, shares), np.full(LOOKS, SAMPLES)])
    return counts.astype(float), np.array([rng.binomial(REFERENCE, before), REFERENCE], float), shares


@pytest.mark.parametrize("drift", DRIFTS)
def test_nine_of_ten_dates_are_near_and_intervals_hold_start_and_size(drift):
    """40 runs of each drift, dated as if the alarm was raised at the last look but seven."""
    *law, apart = DRIFTS[drift]
    rng, errors, held = np.random.default_rng(0), [], []
    for _ in range(40):
        counts, reference, shares = course(rng, *law)
        found = estimate_change(counts, reference, LOOKS - 8)
        errors.append(abs(found.start - START))
        held.append((found.first <= START <= found.last, found.low <= shares[-1] <= found.high))
        assert found.first <= found.start <= found.last and found.low <= found.now <= found.high
    assert np.quantile(errors, 0.9) <= apart
    for hits in np.sum(held, 0).tolist():
        assert binomtest(hits, 40, 0.95, alternative="less").pvalue > 0.01


@pytest.mark.parametrize(("jump", "apart"), [(0.5, 2), (1.0, 1)])
def test_a_mean_that_jumps_is_dated_by_the_variance_of_the_reference(jump, apart):
    rng, errors, held = np.random.default_rng(1), [], []
    for _ in range(40):
        truth = jump * (np.arange(LOOKS) >= START)
        means = 2 * (truth + rng.normal(size=LOOKS) / SAMPLES**0.5)
        sums = np.column_stack([means * SAMPLES, np.full(LOOKS, SAMPLES)])
        found = estimate_change(sums, np.array([2 * rng.normal() * REFERENCE**0.5, REFERENCE]), LOOKS - 8, 4.0)
        errors.append(abs(found.start - START))
        held.append((found.first <= START <= found.last, found.low <= 2 * jump <= found.high))
    assert np.quantile(errors, 0.9) <= apart
    for hits in np.sum(held, 0).tolist():
        assert binomtest(hits, 40, 0.95, alternative="less").pvalue > 0.01


def test_a_change_began_when_its_alarm_was_raised_at_the_latest_and_is_of_now():
    """What is over is not averaged: from look 8 to 15 half of the samples have it, and none since look 16."""
    counts = np.array([[0, 64]] * 8 + [[32, 64]] * 8 + [[0, 64]] * 16, float)
    found = estimate_change(counts, np.array([0.0, 650.0]), 8)
    assert (found.start, found.first, found.last) == (8, 8, 8) and found.now < 0.01 and found.before == 0
    assert estimate_change(counts[:14], np.array([0.0, 650.0]), 8).now == pytest.approx(0.5, abs=0.01)


def test_a_long_training_is_dated_by_the_evaluations_around_its_alarm():
    counts = np.array([[6, 64]] * 300 + [[20, 64]] * 300, float)
    found = estimate_change(counts, np.array([60.0, 640.0]), 302)
    assert (found.start, found.first, found.last) == (300, 299, 300) or found.first <= 300 <= found.last
    assert found.before == pytest.approx(6 / 64, abs=0.01) and found.now == pytest.approx(20 / 64, abs=0.01)
    late = estimate_change(counts, np.array([60.0, 640.0]), 599)  # an alarm that is far too late
    assert late.first >= 599 - EARLIEST


def test_one_evaluation_dates_itself_and_evaluations_without_samples_say_nothing():
    alone = estimate_change(np.array([[30.0, 64.0]]), np.array([0.0, 600.0]), 0)
    assert (alone.start, alone.first, alone.last) == (0, 0, 0) and alone.now == pytest.approx(30 / 64)
    gaps = np.array([[0, 64], [0, 0], [1, 64], [30, 64], [0, 0], [30, 64]], float)
    found = estimate_change(gaps, np.array([0.0, 600.0]), 5)
    assert found.start == 3 and found.now == pytest.approx(30 / 64, abs=0.02)


def test_evaluations_that_vary_more_than_independent_samples_have_wider_intervals():
    rng = np.random.default_rng(2)
    shares = np.where(np.arange(20) >= 10, 0.4, 0.2)
    widths = []
    for clump in (1, 8):  # samples that are equal
        counts = np.column_stack([clump * rng.binomial(64 // clump, shares), np.full(20, 64)])
        found = estimate_change(counts.astype(float), np.array([130.0, 650.0]), 16)
        widths.append((found.last - found.first, found.high - found.low))
    assert widths[1][1] > 1.5 * widths[0][1] and widths[1][0] >= widths[0][0]
