"""Laws of nights: ranks by their definition, the error that bets share, what begins anew, and measures of a pair."""

import numpy as np
import pytest
from scipy.optimize import brentq

from finc_eval.golden.floor import Floor, PairRow, PastNight, _accept
from finc_eval.golden.judging import judge_night
from finc_eval.golden.measured import MeasuredPair, measure_night
from finc_eval.golden.nights import (
    MAX_BAG,
    MEASURES,
    STEPS,
    beyond,
    coordinates,
    gone_states,
    log_evidence,
    needed_evidence,
    p_value,
)
from finc_eval.golden.pictures import Shot, match_pictures
from finc_eval.golden.sentences import _as_before

K = len(MEASURES)
REF = Shot(np.zeros((2, 2, 3), np.uint8))
USUAL = np.array([40.0, 0.99, 0.99, 0.99, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("n", [2, 6, 7, 30])
def test_a_rank_is_by_the_distance_from_the_nearest_fifth_in_spreads_and_steps(n):
    nights = np.random.default_rng(n).normal(size=(n, K)) * np.logspace(-3, 2, K)
    apart = np.empty((n, K))
    for night in range(n):
        others = np.sort(np.abs(np.delete(nights, night, 0) - nights[night]), axis=0)
        apart[night] = others[int(np.ceil((n - 1) / 5)) - 1]
    far = (apart / (np.median(apart, axis=0) + STEPS)).max(1)
    assert p_value(nights, 0.25) == pytest.approx(((far >= far[-1]).sum() - 0.75) / n)


def test_a_rank_is_among_the_nights_of_a_year():
    nights = np.zeros((MAX_BAG + 5, K))
    nights[:5] = 9
    nights[-1] = 1
    assert p_value(nights, 0.5) == pytest.approx(0.5 / MAX_BAG)


def test_two_nights_of_a_far_state_are_no_gap():
    past = np.zeros((10, K))
    past[5:, 0] = -10 + np.arange(5) / 100
    night = past[5].copy()
    night[0] -= 2.0
    assert beyond(past, night, 3.0).tolist() == [True] + [False] * (K - 1)


def test_states_are_told_apart_in_spreads_of_each_measure_and_have_the_numbers_of_their_nights():
    nights = np.random.default_rng(0).normal(0, 0.002, (MAX_BAG + 15, K))
    nights[20:100, -1] += 1.0  # 33 steps of detail
    nights[:, 0] *= 1e4  # a state with much noise of PSNR stays one state
    (found,) = gone_states(nights)
    assert (found.nights.tolist(), found.since) == ([*range(20, 100)], len(nights) - 100)
    assert [len(one.nights) for one in gone_states(nights[-300:])] == [20]


def pair(number, psnr=30.0):
    return MeasuredPair(f"p{number}", "same", USUAL + np.r_[psnr - 40, [0.0] * 6], Shot(REF.pixels), REF)


def floor_of(nights, pairs, ranks=None, machines=(None,), verdicts=None, psnr=None, **begins):
    """Nights that showed the pictures, with ranks of each pair and of all, on machines in turn."""
    found = []
    for number in range(nights):
        night = PastNight(f"night {number}", machines[number % len(machines)])
        values = USUAL + np.r_[number / 100 if psnr is None else psnr[number] - 40, [0.0] * 6]
        p = 0.5 if ranks is None else ranks[number]
        verdict = "green" if verdicts is None else verdicts[number]
        for one in range(pairs):
            row = PairRow(night.name, night.machine, f"p{one}", "same", values, "", REF.digest, p, p, verdict=verdict)
            night.rows[row.id] = row
        found.append(night)
    return Floor(found, begins.get("begins", {}))


SHARED = {
    "one pair": (1, 1),
    "one pair, two machines": (1, 2),
    "three pairs": (3, 1),
    "three pairs, two machines": (3, 2),
}


@pytest.mark.parametrize("case", SHARED)
@pytest.mark.parametrize("sign", [-1, 1])
def test_bets_share_5_percent_among_machines_and_half_of_it_among_pairs(case, sign):
    pairs, machines = SHARED[case]
    names = [None, "b"][:machines]
    nights = 6 * machines
    tonight = [pair(number) for number in range(pairs)]
    first = judge_night(floor_of(nights, pairs, machines=names), tonight, None)
    standing = {2 * machines: first.mean} if pairs > 1 else {}
    standing[machines * (2 * pairs if pairs > 1 else 1)] = first.pairs[0]
    for things, one in standing.items():
        need = needed_evidence(things) + sign * 0.02
        rank = brentq(lambda p, one=one, need=need: log_evidence(np.r_[[p] * 6, one.p]) - need, 1e-12, 0.9)
        judged = judge_night(floor_of(nights, pairs, [rank] * nights, names), tonight, None)
        found = judged.mean if things == 2 * machines and pairs > 1 else judged.pairs[0]
        assert found.p == one.p <= 1 / 7
        assert (found.by_bets, found.verdict) == ((True, "red") if sign > 0 else (False, "green"))
        assert found.usual == (40.0, pytest.approx(40 + (nights - machines) / 100))


def test_bets_begin_anew_where_a_change_has_ended():
    ranks = [0.5, 0.5, 1e-9, 1e-9, 0.5, 0.5]
    for verdicts, by_bets in ((["green"] * 6, True), (["green", "green", "red", "red", "green", "green"], False)):
        judged = judge_night(floor_of(6, 1, ranks, verdicts=verdicts), [pair(0)], None)
        assert judged.pairs[0].by_bets == by_bets


def test_a_rank_that_is_not_unusual_wins_no_bet():
    ranks = [1e-9] * 6
    assert judge_night(floor_of(6, 1, ranks), [pair(0)], None).pairs[0].by_bets
    assert not judge_night(floor_of(6, 1, ranks), [pair(0, 40.02)], None).pairs[0].by_bets


def test_a_state_is_gone_among_the_nights_of_the_accepted_state_alone():
    psnr = [40.0, 60.0] * 20 + [40.0] * 25
    (gone,) = judge_night(floor_of(65, 2, psnr=psnr), [pair(0, 40), pair(1, 40)], None).gone
    assert (gone.nights.tolist(), gone.since) == ([*range(1, 40, 2)], 26)
    (later,) = judge_night(floor_of(65, 2, psnr=psnr, begins={None: 10}), [pair(0, 40), pair(1, 40)], None).gone
    assert later.nights.tolist() == [*range(11, 40, 2)]


def test_a_machine_is_gone_among_the_nights_of_a_year_since_a_state_was_accepted():
    floor = floor_of(30, 1, machines=("a", "b"))
    others = floor_of(40, 1, machines=("a",)).nights
    assert judge_night(Floor(floor.nights + others, {}), [pair(0)], "a").machines == {"b": 41}
    assert judge_night(Floor(floor.nights + others, {"a": 30}), [pair(0)], "a").machines == {}
    long = floor_of(MAX_BAG + 40, 1, machines=("a",)).nights
    assert judge_night(Floor(floor.nights + long, {}), [pair(0)], "a").machines == {}


def measured(gen, ref):
    (found,), _ = measure_night(match_pictures(gen, ref))
    return dict(zip(MEASURES, found.values, strict=True))


def test_measures_of_a_pair_are_what_their_names_say():
    ref = np.random.default_rng(0).integers(60, 180, (32, 32, 3)).astype(np.uint8)
    equal = measured(ref, ref)
    assert equal["psnr"] == pytest.approx(-20 * np.log10(0.3 / 255), abs=1e-3)
    alike, moved = [equal.pop(name) for name in ("ssim", "structure")], [equal[name] for name in MEASURES[4:]]
    assert (alike, moved) == (pytest.approx([1, 1], abs=1e-4), [0, 0, 0])
    redder = measured(ref + np.array([12, 0, 4], np.uint8), ref)
    assert redder["psnr"] == pytest.approx(-10 * np.log10(((144 + 16) / 3 + 0.09) / 255**2), abs=1e-3)
    assert redder["red_blue"] == pytest.approx(8, abs=1e-3)
    assert redder["light"] == pytest.approx(12 * 0.299 + 4 * 0.114, abs=0.01)
    stripes = np.zeros((32, 32, 3), np.uint8)
    stripes[:, ::2] = 10
    step = 10 / 2**0.5  # from pixel to pixel, over both axes
    found = measured(np.uint8(100) + 2 * stripes, np.uint8(100) + stripes)
    assert found["detail"] == pytest.approx(np.log((2 * step + 0.5) / (step + 0.5)), abs=1e-4)
    assert coordinates(np.array([*found.values()])).shape == (K,)


def test_the_state_that_begins_with_the_latest_accepted_night_counts():
    nights = floor_of(9, 1, verdicts=["green", "red", "red", "green", "green", "red", "green", "green", "green"]).nights
    begins = {}
    for name, first in (("night 5", 5), ("night 2", 5)):  # an earlier night that is accepted later moves nothing back
        _accept(nights, begins, name, None)
        assert begins == {None: first}
    assert [one.is_accepted for one in nights] == [place in (1, 2, 5) for place in range(9)]


def test_the_pair_with_the_fewest_nights_says_how_many_are_known():
    floor = floor_of(12, 2)
    for night in floor.nights[:9]:
        del night.rows["p1"]
    tonight = [pair(0, 40), pair(1, 40)]
    assert "3 nights so far" in _as_before(tonight, judge_night(floor, tonight, None))
