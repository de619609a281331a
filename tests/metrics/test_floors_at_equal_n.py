"""Effective numbers of kinds grow with n: their floor has the n of the score, or a note says that it has not."""

import numpy as np
import pytest

import finc_eval as fe


def draw(n, seed, d=64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype("f4")


@pytest.mark.parametrize("metric", ["vendi", "vendi_q2", "vendi_qinf", "rke"])
@pytest.mark.parametrize(("n", "m"), [(100, 1000), (300, 301), (200, 800)])
def test_the_floor_of_a_larger_reference_is_at_the_n_of_the_generated_set(metric, n, m):
    score = fe.metrics(draw(n, 1), draw(m, 2), [metric])[metric]
    equal = fe.metrics(draw(n, 1), draw(n, 3), [metric])[metric]
    assert score.floor == pytest.approx(equal.floor, rel=0.2)  # the bandwidth of RKE is another
    assert any("at equal n" in note for note in score.notes)


@pytest.mark.parametrize("metric", ["vendi", "vendi_q2", "rke"])
def test_a_smaller_reference_is_noted(metric):
    score = fe.metrics(draw(1000, 1), draw(100, 2), [metric])[metric]
    assert any("100 samples for 1,000" in note and "equal n only" in note for note in score.notes)
    assert "the floor is the score of the reference" in fe.metrics(draw(200, 1), draw(200, 2), [metric])[metric].notes


@pytest.mark.parametrize(
    ("sizes", "metrics", "told"), [((100, 400), "vendi", True), ((100, 101), "vendi", False), ((100, 400), "fd", False)]
)
def test_a_board_of_unlike_sizes_says_which_numbers_grow(sizes, metrics, told):
    board = fe.leaderboard({"a": draw(sizes[0], 1), "b": draw(sizes[1], 2)}, draw(300, 3), metrics=[metrics])
    assert any("grow with their number" in one for one in board.warnings) == told
