"""Kinds of evidence join by their p-values: what is often far out in one kind does not hide another kind."""

import numpy as np
import pytest

from finc_eval.local_evidence.statistics import LocalStatistic, adjusted_p, joint_p

DRAWS = 499


def family(seed, *, leads=False):
    """Statistics of cells, the first of which leads if asked for, and of pairs, which are mostly 0 and rarely large."""
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=DRAWS + 1)
    cells[0] = 5 if leads else cells[0]
    rare = np.where(rng.random(DRAWS + 1) < 0.03, rng.integers(8, 12, DRAWS + 1), 0.0)
    rare[0] = 0
    return [LocalStatistic.of("patches", "more", 0, cells), LocalStatistic.of("pairs", "more", 0, rare)]


def test_a_kind_whose_statistics_are_rarely_large_hides_no_other():
    statistics = family(0, leads=True)
    largest = np.max([each.values for each in statistics], 0)
    assert (largest >= largest[0]).mean() > 0.0125  # by the largest statistic of all kinds
    assert adjusted_p(statistics[:1], statistics) <= 2 / (DRAWS + 1)
    assert joint_p(statistics) == adjusted_p(statistics[:1], statistics) < adjusted_p(statistics[1:], statistics)


def test_equal_values_are_no_evidence():
    constant = [LocalStatistic.of("pairs", "more", 0, np.zeros(DRAWS + 1))]
    assert joint_p(constant) == 1


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_joined_p_values_hold_their_level(level):
    found = np.array([joint_p(family(seed)) for seed in range(1, 401)])
    assert (found <= level).mean() <= level + 3 * np.sqrt(level * (1 - level) / len(found))
