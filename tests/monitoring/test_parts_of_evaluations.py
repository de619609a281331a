"""Pictures with parts that the reference lacks, by classifiers of the past on cells."""

from functools import cache

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.embeddings.cells import Cells
from finc_eval.monitoring.evidence.classifiers import AskedSamples
from finc_eval.monitoring.evidence.parts import OUTER, Parts, summarize_cells

WINDOWS, NUMBERS = 49, 20


class WithCells(fe.EmbeddingSet):
    cells = property(lambda self: self._cells)


def draw(n, seed, marked=0.0, space="a"):
    """Draw samples with cells, of which a part has a mark: three windows, anywhere, of unusual numbers."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, WINDOWS, NUMBERS)) * 20
    for row in np.flatnonzero(rng.random(n) < marked):
        values[row, rng.choice(WINDOWS, 3, replace=False), :12] += 90
    found = WithCells(rng.normal(size=(n, 6)).astype(np.float32), [f"{seed}-{row}" for row in range(n)])
    found._cells = Cells(np.clip(values, -127, 127).astype(np.int8), np.arange(n), space)
    return found


@cache
def followed():
    """Follow evaluations of which a seventh has a mark, from the third on."""
    monitor = fe.Monitor(draw(400, 0))
    for step in range(13):
        monitor.update(step, draw(64, 50 + step, 0.15 if step >= 2 else 0))
    return monitor


def test_a_part_that_the_reference_lacks_is_an_alarm_with_its_start_share_and_samples():
    alarm = next(one for one in followed().alarms if one.name == "parts")
    assert abs(alarm.since - 2) <= 1 and alarm.since_interval[0] <= 2 <= alarm.since_interval[1]
    assert alarm.before < 0.05 and alarm.after_interval[0] <= 0.15 <= alarm.after_interval[1]
    finding = next(one for one in followed().findings if one.kind == "part")
    values = draw(64, 62, 0.15).cells.values
    marked = [f"62-{row}" for row in np.flatnonzero((values[..., :12].mean(2) > 40).any(1))]
    assert len(finding.ids) >= 3 and {*finding.ids} <= {*marked}


def test_a_monitor_that_was_stored_goes_on_with_its_classifiers(tmp_path):
    monitor = fe.Monitor(draw(100, 0))
    monitor.update(0, draw(32, 1, 0.3))
    monitor.save(tmp_path / "monitor.h5")
    loaded = fe.Monitor.load(tmp_path / "monitor.h5")
    for one in (monitor, loaded):
        one.update(1, draw(32, 2, 0.3))
    first, second = (one.history.classifiers.parts for one in (monitor, loaded))
    assert np.array_equal(first.bets, second.bets) and np.array_equal(first.sums, second.sums) and first.sums[1, 0] > 0


def test_only_cells_that_can_be_compared_are_asked_about():
    monitor = fe.Monitor(draw(100, 0))
    monitor.update(0, draw(32, 1))
    monitor.update(1, draw(32, 2, space="b"))
    monitor.update(2, np.asarray(draw(32, 3).rows_at(np.arange(32))))
    assert monitor.history.classifiers.parts.sums[:, 1].tolist() == [0, 0, 0]
    assert monitor.history.classifiers.unlike.sums[:, 1].tolist() == [0, 2, 1]
    without = fe.Monitor(np.asarray(draw(60, 0).rows_at(np.arange(60))))
    assert without.history.classifiers.parts is None and "parts" not in {one.name for one in without.result.followed}


def test_numbers_of_a_picture_are_means_of_its_outer_windows():
    sample = draw(3, 4)
    numbers, places = summarize_cells(sample, np.array([2, 0]))
    ordered = np.sort(sample.cells.values[2].astype(float), 0)
    assert places.tolist() == [0, 1]
    assert np.allclose(numbers[0], np.concatenate([ordered[-OUTER:].mean(0), ordered[:OUTER].mean(0)]))


def test_parts_of_several_processes_add_up():
    one, none = AskedSamples(np.ones((2, 3), np.float32), np.ones((1, 4), np.float32)), AskedSamples()
    both = one + none + one
    assert both.rows.shape == (4, 3) and both.cells.shape == (2, 4)


@pytest.mark.long
def test_bets_on_parts_of_one_law_rarely_reach_their_level():
    rng, reached = np.random.default_rng(5), 0
    for _ in range(60):
        asked = Parts.begun(rng.normal(size=(100, 40)).astype(np.float32), np.ones(40, np.float32), 0)
        for _ in range(12):
            asked = asked.with_evaluation(rng.normal(size=(24, 40)).astype(np.float32), rng)
        reached += asked.bets.max() >= np.log(5)
    assert reached <= 20  # a fifth at most, in expectation
