"""Exchanges of units: p-values that hold for sets of one law, find slight changes, and count groups as units."""

import numpy as np
import pytest
from scipy import stats

from finc_eval.numerics.exchanges import (
    EXCHANGED,
    MAX_UNITS,
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
