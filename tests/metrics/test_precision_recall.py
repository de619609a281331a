import numpy as np
import pytest
from scipy import stats

import finc_eval as fe
from finc_eval.measures.precision_recall import precision_recall


def normal(n, d, seed):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def distances(x, y):
    return np.stack([np.sqrt(np.square(row - y.astype(np.float64)).sum(1)) for row in x.astype(np.float64)])


def radii(y, k):
    return np.sort(distances(y, y), axis=1)[:, k]  # column 0 is the sample itself


def test_a_surface_counts_for_one_convention_and_not_for_the_other():
    # On a line: reference at 0, 2, 4, 6, so that every radius is 2 (k = 1); the generated sample 8 is 2 from the last.
    ref, gen = np.array([[0.0], [2], [4], [6]]), np.array([[8.0], [20]])
    closed = precision_recall(gen, ref, convention="kynkaanniemi", k=1)
    open_ = precision_recall(gen, ref, convention="prdc", k=1)
    assert (closed.precision, open_.precision) == (0.5, 0)
    assert (closed.density, open_.density) == (0.5, 0)
    assert (closed.coverage, open_.coverage) == (0.25, 0)
    # Generated radii are 12: 8 reaches down to −4.
    assert (closed.recall, open_.recall) == (1, 1)
    assert closed.balls.tolist() == [1, 0]
    assert closed.covered.tolist() == [False, False, False, True]


def test_the_conventions_bring_their_own_k():
    x = normal(50, 4, 0)
    assert precision_recall(x, x).k == 5
    found = precision_recall(x, x, convention="kynkaanniemi")
    assert found.k == 3
    assert "convention:kynkaanniemi|neighbors:3" in str(found.signature)
    assert found.signature.differences(precision_recall(x, x, k=3).signature) == ["convention: kynkaanniemi and prdc"]


@pytest.mark.parametrize("convention", ["kynkaanniemi", "prdc"])
def test_every_number_is_that_of_its_definition(digits, convention):
    gen, ref, k = digits[0][:150, ::8], digits[0][200:400, ::8], 4
    found = precision_recall(gen, ref, convention=convention, k=k)
    between = distances(gen, ref)
    inside = (np.less_equal if convention == "kynkaanniemi" else np.less)(between, radii(ref, k))
    np.testing.assert_array_equal(found.balls, inside.sum(1))
    np.testing.assert_array_equal(found.covered, inside.any(0))
    np.testing.assert_array_equal(found.recalled, (between < radii(gen, k)[:, None]).any(0))
    assert found.precision == inside.any(1).mean()
    assert found.density == pytest.approx(inside.sum() / (k * 150), rel=1e-12)
    assert found.coverage == inside.any(0).mean()
    assert found.recall == found.recalled.mean()
    small = radii(ref, k) <= np.median(radii(ref, k))
    np.testing.assert_allclose(found.realism, (radii(ref, k) / between)[:, small].max(1), rtol=1e-9)


def test_realism_is_one_on_the_surface_and_leaves_large_balls_out():
    # Radii 1, 1, 7, 9 with k = 1; the median is 4, so only the first two balls take part.
    ref = np.array([[0.0], [1], [8], [17]])
    gen = np.array([[-1.0], [0.5], [9], [0]])
    np.testing.assert_allclose(precision_recall(gen, ref, k=1).realism, [1, 2, 1 / 8, np.inf])


def test_balls_without_a_radius_give_no_realism():
    ref = np.repeat(normal(4, 3, 0), 3, axis=0)
    assert (precision_recall(normal(9, 3, 1), ref, k=2).realism == 0).all()


def test_a_set_of_copies_of_one_sample_contains_nothing_or_itself():
    copies = np.ones((7, 3))
    open_ = precision_recall(copies, copies)
    assert (open_.precision, open_.recall, open_.density, open_.coverage) == (0, 0, 0, 0)
    closed = precision_recall(copies, copies, convention="kynkaanniemi")
    assert (closed.precision, closed.recall, closed.density, closed.coverage) == (1, 1, 7 / 3, 1)


def test_two_samples_are_enough_for_one_neighbor():
    found = precision_recall(np.array([[0.5], [30.0]]), np.array([[0.0], [1.0]]), k=1)
    assert (found.precision, found.recall, found.density, found.coverage) == (0.5, 1, 1, 1)


def test_gen_and_ref_are_not_the_same_to_precision_and_recall(digits):
    x, labels = digits
    some, all_ = x[np.flatnonzero(labels < 3)[:300]], x[1000:1600]
    found, reversed_ = precision_recall(some, all_), precision_recall(all_, some)
    assert found.precision > found.recall + 0.2, "three kinds of digits are digits, but not all digits"
    assert (found.precision, found.recall) == (reversed_.recall, reversed_.precision)
    seen = labels[1000:1600] < 3
    assert found.recalled[seen].mean() > found.recalled[~seen].mean() + 0.2


def test_density_and_coverage_of_two_equal_laws_are_what_theory_says():
    # README of prdc: density 1.056 and coverage .974 of 10 000 samples, see benchmarks/neighbors.py. In theory, at any
    # size, they are 1 and 1 − 2⁻⁵: of the 2n samples around one, it is as likely of either set which comes first.
    found = precision_recall(normal(1000, 64, 0), normal(1000, 64, 1))
    assert found.density == pytest.approx(1, abs=0.08)
    assert found.coverage == pytest.approx(1 - 2**-5, abs=0.02)


@pytest.mark.long
def test_an_interval_holds_the_value_of_fresh_samples_as_often_as_it_says():
    ref, hits = normal(300, 8, 0), {"precision": 0, "density": 0}
    truth = precision_recall(normal(20_000, 8, 1), ref)
    for seed in range(100):
        found = precision_recall(normal(200, 8, 100 + seed), ref)
        for metric in hits:
            low, high = found.interval(metric)
            hits[metric] += low <= getattr(truth, metric) <= high
    assert 89 <= hits["precision"] <= 100
    assert 89 <= hits["density"] <= 100


def test_the_interval_of_density_is_as_wide_as_the_bootstrap_s():
    found = precision_recall(normal(400, 8, 0), normal(300, 8, 1))
    draws = np.random.default_rng(0).integers(400, size=(2000, 400))
    low, high = found.interval("density")
    assert high - low == pytest.approx(2 * 1.96 * (found.balls[draws].mean(1) / found.k).std(), rel=0.06)
    assert (low + high) / 2 == pytest.approx(found.density)


def test_intervals_know_whose_samples_they_resample():
    x, y = normal(50, 4, 0) + 1.5, normal(800, 4, 1)
    found = precision_recall(x, y)
    width = {metric: np.diff(found.interval(metric))[0] for metric in ("precision", "recall", "density", "coverage")}
    assert width["recall"] < 0.08 < width["precision"]
    low, high = precision_recall(x, x).interval("precision", 0.99)
    assert low < 1
    assert high == 1


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_density_has_students_interval_which_ends_at_zero(confidence):
    for shift in (0.0, 1.5):
        found = precision_recall(normal(12, 2, 0) + shift, normal(40, 2, 1))
        values = found.balls / found.k
        low, high = stats.t.interval(confidence, 11, values.mean(), stats.sem(values))
        assert found.interval("density", confidence) == pytest.approx((max(low, 0.0), high))


def test_a_mean_over_samples_has_students_interval_and_a_single_sample_none():
    """Nine samples, and then one, in the middle of the reference; copies of the reference have no realism."""
    ref, near = normal(200, 2, 1), 0.5 * normal(9, 2, 3)
    copied = ref[np.isinf(precision_recall(ref, ref, convention="kynkaanniemi").realism)]
    one = np.concatenate([near[:1], copied[:8]])
    alone, single = fe.metrics(near[:1], ref, ["rarity"])["rarity"], fe.metrics(one, ref, ["realism"])["realism"]
    assert alone.interval is None and single.interval is None
    values = [fe.metrics(each[None], ref, ["rarity"])["rarity"].value for each in near]
    realism = precision_recall(near, ref, convention="kynkaanniemi").realism
    for metric, each in (("rarity", values), ("realism", realism)):
        score = fe.metrics(near, ref, [metric])[metric]
        low, high = stats.t.interval(0.95, 8, np.mean(each), stats.sem(each))
        assert score.interval == pytest.approx((max(low, 0.0), high), rel=1e-4)
