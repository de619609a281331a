"""Samples of kinds that the reference lacks, by a classifier of the past."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.monitoring.evidence.asked import ASKED, BLOCKS, MOST_SAMPLES, PAST
from finc_eval.monitoring.evidence.unlike import Unlike

CENTERS = 2 * np.random.default_rng(5).normal(size=(9, 16))


def draw(n, seed, new=0.0):
    """Draw samples of eight kinds, and of a ninth among these, which no distance to its neighbors tells from them."""
    rng = np.random.default_rng(seed)
    kind = np.where(rng.random(n) < new, 8, rng.integers(0, 8, n))
    rows = CENTERS[kind] + rng.normal(size=(n, 16))
    return fe.EmbeddingSet(rows.astype(np.float32), metadata={"label": [f"kind {k}" for k in kind.tolist()]})


def begun(rows):
    rows = np.asarray(rows, np.float32)
    reference = SimpleNamespace(n=len(rows), dim=rows.shape[1], space="none")
    reference.rows_at = lambda places: torch.from_numpy(rows[places])
    return Unlike.of(reference, 0, 0)


def test_a_kind_that_the_reference_lacks_is_named_and_dated():
    monitor = fe.Monitor(draw(500, 0))
    for step in range(12):
        monitor.update(step, draw(64, 100 + step, 0.12 if step >= 2 else 0))
    alarm = next(one for one in monitor.alarms if one.name == "new kinds")
    assert alarm.finding == "kind 8"
    assert abs(alarm.since - 2) <= 2 and alarm.since_interval[0] <= 2
    assert alarm.after_interval[0] <= 0.14 and alarm.after > 0.06 > alarm.before


def test_scores_of_one_law_are_standard_normal():
    rng, found = np.random.default_rng(1), []
    for _ in range(30):
        asked, scores = begun(rng.normal(size=(60, 3))), []
        for _ in range(6):
            before = asked.sums[:, 0].sum()
            asked = asked.with_evaluation(rng.normal(size=(20, 3)).astype(np.float32), rng)
            scores.append(asked.sums[:, 0].sum() - before)
        found.append(asked.sums[1:3, 0] / np.sqrt(asked.sums[1:3, 1]))
    found = np.concatenate(found)
    assert abs(found.mean()) < 4 / np.sqrt(len(found)) and 0.7 < found.std() < 1.3


@pytest.mark.long
def test_bets_of_one_law_rarely_reach_their_level():
    rng, reached = np.random.default_rng(2), 0
    for _ in range(100):
        asked = begun(rng.normal(size=(100, 4)))
        for _ in range(15):
            asked = asked.with_evaluation(rng.normal(size=(24, 4)).astype(np.float32), rng)
        reached += asked.bets.max() >= np.log(5)
    assert reached <= 30  # a fifth at most, in expectation


def test_memory_is_bounded_and_the_oldest_evaluations_are_dropped():
    rng = np.random.default_rng(3)
    asked = begun(rng.normal(size=(50, 3)))
    for _ in range(BLOCKS + 3):
        asked = asked.with_evaluation(rng.normal(size=(MOST_SAMPLES + 9, 3)).astype(np.float32), rng)
    numbers, counts = np.unique(asked.block, return_counts=True)
    assert numbers.tolist() == [0, *range(asked.count - BLOCKS + 2, asked.count + 1)]
    assert counts.max() == MOST_SAMPLES and asked.near.shape == (len(asked.block), BLOCKS)
    assert asked.sums[:, 1].max() == ASKED


def test_evaluations_are_judged_again_by_the_latest_others():
    asked, rng = begun(draw(200, 0).rows_at(np.arange(200))), np.random.default_rng(7)
    for step in range(PAST + 4):
        asked = asked.with_evaluation(draw(64, 20 + step, 0.5 if step < 4 else 0).rows_at(np.arange(64)).numpy(), rng)
        again = asked.flag_again()
        if step == 3:
            assert [*again] == [1, 2, 3, 4] and min(again.values()) > 20  # about 32 samples are of the new kind
    assert [*again] == [*range(1, PAST + 5)] and max(again.values()) < 10  # the latest have none of it


def test_kernels_kept_are_those_of_all_samples():
    rng = np.random.default_rng(4)
    asked = begun(rng.normal(size=(40, 3)))
    for _ in range(3):
        asked = asked.with_evaluation(rng.normal(size=(10, 3)).astype(np.float32), rng)
    rows = asked.rows.astype(np.float64)
    kernel = np.exp(-(((rows[:, None] - rows) ** 2).sum(2)) / (2 * 0.8**2)) - np.eye(len(rows))
    wanted = np.stack([kernel[:, asked.block == number].sum(1) for number in range(4)], 1)
    assert np.allclose(asked.near, wanted, atol=1e-4)


def test_an_evaluation_of_the_same_seeds_is_not_asked_about():
    monitor, rows = fe.Monitor(draw(200, 0)), draw(64, 2).rows_at(np.arange(64)).numpy()
    monitor.update(0, draw(64, 1))
    monitor.update(1, rows)
    with pytest.warns(UserWarning, match="in the same order"):
        monitor.update(2, rows + 0.15 * np.random.default_rng(3).normal(size=rows.shape).astype(np.float32))
    assert monitor.history.classifiers.unlike.sums[:, 1].tolist() == [0, 1, 0]


def test_samples_of_a_generator_that_diverges_are_compared_without_an_error():
    rng = np.random.default_rng(6)
    asked = begun(rng.normal(size=(50, 3)))
    for scale in (1, 1e30, 1e30):
        asked = asked.with_evaluation((scale * rng.normal(size=(20, 3))).astype(np.float32), rng)
    assert np.isfinite(asked.near).all() and asked.sums[1, 0] < asked.sums[2, 0]
