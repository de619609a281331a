"""How well looks of a size find a change, said before the first look."""

import numpy as np
from scipy import stats

from finc_eval.monitoring.needed import evaluations_needed, samples_alone, say_needed


def test_a_test_of_one_look_needs_the_samples_that_it_says():
    """At that number, half of the tests of a shift reject at 5 % for all of 40 things; with far fewer, few do."""
    rng, needed = np.random.default_rng(0), samples_alone(0.5, 500, 40, 0.05)

    def rejected(n):
        found = [stats.ttest_ind(rng.normal(0.5, size=n), rng.normal(size=500)).pvalue for _ in range(400)]
        return float(np.mean(np.array(found) <= 0.05 / 40))

    assert abs(rejected(needed) - 0.5) < 0.1
    assert rejected(needed // 3) < 0.2
    assert samples_alone(0.1, 500, 40, 0.05) is None  # the reference itself is too small


def test_larger_looks_need_fewer_looks_and_the_sentence_says_both():
    assert evaluations_needed(0.5, 1000, 16, 40, 0.05) > evaluations_needed(0.5, 1000, 64, 40, 0.05)
    assert evaluations_needed(0.001, 1000, 16, 40, 0.05) is None
    said = say_needed(1000, 64, 40, 0.05)
    assert f"needs {samples_alone(0.5, 1000, 40, 0.05)} samples and " in said and "after 2 evaluations" in said
