"""The test of the share of samples that repeat another: its rate for two sets of one law, and what it finds."""

import numpy as np
import pytest
from scipy.stats import binom

from finc_eval.naming.share_repeated import EXCHANGES_AT_ONCE, p_of_share_repeated


def drawn(rng, sizes, pictures, per_unit):
    """Numbers of repeats and of units of two sets: a unit shows one of some pictures in three of four samples."""
    units = tuple(np.arange(n) // per_unit for n in sizes)
    fresh = np.split(pictures + np.arange(sum(sizes)), [sizes[0]])
    of_units = [rng.integers(0, pictures, of_set[-1] + 1)[of_set] for of_set in units]
    shown = [np.where(rng.random(len(own)) < 0.25, own, same) for own, same in zip(fresh, of_units, strict=True)]
    counts = np.bincount(np.concatenate(shown))
    return tuple(np.where(counts[of_set] > 1, of_set, -1) for of_set in shown), units


DESIGNS = {
    "small": ((60, 60), 80, 1),
    "unlike sizes": ((40, 200), 150, 1),
    "units": ((90, 120), 60, 3),
    "rare": ((100, 100), 4000, 1),
}


def p_values(design, runs, exchanges=99):
    sizes, pictures, per_unit = DESIGNS[design]
    rng = np.random.default_rng(0)
    for seed in range(runs):
        yield p_of_share_repeated(*drawn(rng, sizes, pictures, per_unit), seed, exchanges, is_paired=False)


@pytest.mark.parametrize(("design", "runs"), [(name, 200) for name in DESIGNS])
def test_two_sets_of_one_law_rarely_have_a_small_p_value(design, runs):
    found = np.array([*p_values(design, runs)])
    for level in (0.01, 0.05, 0.2):
        assert (found <= level).sum() <= binom.ppf(0.9999, runs, level)


def test_many_pictures_that_come_twice_each_are_found_by_more_exchanges_than_are_counted_at_once():
    twice = np.r_[np.repeat(np.arange(15), 2), np.full(70, -1)]
    numbers, units = (twice, np.full(100, -1)), (np.arange(100), np.arange(100))
    exchanges = 3 * EXCHANGES_AT_ONCE
    assert p_of_share_repeated(numbers, units, 0, exchanges, is_paired=False) == 1 / (1 + exchanges)
    assert p_of_share_repeated(numbers[::-1], units, 0, exchanges, is_paired=False) == 1


def test_paired_sets_are_exchanged_within_blocks():
    shown = np.repeat(np.arange(10), 4)  # each prompt has one picture, four times
    blocks, alone = (shown, shown), np.full(40, -1)
    assert p_of_share_repeated((shown, alone), blocks, 0, 199, is_paired=True) <= 0.02
    assert p_of_share_repeated((shown, 10 + shown), blocks, 0, 199, is_paired=True) > 0.2
