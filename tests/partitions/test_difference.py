"""The total variation is near the true one, its interval holds, and its p-value is uniform for sets of one law."""

import numpy as np
import pytest

from finc_eval.partitions import difference
from finc_eval.partitions.difference import permutation_p_value, total_variation

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
