"""Verbs take embeddings that other programs saved."""

import json

import numpy as np
from typer.testing import CliRunner

from finc_eval.cli.app import app


def test_metrics_of_two_files_of_arrays(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "gen.npy", rng.normal(size=(200, 4)).astype(np.float32))
    np.savez(tmp_path / "ref.npz", features=rng.normal(size=(200, 4)))
    arguments = ["--gen", f"{tmp_path}/gen.npy", "--ref", f"{tmp_path}/ref.npz", "--metrics", "fd", "--json"]
    result = CliRunner().invoke(app, ["metrics", *arguments])
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["type"] == "scores"


def test_an_array_of_pictures_is_told_where_to_go(tmp_path):
    np.save(tmp_path / "gen.npy", np.zeros((30, 12), np.uint8))
    result = CliRunner().invoke(app, ["metrics", "--gen", f"{tmp_path}/gen.npy", "--ref", f"{tmp_path}/gen.npy"])
    assert result.exit_code == 3
    assert "must be floating-point embeddings, got torch.uint8: pass floats, or embed images" in result.stderr
