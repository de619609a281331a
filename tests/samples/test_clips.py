"""Windows of a video lie where the policy says."""

import itertools
import weakref
from fractions import Fraction

import numpy as np
import pytest

from finc_eval.samples.clips import Clip, gather, plan_windows

NTSC = Fraction(30000, 1001)


def indices(n, fps=None, *, frames=4, stride=1, windows=1, short="refuse", to=None):
    return plan_windows(n, fps, Clip(frames, stride, windows, short, to)).indices.tolist()


def test_a_single_window_lies_in_the_middle():
    assert indices(10) == [[3, 4, 5, 6]]
    assert indices(11) == [[3, 4, 5, 6]]
    assert indices(10, stride=2) == [[1, 3, 5, 7]]
    assert indices(4) == [[0, 1, 2, 3]]


def test_several_windows_begin_with_the_first_frame_and_end_with_the_last():
    assert indices(10, windows=2) == [[0, 1, 2, 3], [6, 7, 8, 9]]
    assert indices(12, windows=4)[1:3] == [[2, 3, 4, 5], [5, 6, 7, 8]]
    assert indices(5, windows=3) == [[0, 1, 2, 3], [0, 1, 2, 3], [1, 2, 3, 4]]


@pytest.mark.parametrize("n", [16, 31, 72, 303])
@pytest.mark.parametrize(("frames", "stride", "windows"), [*itertools.product((1, 5), (1, 3), (2, 7))])
def test_windows_are_spread_evenly(n, frames, stride, windows):
    plan = np.array(indices(n, frames=frames, stride=stride, windows=windows))
    assert plan.shape == (windows, frames)
    assert (np.diff(plan, axis=1) == stride).all()
    assert plan[0, 0] == 0 and plan[-1, -1] == n - 1
    gaps = np.diff(plan[:, 0])
    assert gaps.max() - gaps.min() <= 1


def test_a_short_video_is_looped_held_or_refused():
    assert indices(3, frames=7, short="loop") == [[0, 1, 2, 0, 1, 2, 0]]
    assert indices(3, frames=7, short="hold") == [[0, 1, 2, 2, 2, 2, 2]]
    assert indices(3, frames=3, stride=2, windows=2, short="loop") == [[0, 2, 1]] * 2
    assert indices(3, frames=3, stride=2, windows=2, short="hold") == [[0, 2, 2]] * 2
    with pytest.raises(ValueError, match=r"^too short: 3 frames, and a window spans 7$"):
        indices(3, frames=4, stride=2)


@pytest.mark.parametrize("short", ["loop", "hold", "refuse"])
def test_a_video_without_frames_has_no_windows(short):
    with pytest.raises(ValueError, match="without frames"):
        indices(0, short=short)


@pytest.mark.one_of_each("short", "n", "fps", "to")
@pytest.mark.parametrize("short", ["loop", "hold"])
@pytest.mark.parametrize(("n", "fps", "to"), [*itertools.product((1, 2, 9, 40), (None, 12.0, NTSC), (None, 8.0, 50.0))])
def test_every_number_is_that_of_a_frame_and_windows_end_in_order(short, n, fps, to):
    plan = np.array(indices(n, fps, frames=5, stride=2, windows=3, short=short, to=to))
    assert plan.shape == (3, 5) and plan.min() >= 0 and plan.max() < n
    assert (np.diff(plan.max(axis=1)) >= 0).all()


@pytest.mark.parametrize(("n", "fps", "to"), [(240, NTSC, 10.0), (25, 25.0, 30.0), (100, 24.0, 23.976), (7, 0.5, 8.0)])
def test_another_rate_takes_the_frame_shown_at_each_instant(n, fps, to):
    # In exact arithmetic: frame i is shown from i / fps until (i + 1) / fps.
    target, instants = Fraction(to).limit_denominator(10_000), []
    while (time := len(instants) / target) < n / Fraction(fps):
        instants.append(next(i for i in range(n) if time < (i + 1) / Fraction(fps)))
    assert indices(n, fps, frames=len(instants), to=to) == [instants]
    with pytest.raises(ValueError, match=f"{len(instants)} frames at {to:g} frames a second"):
        indices(n, fps, frames=len(instants) + 1, to=to)


def test_rates_are_exact_however_they_are_written():
    assert indices(300, 30000 / 1001, frames=300, to=29.97002997) == [list(range(300))]
    assert indices(90, 30.0, frames=30, to=10.0) == [list(range(0, 90, 3))]


def test_a_video_without_a_rate_counts_as_having_the_one_asked_for():
    assert indices(10, None, to=5.0) == indices(10)


def test_windows_are_put_together_from_frames_in_order():
    frames = np.random.default_rng(0).integers(0, 256, (20, 3, 2, 3), dtype=np.uint8)
    for clip in (Clip(6, 2, 3, "refuse"), Clip(30, 1, 2, "loop"), Clip(9, 3, 2, "hold"), Clip(1, 1, 1, "refuse")):
        plan = plan_windows(20, None, clip).indices
        for made, expected in zip(gather(plan, enumerate(frames)), frames[plan], strict=True):
            np.testing.assert_array_equal(made, expected)


def test_a_window_is_ready_at_its_last_frame_and_none_is_taken_after_the_last():
    taken = []

    def frames():
        for number in range(100):
            taken.append(number)
            yield number, np.full((1, 1, 3), number, np.uint8)

    plan = plan_windows(80, None, Clip(4, 2, 10, "refuse")).indices[:4]
    seen = [(window[-1, 0, 0, 0], taken[-1]) for window in gather(plan, frames())]
    assert seen == [(last, last) for last in plan[:, -1]]
    assert taken[-1] == plan.max()


def test_a_frame_is_kept_no_longer_than_a_window_needs_it():
    made = []

    def frames():
        for number in range(100):
            pixels = np.full((1, 1, 3), number, np.uint8)
            made.append(weakref.ref(pixels))
            yield number, pixels
            del pixels
            assert sum(reference() is not None for reference in made) <= 8

    assert len(list(gather(plan_windows(100, None, Clip(8, 1, 20, "refuse")).indices, frames()))) == 20


def test_frames_that_end_early_leave_later_windows_out():
    frames = np.zeros((10, 2, 2, 3), np.uint8)
    assert len(list(gather(plan_windows(12, None, Clip(4, 1, 3, "refuse")).indices, enumerate(frames)))) == 2


def test_frames_of_unlike_sizes_are_refused():
    frames = [(0, np.zeros((4, 6, 3), np.uint8)), (1, np.zeros((4, 5, 3), np.uint8))]
    with pytest.raises(ValueError, match=r"^frames of different sizes: 6x4, 5x4$"):
        list(gather(np.array([[0, 1]]), frames))
