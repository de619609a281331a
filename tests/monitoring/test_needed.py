"""How well evaluations of a size find a change, said before the first evaluation."""

import numpy as np
import pytest
from scipy import stats

from finc_eval.monitoring.betting import weigh
from finc_eval.monitoring.needed import MOST_EVALUATIONS, evaluations_needed, samples_alone, say_needed


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
    assert f"needs {samples_alone(0.5, 1000, 40, 0.05)} samples for the shift" in said and "after 2 evaluations" in said


@pytest.mark.parametrize(
    ("shift", "reference", "samples", "things"),
    [(1.0, 500, 64, 40), (0.5, 1000, 16, 40), (0.3, 1000, 16, 40), (0.2, 5000, 16, 40), (0.12, 60_000, 16, 4)],
)
def test_the_number_of_evaluations_is_the_first_at_whose_end_the_bets_are_enough(shift, reference, samples, things):
    before = reference + samples * np.arange(MOST_EVALUATIONS)
    scores = shift * reference / before / np.sqrt(1 / samples + 1 / before)
    log_e = [float(weigh(scores[:count, None])[0]) for count in range(1, MOST_EVALUATIONS + 1)]
    enough = [count for count, reached in enumerate(log_e, 1) if reached >= np.log(things / 0.05)]
    found = evaluations_needed.__wrapped__(shift, reference, samples, things, 0.05)
    assert found == enough[0]
    assert (found > MOST_EVALUATIONS // 10) == (shift < 0.3), "shifts of either kind: found early, and later"
