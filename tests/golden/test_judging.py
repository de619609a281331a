"""The rules of nights: what is red at once, amber, red on the second or third night, accepted, of a machine, gone."""

import numpy as np
import pytest
from _nights import Year, as_pixels, noisy, scenes

from finc_eval.golden.floor import _accept
from finc_eval.golden.judging import judge_night
from finc_eval.golden.measured import measure_night
from finc_eval.golden.pictures import match_pictures


def worse(picture, rng):
    return noisy(picture, rng, 6)


@pytest.fixture(scope="module")
def usual():
    """A year of 20 usual nights, which tests go on with."""
    year = Year(pairs=2)
    year.nights(20)
    return year


def go_on(year):
    copy = Year(len(year.golden))
    copy.rng, copy.floor = np.random.default_rng(9), type(year.floor)([*year.floor.nights], dict(year.floor.begins))
    return copy


def test_usual_nights_are_green(usual):
    assert set(usual.verdicts) == {"green"}


def shown(change, golden=None):
    golden = golden or scenes(4)
    measured, _ = measure_night(match_pictures({name: change(one) for name, one in golden.items()}, golden))
    first = measured[0]
    return first, measured


SIZE = "of another size ({} pixels, before 32 × 32 pixels)"

ALONE = {
    "black": (lambda one: one * 0, "black", "is black"),
    "white": (lambda one: one * 0 + 255, "white", "is white"),
    "one color": (lambda one: np.full_like(one, (90, 120, 30)), "blank", "is blank"),
    "mirrored": (lambda one: one[:, ::-1], "mirrored", "is mirrored"),
    "upside down": (lambda one: one[::-1], "upside down", "is upside down"),
    "turned": (lambda one: np.rot90(one), "turned left by 90°", "is turned left by 90°"),
    "transposed": (lambda one: one.transpose(1, 0, 2), "transposed", "is transposed"),
    "red and blue": (lambda one: one[..., ::-1], "with red and blue exchanged", "has red and blue exchanged"),
    "negative": (lambda one: 255 - one, "in negative", "is in negative"),
    "gray": (
        lambda one: np.repeat(one.mean(2, keepdims=True).astype(np.uint8), 3, 2),
        "turned gray",
        "has turned gray",
    ),
    "half the size": (lambda one: one[::2, ::2], SIZE.format("16 × 16"), f"is {SIZE.format('16 × 16')}"),
    "cut": (lambda one: one[:, :30], SIZE.format("30 × 32"), f"is {SIZE.format('30 × 32')}"),
    "NaN": (lambda one: np.where(one > 120, np.nan, one / 255), "not numbers", "has values that are NaN or infinite"),
    "infinite": (lambda one: np.where(one > 120, np.inf, one / 255), "not numbers", "has values that are NaN or inf"),
    "noise": (
        lambda one: np.random.default_rng(int(one.sum())).integers(0, 256, one.shape, np.uint8),
        "noise",
        "shows noise",
    ),
    "another picture": (lambda one: scenes(9)["p08"], "another picture", "shows another picture"),
    "damaged": (lambda one: b"\x89PNG\r\n\x1a\n and no more", "unreadable", "cannot be read"),
    "transparent": (
        lambda one: np.dstack([one, np.full(one.shape[:2], 127, np.uint8)]),
        "partly transparent",
        "is partly transparent",
    ),
}
"""Faults that one pair shows by itself, from the first night on: the change, what it shows, and its phrase."""


@pytest.mark.parametrize("name", ALONE)
def test_what_a_pair_shows_by_itself_is_red_on_the_first_night(name):
    change, shows, phrase = ALONE[name]
    for golden in (scenes(4), {"p00": scenes(4)["p00"]}):
        first, measured = shown(change, golden)
        assert first.shows == shows and first.phrase.startswith(phrase), first.phrase
        assert judge_night(Year().floor, measured, None).verdict == "red"


SOUND = {
    "equal": lambda one: one,
    "noise of 3/255": lambda one: noisy(one, np.random.default_rng(0), 3),
    "floats": lambda one: one / 255,
    "opaque": lambda one: np.dstack([one, np.full(one.shape[:2], 255, np.uint8)]),
    "2 % darker": lambda one: as_pixels(one * 0.98),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_an_engine_does_by_itself_is_the_same(name):
    first, measured = shown(SOUND[name])
    assert {one.shows for one in measured} == {"same"} and not first.is_broken
    assert judge_night(Year().floor, measured, None).verdict == "green"


def test_ids_that_are_exchanged_are_red_and_name_the_other_id():
    golden = scenes(4)
    names = [*golden]
    made = dict(zip(names, [golden[names[place]] for place in (1, 0, 2, 3)], strict=True))
    measured, _ = measure_night(match_pictures(made, golden))
    assert [one.shows for one in measured] == ["the picture of p01", "the picture of p00", "same", "same"]
    assert measured[0].phrase == "shows the picture of p01"
    shifted, name = measure_night(match_pictures([*[*golden.values()][1:], golden["p00"]], [*golden.values()]))
    assert {one.is_broken for one in shifted} == {True} and name.startswith("ids are shifted by 1")


def test_a_broken_night_is_not_kept_as_a_usual_one(usual):
    year = go_on(usual)
    assert year.nights(3, change=lambda one, rng: one * 0) == ["red"] * 3
    assert year.nights(2) == ["green"] * 2
    assert {one.known for one in year.judged[-1].pairs} == {21}


def test_a_change_is_amber_on_its_first_night_and_red_on_its_second_from_20_nights_on(usual):
    year = go_on(usual)
    assert year.nights(4, change=worse) == ["amber", "red", "red", "red"]
    assert year.judged[-1].mean.row == 4 and year.judged[-1].mean.known == 20
    assert year.nights(3) == ["green"] * 3  # mended


def test_with_few_nights_a_change_is_red_on_its_third_night_and_with_fewer_than_8_not_seen_by_this_rule():
    year = Year(seed=3)
    year.nights(10)
    assert year.nights(3, change=worse) == ["amber", "amber", "red"]
    year = Year(seed=3)
    year.nights(7)
    assert year.night(change=worse) == "green" and not year.judged[-1].mean.beyond


def test_one_odd_night_is_amber_and_known_once_the_next_is_usual(usual):
    year = go_on(usual)
    assert year.night(change=worse) == "amber"
    assert year.night() == "green"
    assert year.night(change=worse) == "green"  # it was seen before


def test_one_pair_of_several_is_named(usual):
    year = go_on(usual)
    for verdict in ("amber", "red"):
        assert year.night(change=lambda one, rng: noisy(one, rng, 9 if one is year.golden["p01"] else 2)) == verdict
        assert [one.verdict for one in year.judged[-1].pairs] == ["green", verdict]


def test_a_change_too_small_for_one_night_is_found_by_bets():
    year = Year(seed=5)
    year.nights(40)
    verdicts = year.nights(25, change=lambda one, rng: noisy(one, rng, 2.2))
    assert "red" in verdicts and any(one.mean.by_bets for one in year.judged[-25:])
    assert year.nights(4)[-1] == "green"  # mended: bets begin again


def test_an_accepted_night_is_known_with_those_of_its_change_and_the_old_state_still_is(usual):
    year = go_on(usual)
    year.nights(3, change=worse)
    _accept(year.floor.nights, year.floor.begins, "night 22", None)
    assert [one.is_accepted for one in year.floor.nights[19:]] == [False, True, True, True]
    assert year.floor.begins == {None: 20}
    assert year.nights(15, change=worse) == ["green"] * 15
    assert year.night() == "green"
    assert year.nights(2, change=lambda one, rng: noisy(one, rng, 20)) == ["amber", "red"]


def test_nights_of_other_machines_do_not_count(usual):
    year = go_on(usual)
    assert year.nights(5, change=worse, machine="b") == ["green"] * 5
    assert {one.known for one in year.judged[-1].pairs} == {4}
    assert year.night() == "green"
    assert year.judged[-1].mean.known == 20


def test_without_its_machine_a_lasting_state_is_a_change(usual):
    year = go_on(usual)
    assert year.nights(2, change=worse) == ["amber", "red"]


def test_a_golden_picture_that_changed_begins_a_new_history(usual):
    year = go_on(usual)
    other = dict(year.golden) | {"p00": scenes(3)["p02"]}
    assert year.night(golden=other) == "green"
    judged = year.judged[-1]
    assert judged.renewed == ("p00",) and [one.known for one in judged.pairs] == [0, 20]
    assert judged.mean.known == 20  # the mean is that of the other pair
    year.night(golden=other)
    assert year.judged[-1].renewed == ()


def test_a_machine_that_is_gone_is_told():
    year = Year()
    for number in range(20):
        year.night(machine="ab"[number % 2])
    gone = [year.night(machine="a") and year.judged[-1].machines for _ in range(22)]
    first = next(place for place, one in enumerate(gone) if one)
    assert 7 <= first <= 19 and set(gone[first]) == {"b"} and gone[-1]["b"] > gone[first]["b"]
