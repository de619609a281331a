"""Laws of what a pair shows: correlations by their definition, and both sides of each limit."""

import numpy as np
import pytest

from finc_eval.same_ids import shown
from finc_eval.same_ids.crops import crop_names, liken_crops, liken_rest
from finc_eval.same_ids.measures import measure_pairs
from finc_eval.same_ids.pairs import SIZES, SIZES_BEFORE, PairTable
from finc_eval.same_ids.seen import see
from finc_eval.same_ids.shown import (
    TURNS,
    Likeness,
    best_turn,
    correlate,
    exchange,
    lights,
    liken,
    red_blues,
    steps,
    tell_shown,
    usual_correlation,
)
from finc_eval.same_ids.verdict import turn_of_all


def thumbs(n, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, 16, 16, 3)).astype(np.uint8)


def unit(one):
    """A thumbnail as the docstring of the module has it."""
    values = one.astype(float).ravel() / 255
    values -= values.mean()
    return values / np.sqrt((values**2).sum() + (3 / 255) ** 2 * values.size)


def test_correlations_are_those_of_the_definition_whatever_is_computed_at_once(monkeypatch):
    second = thumbs(30)
    first = (0.5 * second + 0.5 * second[(np.arange(30) + 3) % 30]).astype(np.uint8)
    monkeypatch.setattr(shown, "NEAR_BLOCK", 7)
    found = liken(first, second)
    every = np.array([[unit(one) @ unit(other) for other in second] for one in first])
    others = np.where(np.eye(30, dtype=bool), -1, every)
    assert found.own == pytest.approx(np.diag(every), abs=1e-5)
    assert correlate(first, second) == pytest.approx(found.own)
    assert found.near == pytest.approx(others.max(1), abs=1e-5)
    assert found.other.tolist() == others.argmax(1).tolist()
    more = (others > found.own[:, None] + 0.03).sum(1) / 29
    assert found.nearer == pytest.approx(more)
    whole = liken(second, second)
    assert (whole.near == -1).all() and (whole.other == -1).all()  # no other could be nearer
    few = liken(thumbs(2, 1), thumbs(2))
    assert set(few.nearer.tolist()) <= {0, 1}


def test_the_likeness_of_unlike_ids_is_the_correlation_of_the_hundredth_most_alike_pair():
    second = thumbs(40)
    second[7] = second[3]  # equal pictures do not count
    pairs = sorted(unit(one) @ unit(other) for row, one in enumerate(second) for other in second[row + 1 :])[:-1]
    assert liken(thumbs(40, 1), second).alike == pytest.approx(pairs[int(np.ceil(0.99 * (len(pairs) - 1)))], abs=1e-5)


@pytest.mark.parametrize("number", range(0, len(TURNS), 7))
def test_each_turn_is_found_by_its_correlation_of_one_also_in_clips(number):
    place, color = number // 6 % 8, number % 6
    frames = thumbs(4 * 2).reshape(4, 2, 16, 16, 3)
    undo = [
        lambda one: one,
        lambda one: one[:, ::-1],
        lambda one: one[::-1],
        lambda one: np.rot90(one),
        lambda one: np.rot90(one, 2),
        lambda one: np.rot90(one, 3),
        lambda one: one.transpose(1, 0, 2),
        lambda one: np.rot90(one, 2).transpose(1, 0, 2),
    ][place]
    order = [*np.ndindex(3, 3, 3)]
    order = [one for one in order if len(set(one)) == 3][color]
    for shape in ((4, 32, 16, 3), (8, 16, 16, 3)):
        second = np.array([undo(one)[..., order] for one in frames.reshape(8, 16, 16, 3)])
        second = 255 - second if number >= 48 else second
        found = liken(frames.reshape(shape), second.reshape(shape))
        assert set(found.turned.argmax(1)) == {number}
        assert found.turned[:, number] == pytest.approx(np.ones(len(found.own)), abs=3e-3)


def likeness(own, near=-1.0, nearer=0.0, alike=-1.0, turned=None, colors=None, n=1):
    """The likeness of n equal pairs; turns and exchanges by their number."""
    found = np.zeros((n, len(TURNS))), np.zeros((n, shown.EXCHANGES))
    found[0][:, 0] = own
    for values, given in zip(found, (turned, colors), strict=True):
        for number, value in (given or {}).items():
            values[:, number] = value
    full = [np.full(n, float(one)) for one in (own, near, nearer)]
    return Likeness(full[0], full[1], np.full(n, -1), full[2], *found, alike)


SHOWN = {
    "own and structure": ({"own": 0.851}, {"structure": 0.851}, "same"),
    "own too low": ({"own": 0.849}, {"structure": 0.99}, "unclear"),
    "structure too low": ({"own": 0.99}, {"structure": 0.849}, "unclear"),
    "as unlike ids are": ({"own": 0.9, "alike": 0.91}, {"structure": 0.99}, "unclear"),
    "more than unlike ids are": ({"own": 0.92, "alike": 0.91}, {"structure": 0.99}, "same"),
    "another id as near": ({"own": 0.92, "near": 0.93}, {"structure": 0.99}, "unclear"),
    "another id nearer": ({"own": 0.92, "near": 0.951}, {"structure": 0.99}, "another id"),
    "another id nearer, and far": ({"own": 0.8, "near": 0.899}, {"structure": 0.7}, "unclear"),
    "far": ({"own": 0.699}, {"structure": 0.499}, "another picture"),
    "far but for its thumbnail": ({"own": 0.701}, {"structure": 0.1}, "unclear"),
    "far but for its structure": ({"own": 0.1}, {"structure": 0.501}, "unclear"),
    "others nearer": ({"own": 0.75, "nearer": 0.1, "n": 10}, {"structure": 0.6}, "another picture"),
    "few others nearer": ({"own": 0.75, "nearer": 0.09, "n": 10}, {"structure": 0.6}, "unclear"),
    "others nearer, of few": ({"own": 0.75, "nearer": 0.9, "n": 9}, {"structure": 0.6}, "unclear"),
    "unseen": ({"own": 0.1}, {"structure": 0.1, "squares": 0.99 * (4 / 255) ** 2}, "same"),
    "seen": ({"own": 0.1}, {"structure": 0.1, "squares": 1.01 * (4 / 255) ** 2}, "another picture"),
    "blank": ({"own": 0.99}, {"structure": 0.99, "squares": 0.0, "is_blank": True}, "blank"),
    "turned": ({"own": 0.5, "turned": {6: 0.901}}, {"structure": 0.9}, "turned"),
    "hardly turned": ({"own": 0.5, "turned": {6: 0.899}}, {"structure": 0.6}, "unclear"),
    "turned as alike": ({"own": 0.88, "turned": {6: 0.909}}, {"structure": 0.9}, "same"),
    "exchanged": ({"own": 0.8, "colors": {0: 0.6, 1: 0.91}}, {"structure": 0.851}, "turned"),
    "exchanged, of another structure": ({"own": 0.8, "colors": {0: 0.6, 1: 0.91}}, {"structure": 0.849}, "unclear"),
    "hardly exchanged": ({"own": 0.8, "colors": {0: 0.62, 1: 0.91}}, {"structure": 0.851}, "unclear"),
    "exchanged colors too unlike": ({"own": 0.8, "colors": {1: 0.89}}, {"structure": 0.851}, "unclear"),
    "small": ({"own": 0.951, "alike": 0.9}, {"structure": 0.951, "sides": 47}, "same"),
    "small, too unlike": ({"own": 0.949, "alike": 0.9}, {"structure": 0.99, "sides": 47}, "unclear"),
    "not small": ({"own": 0.949, "alike": 0.9}, {"structure": 0.99, "sides": 48}, "same"),
    "small, of many": ({"own": 0.949, "n": 50}, {"structure": 0.99, "sides": 47}, "same"),
    "small, of fewer": ({"own": 0.949, "n": 49}, {"structure": 0.99, "sides": 47}, "unclear"),
    "small, another id": ({"own": 0.8, "near": 0.901}, {"structure": 0.7, "sides": 47}, "another id"),
    "small, another id too near": ({"own": 0.81, "near": 0.909}, {"structure": 0.7, "sides": 47}, "unclear"),
}  # fmt: skip
"""Likeness of pairs, their measures, and what they show."""


@pytest.mark.parametrize("case", SHOWN)
def test_a_pair_shows_what_the_last_limit_says_that_holds(case):
    given, measures, expected = SHOWN[case]
    found = likeness(**given)
    n = len(found.own)
    sides = np.full(n, measures["sides"]) if "sides" in measures else None
    squares, blank = np.full(n, measures.get("squares", 1.0)), np.full(n, measures.get("is_blank", False))
    assert set(tell_shown(found, np.full(n, measures["structure"]), squares, blank, sides)) == {expected}


def test_a_run_of_another_sampler_says_how_alike_its_pictures_are():
    own = np.r_[np.linspace(0.5, 0.88, 11), np.full(9, 0.1)]
    assert usual_correlation(own) == pytest.approx(np.quantile(own[:11], 0.25))
    assert usual_correlation(own[1:]) == usual_correlation(own[:19]) == 0.9
    assert usual_correlation(np.r_[own[:9], np.full(11, 0.49)]) == 0.9
    assert usual_correlation(np.full(20, 0.97)) == 0.9


TURNED = {
    "the simplest": ({"own": 0.3, "turned": {6: 0.95, 12: 0.951, 6 + 48: 0.955}}, "upside down"),
    "near enough": ({"own": 0.92, "turned": {6: 0.951}}, "mirrored"),
    "too near its own": ({"own": 0.922, "turned": {6: 0.951}}, ""),
    "another id is as near": ({"own": 0.3, "near": 0.93, "turned": {6: 0.95}}, ""),
    "recolored": ({"own": 0.7, "turned": {1: 0.91}}, TURNS[1].name),
    "hardly recolored": ({"own": 0.77, "turned": {1: 0.91}}, ""),
    "too unlike": ({"own": 0.3, "turned": {1: 0.899}}, ""),
    "turned and recolored, but turned alone as well": ({"own": 0.3, "turned": {6: 0.92, 7: 0.95}}, "mirrored"),
    "turned and recolored": ({"own": 0.3, "turned": {6: 0.7, 7: 0.95}}, TURNS[7].name),
    "in negative": ({"own": -0.9, "turned": {48: 0.95}}, "in negative"),
}


@pytest.mark.parametrize("case", TURNED)
def test_a_pair_shows_the_simplest_turn_that_is_clearly_more_alike(case):
    given, name = TURNED[case]
    assert TURNS[best_turn(likeness(**given))[0]].name == name


@pytest.mark.parametrize(("value", "own", "found"), [(0.91, 0.6, 2), (0.91, 0.62, 0), (0.89, 0.1, 0)])
def test_an_exchange_needs_colors_that_tell(value, own, found):
    assert exchange(likeness(own=0.9, colors={0: own, 2: value})).tolist() == [found]


OF_ALL = {
    "a symmetry": ({"own": 0.5, "turned": {6: 0.91}}, 6),
    "too unlike": ({"own": 0.5, "turned": {6: 0.89}}, 0),
    "of many, less alike": ({"own": 0.3, "turned": {6: 0.71}, "n": 20}, 6),
    "of many, too unlike": ({"own": 0.3, "turned": {6: 0.69}, "n": 20}, 0),
    "of fewer, less alike": ({"own": 0.3, "turned": {6: 0.71}, "n": 19}, 0),
    "too little gained": ({"own": 0.9, "turned": {6: 0.949}}, 0),
    "the simpler": ({"own": 0.3, "turned": {6: 0.95, 54: 0.965}}, 6),
    "the clearer": ({"own": 0.3, "turned": {6: 0.93, 54: 0.955}}, 54),
    "an exchange": ({"own": 0.93, "colors": {0: 0.5, 3: 0.95}}, 3),
    "the clearer exchange": ({"own": 0.93, "colors": {0: 0.3, 2: 0.92, 3: 0.95}}, 3),
    "too little color": ({"own": 0.93, "colors": {0: 0.66, 3: 0.95}}, 0),
}


@pytest.mark.parametrize("case", OF_ALL)
def test_all_pairs_show_a_turn_together(case):
    given, turn = OF_ALL[case]
    assert turn_of_all(likeness(**given)) == turn


def test_a_turn_of_all_is_that_of_seven_eighths_of_the_pairs_that_tell():
    found = likeness(own=0.5, turned={6: 0.95}, n=16)
    found.turned[:2, 6] = 0.3
    assert turn_of_all(found) == 6
    found.turned[2, 6] = 0.3
    assert turn_of_all(found) == 0
    found.turned[2:9, 6] = 0.52  # too little to tell
    assert turn_of_all(found) == 0
    found.turned[:2, 6] = 0.52
    assert turn_of_all(found) == 6


def test_a_picture_has_light_colors_and_steps():
    pictures = thumbs(3)
    mean = pictures.reshape(3, -1, 3).mean(1)
    assert lights(pictures) == pytest.approx(mean @ [0.299, 0.587, 0.114])
    assert red_blues(pictures) == pytest.approx(mean[:, 0] - mean[:, 2])
    across, down = (np.diff(pictures.astype(float), axis=axis) ** 2 for axis in (2, 1))
    expected = np.sqrt((across.mean((1, 2, 3)) + down.mean((1, 2, 3))) / 2)
    assert steps([*pictures]) == pytest.approx(expected, rel=1e-6)
    measured = measure_pairs([*pictures], [*pictures[::-1]])
    assert measured["grain"] == pytest.approx(expected**2 / 255**2, rel=1e-5)
    assert measured["detail"] == pytest.approx(expected[::-1] ** 2 / 255**2, rel=1e-5)
    dark = np.zeros((3, 16, 16, 3), np.uint8)
    dark[1, :, ::2] = 3  # a deviation of 1.5/255, which shows nothing
    dark[2, :, ::2] = 5
    assert measure_pairs([*dark], [*pictures])["blank"].tolist() == [1, 1, 0]
    assert measure_pairs([*dark], [*dark[[0, 0, 0]]])["blank"].tolist() == [0, 0, 0]


def table_of(first, second, **values):
    """Pairs of pictures of 64 pixels whose measures are those of the same, unless given."""
    n = len(first)
    usual = {"blank": 0.0, "structure": 0.0, "mse": 0.1, "grain": 0.0, "frames": 1.0, "frames before": 1.0}
    usual |= dict.fromkeys([*SIZES[1:], *SIZES_BEFORE[1:]], 64.0)
    return PairTable(
        {name: np.full(n, one) for name, one in (usual | values).items()}, np.zeros(n), None, (first, second)
    )


@pytest.mark.parametrize(("light", "name"), [(15, "black"), (17, "blank"), (238, "blank"), (240, "white")])
def test_a_blank_picture_is_called_by_its_light(light, name):
    found = see(table_of(np.full((1, 16, 16, 3), light, np.uint8), thumbs(1), blank=1.0))
    assert (found.shown.tolist(), found.causes.tolist()) == (["blank"], [name])
    assert see(table_of(thumbs(1), thumbs(1, 1), blank=0.5)).shown.tolist() == ["another picture"]


@pytest.mark.parametrize(
    ("grain", "spread", "cause"), [(21, 14, "noise"), (19, 5, "another picture"), (21, 16, "another picture")]
)
def test_a_picture_of_noise_has_much_grain_and_little_structure(grain, spread, cause):
    first = np.full((1, 16, 16, 3), 128 - spread, np.uint8)
    first[:, ::2, ::2] = first[:, 1::2, 1::2] = 128 + spread
    found = see(table_of(first, thumbs(1), grain=(grain / 255) ** 2))
    assert found.causes.tolist() == [cause]


def colored(chroma, light=100):
    """A picture of vertical shades, whose largest channel is so much above the least."""
    base = np.tile((light + 80 * np.linspace(-1, 1, 16))[:, None, None], (1, 16, 3))
    base[..., 0] += chroma
    return np.rint(base).astype(np.uint8)[None]


@pytest.mark.parametrize(
    ("own", "before", "is_gray"),
    [(0, 6, True), (0, 4, False), (2, 20, True), (4, 20, False), (5, 40, True), (1, 6, False)],
)
def test_a_picture_that_lost_its_color_turned_gray(own, before, is_gray):
    found = see(table_of(colored(own), colored(before), structure=1.0))
    assert (found.causes.tolist() == ["turned gray"]) == is_gray


@pytest.mark.parametrize(
    ("distance", "others", "shows"),
    [
        (0.6, 0, "same"),
        (0.61, 0, "unclear"),
        (0.6, 0.01, "unclear"),
        (0.61, 0.049, "unclear"),
        (0.61, 0.05, "another sample"),
        (0, 0.5, "same"),
    ],
)
def test_vectors_show_what_their_distances_say(distance, others, shows):
    table = PairTable({"distance": np.array([float(distance)])}, np.array([float(others)]), None)
    assert see(table).shown.tolist() == [shows]
    for near, is_other in ((0.49, True), (0.51, False)):
        table = PairTable(table.values, table.others, None, nearest_id=(np.array([4]), np.array([near * distance])))
        found = see(table)
        expected = "another id" if is_other and shows == "another sample" else shows
        assert (found.shown.tolist(), found.other.tolist()) == ([expected], [4 if expected == "another id" else -1])


def test_samples_of_another_size_say_how_it_changed():
    found = see(table_of(thumbs(1), thumbs(1), height=32.0, width=48.0))
    assert found.causes.tolist() == ["of another size (48 × 32 pixels, before 64 × 64 pixels)"]
    clip = np.tile(thumbs(1), (1, 8, 1, 1))
    found = see(table_of(clip, clip, frames=8.0, **{"frames before": 16.0}))
    assert found.causes.tolist() == ["of another length (8 frames, before 16 frames)"]


def parts_of(picture, rows, columns):
    """A part of a picture, stretched to 16 places by linear interpolation."""
    for axis, (part, start) in enumerate((rows, columns)):
        at = np.clip((np.arange(16) + 0.5) * part + start * (1 - part) * 16 - 0.5, 0, 15)
        picture = np.apply_along_axis(lambda one, at=at: np.interp(at, np.arange(16), one), axis, picture)
    return picture


def test_parts_of_a_picture_are_stretched_by_linear_interpolation():
    smooth = parts_of(thumbs(1)[0].astype(float), (0.3, 0.2), (0.3, 0.7))
    second = np.rint(smooth).astype(np.uint8)
    for part, down, right in ((0.9, 0.0, 1.0), (0.6, 0.5, 0.5), (0.5, 1.0, 0.0)):
        first = np.rint(parts_of(second.astype(float), (part, down), (part, right))).astype(np.uint8)
        found = liken_crops(first[None], second[None])[0]
        assert crop_names()[int(found.argmax())] == "cropped"
        assert found.max() == pytest.approx(1, abs=0.01)
        back = liken_crops(second[None], first[None])[0]
        assert crop_names()[int(back.argmax())] == "within bars" or (down, right) != (0.5, 0.5)


@pytest.mark.parametrize(
    ("rows", "columns", "top", "left"), [(8, 8, 8, 0), (6, 11, 4, 4), (4, 16, 12, 0), (16, 4, 0, 6)]
)
def test_a_picture_that_is_painted_over_in_a_quarter_is_its_own(rows, columns, top, left):
    first, second = thumbs(2), thumbs(2)
    first[0, top : top + rows, left : left + columns] = thumbs(1, 5)[0, :rows, :columns]
    found = liken_rest(first, second)
    kept = np.ones((16, 16), bool)
    kept[top : top + rows, left : left + columns] = False
    assert found[0] > 0.99 > unit(first[0]) @ unit(second[0])
    first[0, kept] = thumbs(1, 6)[0, kept]
    assert liken_rest(first, second)[0] < 0.5
    flat = liken_rest(np.full_like(second, 90), second)
    assert np.abs(flat).max() < 1e-6
