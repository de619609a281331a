"""A process with RANK and WORLD_SIZE in its environment writes what it was asked for; a shard is asked for."""

import numpy as np
import pytest
from typer.testing import CliRunner

from finc_eval.cli.app import app

LAUNCHERS = [
    {"RANK": "0", "WORLD_SIZE": "8", "LOCAL_RANK": "0"},
    {"RANK": "7", "WORLD_SIZE": "8"},
    {"RANK": "1", "WORLD_SIZE": "2"},
    {"SLURM_PROCID": "1", "SLURM_NTASKS": "4"},
    {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"},
    {"PMI_RANK": "1", "PMI_SIZE": "2"},
    {"LOCAL_RANK": "3"},
    {"RANK": "1"},
    {"WORLD_SIZE": "8"},
    {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"},
    {"RANK": "x", "WORLD_SIZE": "y"},
    {"RANK": "9", "WORLD_SIZE": "8"},
    {"RANK": "", "WORLD_SIZE": ""},
    {"CUDA_VISIBLE_DEVICES": ""},
    {"OMP_NUM_THREADS": "0"},
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    np.savez("set.npz", np.random.default_rng(0).integers(0, 256, (24, 8, 8, 3)).astype(np.uint8))
    return lambda *words, **env: CliRunner().invoke(
        app, ["extract", "set.npz", "--extractor", "pixels", *words], env=env
    )


@pytest.mark.one_of_each("out", "environment")
@pytest.mark.parametrize("environment", LAUNCHERS, ids=str)
@pytest.mark.parametrize("out", [["--out", "whole.h5"], []])
def test_the_whole_set_is_embedded(environment, out, run, tmp_path):
    found = run(*out, **environment)
    assert found.exit_code == 0 and "24 embeddings" in found.output
    assert (tmp_path / "whole.h5").exists() == bool(out)


@pytest.mark.parametrize("environment, name", [(LAUNCHERS[0], "w.1-of-8.h5"), (LAUNCHERS[2], "w.2-of-2.h5")], ids=str)
def test_a_shard_that_is_asked_for_is_that_of_the_rank(environment, name, run, tmp_path):
    assert run("--shard", "rank", "--out", "w.h5", **environment).exit_code == 0
    assert [path.name for path in tmp_path.glob("w*")] == [name]


@pytest.mark.parametrize("environment", [{}, {"RANK": "0", "WORLD_SIZE": "1"}, *LAUNCHERS[3:]], ids=str)
def test_without_a_launcher_the_sentence_names_its_variables(environment, run):
    found = run("--shard", "rank", "--out", "w.h5", **environment)
    assert found.exit_code != 0
    assert "RANK and WORLD_SIZE" in str(found.exception) + found.output
