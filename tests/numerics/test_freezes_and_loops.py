"""Freezes, loops and bends of a single course, case by case."""

import numpy as np
import pytest

from finc_eval.numerics.courses import find_bend, find_loop, find_still, longest_run

FRAMES = 100


def light(seed=0, noise=0.0):
    """Brightness of 64 squares that move smoothly, (100, 64), with noise in 1/255."""
    rng = np.random.default_rng(seed)
    waves = np.sin(np.arange(FRAMES)[:, None] / rng.uniform(8, 20, 64) + rng.uniform(0, 6, 64))
    return (128 + 60 * waves + noise * rng.normal(size=(FRAMES, 64))).astype(np.float32)


def held(start, stop=FRAMES, refresh=()):
    """A clip that is frozen; where a codec refreshes the picture, it differs a little from there on."""
    places = np.arange(FRAMES)
    places[start:stop] = start
    clip = light()[places]
    for at in refresh:
        clip[at:stop] += 2
    return clip


@pytest.mark.parametrize(
    ("clip", "run"),
    {
        "moving": (light(), (0, 0)),
        "to the end": (held(60), (60, 100)),
        "in the middle": (held(30, 50), (30, 50)),
        "refreshed by the codec": (held(60, refresh=(72, 84)), (60, 100)),
        "all of it": (light()[np.zeros(FRAMES, int)], (0, 100)),
        "hardly": (held(95), (0, 0)),
        "one frame": (light()[:1], (0, 0)),
    }.values(),
)  # fmt: skip
def test_where_a_clip_stands_still(clip, run):
    assert tuple(find_still(clip)) == run


@pytest.mark.parametrize(
    ("places", "expected"),
    {
        "of 16": (np.arange(FRAMES) % 16, (16, 16, 100)),
        "of 30": (np.arange(FRAMES) % 30, (30, 30, 100)),
        "from 40 on": (np.append(np.arange(40), 40 + np.arange(60) % 16), (16, 56, 100)),
        "until 70": (np.append(np.arange(70) % 16, np.arange(70, 100)), (16, 16, 70)),
    }.values(),
)  # fmt: skip
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_where_a_clip_loops(places, expected, noise):
    clip = light()[places] + noise * np.random.default_rng(5).normal(size=(FRAMES, 64))
    found = find_loop(clip)
    assert (found.period, *found.run) == expected


@pytest.mark.parametrize("clip", [light(), held(60), light()[:7], np.zeros((FRAMES, 64), np.float32)])
def test_clips_that_do_not_loop(clip):
    assert find_loop(clip) is None


def test_a_bend_is_found_in_noise():
    rng, place = np.random.default_rng(0), np.arange(128)
    hinges = np.maximum(0, place - 40) + rng.normal(0, 1, (20, 128))
    steps = 30 * (place >= 90) + rng.normal(0, 1, (20, 128))
    assert np.abs(find_bend(hinges) - 40).max() <= 3
    assert (find_bend(steps) == 90).all()


def test_a_single_gap_is_passed_over_and_two_are_not():
    flags = np.array([1, 1, 0, 1, 1, 0, 0, 1], bool)
    assert tuple(longest_run(flags)) == (0, 5)
    assert tuple(longest_run(np.zeros(4, bool))) == (0, 0)
