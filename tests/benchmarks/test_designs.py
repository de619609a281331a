"""The designs and the runner of the benchmarks of inference."""

import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def designs():
    import _designs

    return _designs


@pytest.fixture
def runs(tmp_path, monkeypatch):
    import _runs

    monkeypatch.setattr(_runs, "RUNS", tmp_path)
    monkeypatch.setattr(_runs, "ProcessPoolExecutor", lambda jobs, **_: ThreadPoolExecutor(jobs))
    return _runs


def squares(regime, seed):
    return {"square": seed**2}


def test_six_changes_are_planted_and_nothing_else_differs(designs):
    source = designs.clusters(10, 4)(np.random.default_rng(0))
    sets = designs.six(source, (1000, 1000), share=0.05, base=0.04, factor=3)
    gen, ref = (np.bincount(part.kinds, minlength=10) for part in (sets.gen, sets.ref))
    assert gen[:6].tolist() == [50, 50, 0, 0, 120, 40]
    assert ref[:6].tolist() == [0, 0, 50, 50, 40, 120]
    assert (gen[6:] == ref[6:]).all()
    assert 0.5 * np.abs(sets.shares[0] - sets.shares[1]).sum() == pytest.approx(0.18)


def test_parts_of_a_real_set_are_disjoint(designs):
    rows, labels = np.arange(600, dtype=np.float32)[:, None], np.arange(600) % 3
    rng = np.random.default_rng(0)
    source = designs.real(lambda: (rows, labels))(rng)
    first, second = designs.same_law(source, rng, 100, 200)
    left, _ = source.fresh()
    assert len(np.unique(np.concatenate([first.rows, second.rows, left]))) == 600
    for part in (first, second):
        assert all(len(np.unique(part.rows[part.kinds == kind] % 3)) == 1 for kind in range(3))


def test_a_mode_is_judged_by_the_kind_of_its_best_members(designs):
    kinds = np.repeat([0, 1, 2], [20, 60, 100])
    sets = SimpleNamespace(
        gen=SimpleNamespace(kinds=kinds), ref=SimpleNamespace(kinds=kinds), roles={0: "over", 1: "under"}
    )
    members = np.arange(180)
    found, others, purities = designs.judge(
        sets, [("over", members), ("over", members[20:]), ("under", members[20:]), ("over", members[80:])]
    )
    assert found == {0: 0, 1: 2}  # kind 0 has 20 samples, which are all among the best 20
    assert others == 2
    assert purities == [1.0, 1.0]


def test_runs_are_kept_and_continued(runs, monkeypatch):
    reported = {}
    for wanted in ("3", "5"):
        monkeypatch.setattr(sys, "argv", ["script", "--regime", "a", "--runs", wanted, "--jobs", "1"])
        runs.run("test", ("a", "b"), squares, reported.update, 1)
    assert sorted((run["seed"], run["square"]) for run in reported["a"]) == [(i, i**2) for i in range(5)]
    assert "b" not in reported
    assert len(runs.path_of("test", "a").read_text().splitlines()) == 5


def test_rates_have_exact_intervals(runs):
    assert runs.counted(1, 200) == "1/200 [0.000, 0.028]"
    assert runs.rate([{"false": True}, {"false": None}, {"false": False}], "false").startswith("1/2 ")
