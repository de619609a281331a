"""Repeats of evaluations: a tenth is seen, and a law that repeats itself is not taken for a generator that does."""

import numpy as np
import pytest
from scipy.stats import kstest

import finc_eval as fe
from finc_eval.monitoring.seen import MANY, SeenRepeats

POOL = np.random.default_rng(5).normal(size=(300, 16))

LAWS = {
    "few pictures": lambda rng, n: POOL[rng.choice(40, n)],
    "some pictures more often": lambda rng, n: POOL[
        rng.choice(300, n, p=1 / np.arange(1, 301) / (1 / np.arange(1, 301)).sum())
    ],
    "few pictures, slightly changed": lambda rng, n: POOL[rng.choice(300, n)] + 0.01 * rng.normal(size=(n, 16)),
}


def scores(law, seed, evaluations=6, reference=60, samples=20):
    rng = np.random.default_rng(seed)
    seen = SeenRepeats.of(law(rng, reference), 0.1)
    for _ in range(evaluations):
        seen = seen.with_evaluation(law(rng, samples))
        yield seen.score_last(samples, rng)


@pytest.mark.one_of_each
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_scores_of_a_law_that_repeats_itself_are_standard_normal(law):
    found = np.array([[*scores(law, seed)] for seed in range(12)])
    assert np.isfinite(found).all()
    assert kstest(found.ravel(), "norm").pvalue > 0.001
    # Scores of one run are independent: the variance of their sum is their number.
    assert 0.4 < (found.sum(1) ** 2).mean() / found.shape[1] < 2


def test_without_repeats_nothing_is_said():
    assert np.isnan([*scores(lambda rng, n: rng.normal(size=(n, 16)), 0)]).all()


def test_chains_of_samples_so_far_are_one_picture():
    line = np.arange(6.0)[:, None] * np.eye(16)[0]
    seen = SeenRepeats.of(line[[0, 5, 1]], 1.5).with_evaluation(line[[4, 2]])
    assert seen.count_last(2) == 0  # of their own evaluation, nothing is near
    assert len(np.unique(seen.clump)) == 2 and seen.clump[0] == seen.clump[2] == seen.clump[4]
    assert len(np.unique(seen.with_evaluation(line[[3]]).clump)) == 1
    assert SeenRepeats.of(np.zeros((4, 16)), 0.0).count_last(3) == 3


def test_pictures_are_those_of_all_pairs_however_often_they_came():
    """A picture that came often is asked for its nearest sample, and not pair by pair."""
    rng = np.random.default_rng(0)
    parts = [np.r_[rng.normal(0, 0.02, (40, 16)), rng.normal(0, 0.02, (40, 16)) + 1, rng.normal(0, 0.4, (20, 16))]
             for _ in range(4)]  # fmt: skip
    seen = SeenRepeats.of(parts[0], 0.3)
    for part in parts[1:]:
        seen = seen.with_evaluation(part)
    expected = SeenRepeats.of(np.concatenate(parts), 0.3)  # all pairs of one set
    assert 1 < expected.clump.max() < 100 and np.bincount(expected.clump).max() > MANY
    both = np.unique(np.stack([seen.clump, expected.clump]), axis=1)
    assert both.shape[1] == seen.clump.max() + 1 == expected.clump.max() + 1


def drawn(seed, n, share=0.0, kept=None):
    """Rows of which a share is one picture: a new one for each seed, or one that is kept."""
    found = np.random.default_rng(seed).normal(size=(n, 12))
    found[: round(share * n)] = found[0] if kept is None else kept
    return found


@pytest.mark.one_of_each("kept")
@pytest.mark.parametrize("samples", [32, 64, 100])
@pytest.mark.parametrize("kept", [None, np.full(12, 0.3)], ids=["another picture each time", "one picture"])
def test_a_monitor_sees_what_a_comparison_sees(samples, kept):
    """Units of eight samples, which were compared before, did not show a tenth."""
    reference = drawn(0, 200)
    gen = drawn(1, samples, 0.125, kept)
    seen = fe.compare(gen, reference, features=50).findings
    assert [one.kind for one in seen if one.kind == "repeat"] == ["repeat"]
    monitor = fe.Monitor(reference)
    for step in range(9):
        monitor.update(step, drawn(step + 2, samples, 0.125 * (step > 1), kept))
    (alarm,) = [one for one in monitor.alarms if one.name == "repeats"]
    assert alarm.since in (2, 3)
    times = round(0.125 * samples)
    assert alarm.finding == f"one sample, {times} times" == next(one.name for one in seen if one.kind == "repeat")


@pytest.mark.parametrize("seeds", ["old", "new"])
def test_samples_of_old_seeds_say_nothing_of_repeats(seeds):
    monitor = fe.Monitor(drawn(0, 100))
    with pytest.warns(UserWarning) if seeds == "old" else np.errstate():
        for step in range(10):
            moved = np.random.default_rng(step).normal(size=(40, 12)) * 0.002
            monitor.update(step, drawn(1 if seeds == "old" else 1 + step, 40) + (seeds == "old") * moved * (1 + step))
    assert "repeats" not in {one.name for one in monitor.alarms}


def test_a_stored_monitor_goes_on_with_its_repeats(tmp_path):
    monitor = fe.Monitor(drawn(0, 100))
    for step in range(3):
        monitor.update(step, drawn(step + 1, 32, 0.2 * step))
    monitor.save(tmp_path / "monitor.h5")
    again = fe.Monitor.load(tmp_path / "monitor.h5")
    for step in range(3, 8):
        both = [[alarm.text for alarm in one.update(step, drawn(step + 1, 32, 0.2))] for one in (monitor, again)]
        assert both[0] == both[1]
    assert [one.name for one in again.alarms if one.name == "repeats"] == ["repeats"]
