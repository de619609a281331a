"""Statistics of attacks: ties, exact intervals, and a bound of ε that holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

from finc_eval.core.errors import FincEvalError
from finc_eval.numerics.attack_statistics import (
    OperatingPoint,
    advantage,
    alarm_curve,
    attack_statistics,
    auc,
    auc_interval,
    epsilon_lower_bound,
    operating_point,
    threshold_ranks,
)
from finc_eval.private.dp.guarantee import mu_of


def test_equal_scores_raise_an_alarm_together():
    true, false = alarm_curve([3, 2, 2, 1], [2, 2, 0])
    assert true.tolist() == [0, 1, 3, 4, 4] and false.tolist() == [0, 0, 2, 2, 3]


def test_auc_counts_ties_half():
    assert auc([2, 1], [1, 0]) == pytest.approx((1 + 1 + 0.5 + 1) / 4)
    assert auc(np.ones(5), np.ones(9)) == 0.5


def test_scores_that_are_all_equal_give_no_advantage_and_no_true_positives():
    found = attack_statistics(np.zeros(50), np.zeros(70))
    assert (found.advantage, found.at_1_percent.tpr, found.epsilon_lower_bound) == (0, 0, 0)


def test_infinite_scores_are_ranked():
    assert auc([np.inf, 1], [-np.inf, 0]) == 1
    assert auc([-np.inf], [-np.inf]) == 0.5


def test_auc_of_shifted_normals_is_that_of_theory(rng):
    x, y = rng.normal(1, 1, 20_000), rng.normal(0, 1, 20_000)
    assert auc(x, y) == pytest.approx(norm.cdf(1 / 2**0.5), abs=0.008)
    assert advantage(x, y) == pytest.approx(2 * norm.cdf(0.5) - 1, abs=0.015)
    assert operating_point(x, y, 0.01).tpr == pytest.approx(norm.cdf(norm.ppf(0.01) + 1), abs=0.015)


def test_false_positives_never_exceed_the_limit_and_use_all_of_it():
    y = np.arange(700.0)
    point = operating_point(np.full(10, 692.5), y, 0.01)  # 0.01 × 700 is 7, and 7 lie above 692.5
    assert point.fpr == pytest.approx(0.01) and point.tpr == 1
    assert operating_point(np.full(10, 691.5), y, 0.01).tpr == 0


def test_a_limit_below_one_non_member_allows_none_and_says_so():
    point = operating_point([5, 1], [4, 0], 0.001)
    assert (point.fpr, point.tpr, point.resolved) == (0, 0.5, False)
    assert operating_point(np.ones(1), np.arange(10_000), 0.001).resolved


def test_the_interval_of_the_auc_covers_where_nothing_is_told(rng):
    covered = 0
    for _ in range(300):
        low, high = auc_interval(auc(rng.normal(size=80), rng.normal(size=150)), 80, 150)
        covered += low <= 0.5 <= high
    assert covered / 300 == pytest.approx(0.95, abs=0.04)


def test_the_interval_of_a_perfect_attack_is_no_point():
    low, high = auc_interval(1.0, 20, 20)
    assert 0.7 < low < 0.95 and high == 1
    assert auc_interval(0.0, 20, 20) == pytest.approx((0, 1 - low), abs=1e-6)


def test_the_bound_of_epsilon_stays_below_a_gaussian_guarantee_and_comes_near(rng):
    mu, delta = mu_of(3, 1e-5), 1e-5
    bounds = [epsilon_lower_bound(rng.normal(mu, 1, 20_000), rng.normal(0, 1, 20_000), delta=delta) for _ in range(20)]
    assert max(bounds) <= 3 and min(bounds) > 1


def test_randomized_response_is_bounded_by_its_epsilon_from_both_sides(rng):
    epsilon = 1.0
    honest = np.e**epsilon / (1 + np.e**epsilon)
    for _ in range(20):
        members = (rng.random(4000) < honest).astype(float) + 1e-9 * rng.random(4000)
        others = (rng.random(4000) > honest).astype(float) + 1e-9 * rng.random(4000)
        for x, y in ((members, others), (-members, -others)):
            assert 0.75 < epsilon_lower_bound(x, y) <= epsilon


def test_scores_that_say_nothing_bound_nothing(rng):
    assert sum(epsilon_lower_bound(rng.normal(size=200), rng.normal(size=300)) > 0 for _ in range(100)) <= 6


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: auc([], [1]), "members must be of shape"),
        (lambda: auc([1], [1, np.nan]), "non-members in row 1 is NaN"),
        (lambda: operating_point([1], [1], 0), "must lie between 0 and 1, got 0"),
        (lambda: epsilon_lower_bound([1], [1], delta=1), "delta must lie between 0 and 1"),
        (lambda: attack_statistics([1], [1], confidence=95), "confidence must lie between 0 and 1, got 95"),
    ],
)
def test_what_is_out_of_range_is_refused_in_a_sentence(call, words):
    with pytest.raises(FincEvalError, match=words):
        call()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(("non_members", "resolved"), [(999, False), (1000, True), (1001, True)])
def test_a_limit_means_something_from_ten_false_alarms_on(non_members, resolved):
    assert OperatingPoint(0.01, 0.01, 0.5, (0.4, 0.6), non_members).resolved == resolved


@pytest.mark.parametrize(("value", "m", "n"), [(0.8, 30, 50), (0.55, 10, 7), (0.3, 100, 20)])
def test_each_end_of_the_interval_of_the_auc_is_z_errors_from_the_value(value, m, n):
    """The error is the one of Newcombe (2006), method 5."""
    k = (m + n) / 2 - 1
    for end, sign in zip(auc_interval(value, m, n, 0.9), (1, -1), strict=True):
        error = np.sqrt(end * (1 - end) * (1 + k * (1 - end) / (2 - end) + k * end / (1 + end)) / (m * n))
        assert sign * (value - end) == pytest.approx(1.6448536 * error, rel=1e-6)


@pytest.mark.parametrize(("m", "n", "delta"), [(40, 60, 0.0), (40, 60, 0.3), (5, 1, 0.0)])
def test_the_bound_of_epsilon_of_a_perfect_attack_follows_from_its_thresholds(m, n, delta):
    """All members are above all non-members, so that each threshold has no false alarm but its own rank."""
    scores = np.arange(m + n, dtype=float)
    found = epsilon_lower_bound(scores[n:], scores[:n], delta=delta, confidence=0.9)
    ranks = {size: [2**power for power in range(10) if 2**power <= max(size / 2, 1)] for size in (m, n)}
    tail = 0.1 / 2 / (2 * len(ranks[m]) + 2 * len(ranks[n]))  # two bounds at each threshold
    best = 0.0
    for more, less in ((m, n), (n, m)):
        likely = tail ** (1 / more) - delta
        for rank in ranks[less]:
            rare = stats.beta.ppf(1 - tail, rank, less - rank + 1)
            best = max(best, np.log(likely / rare) if likely > 0 else 0)
    assert found == pytest.approx(best)


@pytest.mark.parametrize(("n", "ranks"), [(1, [1]), (2, [1]), (3, [1]), (4, [1, 2]), (7, [1, 2]), (8, [1, 2, 4])])
def test_ranks_of_thresholds_double_up_to_half_of_the_scores(n, ranks):
    assert threshold_ranks(n) == ranks
