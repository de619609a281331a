"""The total variation is near the true one, its interval holds, and its p-value is uniform for sets of one law."""

from itertools import product
from math import comb, sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq

from finc_eval.numerics.blocks import Blocked, WithinBlocks
from finc_eval.partitions import difference
from finc_eval.partitions.difference import largest_variation, paired_variation, permutation_p_value, total_variation
from finc_eval.partitions.tests import EffectiveCounts

RNG = np.random.default_rng(0)
EVEN = RNG.dirichlet(np.full(50, 5.0))
ZIPF = 1 / np.arange(1, 51) / (1 / np.arange(1, 51)).sum()
DENSE = EVEN * np.exp(0.4 * RNG.normal(size=50))
GONE = np.where(np.arange(50) < 5, 0, EVEN)
LAWS = {
    "none": (EVEN, EVEN),
    "none, Zipf": (ZIPF, ZIPF),
    "dense": (DENSE / DENSE.sum(), EVEN),
    "five kinds gone": (GONE / GONE.sum(), EVEN),
    "far": (GONE[::-1] / GONE.sum(), ZIPF),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n, m", [(1000, 1000), (200, 3000)])
def test_the_interval_holds_and_the_estimate_is_close(law, n, m):
    p, q = LAWS[law]
    truth = np.abs(p - q).sum() / 2
    rng = np.random.default_rng(1)
    found = [total_variation(rng.multinomial(n, p), rng.multinomial(m, q), seed) for seed in range(20)]
    assert sum(one.interval[0] <= truth <= one.interval[1] for one in found) >= 18
    assert all(0 <= one.interval[0] <= one.value <= one.interval[1] <= 1 for one in found)
    plain = np.abs(rng.multinomial(n, p, 40) / n - rng.multinomial(m, q, 40) / m).sum(1).mean() / 2
    error = abs(np.mean([one.value for one in found]) - truth)
    assert error < 0.1 if n == 200 else error < 0.04
    assert error < abs(plain - truth) or truth > 0.1


@pytest.mark.long
def test_the_p_value_of_one_law_is_uniform_enough():
    rng = np.random.default_rng(2)
    p = [permutation_p_value(rng.multinomial(300, ZIPF), rng.multinomial(900, ZIPF), seed) for seed in range(100)]
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=0.08)
    assert np.mean(p) == pytest.approx(0.5, abs=0.08)


def test_equal_sets_do_not_differ_and_disjoint_ones_differ_wholly():
    same = total_variation([50, 50, 0], [50, 50, 0])
    assert (same.value, same.p_value) == (0, 1)
    apart = total_variation([500, 0, 500], [0, 800, 0])
    assert apart.value == pytest.approx(1, abs=0.02)
    assert apart.p_value == 1 / 2000


def test_a_collapsed_set_of_few_distinct_samples_differs_nearly_wholly():
    """Fifty samples of which 48 are of one kind: of each other kind they lack about one, which chance could do."""
    found = total_variation([48, 2] + [0] * 48, [200] * 50)
    assert 0.9 < found.value <= 0.96


def test_two_sets_of_one_kind_may_differ_by_what_neither_shows():
    low, high = total_variation([50, 0], [50, 0]).interval
    assert low == 0 and high == pytest.approx(1 - 0.025 ** (1 / 50))


def test_the_difference_of_hardly_any_independent_samples_is_not_tested():
    assert permutation_p_value([5, 0], [0, 50]) is None
    assert permutation_p_value([6, 0], [0, 50]) < 0.05 > permutation_p_value([5, 0], [0, 50], least=5)
    found = total_variation([5, 0], [0, 50])
    assert found.p_value is None and found.value > 0.8 and found.interval[0] == 0


def largest(plain, error, confidence):
    """Total variation of equal differences, in errors, of which the plain one is the lower limit of |z| (folded z)."""
    quantile, half, spread = stats.norm.ppf((1 + confidence) / 2), error.sum() / 2, np.sqrt((error**2).sum()) / 2
    limit = lambda mu: half * stats.foldnorm.mean(mu) - quantile * spread * stats.foldnorm.std(mu) - plain  # noqa: E731
    return 0.0 if limit(1e-12) > 0 else min(half * brentq(limit, 1e-12, 1e3), 1.0)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("plain", [0.0, 0.05, 0.2, 0.5, 0.99])
@pytest.mark.parametrize("error", [[0.05] * 8, [0.3, 0.01, 0.02], [0.001] * 40])
def test_the_largest_variation_leaves_the_plain_one_likely(plain, error, confidence):
    error, quantile = np.array(error), stats.norm.ppf((1 + confidence) / 2)
    expected = largest(plain, error, confidence)
    assert difference._largest(plain, error, quantile) == pytest.approx(expected, abs=1e-6)


def test_without_any_error_the_largest_variation_is_the_plain_one():
    assert difference._largest(0.3, np.zeros(4), 1.96) == 0.3


def grouped(members, spread, samples):
    return EffectiveCounts(np.array(members, float), np.array(spread, float), float(samples))


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("spread", [1.0, 2.5])
def test_the_upper_end_is_the_largest_over_variances_of_groups_and_of_independent_samples(spread, confidence):
    """As many samples as effective samples times 3; the variances between are their geometric means."""
    a, b = np.array([30.0, 12, 8, 0]), np.array([20.0, 25, 10, 5])
    sets = grouped(a, spread * np.ones(4), 150), grouped(b, spread * np.ones(4), 180)
    p, q = a / 50, b / 60
    own = spread * (p * (1 - p) / 50 + q * (1 - q) / 60)
    least = p * (1 - p) / 150 + q * (1 - q) / 180
    plain = np.abs(p - q).sum() / 2
    errors = (own, np.sqrt(own * least), least)
    expected = max(largest(plain, np.sqrt(one), confidence) for one in errors)
    assert largest_variation(*sets, confidence) == pytest.approx(expected, abs=1e-6)
    assert largest_variation(*sets, confidence, is_design=True) == pytest.approx(max(expected, plain), abs=1e-6)


def test_the_upper_end_of_a_design_is_not_below_the_plain_variation():
    a, b = np.full(40, 5.0), np.r_[np.full(20, 6.0), np.full(20, 4.0)]
    assert largest_variation(a, b) < 0.1 == pytest.approx(largest_variation(a, b, is_design=True))


@pytest.mark.parametrize("z", [-9.0, -1.5, 0.0, 0.4, 3.0])
def test_the_lower_end_is_from_the_sign_on_one_half_and_the_size_on_the_other(z):
    """The means of both halves are z ± u with u standard normal."""
    error = 0.02
    halves = quad(lambda u: np.sign(z + u) * (z - u) * stats.norm.pdf(u), -12, 12, points=[-z], limit=200)[0]
    expected = error * (halves - 1.96 * sqrt(1.64)) / 2
    one = np.array([z * error, 0.0]), np.array([error, 0.0])
    found = difference._estimate(*one, 0.025, 0.5, 0.95)
    assert found.interval[0] == pytest.approx(max(expected, 0), abs=1e-5) and found.interval[1] == 0.5
    for p_value in (None, 0.026):  # what is not shown to differ may not differ
        assert difference._estimate(*one, p_value, 0.5, 0.95).interval[0] == 0
    # Ends in the order of a range, the value between them.
    far = difference._estimate(np.array([3.0, -3.0]), np.array([0.1, 0.1]), 0.001, 0.2, 0.95)
    assert far.interval == (1, 1) and far.value == 1
    assert difference._estimate(np.array([0.5, -0.5]), np.full(2, 0.01), None, 0.3, 0.95).value == 0.3


@pytest.mark.parametrize("p_value", [None, 0.0, 0.2, 0.5, 0.9])
def test_the_estimate_is_shrunk_by_the_p_value_up_to_one_half(p_value):
    z, error = np.array([5.0, -6.0, 7.0, 0.0]), np.array([0.01, 0.02, 0.01, 0.03])
    whole = error @ difference._posterior_mean(z) / 2
    found = difference._estimate(z * error, error, p_value, 1.0, 0.95)
    assert found.value == pytest.approx(whole * (1 if p_value is None else max(0, 1 - 2 * p_value)))


def test_the_mean_of_a_true_difference_is_by_the_likeliest_law_of_all():
    """EM from an even start over 14 points of either sign up to 4 errors, 0, and what is observed beyond."""
    z = np.array([0.3, -0.7, 1.2, 2.5, -5.0, 6.0, 0.1])
    near = 0.25 * 16 ** (np.arange(14) / 13)
    grid = np.array([*-near, 0, *near, -5, 6])
    likelihood, weights = stats.norm.pdf(z[:, None], grid), np.full(31, 1 / 31)
    for _ in range(100):
        posterior = likelihood * weights / (likelihood @ weights)[:, None]
        weights = posterior.mean(0)
    np.testing.assert_allclose(difference._posterior_mean(z), posterior @ np.abs(grid), rtol=1e-6)
    np.testing.assert_allclose(difference._posterior_mean(-z), difference._posterior_mean(z), rtol=1e-6)


def exact_p_value(a, b):
    """Enumerate all tables of these margins: the smaller p-value of χ² and of its largest term, over its law."""
    total, n, m = np.add(a, b), sum(a), sum(b)
    tables = [one for one in product(*(range(k + 1) for k in total)) if sum(one) == n]
    mass = np.array([np.prod([comb(k, x) for k, x in zip(total, one, strict=True)]) for one in tables]) / comb(n + m, n)
    share = total / (n + m)
    squares = (np.array(tables) / n - (total - tables) / m) ** 2 / (share * (1 - share) * (1 / n + 1 / m))
    both = np.round([squares @ (1 - share), squares.max(1)], 9)
    tails = np.array([[mass[one >= value].sum() for value in one] for one in both]).min(0)
    return mass[tails <= tails[tables.index(tuple(a))] + 1e-9].sum()


@pytest.mark.parametrize(("a", "b"), [((6, 2, 0), (2, 3, 4)), ((7, 1, 1), (4, 3, 4)), ((3, 3, 2), (2, 9, 1))])
def test_the_p_value_is_that_of_an_enumeration_of_all_tables(a, b):
    expected = exact_p_value(a, b)
    assert permutation_p_value(a, b) == pytest.approx(expected, abs=4 * sqrt(expected * (1 - expected) / 1999) + 0.01)


def test_a_difference_of_groups_counts_in_units_of_its_own_variance():
    a, b = np.array([40.0, 60]), np.array([60.0, 40])
    sets = [[grouped(one, spread * np.ones(2), 400) for one in (a, b)] for spread in (1.0, 4.0)]
    plain, spread = (permutation_p_value(*one) for one in sets)
    # Differences are multiples of 0.02, with the error √(0.25 · 2/100): as large as 0.2, and as a half of it.
    assert plain == pytest.approx(2 * stats.norm.sf(0.19 / sqrt(0.005)), abs=0.008)
    assert spread == pytest.approx(2 * stats.norm.sf(0.09 / sqrt(0.005)), abs=0.04)


def test_the_estimate_and_the_interval_within_blocks_have_the_errors_of_blocks():
    block, owner = np.tile(np.arange(20), 2), np.repeat([0, 1], 20)
    cells = np.random.default_rng(0).choice(3, 40, p=(0.5, 0.4, 0.1))
    cells[:8] = 0
    within = WithinBlocks.of(Blocked(block, owner), cells, np.eye(4, dtype=bool))
    (found,) = paired_variation(within, 0.9)
    d, error = within.difference[0, :3], np.sqrt(within.variance[0, :3])
    plain, unseen = np.abs(d).sum() / 2, 1 - 0.05 ** (1 / 20)
    assert found.interval[1] == pytest.approx(min(max(plain, largest(plain, error, 0.9), unseen), 1), abs=1e-6)
    assert found.p_value == within.p_value()[0]
    assert found.value == pytest.approx(error @ difference._posterior_mean(d / error) / 2 * (1 - 2 * found.p_value))
    same = WithinBlocks.of(Blocked(block, owner), np.zeros(40, int), np.eye(2, dtype=bool))
    assert paired_variation(same, 0.9)[0].interval == pytest.approx((0, unseen))


def test_a_table_that_is_kept_has_the_p_value_of_a_new_table():
    """The same sums with other labels, other numbers of samples, another seed or other permutations."""
    tables = [([20, 30, 5], [5, 20, 30]), ([15, 30, 10], [10, 20, 25]), ([5, 5, 5], [20, 45, 30])]
    calls = [(*one, seed) for one in tables for seed in (0, 1)]

    def p_values(*, anew):
        found = []
        for first, second, seed in calls * 2:
            if anew:
                difference._permuted_statistics.cache_clear()
            found.append(permutation_p_value(first, second, seed))
        return found

    assert p_values(anew=True) == p_values(anew=False)
    assert len(set(p_values(anew=False))) > 3
