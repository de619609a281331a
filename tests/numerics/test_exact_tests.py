"""Exact tests of shares agree with scipy, and their corrections and intervals hold."""

import numpy as np
import pytest
from scipy import stats

from finc_eval.core.errors import DataError
from finc_eval.numerics.inference import (
    ShareTests,
    clopper_pearson,
    detectable_share,
    hypergeometric_masses,
    hypergeometric_tails,
    mover,
    share_bounds,
)

TABLES = [(15, 1000, 0, 1000), (3, 1000, 5, 500), (0, 1000, 3, 200), (7, 1000, 7, 900), (40, 40, 0, 40)]


def test_whole_counts_give_fishers_p_values():
    found = ShareTests(*np.array(TABLES).T).p_values
    for value, (k, n, other, m) in zip(found, TABLES, strict=True):
        fisher = stats.fisher_exact([[k, n - k], [other, m - other]], "greater").pvalue
        assert value == pytest.approx(fisher, rel=1e-8)


def test_a_factor_or_effective_counts_give_the_conditional_binomial_test():
    found = ShareTests([15, 9], [1000, 1000], [2, 0], [500, 500], rho=2).p_values
    pi = 2 * 1000 / (2 * 1000 + 500)
    assert found == pytest.approx([stats.binom.sf(14, 17, pi), stats.binom.sf(8, 9, pi)])
    between = ShareTests([14.5], [1000], [2], [500], rho=2).p_values
    assert ShareTests([15], [1000], [2], [500], rho=2).p_values < between
    assert between < ShareTests([14], [1000], [2], [500], rho=2).p_values


def test_discrete_correction_is_never_above_holms_and_ignores_tests_that_cannot_be_significant():
    k, other = np.array([14, *[1] * 99]), np.array([0, *[1] * 99])
    tests = ShareTests(k, 1000, other, 1000)
    assert tests.adjusted[0] == tests.p_values[0]  # rare kinds take no part: none can have so small a p-value
    order = tests.p_values.argsort()
    holm = np.minimum(np.maximum.accumulate(tests.p_values[order] * np.arange(100, 0, -1)), 1)
    assert (tests.adjusted[order] <= holm + 1e-12).all()


def test_family_wise_error_of_many_discrete_tests_is_near_its_level():
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(200):
        sizes = rng.integers(2, 40, 60)  # 60 independent kinds, sets of 30 and 270
        k = rng.hypergeometric(sizes, 300 - sizes, 30)
        total = sizes
        tests = ShareTests(np.r_[k, total - k], np.repeat([30, 270], 60), np.r_[total - k, k], np.repeat([270, 30], 60))
        rejected += tests.adjusted.min() <= 0.05
    assert 0.02 * 200 < rejected <= 0.07 * 200


def test_hypergeometric_tails_are_those_of_scipy():
    tails = hypergeometric_tails(30, 200, 500)
    assert [tails.at(k) for k in range(31)] == pytest.approx(stats.hypergeom(700, 30, 200).sf(np.arange(31) - 1))


@pytest.mark.parametrize("case", [(0, 5, 5), (5, 0, 9), (10, 5, 5), (7, 5, 4), (3, 1, 10**7), (60, 40, 30)])
def test_hypergeometric_masses_are_those_of_the_values_that_are_possible(case):
    total, n, m = case
    low, masses = hypergeometric_masses(*case)
    whole = stats.hypergeom(n + m, total, n).pmf(np.arange(total + 1))
    assert masses.sum() == pytest.approx(1)
    assert masses == pytest.approx(whole[low : low + len(masses)], rel=1e-7)
    assert max(0, total - m) <= low and low + len(masses) - 1 <= min(total, n)


def test_masses_that_floating_point_cannot_hold_take_no_memory():
    """300 million members of sets of 600 million: 2 % of the possible values have a mass."""
    low, masses = hypergeometric_masses(300_000_000, 600_000_000, 600_000_000)
    assert len(masses) < 700_000 and masses[0] == masses[-1] == 0 and masses.sum() == pytest.approx(1, abs=1e-4)
    assert low + len(masses) // 2 == pytest.approx(150_000_000, abs=2)


def test_the_law_of_more_counts_than_memory_holds_is_one_sentence(monkeypatch):
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "1MB")
    with pytest.raises(DataError, match="the law of the counts of so many samples takes"):
        ShareTests(10**8, 10**9, 10**8, 10**9)


def test_clopper_pearson_is_scipys_interval():
    low, high = clopper_pearson([0, 3, 10], 10, 0.9)
    for k, ends in zip((0, 3, 10), zip(low, high, strict=True), strict=True):
        exact = stats.binomtest(k, 10).proportion_ci(0.9, "exact")
        assert ends == pytest.approx((exact.low, exact.high))


def test_mover_gives_newcombes_example():
    """Newcombe (1998), table II, method 10 of 56/70 − 48/80: Wilson's limits, 0.0524 to 0.3339."""
    wilson = [stats.binomtest(k, n).proportion_ci(0.95, "wilson") for k, n in ((56, 70), (48, 80))]
    low, high = mover((wilson[0].low, 56 / 70, wilson[0].high), (wilson[1].low, 48 / 80, wilson[1].high))
    assert (low, high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_a_detectable_share_reaches_its_count_with_the_stated_power():
    share = detectable_share(14, 1000)
    assert stats.binom.sf(13, 1000, share) == pytest.approx(0.8)
    assert detectable_share(20, 10) == 1


def attainable(test, n, m, rho, p):
    """P(pᵢ ≤ p) of a test of so many members: the largest p-value up to p that it can have."""
    if rho == 1:
        found = stats.hypergeom(n + m, test, n).sf(np.arange(test + 1) - 1)
    else:
        return p if p >= (rho * n / (rho * n + m)) ** test * (1 - 1e-9) else 0.0
    return max((value for value in found if value <= p * (1 + 1e-9)), default=0.0)


@pytest.mark.parametrize(("rho", "tests"), [(1.0, 9), (2.0, 9), (2.0, 300)])
def test_the_correction_is_the_step_down_over_what_each_test_can_reach(rho, tests):
    rng, n, m = np.random.default_rng(3), 20, 30
    k, other = rng.integers(0, 7, tests), rng.integers(0, 3, tests)
    if tests > 9:  # few members and p-values of nearly 0, so that not all is 1
        k, other = np.r_[np.full(40, 60), np.ones(tests - 40, int)], np.r_[np.zeros(40, int), np.ones(tests - 40, int)]
    found = ShareTests(k, n, other, m, rho)
    order = found.p_values.argsort(kind="stable")
    steps = [
        sum(attainable(k[i] + other[i], n, m, rho, found.p_values[one]) for i in order[place:])
        for place, one in enumerate(order)
    ]
    np.testing.assert_allclose(found.adjusted[order], np.minimum(np.maximum.accumulate(steps), 1), rtol=1e-6)


@pytest.mark.parametrize("rho", [1.0, 2.0])
def test_the_level_of_members_of_one_set_is_that_of_the_smallest_p_values_of_so_many(rho):
    tests = ShareTests([3, 1, 5], 20, [0, 1, 1], 30, rho)
    p = (
        stats.hypergeom(50, 4, 20).sf(3)
        if rho == 1
        else (2 * 20 / (2 * 20 + 30)) ** 4  # four members, all in the first
    )
    expected = sum(attainable(total, 20, 30, rho, p) for total in (3, 2, 6))
    assert tests.level_of_one_set(4, 20, 30) == pytest.approx(expected)


@pytest.mark.parametrize("rho", [1.0, 3.0])
def test_a_p_value_that_differs_by_rounding_is_the_same(rho):
    """Two tests of the same members have one p-value, and each can reach that of the other."""
    tests = ShareTests([6, 6], 20, [0, 0], 30, rho)
    assert tests.adjusted == pytest.approx(2 * tests.p_values)
    assert tests._reach(tests.p_values * (1 - 1e-12)) == pytest.approx(np.tile(tests.p_values, (2, 1)))
    assert not tests._reach(tests.p_values * (1 - 1e-6)).any()


@pytest.mark.parametrize(("k", "n"), [(0, 7), (7, 7), (1, 7), (6, 7), (2.5, 7.25)])
def test_bounds_of_shares_are_quantiles_of_the_beta_distribution(k, n):
    low, high = share_bounds(k, n, 0.1)
    assert low == pytest.approx(stats.beta.ppf(0.1, k, n - k + 1) if k else 0)
    assert high == pytest.approx(stats.beta.ppf(0.9, k + 1, n - k) if k < n else 1)


def test_more_than_all_samples_are_detectable_in_no_share_but_one():
    shares = detectable_share([3, 4, 5, 6], 5)
    assert shares[3] == 1 and shares[2] == pytest.approx(0.8 ** (1 / 5))
    assert (np.diff(shares) > 0).all()
