"""The squared L2 distance of two densities against its analytic value, and against nothing."""

from __future__ import annotations

from itertools import product
from math import exp, pi, sqrt

import numpy as np
import pytest

from finc_eval.core.errors import FincEvalError
from finc_eval.numerics.density_difference import PENALTIES, WIDTHS, _estimates, _parts, density_difference


@pytest.mark.parametrize(
    ("shift", "tolerance"),
    [(2.0, 0.06), *(pytest.param(*one, marks=pytest.mark.long) for one in ((0.5, 0.15), (1.0, 0.06)))],
)
def test_the_value_for_normals_is_the_analytic_one(shift, tolerance):
    found = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        found.append(density_difference(rng.normal(size=4000), rng.normal(shift, 1, 2000), seed=seed).value)
    assert np.mean(found) == pytest.approx((1 - exp(-(shift**2) / 4)) / sqrt(pi), rel=tolerance)


def test_the_value_for_normals_of_two_dimensions_is_the_analytic_one(rng):
    found = density_difference(rng.normal(size=(2500, 2)), rng.normal([1.5, 0], 1, (2500, 2)))
    assert found.value == pytest.approx((1 - exp(-(1.5**2) / 4)) / (2 * pi), rel=0.1)


def test_sets_as_unlike_as_9000_and_1500_are_no_problem(rng):
    found = density_difference(rng.normal(size=9000), rng.normal(1, 1, 1500))
    assert found.value == pytest.approx((1 - exp(-1 / 4)) / sqrt(pi), rel=0.05)


def test_it_does_not_matter_which_set_is_which(rng):
    a, b = rng.normal(size=900), rng.normal(0.8, 1, 3000)
    assert density_difference(a, b).value == pytest.approx(density_difference(b, a).value, rel=0.2)


@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_the_value_has_the_unit_of_one_over_the_data(rng, scale):
    a, b = rng.normal(size=1000), rng.normal(1, 1, 400)
    plain, scaled = density_difference(a, b), density_difference(scale * a + 7, scale * b + 7)
    assert scaled.value * scale == pytest.approx(plain.value, rel=1e-6)
    assert scaled.standardized == pytest.approx(plain.standardized, rel=1e-6)
    assert scaled.standardized == pytest.approx(scaled.value * scaled.deviation)


def test_the_published_grid_is_absolute_and_blind_to_small_data(rng):
    a, b = 0.01 * rng.normal(size=1000), 0.01 * rng.normal(1, 1, 1000)
    assert density_difference(a, b, standardize=False).value < 0.05 * density_difference(a, b).value


@pytest.mark.long
def test_equal_densities_are_rejected_as_often_as_the_level_says(rng):
    found = [
        density_difference(rng.normal(size=60), rng.normal(size=30), permutations=39, seed=seed) for seed in range(120)
    ]
    assert np.mean([one.p_value <= 0.1 for one in found]) == pytest.approx(0.1, abs=0.08)
    assert np.mean([one.p_value <= 0.5 for one in found]) == pytest.approx(0.5, abs=0.14)
    assert np.mean([one.standardized > one.threshold(0.9) for one in found]) == pytest.approx(0.1, abs=0.08)


def test_unlike_densities_are_rejected(rng):
    assert density_difference(rng.normal(size=300), rng.normal(1, 1, 300), permutations=99).p_value == 0.01


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: density_difference([1.0, 2.0], [1.0, 3.0], permutations=-3), "permutations must be a whole number"),
        (lambda: density_difference([1.0], [1.0, 2.0]), "a must hold at least two points"),
        (lambda: density_difference([1.0, 1.0], [1.0, 1.0]), "all points are equal"),
        (lambda: density_difference([1.0, np.inf], [1.0, 2.0]), "not finite"),
        (lambda: density_difference(np.ones((3, 2)), np.ones((3, 1))), "got 2 and 1"),
        (lambda: density_difference([1.0, 2.0], [1.0, 3.0]).threshold(), "comes from permutations"),
    ],
)
def test_what_has_no_density_is_refused_in_a_sentence(call, words):
    with pytest.raises(FincEvalError, match=words):
        call()


def means_of(points, centers, width):
    return np.exp(-((points[:, None] - centers[None]) ** 2).sum(2) / (2 * width**2)).mean(0)


def integrals(centers, width):
    """Integrals of the products of two Gaussians, which are a Gaussian of their distance."""
    squared, d = ((centers[:, None] - centers[None]) ** 2).sum(2), centers.shape[1]
    return (pi * width**2) ** (d / 2) * np.exp(-squared / (4 * width**2))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_width_and_penalty_are_chosen_by_the_error_of_held_folds_and_fit_all_points(rng, d):
    """The paper's algorithm, by solving its equations for every width, penalty and fold."""
    pooled = rng.normal(size=(43, d)) + np.r_[np.zeros(23), np.ones(20)][:, None] * 1.5
    parts = _parts(np.arange(43), 23, rng)
    assert np.bincount(parts).tolist() == [5, 5, 5, 4, 4, 4, 4, 4, 4, 4]
    assert (parts[:23] < 5).all() and (parts[23:] >= 5).all()
    centers = pooled[::3]
    (value,), (width,), (penalty,) = _estimates(pooled, parts[None], centers)

    def solved(places, width, penalty):
        h = means_of(pooled[places & (parts < 5)], centers, width) - means_of(
            pooled[places & (parts >= 5)], centers, width
        )
        return h, np.linalg.solve(integrals(centers, width) + penalty * np.eye(len(centers)), h)

    def error(width, penalty):
        total, gram = 0.0, integrals(centers, width)
        for fold in range(5):
            held = parts % 5 == fold
            theta, h = solved(~held, width, penalty)[1], solved(held, width, penalty)[0]
            total += theta @ gram @ theta - 2 * theta @ h
        return total

    assert min(product(WIDTHS, PENALTIES), key=lambda one: error(*one)) == (width, pytest.approx(penalty))
    h, theta = solved(parts >= 0, width, penalty)
    assert value == pytest.approx(2 * theta @ h - theta @ integrals(centers, width) @ theta)


def test_a_p_value_counts_permutations_that_are_as_large_and_a_threshold_is_one_of_them(rng):
    found = density_difference(rng.normal(size=15), rng.normal(0.3, 1, 12), permutations=39)
    null = np.array(found.null)
    assert found.p_value == (1 + (null >= found.standardized).sum()) / 40
    assert found.threshold(0.9) == np.sort(null)[35]


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("d", [1, 2])
def test_a_shift_of_all_points_changes_nothing(rng, d, standardize):
    a, b = rng.normal(size=(40, d)), rng.normal(1, 1, (30, d))
    plain, far = (density_difference(a + x, b + x, standardize=standardize) for x in (0, 1e7 if standardize else 10))
    assert far.value == pytest.approx(plain.value, rel=1e-4)
    pooled = np.r_[a, b]
    assert plain.deviation == pytest.approx(pooled.std(0).prod())
    assert plain.standardized == pytest.approx(plain.value * plain.deviation)


@pytest.mark.parametrize("points", [2, 9])
def test_permutations_that_memory_cannot_hold_are_refused(rng, points, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "16kB")
    a, b = rng.normal(size=points), rng.normal(size=points)
    most = 16_000 // 16 // (2 * points)
    assert len(density_difference(a, b, permutations=most).null) == most
    with pytest.raises(FincEvalError, match="permutations"):
        density_difference(a, b, permutations=most + most // 10)


def test_points_are_equal_if_they_differ_by_rounding_alone():
    with pytest.raises(FincEvalError, match="all points are equal"):
        density_difference([1e6, 1e6 + 1e-7], [1e6, 1e6])
    assert density_difference([1e6, 1e6 + 1], [1e6, 1e6 + 2]).deviation > 0
    assert density_difference([1e-9, 2e-9], [3e-9, 5e-9]).deviation > 0


@pytest.fixture
def rng():
    return np.random.default_rng(0)
