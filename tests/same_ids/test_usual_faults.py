"""A baseline whose runs show other pictures, too: what it excuses, and what is still a fault of the new run."""

import numpy as np
import pytest
from scipy.stats import binom

from finc_eval.same_ids.seen import SeenPairs
from finc_eval.same_ids.verdict import _is_usual

DRAWS = 200


def seen(is_bad):
    is_bad = np.asarray(is_bad, bool)
    shown = np.where(is_bad, "another picture", "same")
    return SeenPairs(shown, np.where(is_bad, shown, ""), np.full(len(shown), -1))


def some(count, n):
    return np.arange(n) < count


def two_states(rng, n, again, share):
    """Draw the new run, the reference and further runs, each pair in one of two states, and see who stands alone.

    A sample of the new run is at fault if no run of the baseline has its state; one of the baseline, if no other has.
    """
    new, *runs = rng.random((again + 2, n)) < share
    alone = [np.all([other != one for other in runs if other is not one], axis=0) for one in runs]
    if again == 1:  # both runs are one pair, from either side
        return np.all([one != new for one in runs], axis=0), alone[0], None
    return np.all([one != new for one in runs], axis=0), np.concatenate(alone), np.repeat(np.arange(again + 1), n)


def broken_rate(n, again, share, draws=DRAWS):
    rng = np.random.default_rng([n, again, round(1000 * share)])
    drawn = (two_states(rng, n, again, share) for _ in range(draws))
    return np.mean([new.any() and not _is_usual(seen(new), seen(floor), owner) for new, floor, owner in drawn])


@pytest.mark.one_of_each("again", "share")
@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("again", [1, 2, 3])
def test_a_baseline_of_two_states_breaks_a_run_in_5_percent_at_most(again, share):
    assert broken_rate(100, again, share) * DRAWS <= binom.ppf(0.99, DRAWS, 0.05)


@pytest.mark.long
@pytest.mark.by_turns(3)
@pytest.mark.parametrize("share", [0.005, 0.01, 0.02, 0.05, 0.1])
@pytest.mark.parametrize("again", [1, 2, 3])
@pytest.mark.parametrize("n", [4, 10, 24, 100])
def test_where_runs_of_the_baseline_show_a_state_by_chance_alone_a_fifth_is_broken_at_most(n, again, share):
    """The documentation says so: a baseline that lacks the state cannot tell it from a fault."""
    assert broken_rate(n, again, share, 1000) <= 0.2


FAULTS = {
    "one of 100, none in the baseline": (1, 100, [0]),
    "one of 100, none in three runs": (1, 100, [0, 0, 0]),
    "a tenth, none in the baseline": (10, 100, [0]),
    "a tenth, one in the baseline": (10, 100, [1]),
    "a tenth, one in each of three runs": (10, 100, [1, 1, 1]),
    "a third, a tenth in the baseline": (33, 100, [10]),
    "all of 24, a half in the baseline": (24, 24, [12]),
}
"""Pairs at fault in the new run, its pairs, and pairs at fault in each run of the baseline: more than chance adds."""

USUAL = {
    "one, one in the baseline": (1, 100, [1]),
    "as many": (10, 100, [10]),
    "a few more": (14, 100, [10]),
    "as many as the worst of three runs": (10, 100, [0, 10, 1]),
    "as many as the last of three runs": (10, 100, [1, 1, 10]),
}


def judge(case):
    bad, n, runs = case
    floor = np.concatenate([some(count, n) for count in runs])
    return _is_usual(seen(some(bad, n)), seen(floor), np.repeat(np.arange(len(runs)), n) if len(runs) > 1 else None)


@pytest.mark.parametrize("name", FAULTS)
def test_more_than_chance_adds_to_the_worst_run_is_a_fault(name):
    assert not judge(FAULTS[name])


@pytest.mark.parametrize("name", USUAL)
def test_as_many_as_the_worst_run_has_are_usual(name):
    assert judge(USUAL[name])


def test_a_run_stands_against_the_share_of_the_worst_run_by_its_own_size():
    """Pictures of a run that cannot be read make it smaller: 10 of its 20 pairs are a half, not a twentieth."""
    floor = np.concatenate([some(0, 200), some(10, 20)])
    assert _is_usual(seen(some(50, 100)), seen(floor), np.repeat([0, 1], [200, 20]))


def test_nothing_at_fault_is_not_usual():
    assert not _is_usual(seen(some(0, 100)), seen(some(10, 100)), None)
