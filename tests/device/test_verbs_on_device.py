"""Metrics, neighbors, kinds, KAHM, leaderboards and extraction on a simulated device: nothing is mixed."""

import threading

import numpy as np
import pytest
import torch
from _bounds import SMALL_BATCH, check_steady, measured, mixture
from _simulated import simulated

import finc_eval as fe
from finc_eval.core.device import send
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.embeddings.search import distance_blocks
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.partitions.kind_tree import KindTree

GEN, REF, TEST = mixture(1, 6), mixture(2, 4), mixture(3, 5, 120)
METRICS = ["fd", "kid", "vendi", "prdc", "realism", "authpct", "rarity"]


@pytest.mark.long  # each metric alone: test_judgments_on_device.py
def test_metrics_are_those_of_the_cpu():
    found, _ = measured(lambda run: fe.metrics(GEN, REF, METRICS, run=run), SMALL_BATCH)
    expected = fe.metrics(GEN, REF, METRICS, run=fe.Run(device="cpu"))
    for mine, score in zip(found, expected, strict=True):
        assert mine.key == score.key and mine.value == pytest.approx(score.value, rel=1e-4, abs=1e-6), score.key


def test_neighbors_wait_by_the_block_of_pairs_alone(monkeypatch):
    monkeypatch.setattr(distance_blocks, "BLOCK_ROWS", 50)
    found, device = measured(lambda run: nearest(GEN, TEST, 3, device=run.device))
    assert (found.indices == nearest(GEN, TEST, 3, device="cpu").indices).all()
    assert device.waits <= 5 * 3 * 3 + 1, device.by_place()


def test_rows_are_sent_to_the_device_by_the_thread_that_reads_ahead():
    threads = set()

    def place(rows):
        threads.add(threading.current_thread())
        return send(rows, torch.device("sim"))

    with simulated() as device:
        found = torch.cat([batch.rows for batch in ArrayEmbeddings(GEN).batches(SMALL_BATCH, place)])
        assert (device.uploads, device.waits) == (len(GEN) // SMALL_BATCH, 0)
        assert (found.cpu().numpy() == GEN).all()
    assert threading.main_thread() not in threads


def test_on_the_cpu_rows_are_not_copied():
    rows = torch.from_numpy(GEN)
    assert send(rows, torch.device("cpu")) is rows


def test_kinds_are_counted_without_a_wait_per_batch():
    found = check_steady(lambda run: fe.kinds({"gen": GEN, "ref": REF}, run=run), waits=36)  # 8 for the map
    expected = fe.kinds({"gen": GEN, "ref": REF}, run=fe.Run(device="cpu"))
    assert [kind.id for kind in found.kinds] == [kind.id for kind in expected.kinds]
    assert [kind.shares for kind in found.kinds] == [kind.shares for kind in expected.kinds]


def test_the_kinds_of_samples_do_not_depend_on_the_device():
    rows = torch.from_numpy(GEN)
    expected = KindTree.fit(rows, run=fe.Run(device="cpu"))
    found, _ = measured(lambda run: KindTree.fit(rows, run=run), SMALL_BATCH)
    assert found.digest == expected.digest
    leaves, _ = measured(lambda run: found.assign(rows, run)[0], SMALL_BATCH)
    assert (leaves == expected.assign(rows)[0]).all()


def test_machines_of_kahm_are_those_of_the_cpu():
    labels = np.repeat([0, 1], len(GEN) // 2)

    def classified(run):
        return fe.kahm.KahmClassifier(components=4, device=run.device).fit(GEN, labels).predict(REF)

    found, device = measured(classified)
    assert (found == classified(fe.Run(device="cpu"))).all()
    assert device.waits <= 60, device.by_place()


def test_what_is_said_of_machines_of_kahm_is_said_of_those_of_the_cpu():
    labels, noise = np.repeat([0, 1], len(GEN) // 2), fe.kahm.ElementNoise(epsilon=8, bounds=(-9, 9))
    made = fe.kahm.fabricate_classes(GEN, labels, noise)

    def said(run):
        models = fe.kahm.fit_classes(GEN, labels, fe.kahm.KahmSettings(4), device=run.device)
        found = fe.kahm.classify(models, TEST, np.arange(len(TEST)) % 2)
        near = fe.kahm.describe_fabrication(made, labels, noise, originals=GEN, others=TEST, device=run.device)
        fit = fe.kahm.describe_models(models, TEST, np.arange(len(TEST)) % 2)
        return [
            *(row.accuracy for row in (found, *found.yardsticks)),
            *(row.median for row in near.nearness.distances),
            near.nearness.attack.auc,
            *(value for row in fit.classes for value in (row.own, row.to_mean, row.held_out)),
        ]

    found, _ = measured(said)
    assert found == pytest.approx(said(fe.Run(device="cpu")), rel=1e-4)


@pytest.mark.long
def test_a_leaderboard_mixes_nothing():
    board, _ = measured(lambda run: fe.leaderboard({"a": GEN, "b": TEST}, REF, run=run))
    expected = fe.leaderboard({"a": GEN, "b": TEST}, REF, run=fe.Run(device="cpu"))
    assert [row.name for row in board.rows] == [row.name for row in expected.rows]


def test_extraction_waits_for_the_rows_of_a_batch_alone(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (60, 16, 16, 3), dtype=np.uint8)
    batches = 60 // SMALL_BATCH

    def extracted(run):
        return fe.extract(images, "pixels", out=tmp_path / f"{run.device}.h5", run=run)

    found, device = measured(extracted, SMALL_BATCH)
    assert (found[:] == extracted(fe.Run(device="cpu"))[:]).all()
    assert device.waits <= batches + 2 and device.uploads <= batches + 2, device.by_place()
