"""The squared L2 distance of two densities against its analytic value, and against nothing."""

from __future__ import annotations

from math import exp, pi, sqrt

import numpy as np
import pytest

from finc_eval.core.errors import FincEvalError
from finc_eval.numerics.density_difference import density_difference


@pytest.mark.parametrize(
    ("shift", "tolerance"),
    [(2.0, 0.06), *(pytest.param(*one, marks=pytest.mark.long) for one in ((0.5, 0.15), (1.0, 0.06)))],
)
def test_the_value_for_normals_is_the_analytic_one(shift, tolerance):
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        found.append(density_difference(rng.normal(size=4000), rng.normal(shift, 1, 2000), seed=seed).value)
    assert np.mean(found) == pytest.approx((1 - exp(-(shift**2) / 4)) / sqrt(pi), rel=tolerance)


def test_the_value_for_normals_of_two_dimensions_is_the_analytic_one(rng):
    found = density_difference(rng.normal(size=(5000, 2)), rng.normal([1.5, 0], 1, (5000, 2)))
    assert found.value == pytest.approx((1 - exp(-(1.5**2) / 4)) / (2 * pi), rel=0.1)


def test_sets_as_unlike_as_18000_and_3000_are_no_problem(rng):
    found = density_difference(rng.normal(size=18_000), rng.normal(1, 1, 3000))
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


@pytest.fixture
def rng():
    return np.random.default_rng(0)
