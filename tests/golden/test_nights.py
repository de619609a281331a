"""The mathematics of nights: uniform ranks, bets that keep their error, nights beyond others, states that are gone."""

import numpy as np
import pytest
from scipy.stats import kstest

from finc_eval.golden.nights import (
    LEAST_STEPS,
    MEASURES,
    STEPS,
    WORSE,
    beyond,
    coordinates,
    gone_among,
    gone_states,
    log_evidence,
    needed_evidence,
    p_value,
)

K = len(MEASURES)


@pytest.mark.parametrize("states", [1, 2, 3])
def test_ranks_are_uniform_whatever_states_there_are(states):
    rng = np.random.default_rng(states)
    ranks = []
    for _ in range(400):
        nights = rng.normal(size=(24, K)) + 20 * rng.integers(states, size=(24, 1))
        ranks.append(p_value(nights, rng.random()))
    assert kstest(ranks, "uniform").pvalue > 0.01


def test_equal_nights_have_the_highest_rank_and_a_far_night_the_lowest():
    same = np.ones((12, K))
    assert p_value(same, 0.37) == pytest.approx(11.37 / 12)
    same[-1, 0] = 30
    assert p_value(same, 0.5) == pytest.approx(0.5 / 12)


def test_a_state_that_a_fifth_of_the_nights_has_is_not_unusual():
    nights = np.zeros((40, K))
    nights[::4] = 9
    nights[-1] = 9
    assert p_value(nights, 0.5) > 0.2


def test_bets_alarm_in_at_most_a_twentieth_of_years_of_uniform_ranks():
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(100):
        ranks = rng.random(100)
        alarms += any(log_evidence(ranks[:night]) >= needed_evidence(1) for night in range(5, 101, 5))
    assert alarms <= 0.05 * 100 + 4  # 4: two standard deviations


def test_bets_begin_at_400_grow_by_low_ranks_and_say_nothing_of_nights_without_one():
    assert log_evidence(np.empty(0)) == pytest.approx(np.log(400))
    assert log_evidence(np.full(5, np.nan)) == pytest.approx(np.log(400))
    assert log_evidence(np.full(12, 0.02)) > needed_evidence(1) > log_evidence(np.full(12, 0.6))
    late = np.concatenate([np.random.default_rng(1).random(60), np.full(12, 0.02)])
    assert log_evidence(late) > needed_evidence(1)  # a bet that began late has lost nothing before
    assert needed_evidence(20) - needed_evidence(1) == pytest.approx(np.log(20))


@pytest.mark.parametrize("place", range(K))
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_night_lies_beyond_only_in_the_bad_direction_and_by_more_than_steps_and_gaps(place, sign):
    past = np.tile(STEPS, (10, 1)) * np.linspace(0, 1, 10)[:, None]  # gaps of a ninth of a step
    night = past.mean(0)
    night[place] = past[:, place].max() if sign > 0 else past[:, place].min()
    night[place] += sign * LEAST_STEPS * STEPS[place] * 1.01
    found = beyond(past, night, 3)
    assert found.tolist() == [number == place and sign * WORSE[place] >= 0 for number in range(K)]
    night[place] -= sign * LEAST_STEPS * STEPS[place] * 0.02
    assert not beyond(past, night, 3).any()


def test_a_night_beyond_spread_nights_must_be_further_away_and_an_accepted_night_does_not_spread_them():
    past = np.zeros((10, K))
    past[-1, 0] = -10  # alone, ten decibels below
    night = np.zeros(K)
    night[0] = -20
    assert not beyond(past, night, 3)[0]  # not three times as far as that one
    assert beyond(past, night, 3, np.arange(10) == 9)[0]


def test_logarithms_tell_apart_what_is_nearly_the_same():
    values = np.array([35, 0.999, 0.999, 0.998, 1.0, 2.0, 0.1])
    found = coordinates(values)
    assert found[[0, 4, 5, 6]].tolist() == values[[0, 4, 5, 6]].tolist()
    assert found[1:4] == pytest.approx(np.log([0.002, 0.002, 0.003]))
    assert np.isfinite(coordinates(np.full(K, 1.0000001))).all()


def test_a_state_of_half_the_nights_is_gone_after_about_a_dozen_and_a_rare_one_is_not():
    rng = np.random.default_rng(3)
    states = np.array([0, 1] * 20)
    assert not list(gone_among(states))
    gone = [len(list(gone_among(np.append(states, np.zeros(more, int))))) for more in range(1, 25)]
    assert 8 <= gone.index(1) <= 16
    rare = np.append(np.arange(40) == 3, np.zeros(60, bool)).astype(int)
    assert not [one for one in gone_among(rare) if one.nights.tolist() == [3]]
    nights = rng.normal(size=(60, K)) * STEPS / 5
    nights[:40:2] += 20
    (found,) = gone_states(nights)
    assert found.nights.tolist() == [*range(0, 40, 2)] and found.since == 21
    assert not list(gone_states(nights[:1]))
