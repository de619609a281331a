"""Shares of parts of sets: the planted share lies in the interval, of any law, of samples alone and in groups."""

import numpy as np
import pytest
from scipy.stats import binom

from finc_eval.estimates.part import estimate_part, least_part
from finc_eval.numerics.inference import wilson

LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "log-normal": lambda rng, n: np.exp(rng.normal(size=n) / 2),
    "t with 3 degrees": lambda rng, n: rng.standard_t(3, n),
    "of few values": lambda rng, n: np.round(2 * rng.normal(size=n)) / 2,
}
MOVES = {
    "far": lambda values: values + 5,
    "a little": lambda values: values + 1.5,
    "far, and more alike": lambda values: 4 + 0.5 * values,
    "far, and less alike": lambda values: 4 + 1.4 * values,
}
LEAST = 0.9  # coverage that intervals of 95 % have at least, whatever the law and the move


def draw(law, move, part, n, rng):
    own, rest = LAWS[law](rng, n), LAWS[law](rng, n)
    own[: round(part * n)] = MOVES[move](own[: round(part * n)])
    return own, rest


def is_covered(law, move, part, n, seed):
    own, rest = draw(law, move, part, n, np.random.default_rng([seed, n, round(100 * part)]))
    share, (low, high) = estimate_part(own, rest, n, n)
    assert 0 <= low <= share <= high <= 1
    return low <= part <= high


@pytest.mark.one_of_each("law")
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("move", MOVES)
def test_the_planted_share_lies_in_the_interval(law, move):
    found = [is_covered(law, move, part, 200, seed) for part in (0.1, 0.4) for seed in range(5)]
    assert sum(found) >= binom.ppf(0.001, len(found), LEAST)


@pytest.mark.long
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("n", [150, 600])
def test_intervals_cover_planted_shares_in_nine_of_ten_draws(law, move, n):
    found = [is_covered(law, move, part, n, seed) for part in (0.08, 0.2, 0.4, 0.6) for seed in range(15)]
    assert sum(found) >= binom.ppf(0.001, len(found), LEAST)


@pytest.mark.long
@pytest.mark.parametrize("part", [0.1, 0.3])
def test_the_bound_holds_for_any_law_of_the_part(part):
    moves = (lambda x: 0 * x + 3, lambda x: x + 1, lambda x: 3 * abs(x), lambda x: x**2 + 1)
    above, count = 0, 0
    for move in moves:
        for seed in range(150):
            rng = np.random.default_rng([seed, round(100 * part)])
            own, rest = rng.normal(size=(2, 200))
            own[: round(part * 200)] = move(own[: round(part * 200)])
            above, count = above + (least_part(own, rest, 200, 200) > part), count + 1
    assert above <= binom.ppf(0.999, count, 0.1), (above, count)


def test_a_share_is_the_same_in_any_unit():
    own, rest = draw("exponential", "a little", 0.3, 150, np.random.default_rng(0))
    share, interval = estimate_part(own, rest, 150, 150)
    again, other = estimate_part(100 + 8 * own, 100 + 8 * rest, 150, 150)
    assert (again, *other) == pytest.approx((share, *interval), abs=0.011)


def test_samples_in_groups_count_as_groups():
    own, rest = draw("normal", "far", 0.2, 60, np.random.default_rng(1))
    low, high = estimate_part(own, rest, 60, 60)[1]
    four = estimate_part(np.repeat(own, 4), np.repeat(rest, 4), 60, 60)[1]
    assert four == pytest.approx((low, high), abs=0.03)
    alone = estimate_part(np.repeat(own, 4), np.repeat(rest, 4), 240, 240)[1]
    assert alone[1] - alone[0] < 0.7 * (high - low)


def test_a_part_may_have_a_narrower_law_than_the_other_set():
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        own, rest = np.r_[rng.normal(size=400), 2.5 + 0.35 * rng.normal(size=200)], rng.normal(size=600)
        found.append(estimate_part(own, rest, 600, 600))
    assert np.mean([share for share, _ in found]) == pytest.approx(1 / 3, abs=0.03)
    # The error of a share that is counted is a little less than that of its estimate.
    counted = np.subtract(*wilson(1 / 3, 600)[::-1])
    assert all(counted < high - low < 1.6 * counted for _, (low, high) in found)


def test_a_part_that_hardly_lies_apart_has_a_wide_interval_and_a_set_that_has_moved_reaches_one():
    own, rest = draw("normal", "a little", 0.1, 150, np.random.default_rng(2))
    low, high = estimate_part(own, rest, 150, 150)[1]
    assert high > 3 * low
    moved = estimate_part(rest[::-1] + 4, rest, 150, 150)
    assert moved[0] > 0.97 and moved[1][1] == 1
