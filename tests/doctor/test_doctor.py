"""`finc-eval doctor`: versions, devices and folders."""

import json
import re

from typer.testing import CliRunner

from finc_eval.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, ["doctor", *arguments])


def test_the_diagnosis_has_versions_devices_and_folders(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "not" / "yet"))
    monkeypatch.setenv("FINC_EVAL_WEIGHTS", str(tmp_path))
    (tmp_path / "net.pth").write_bytes(b"1" * 1000)
    found = json.loads(run("--json").stdout)
    assert {"finc-eval", "Python", "torch", "faiss"} <= set(found["versions"])
    assert found["devices"][0].startswith("cpu: ")
    caches, weights = found["folders"]
    assert (caches["exists"], caches["writable"], caches["used"]) == (False, True, 0)
    assert (weights["path"], weights["exists"], weights["used"]) == (str(tmp_path), True, 1000)
    table = " ".join(re.sub(r"[|+-]", " ", run().stdout).split())  # a long path breaks the lines of the table
    assert "made" in table and "yet" in table
