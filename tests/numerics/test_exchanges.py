"""Exchanges of units: p-values that hold for sets of one law, find slight changes, and count groups as units."""

import numpy as np
import pytest
from scipy import stats

from finc_eval.numerics.exchanges import (
    EXCHANGED,
    MAX_UNITS,
    Exchanged,
    MeanLaw,
    UnitSums,
    exchange_units,
    flip_blocks,
    sketched_p_value,
    unit_numbers,
)

AXES, RUNS, FEW = 8, 100, 99
"""Columns of the values, runs behind a rate, and exchanges behind a p-value of these runs."""


def summed(rows, units):
    sums = np.zeros((units.max() + 1, rows.shape[1]))
    np.add.at(sums, units, rows)
    return UnitSums(sums.astype(np.float32), np.bincount(units).astype(float))


def singles(rows):
    return summed(rows, np.arange(len(rows)))


def grouped(rng, groups, low, high, noise=0.3):
    """Windows of groups: the samples of a group resemble each other."""
    units = np.repeat(np.arange(groups), rng.integers(low, high + 1, groups))
    return summed(rng.normal(size=(groups, AXES))[units] + noise * rng.normal(size=(len(units), AXES)), units)


DESIGNS = {
    "20 v 20": lambda rng: [singles(rng.normal(size=(20, AXES))) for _ in "ab"],
    "30 v 300": lambda rng: [singles(rng.normal(size=(n, AXES))) for n in (30, 300)],
    "heavy tails": lambda rng: [singles(np.cos(rng.standard_cauchy(size=(100, AXES)))) for _ in "ab"],
    "one dimension": lambda rng: [singles(rng.normal(size=(50, 1))) for _ in "ab"],
    "groups of 3 to 8": lambda rng: [grouped(rng, 60, 3, 8) for _ in "ab"],
    "few small against many large groups": lambda rng: [grouped(rng, 40, 3, 3, 2), grouped(rng, 100, 8, 8, 2)],
    "single samples against groups": lambda rng: [grouped(rng, 40, 1, 1, 2), grouped(rng, 200, 8, 8, 2)],
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("design", DESIGNS)
def test_sets_of_one_law_are_called_different_as_often_as_the_level_says(design):
    alarms = 0
    for seed in range(RUNS):
        first, second = DESIGNS[design](np.random.default_rng(seed))
        alarms += exchange_units(first, second, seed, by_column=False, exchanges=FEW).p_value() <= 0.05
    # In 999 of 1,000 tables of as many runs at the level of .05.
    assert alarms <= stats.binom.ppf(0.999, RUNS, 0.05)


def test_a_slight_shift_of_every_sample_is_found():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, AXES))
    shifted = [singles(rows[:300] + change) for change in (0.0, 0.2)]
    p_values = [exchange_units(one, singles(rows[300:]), 1).p_value() for one in shifted]
    assert p_values[1] == 1 / (1 + EXCHANGED) < 0.05 < p_values[0]


def test_samples_of_one_group_are_one_unit():
    rng = np.random.default_rng(3)
    groups = [rng.normal(size=(15, AXES)) for _ in "ab"]
    copies = [np.repeat(rows, 20, axis=0) for rows in groups]
    units = np.repeat(np.arange(15), 20)
    together = exchange_units(*(summed(rows, units) for rows in copies), 0).p_value()
    assert exchange_units(*map(singles, copies), 0).p_value() < 0.01 < together
    assert together == pytest.approx(exchange_units(*map(singles, groups), 0).p_value())


def test_a_column_has_the_difference_of_means_and_the_variances_of_both():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(40, 3)), rng.normal(size=(70, 3)) * 2 + 1
    found = exchange_units(singles(one), singles(other), 0)
    np.testing.assert_allclose(found.differences[0], one.mean(0) - other.mean(0), rtol=1e-4)
    expected = one.var(0, ddof=1) / 40 + other.var(0, ddof=1) / 70
    np.testing.assert_allclose(found.variances[0], expected, rtol=1e-4)
    total = exchange_units(singles(one), singles(other), 0, by_column=False)
    np.testing.assert_allclose(total.variances.ravel(), found.variances.sum(1), rtol=1e-4)
    np.testing.assert_allclose(total.differences, found.differences, rtol=1e-4)


def test_a_column_that_is_constant_differs_nowhere():
    ones = singles(np.ones((30, 2)))
    found = exchange_units(ones, ones, 0)
    assert not found.z.any() and found.p_value() == 1


def test_all_signs_of_few_blocks_are_tried():
    found = flip_blocks(np.ones((8, 1), np.float32), 0)
    assert len(found.differences) == 2**8 and found.p_value() == 2 / 2**8


@pytest.mark.parametrize(("shift", "low", "high"), [(0.0, 0.05, 1.0), (0.5, 0.0, 0.01)])
def test_blocks_change_their_signs(shift, low, high):
    parts = np.random.default_rng(1).normal(size=(60, AXES)) + shift
    assert low < flip_blocks((parts / 60).astype(np.float32), 0).p_value() <= high


@pytest.mark.parametrize("shift", [0.0, 0.06, 0.1])
def test_moments_alone_give_nearly_the_p_value_of_exchanges(shift):
    rng = np.random.default_rng(5)
    one, other = rng.normal(size=(200, AXES)) + shift, rng.normal(size=(300, AXES))
    exchanged = exchange_units(singles(one), singles(other), 0, by_column=False, exchanges=1999).p_value()
    distance = float(((one.mean(0) - other.mean(0)) ** 2).sum())
    sketched = sketched_p_value(distance, np.cov(np.concatenate([one, other]).T), (200, 300))
    assert sketched == pytest.approx(exchanged, abs=0.05)


def test_more_units_than_are_exchanged_are_joined_whatever_their_order():
    keys = np.random.default_rng(0).integers(0, 2**63, 20_000).astype(np.uint64)
    units = unit_numbers(keys)
    assert units.max() < MAX_UNITS and len(np.unique(units)) > MAX_UNITS * 0.9
    np.testing.assert_array_equal(unit_numbers(keys[::-1]), units[::-1])
    few = unit_numbers(np.array([7, 9, 7], np.uint64))
    assert few[0] == few[2] != few[1]


@pytest.mark.parametrize("sizes", [(1, 4), (3, 3), (1, 1)])
def test_the_variance_of_a_mean_of_groups_is_that_of_the_ratio_of_their_sums(sizes):
    rng = np.random.default_rng(6)
    sets = [grouped(rng, groups, *sizes) for groups in (9, 12)]
    found = exchange_units(*sets, 0)
    means = [one.sums.sum(0, dtype=float) / one.sizes.sum() for one in sets]
    expected = sum(
        len(one.sizes)
        / (len(one.sizes) - 1)
        * ((one.sums - one.sizes[:, None] * mean) ** 2).sum(0)
        / one.sizes.sum() ** 2
        for one, mean in zip(sets, means, strict=True)
    )
    np.testing.assert_allclose(found.differences[0], means[0] - means[1], rtol=1e-4)
    np.testing.assert_allclose(found.variances[0], expected, rtol=1e-4)
    np.testing.assert_allclose(exchange_units(*sets, 0, by_column=False).variances[0], expected.sum(), rtol=1e-4)


def test_each_exchange_is_a_comparison_of_sets_of_the_same_sizes():
    """Of values 0 and 1, the difference after an exchange tells which units were drawn."""
    found = exchange_units(singles(np.ones((3, 1))), singles(np.zeros((5, 1))), 0)
    ones = np.round((found.differences[:, 0] + 3 / 5) / (1 / 3 + 1 / 5))
    assert set(ones) == {0, 1, 2, 3} and ones[0] == 3
    np.testing.assert_allclose(found.differences[:, 0], ones / 3 - (3 - ones) / 5, atol=1e-6)
    variance = ones / 3 * (1 - ones / 3) / 2 + (3 - ones) / 5 * (1 - (3 - ones) / 5) / 4
    # Where all ones are in the first set, a quarter of a unit of each set is taken to differ.
    variance[ones == 3] = (1 / 3**2 + 1 / 5**2) / 16
    np.testing.assert_allclose(found.variances[:, 0], variance, atol=1e-6)


@pytest.mark.parametrize("value", [1.0, 0.1, 1 / 3, 1e6])
def test_what_all_of_one_set_and_none_of_the_other_has_is_clearer_than_anything_else(value):
    """Nothing varies within the sets, up to rounding."""
    rng = np.random.default_rng(0)
    far = np.column_stack([np.full(40, value), rng.normal(50, 1, 40)])
    found = exchange_units(singles(far), singles(np.column_stack([np.zeros(60), rng.normal(0, 1, 60)])), 0)
    assert found.z[0, 0] == pytest.approx(4 / np.sqrt(1 / 40**2 + 1 / 60**2), rel=1e-3)
    assert found.z[0, 0] > np.abs(found.z[1:, 0]).max() and found.z[0, 1] < 400
    alone = exchange_units(singles(far[:, :1]), singles(np.zeros((60, 1))), 0, by_column=False)
    assert alone.p_value() == 1 / (1 + EXCHANGED)
    # Sets that have one value each, the same, do not differ.
    same = exchange_units(singles(far[:, :1]), singles(np.full((60, 1), value)), 0)
    assert not same.z.any()


@pytest.mark.parametrize(("blocks", "tried"), [(1, 2), (11, 2**11), (12, 1 + EXCHANGED)])
def test_all_signs_are_tried_up_to_eleven_blocks(blocks, tried):
    found = flip_blocks(np.ones((blocks, 1), np.float32), 0)
    assert len(found.differences) == tried and found.differences[0] == blocks
    assert set(np.abs(found.differences.ravel()) % 2) == {blocks % 2}  # each sign is 1 or −1
    assert np.all(found.variances == blocks)
    assert abs(found.differences.mean()) < 0.5


def test_the_p_value_counts_exchanges_that_are_as_large_up_to_rounding():
    differences = np.array([2.0, 2.0 - 1e-7, -2.0, 1.99, 0.0])[:, None]
    assert Exchanged(differences, np.ones((5, 1))).p_value() == pytest.approx(3 / 5)
    # The sums of squares are over the sums of variances; a comparison without any variance shows nothing.
    two = Exchanged(np.array([[1.0, 1.0], [1.5, 0.0]]), np.array([[1.0, 1.0], [0.5, 0.5]]))
    assert two.p_value() == 1
    assert Exchanged(np.array([[1.0], [1.0]]), np.array([[1.0], [0.0]])).p_value() == 0.5
    np.testing.assert_allclose(Exchanged(np.array([[3.0, 1.0]]), np.array([[4.0, 0.0]])).z, [[1.5, 0]])


def test_up_to_the_most_units_each_is_its_own():
    keys = np.arange(MAX_UNITS, dtype=np.uint64) << np.uint64(20)
    assert len(np.unique(unit_numbers(keys))) == MAX_UNITS
    more = np.arange(MAX_UNITS + 1, dtype=np.uint64) << np.uint64(20)
    assert len(np.unique(unit_numbers(more))) < MAX_UNITS


def test_the_law_of_a_mean_of_one_value_is_the_normal_test():
    one, other = MeanLaw(np.array([1.0]), 0.09, 0.09**2), MeanLaw(np.array([0.2]), 0.04, 0.04**2)
    assert one.p_value(other) == pytest.approx(2 * stats.norm.sf(0.8 / np.sqrt(0.13)))
    assert other.p_value(one) == one.p_value(other) and one.p_value(one) == 1
    nothing = MeanLaw(np.array([1.0]), 0.0, 0.0)
    assert nothing.p_value(nothing) == 1
    sizes, variance = (10**6, 2 * 10**6), 4.0
    p = sketched_p_value(0.003**2, np.array([[variance]]), sizes)
    assert p == pytest.approx(2 * stats.norm.sf(0.003 / np.sqrt(variance * 1.5e-6)), rel=1e-3)


def test_the_law_of_a_mean_has_its_covariance_and_the_square_of_it_without_bias():
    rng, scale = np.random.default_rng(7), np.array([3.0, 1.0, 1.0])
    rows = rng.normal(size=(30, 3)) * scale
    law = MeanLaw.of(singles(rows))
    np.testing.assert_allclose(law.mean, rows.mean(0), rtol=1e-5)
    assert law.trace == pytest.approx(np.trace(np.cov(rows.T)) / 30, rel=1e-5)
    found = [MeanLaw.of(singles(rng.normal(size=(8, 3)) * scale)).squares * 64 for _ in range(800)]
    truth = (scale**4).sum()
    assert np.mean(found) == pytest.approx(truth, abs=4 * np.std(found) / np.sqrt(800))
    # Of many units the first stand for all.
    many = MeanLaw.of(singles(rng.normal(size=(2048, 3)) * scale))
    assert many.squares * 2048**2 == pytest.approx(truth, rel=0.2)
    assert MeanLaw.of(singles(rows[:7])) is None and MeanLaw.of(singles(rows[:8])) is not None


def test_the_law_of_a_mean_of_groups_has_the_variance_of_the_jackknife():
    one = grouped(np.random.default_rng(8), 12, 1, 4)
    mean, count = one.sums.sum(0) / one.sizes.sum(), len(one.sizes)
    without = (one.sums.sum(0) - one.sums) / (one.sizes.sum() - one.sizes)[:, None]
    law = MeanLaw.of(one)
    assert law.trace == pytest.approx(float(((without - mean) ** 2).sum()) * (count - 1) / count, rel=1e-4)
    assert law.units == pytest.approx(one.sizes.sum() ** 2 / (one.sizes**2).sum())
    found = exchange_units(one, one, 0, by_column=False)
    assert 1 < 2 * law.trace / found.variances[0, 0] < 1.2


def test_the_law_of_means_of_few_samples_is_the_test_of_student():
    """One column and sets of 10: F is t², with 18 degrees of freedom if both variances are equal."""
    rows = np.random.default_rng(5).normal(size=(10, 1))
    one, other = (MeanLaw.of(singles(each)) for each in (rows, 0.8 - rows))
    assert one.p_value(other) == pytest.approx(stats.ttest_ind(rows[:, 0], 0.8 - rows[:, 0]).pvalue, abs=0.02)


def test_a_set_that_is_mostly_one_group_has_no_law():
    assert MeanLaw.of(UnitSums(np.ones((21, 2), np.float32), np.array([30.0] + [1.0] * 20))) is None


def test_a_table_without_columns_has_no_differences():
    found = exchange_units(*(singles(np.zeros((20, 0))) for _ in range(2)), 0, exchanges=3)
    assert found.z.shape == (4, 0)


@pytest.mark.parametrize("columns", [3, 3000, 40000])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 3)])
def test_variances_are_the_same_however_many_exchanges_are_computed_together(columns, sizes):
    rng = np.random.default_rng(0)
    first, second = (grouped(rng, 12, *sizes) for _ in range(2))
    alone = exchange_units(first, second, 0, exchanges=9)
    wide = (UnitSums(np.tile(one.sums, (1, -(-columns // AXES))), one.sizes) for one in (first, second))
    found = exchange_units(*wide, 0, exchanges=9)
    np.testing.assert_allclose(found.differences[:, :AXES], alone.differences, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.variances[:, :AXES], alone.variances, rtol=1e-5)
