"""Laws of copying: errors as of a jackknife, order statistics, exact sign tests, and views of pictures."""

import numpy as np
import pytest
from scipy.stats import binom, mannwhitneyu, norm

from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.memorization import holdout
from finc_eval.memorization.copying import _balanced, _mann_whitney, median_interval
from finc_eval.memorization.hashes import GRAY_SIDE, HASH_SIDE, LARGE_SIDE, SHIFTED_VIEWS, TRAIN_VIEWS
from finc_eval.memorization.holdout import Sides, holdout_p_value
from finc_eval.memorization.nearness import Near
from finc_eval.memorization.views import WIDENED
from finc_eval.numerics.inference import wilson


@pytest.mark.parametrize("n", [1, 4, 25, 400])
def test_the_interval_of_a_median_is_of_order_statistics(n):
    values = np.random.default_rng(n).normal(size=n)
    low, high = median_interval(values, 0.9)
    half = norm.ppf(0.95) * n**0.5 / 2
    ends = max(int(n / 2 - half), 0), min(int(n / 2 + half), n - 1)
    assert (low, high) == tuple(np.sort(values)[[*ends]])
    assert low <= np.median(values) <= high


def test_z_of_pairs_is_that_of_scipy_and_its_error_that_of_a_jackknife():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 30, 60).astype(float), rng.integers(5, 40, 80).astype(float)
    found = _mann_whitney(x, y)
    z, error = found.value, found.standard_error
    assert 2 * norm.sf(abs(z)) == pytest.approx(mannwhitneyu(x, y, method="asymptotic", use_continuity=False).pvalue)
    assert z < 0

    def pairs(x, y):
        return ((x[:, None] > y).mean() + (x[:, None] == y).mean() / 2) * 60 * 80

    squared = 0.0
    for left in (
        [pairs(np.delete(x, one), y) for one in range(60)],
        [pairs(x, np.delete(y, one)) for one in range(80)],
    ):
        squared += np.var(left) * (len(left) - 1)
    scale = (pairs(x, y) - 60 * 80 / 2) / z
    assert error == pytest.approx(squared**0.5 / scale, rel=0.02)
    for equal in (_mann_whitney(np.ones(3), np.ones(5)), _mann_whitney(np.ones(1), np.ones(5))):
        assert (equal.value, equal.standard_error) == (0, 0)
    assert _mann_whitney(np.ones(1), np.zeros(5)).standard_error == 0


def test_a_share_is_balanced_so_that_both_sets_count_alike():
    for q in (0.5, 0.2, 0.8):
        value, (low, high) = _balanced(q, 50.4, q, 0.9)
        assert value == pytest.approx(0.5)  # as many as there are is no preference
        ends = wilson(q, 50, 0.9)
        odds = [end / (1 - end) * (1 - q) / q for end in ends]
        assert (low, high) == pytest.approx([one / (1 + one) for one in odds])
    assert _balanced(0.4, 0.2, 0.5, 0.9)[1] == pytest.approx(wilson(0.4, 1, 0.9))


def test_nearness_to_both_sets_is_in_units_of_both():
    near = [Near(np.array(gen), np.array(fresh), np.arange(3)) for gen, fresh in (
        ([1.0, 2.0, 4.0], [2.0, 4.0, 9.0]), ([3.0, 1.0, 2.0], [1.0, 2.0, 8.0]))]  # fmt: skip
    found = Sides.of(*near)
    assert found.to_train.tolist() == [2, 4, 8] and found.to_holdout.tolist() == [12, 4, 8]
    assert found.nearest.tolist() == [0, -2, -3]


@pytest.mark.parametrize("nearer", [0, 6, 12])
def test_the_twelve_most_suspicious_real_samples_are_judged_by_a_sign_test(nearer):
    n = 40
    to_train = np.linspace(1, 2, n)
    to_holdout = to_train * np.where(np.arange(n) < nearer, 1.12, 1.10)  # 0.9 of it is the limit
    sides = Sides(to_train, to_holdout, np.arange(n))
    assert sides.p_value() == pytest.approx(binom.sf(nearer - 1, 12, 0.5))
    repeated = Sides(np.r_[to_train, to_train[:1] + 1e-9], np.r_[to_holdout, 9.0], np.r_[np.arange(n), 0])
    assert repeated.p_value() == sides.p_value()
    assert sides.p_value(np.arange(n) >= n - 5) == 1
    few = sides.p_value(np.arange(n) < 4)
    assert few == pytest.approx(binom.sf(min(nearer, 4) - 1, 4, 0.5))


def test_the_p_value_of_a_holdout_is_the_least_of_three_adjusted(monkeypatch):
    given = iter([0.03, 0.2, 0.5])
    monkeypatch.setattr(holdout, "_neighbors_p", lambda *rest: next(given))
    monkeypatch.setattr(holdout, "_distance_p", lambda *rest: next(given))
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    assert holdout_p_value(as_embeddings(rows), as_embeddings(rows), 0, Run()) == pytest.approx(0.09)


def test_neighbors_of_their_own_set_and_distances_from_a_half_tell_unlike_sets():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 3)).astype(np.float32)
    sets = [Subset(as_embeddings(one), np.arange(60)) for one in (rows[:60], rows[60:] + np.float32(3))]
    same = [Subset(as_embeddings(one), np.arange(60)) for one in (rows[:60], rows[60:])]
    groups = [np.arange(60)] * 2
    p = holdout._neighbors_p(sets, groups, np.random.default_rng(1), Run())
    assert p == 1 / 500
    assert holdout._neighbors_p(same, groups, np.random.default_rng(1), Run()) > 0.05
    for place in (0, 1):
        assert holdout._distance_p(place, sets, groups, np.random.default_rng(1), Run()) < 1e-6
        assert holdout._distance_p(place, same, groups, np.random.default_rng(1), Run()) > 0.05
    pairs = [np.arange(60) // 2] * 2  # groups of two count once
    assert 1e-9 < holdout._distance_p(0, sets, pairs, np.random.default_rng(1), Run()) < 1e-5


def test_views_are_steps_of_a_pixel_of_a_digit_and_crops_of_nine_tenths():
    shifted = np.array([one.box for one in SHIFTED_VIEWS])
    assert shifted[:, 2:] - shifted[:, :2] == pytest.approx(np.ones((24, 2)))
    steps = {(x, y) for x in range(-2, 3) for y in range(-2, 3)} - {(0, 0)}
    assert {tuple(one) for one in np.rint(shifted[:, :2] * 28).astype(int).tolist()} == steps
    assert np.abs(shifted[:, :2] * 28).max() == pytest.approx(2)
    whole, *crops = np.array([one.box for one in TRAIN_VIEWS])
    assert whole.tolist() == [0, 0, 1, 1]
    middles = [(one[:2] + one[2:]) / 2 for one in crops]
    assert np.array(crops) @ [[-1, 0], [0, -1], [1, 0], [0, 1]] == pytest.approx(np.full((5, 2), 0.9))
    wanted = [(x, y) for x in (0.45, 0.55) for y in (0.45, 0.55)] + [(0.5, 0.5)]
    assert np.array(middles) == pytest.approx(np.array(wanted))
    assert pytest.approx(0.9) == 1 / (1 + 2 * WIDENED)  # the picture in its widened view, as a crop in its original
    assert LARGE_SIDE == 2 * GRAY_SIDE == 8 * HASH_SIDE
