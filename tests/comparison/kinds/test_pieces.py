"""Pieces of kinds: what k-means cuts up is one mode, and separate kinds are several."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.comparison.kinds.pieces import NEAR, amid, distance


def clouds(apart, n=400, seed=0):
    """Samples of two clouds that are so far apart, and which are in the right half."""
    rows = np.random.default_rng(seed).standard_normal((n, 3)).astype(np.float32)
    rows[n // 2 :, 0] += apart
    return rows, rows[:, 0] > apart / 2


@pytest.mark.parametrize(("apart", "parted"), [(0.0, False), (1.0, False), (5.0, True), (8.0, True)])
def test_two_clouds_are_apart_and_the_halves_of_one_are_not(apart, parted):
    rows, right = clouds(apart)
    assert (distance(rows[right], rows[~right]) > NEAR) == parted


def test_distance_is_in_standard_deviations_of_the_part():
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal((50_000, 3)).astype(np.float32) for _ in range(2))
    assert distance(first, first) == 0
    assert distance(2 * first, second + np.float32([0, 6, 0])) == pytest.approx(3, rel=0.02)
    assert distance(np.zeros((2, 3)), np.ones((2, 3))) == np.inf
    assert distance(first, first[:0]) == distance(first[:0], first) == np.inf


def test_every_second_sample_is_amid_the_others_and_a_half_is_not():
    rows, right = clouds(0.0)
    assert amid(rows[::3], np.delete(rows, np.s_[::3], 0))
    assert not amid(rows[right], rows[~right])
    assert not amid(rows, rows[:0])


def with_novel(novel, n=2000, dim=32):
    """gen has a tenth of new samples around each of these centers."""
    rng = np.random.default_rng(1)
    centers = 3 * rng.standard_normal((8, dim))
    gen, ref = (centers[rng.integers(0, 8, n)] + 0.7 * rng.standard_normal((n, dim)) for _ in range(2))
    for number, (center, spread) in enumerate(novel):
        part = slice(number * n // 10, (number + 1) * n // 10)
        gen[part] = center + spread * rng.standard_normal((n // 10, dim))
    return gen.astype(np.float32), ref.astype(np.float32)


def test_a_wide_kind_in_several_clusters_is_one_mode():
    found = fe.compare(*with_novel([(np.zeros(32), np.repeat([3.0, 0.5], 16))]), method="clusters", features=50)
    assert [mode.role for mode in found.significant() if mode.share_gen > 0.05] == ["over"]
    assert found.over[0].share_gen == pytest.approx(0.1, abs=0.02) and found.over[0].share_ref < 0.01


def test_two_kinds_are_two_modes():
    far = 6 * np.eye(32)[0]
    found = fe.compare(*with_novel([(far, 0.5), (-far, 0.5)]), method="clusters", features=50)
    over = [mode.share_gen for mode in found.significant() if mode.role == "over"]
    assert over == pytest.approx([0.1, 0.1], abs=0.01)
