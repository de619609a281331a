"""Gates, boards, audits and every metric on a simulated device: what they say on the CPU, and nothing is mixed."""

import numpy as np
import pytest
import torch
from _bounds import SMALL_BATCH, measured, mixture
from _simulated import on_device

import finc_eval as fe

GEN, REF, OTHER = mixture(1, 6), mixture(2, 4), mixture(3, 5, 120)
CPU = fe.Run(device="cpu")
THREE_SETS = ("fld",)
OWN_NETWORK = ("fid", "sfid", "fd_dinov2", "fvd", "fvmd", "cmmd", "inception_score", "fwd")
OF_PROMPTS = ("conditional_vendi", "conditional_rke", "scendi", "clip_score")
EMBEDDED = [name for name in fe.METRICS if name not in (*THREE_SETS, *OWN_NETWORK, *OF_PROMPTS)]
POLICY = {
    "kinds": {"lose": 0.5, "new": 0.1, "min_share": 0.1},
    "metrics": {"fd": {"difference": 0.5}},
    "basics": {"duplicates": 0.5},
}


ALIKE = dict.fromkeys(("vendi_q2", "vendi_qinf", "vendi_truncated", "rke"), "vendi") | dict.fromkeys(
    ("clipped", "realism", "rarity", "authpct"), "precision_recall"
)
"""Metrics that are made of the eigenvalues, or the nearest neighbors, of another metric."""


@pytest.mark.one_of_each(by=lambda name: ALIKE.get(name, name))
@pytest.mark.parametrize("name", EMBEDDED)
def test_a_metric_is_that_of_the_cpu(name):
    found, _ = measured(lambda run: fe.metrics(GEN, REF, name, run=run), SMALL_BATCH)
    expected = fe.metrics(GEN, REF, name, run=CPU)
    assert not found.failures and [one.key for one in found] == [one.key for one in expected]
    for mine, other in zip(found, expected, strict=True):
        assert mine.value == pytest.approx(other.value, rel=1e-4, abs=1e-5), mine.key


def test_fld_of_three_sets_is_that_of_the_cpu():
    found, _ = measured(lambda run: fe.metrics(GEN, REF, "fld", test=OTHER, run=run), SMALL_BATCH)
    expected = fe.metrics(GEN, REF, "fld", test=OTHER, run=CPU)
    assert found["fld"].value == pytest.approx(expected["fld"].value, rel=1e-4)


@pytest.mark.long  # each method alone: test_engine_on_device.py
def test_methods_side_by_side_find_what_they_find_on_the_cpu():
    def compared(run):
        return fe.compare_methods(GEN[:60], REF[:60], ["finc", "fld"], features=20, modes=2, run=run)

    found, _ = measured(compared, SMALL_BATCH)
    assert found.groups == compared(CPU).groups


def test_a_sweep_over_rho_is_that_of_the_cpu():
    def swept(run):
        return fe.sweep(GEN, REF, "rho", [2.0], features=20, modes=2, run=run)

    found, device = measured(swept, SMALL_BATCH)
    assert [one.value for one in found.points] == [one.value for one in swept(CPU).points]
    assert device.waits <= 300, device.by_place()


@pytest.mark.parametrize("place", [on_device, pytest.param(np.asarray, marks=pytest.mark.long)])
def test_a_gate_gives_the_verdict_of_the_cpu(place):
    found, _ = measured(lambda run: fe.gate(place(GEN), place(REF), place(OTHER), POLICY, run=run), SMALL_BATCH)
    expected = fe.gate(GEN, REF, OTHER, POLICY, run=CPU)
    assert [limit.verdict for limit in found.limits] == [limit.verdict for limit in expected.limits]
    for mine, other in zip(found.limits, expected.limits, strict=True):
        assert mine.value == (None if other.value is None else pytest.approx(other.value, rel=1e-4, abs=1e-6))


@pytest.mark.long  # a board of one step: test_verbs_on_device.py
def test_a_board_that_grows_ranks_as_on_the_cpu(tmp_path):
    def grown(run):
        board = fe.Board(tmp_path / str(run.device))
        board.add({"a": GEN, "b": OTHER}, REF, run=run)
        board.add({"c": mixture(4, 6)}, REF, run=run)
        return board.leaderboard()

    found, _ = measured(grown, SMALL_BATCH)
    expected = grown(CPU)
    assert [(row.name, row.rank_set) for row in found.rows] == [(row.name, row.rank_set) for row in expected.rows]
    for mine, other in zip(found.rows, expected.rows, strict=True):
        for key, score in other.scores.items():
            assert mine.scores[key].value == pytest.approx(score.value, rel=1e-4, abs=1e-6), key


def test_fabricated_samples_are_those_of_the_cpu():
    labels = np.repeat([0, 1, 2], len(GEN) // 3)

    def fabricated(run):
        noise, seed = fe.kahm.ElementNoise(epsilon=8, bounds=(-10, 10)), torch.Generator().manual_seed(0)
        return fe.kahm.fabricate_classes(GEN, labels, noise, generator=seed, device=run.device).samples

    found, _ = measured(fabricated)
    assert np.asarray(found) == pytest.approx(np.asarray(fabricated(CPU)), rel=1e-4, abs=1e-4)


@pytest.mark.long
@pytest.mark.usefixtures("quick_audits")
@pytest.mark.parametrize("batch", [None, pytest.param(SMALL_BATCH, marks=pytest.mark.long)])
def test_an_audit_finds_the_copies_that_it_finds_on_the_cpu(batch):
    train, holdout = mixture(5, 6, 100), mixture(6, 6, 100)
    gen = np.concatenate([GEN[:80], train[:20]])
    found, _ = measured(lambda run: fe.audit(gen, train, holdout, run=run), batch)
    expected = fe.audit(gen, train, holdout, run=CPU)
    assert found.copying.copies == expected.copying.copies and found.copying.copies.same_embedding == 20
    for mine, other in zip(found.attacks, expected.attacks, strict=True):
        assert mine.statistics.auc == pytest.approx(other.statistics.auc, abs=1e-3)
