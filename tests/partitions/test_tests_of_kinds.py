"""Tests of kinds by hand: counts, families, what can be detected, and what a tally may hold."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from finc_eval.core.errors import DataError
from finc_eval.numerics.blocks import Blocked, WithinBlocks
from finc_eval.numerics.families import step_down
from finc_eval.partitions.tests import FIT_SAMPLES, EffectiveCounts, Mixes, Tally
from finc_eval.partitions.tests import test_kinds as tests_of
from finc_eval.partitions.tests import test_within_blocks as tests_within


def tally(n, members, effects=1.0, even=1.0, within=None):
    ones = np.ones(len(members))
    return Tally(n, np.array(members), effects * ones, even * ones, ones * n if within is None else np.array(within))


def fisher(k, n, other, m):
    return stats.fisher_exact([[k, n - k], [other, m - other]], "greater").pvalue


def test_each_set_is_tested_against_the_others_together_in_both_directions():
    n, k = (60, 80, 100), ((9, 30), (4, 50), (30, 5))
    found = tests_of({label: tally(size, members) for label, size, members in zip("abc", n, k, strict=True)})
    for kind in (0, 1):
        own = np.array(k)[:, kind]
        for one in range(3):
            rest, rest_n = own.sum() - own[one], sum(n) - n[one]
            assert found.raw[one, kind] == pytest.approx(fisher(own[one], n[one], rest, rest_n))
            assert found.raw[3 + one, kind] == pytest.approx(fisher(rest, rest_n, own[one], n[one]))
    np.testing.assert_allclose(found.shares, np.array(k) / np.array(n)[:, None])


def test_grouped_samples_count_by_their_effects_and_the_lesser_set_by_its_groups_up_to_the_largest_with_a_member():
    """Of 100 samples that inform as 50, 20 are of the kind; the other set has 12 of 120, 90 of them in such groups."""
    found = tests_of({"a": tally(100, [20], 2, within=[80]), "b": tally(120, [12], 3, within=[90])})
    assert found.raw[0, 0] == pytest.approx(fisher(10, 50, 4, 30))
    assert found.raw[1, 0] == pytest.approx(fisher(4, 40, 10, 40))


@pytest.mark.parametrize(("n", "is_tested"), [(39, False), (40, True)])
@pytest.mark.parametrize("sets", [2, 3])
def test_a_set_of_fewer_than_four_independent_samples_is_not_tested(n, is_tested, sets):
    """All kinds in groups of ten: 40 samples are as good as four. Of two sets, neither is tested then."""
    tallies = {"a": tally(n, [n, 0], even=10), "b": tally(500, [0, 500]), "c": tally(500, [0, 500])}
    found = tests_of(dict(list(tallies.items())[:sets]))
    assert bool(found.adjusted[0].min() < 0.05) == is_tested
    assert bool(found.adjusted[1].min() < 0.05) == (is_tested or sets == 3)


@pytest.mark.parametrize("part", [1.0, 0.5])
def test_within_blocks_a_p_value_is_from_exchanges_and_by_itself_from_random_signs(part):
    block, owner = np.tile(np.arange(12), 2), np.repeat([0, 1], 12)
    cells = np.r_[[0] * 9, [1] * 3, [0] * 2, [1] * 8, [2] * 2]
    within = WithinBlocks.of(Blocked(block, owner), cells, np.eye(3, dtype=bool))
    tests = tests_of({"a": tally(12, [9, 3, 0]), "b": tally(12, [2, 8, 2])})
    found, z = tests_within(tests, within, part), within.z[0]
    # 3.1787: bound of the tail of any sum of random signs over the normal one (Bentkus and Dzindzalieta 2015).
    np.testing.assert_allclose(found.raw, np.minimum(3.1787 * stats.norm.sf([z, -z]), 1))
    adjusted = np.minimum(step_down(z, within.drawn[:, 0]) / part, 1)
    np.testing.assert_allclose(found.adjusted, [np.where(z > 0, adjusted, 1), np.where(z < 0, adjusted, 1)])
    np.testing.assert_allclose(found.shares, [[9 / 12, 3 / 12, 0], [2 / 12, 8 / 12, 2 / 12]])
    assert found.detectable(0.1) == within.detectable(0.1)


@pytest.mark.parametrize("sizes", [(30, 200), (50, 50)])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_a_detectable_share_gives_enough_members_in_four_of_five_sets(sizes, alpha):
    """So many members of that set alone are significant, whatever else is tested; the other needs a lesser share."""
    found = tests_of({"a": tally(sizes[0], [3, 4]), "b": tally(sizes[1], [5, 6])})
    power = []
    for own, other in (sizes, sizes[::-1]):
        least = next(count for count in range(1, own + 1) if found.family.level_of_one_set(count, own, other) <= alpha)
        power.append(stats.binom.sf(least - 1, own, found.detectable(alpha)))
    assert min(power) == pytest.approx(0.8)


def test_what_is_detectable_counts_samples_by_the_median_effect_and_is_all_of_a_set_where_nothing_is():
    sets = {"a": tally(200, [3, 4, 5]), "b": tally(300, [5, 6, 7])}
    found = tests_of(sets)
    grouped = replace(found, effects=np.array([[1.0, 2, 9], [3, 1, 2]]), sizes=np.array([400, 600]))
    assert grouped.detectable() == found.detectable()
    assert tests_of({"a": tally(2, [1, 1]), "b": tally(3, [2, 1])}).detectable() == 1


def test_of_many_samples_a_kind_needs_eight_among_those_that_are_fitted():
    found = tests_of({"a": tally(40, [3, 4]), "b": tally(60, [5, 6])})
    many = replace(found, sizes=np.array([1_000_000, 3_000_000]))
    own = FIT_SAMPLES / 4  # fitted samples of the smaller set
    share = many.detectable()
    assert stats.binom.sf(7, own, share) == pytest.approx(0.8)
    assert replace(found, sizes=np.array([FIT_SAMPLES // 4, FIT_SAMPLES // 4 * 3])).detectable() < share


def test_intervals_of_mixes_have_their_error_and_what_a_kind_without_samples_may_add():
    mixes = Mixes(
        *(np.array([[one], [-one]]) for one in (0.2, 0.3)), np.full((2, 1), 0.01), np.full(2, 0.5), np.r_[20, 9]
    )
    low, high = mixes.intervals(0.9)
    half = np.hypot(1.6449 * 0.1, 0.5 * (1 - 0.05 ** (1 / 9)))
    np.testing.assert_allclose(
        [low.ravel(), high.ravel()], [[0.3 - half, -0.3 - half], [0.3 + half, -0.3 + half]], rtol=1e-4
    )
    wide = replace(mixes, variance=np.full((2, 1), 4.0)).intervals(0.9)
    assert wide[0].tolist() == [[-1], [-1]] and wide[1].tolist() == [[1], [1]]


def test_parts_of_mixes_of_three_sets_are_of_each_from_the_others_and_values_of_one_sample_have_the_variance_of_all():
    sizes = np.array([[1, 4, 0], [2, 2, 4], [5, 3, 2]], float)
    counts = np.array([[[1], [2], [0]], [[1], [0], [3]], [[2], [3], [1]]], float)
    within = np.array([0.5, 0.3, 0.2])
    found = Mixes.of(counts, np.vstack([sizes, within]))

    def side(rows):
        n, k = sizes[rows].sum(0), counts[rows].sum(0)[:, 0]
        share, weight = k.sum() / n.sum(), np.where(n > 0, n / n.sum() - within, 0)
        inside = k / np.maximum(n, 1)
        variance = np.where(n < 2, share * (1 - share), inside * (1 - inside) / np.maximum(n - 1, 1))
        return share, weight @ inside, weight**2 @ variance, np.abs(weight).sum()

    for one in range(3):
        own, rest = side([one]), side([other for other in range(3) if other != one])
        assert found.plain[one, 0] == pytest.approx(own[0] - rest[0])
        assert found.value[one, 0] == pytest.approx(own[1] - rest[1])
        assert found.variance[one, 0] == pytest.approx(own[2] + rest[2])
        assert found.unseen[one] == pytest.approx((own[3] + rest[3]) / 2)


def test_effective_counts_of_two_sets_together_have_the_mean_of_their_spreads():
    one = EffectiveCounts(np.array([3.0, 7]), np.array([2.0, 4]), 20.0)
    other = EffectiveCounts(np.array([20.0, 10]), np.array([1.0, 8]), 50.0)
    both = one + other
    assert both.members.tolist() == [23, 17] and both.samples == 70
    assert both.spread == pytest.approx([(10 * 2 + 30) / 40, (10 * 4 + 30 * 8) / 40])
    twice = one * 2
    assert (twice.n, twice.samples, twice.spread.tolist()) == (20, 40, [2, 4])
    assert EffectiveCounts.of([3, 7]).spread == 1 and EffectiveCounts.of(one) is one


def test_effective_numbers_have_the_mean_effect_of_all_kinds_by_what_is_not_of_them():
    """Rao and Scott's first order: each kind with a sample weighs 1 − p; the effect is the more cautious of both."""
    one = Tally(10, np.array([5, 4, 1, 0]), np.array([2.0, 3, 1, 9]), np.array([1.0, 4, 1, 9]), np.full(4, 10.0))
    mean = (0.5 * 2 + 0.6 * 4 + 0.9 * 1) / 2
    found = one.effective()
    assert found.members == pytest.approx(np.array([5, 4, 1, 0]) / mean)
    assert found.spread == pytest.approx(np.array([2, 4, 1, 9]) / mean) and found.samples == 10
    alone = tally(10, [10, 0], effects=5).effective()
    assert alone.members == pytest.approx([2, 0]) and alone.spread == pytest.approx([1, 1])


def test_a_pooled_tally_has_the_mean_of_the_effects_by_size():
    found = Tally.pooled([tally(10, [5], 2, 3, [6]), tally(30, [5], 4, 5, [20])])
    assert (found.n, found.members[0], found.within[0]) == (40, 10, 26)
    assert found.effects[0] == pytest.approx(3.5) and found.even[0] == pytest.approx(4.5)


WRONG = {
    "no sample": lambda: tally(0, [0]),
    "too many samples": lambda: tally((1 << 31) + 1, [0]),
    "fewer than none": lambda: tally(5, [-1]),
    "more than the set": lambda: tally(5, [3], within=[6]),
    "more than its groups": lambda: tally(5, [3], within=[2]),
    "an effect below one": lambda: tally(5, [3], effects=1 - 1e-8),
    "an effect of more than twice the set": lambda: tally(5, [3], even=10.1),
    "unlike lengths": lambda: tally(5, [3], within=[5, 5]),
    "a number beyond integers": lambda: Tally.of_lists(5, [1 << 70], [1.0], [1.0], [5.0]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_tally_that_no_samples_have_is_refused(name):
    with pytest.raises(DataError, match="its "):
        WRONG[name]()


def test_a_tally_at_its_limits_is_taken():
    assert tally(1, [1]).n == 1 and tally(1 << 31, [0]).n == 1 << 31
    assert tally(5, [5], effects=1 - 1e-10, even=10).cautious == 10
    assert tally(5, [0], within=[0]).members == 0
