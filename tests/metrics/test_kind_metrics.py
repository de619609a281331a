"""NDB and PRD agree with their definitions, and tell sets apart that differ."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.measures.histograms import best_f, different_bins, prd_curve

CENTERS = np.random.default_rng(0).normal(0, 3, (10, 16))


def clusters(n: int, seed: int, first: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (CENTERS[rng.integers(first, 10, n)] + rng.normal(size=(n, 16))).astype(np.float32)


def test_two_proportions_differ_as_in_the_papers_test():
    """By hand, 60 against 40 of 1000: pooled share 0.05, error 0.00975, z = 2.05. 58 against 42 has z = 1.64."""
    assert different_bins(np.array([60, 940]), np.array([40, 960])) == 2
    assert different_bins(np.array([58, 942]), np.array([42, 958])) == 0


def test_the_curve_of_two_shares_is_the_papers():
    """Half of gen is of kinds that the reference has, and covers one of its two kinds."""
    curve = prd_curve(np.array([0.5, 0, 0.5]), np.array([0.5, 0.5, 0]))
    assert best_f(curve, 8) == pytest.approx(0.5, abs=0.01)
    assert best_f(prd_curve(np.array([0.5, 0.5]), np.array([0.5, 0.5])), 8) == pytest.approx(1)
    assert best_f(prd_curve(np.array([1.0, 0]), np.array([0, 1.0])), 8) == 0


def test_a_set_without_three_of_ten_clusters_loses_recall_and_no_precision():
    found = fe.metrics(clusters(1000, 1, first=3), clusters(1000, 2), ["prd", "ndb"])
    same = fe.metrics(clusters(1000, 1), clusters(1000, 2), ["prd", "ndb"])
    assert found["prd_recall"].value < 0.8 < 0.95 < found["prd_precision"].value
    assert same["prd_recall"].value > 0.95
    assert found["ndb"].value > 30 > 15 > same["ndb"].value
    assert found["ndb_over_k"].value == found["ndb"].value / 100
    assert found["ndb_over_k"].floor < 0.2
    assert "bins:100" in str(found["ndb"].signature)
