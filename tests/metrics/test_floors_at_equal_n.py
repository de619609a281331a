"""Floors: each number has the value of real data of its size beside it, or a note says how many samples those are."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.measures.inputs import reference_bandwidth
from finc_eval.measures.kid import kid_interval


def draw(n, seed, d=64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype("f4")


@pytest.mark.parametrize("metric", ["vendi", "vendi_q2", "vendi_qinf", "rke"])
@pytest.mark.parametrize(("n", "m"), [(100, 300), (200, 800)])
def test_the_floor_of_a_larger_reference_is_at_the_n_of_the_generated_set(metric, n, m):
    score = fe.metrics(draw(n, 1), draw(m, 2), [metric])[metric]
    equal = fe.metrics(draw(n, 1), draw(n, 3), [metric])[metric]
    assert score.floor == pytest.approx(
        equal.floor, rel=0.08
    )  # at the n of the reference it is 1.12 to 1.54 times as large
    assert any("at equal n" in note for note in score.notes)


@pytest.mark.parametrize("metric", ["vendi", "vendi_q2", "rke"])
def test_a_smaller_reference_is_noted(metric):
    score = fe.metrics(draw(1000, 1), draw(100, 2), [metric])[metric]
    assert any("100 samples for 1,000" in note and "equal n only" in note for note in score.notes)
    assert "the floor is the score of the reference" in fe.metrics(draw(200, 1), draw(200, 2), [metric])[metric].notes


@pytest.mark.one_of_each("told")
@pytest.mark.parametrize(
    ("sizes", "metrics", "told"), [((50, 200), "vendi", True), ((100, 101), "vendi", False), ((50, 200), "fd", False)]
)
def test_a_board_of_unlike_sizes_says_which_numbers_grow(sizes, metrics, told):
    board = fe.leaderboard({"a": draw(sizes[0], 1), "b": draw(sizes[1], 2)}, draw(120, 3), metrics=[metrics])
    assert any("grow with their number" in one for one in board.warnings) == told


@pytest.mark.one_of_each(by=lambda case: case.rpartition("-")[0])
@pytest.mark.parametrize("n", [300, 700])
@pytest.mark.parametrize("metric", ["kid", "mmd", "prdc", "precision_recall", "realism", "rarity", "ken"])
def test_metrics_without_a_floor_of_their_own_have_the_value_of_a_part_of_the_reference(metric, n):
    gen, ref = draw(n, 1, 8), draw(800, 2, 8)
    scores = fe.metrics(gen, ref, metric)
    order = np.random.default_rng(0).permutation(800)
    part, rest = (ref[np.sort(rows)] for rows in (order[: min(n, 400)], order[min(n, 400) :]))
    parts = fe.metrics.mmd(part, rest, sigma=bandwidth(ref)) if metric == "mmd" else fe.metrics(part, rest, metric)
    for score in scores:
        assert score.floor == pytest.approx(parts[score.key].value, abs=1e-6)
    told = "the floor is of 400 samples of ref against its other 400"
    if metric not in ("kid", "mmd"):  # the numbers without bias do not depend on sizes
        assert all((told in score.notes) == (n > 400) for score in scores)


def bandwidth(ref):
    return reference_bandwidth(as_embeddings(ref, "ref"))


@pytest.mark.parametrize("subset_size", [200, 1000])
def test_the_floor_of_kid_is_of_all_pairs_with_subsets_and_without(subset_size):
    gen, ref = draw(500, 1, 8), draw(600, 2, 8)
    score = fe.metrics.kid(gen, ref, subset_size=subset_size)["kid_mean"]
    order = np.random.default_rng(0).permutation(600)
    assert score.floor == pytest.approx(kid_interval(ref[order[:300]], ref[order[300:]]).value, abs=1e-9)


def test_few_samples_have_no_floor():
    assert all(score.floor is None for score in fe.metrics(draw(150, 1), draw(400, 2), ["kid", "mmd", "prdc"]))


@pytest.mark.parametrize(("n", "m"), [(200, 200), (300, 900), (900, 300)])
def test_the_floor_of_a_frechet_distance_of_fewer_samples_than_dimensions_is_what_real_samples_get(n, m):
    """It fell with 1/n from half of the samples, to two thirds of the distance of a perfect generator."""
    spectrum = np.arange(1, 513, dtype="f4") ** -0.5
    for seed in range(2):
        score = fe.metrics(draw(n, seed, 512) * spectrum, draw(m, 9 + seed, 512) * spectrum, "fd")["fd"]
        assert score.floor == pytest.approx(score.value, rel=0.25)
