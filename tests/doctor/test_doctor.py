"""`finc-eval doctor`: versions, devices and folders, and agreement with other libraries."""

import json
from math import inf, nan

import pytest
from typer.testing import CliRunner

from finc_eval.cli.app import app
from finc_eval.core.errors import FincEvalError
from finc_eval.doctor import parity
from finc_eval.doctor.library_checks import Check, Library
from finc_eval.doctor.parity import difference, run_library

NUMPY, NOWHERE = Library("numpy", "numpy"), Library("no-such-library", "no_such_library")
HERE = "def their(x, y):\n    return [float(x.mean()), float(y.mean())]"


def means(x, y):
    return [x.mean(), y.mean()]


def run(*arguments):
    return CliRunner().invoke(app, ["doctor", *arguments])


@pytest.fixture
def checks(monkeypatch):
    """Return a function that replaces the checks of the command."""
    return lambda *chosen: monkeypatch.setattr(parity, "CHECKS", chosen)


def test_the_diagnosis_has_versions_devices_and_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "not" / "yet"))
    monkeypatch.setenv("FINC_EVAL_WEIGHTS", str(tmp_path))
    (tmp_path / "net.pth").write_bytes(b"1" * 1000)
    found = json.loads(run("--json").stdout)
    assert {"finc-eval", "Python", "torch", "faiss"} <= set(found["versions"])
    assert found["devices"][0].startswith("cpu: ")
    caches, weights = found["folders"]
    assert (caches["exists"], caches["writable"], caches["used"]) == (False, True, 0)
    assert (weights["path"], weights["exists"], weights["used"]) == (str(tmp_path), True, 1000)
    assert found["parity"] is None
    assert "not made yet" in run().stdout


def test_agreement_exits_with_zero_and_says_how_to_install_missing_libraries(checks):
    checks(Check("mean", NUMPY, HERE, means, note="of all"), Check("mean", NOWHERE, HERE, means))
    result = run("--parity")
    assert result.exit_code == 0
    assert "agree" in result.stdout
    assert "mean of numpy: of all" in result.stdout
    assert "mean of no-such-library: pip install no-such-library" in result.stdout
    assert "parity" in result.stderr


def test_disagreement_exits_with_one(checks):
    checks(Check("mean", NUMPY, HERE, lambda x, y: [x.mean(), y.mean() * 1.001]))
    result = run("--parity", "--json")
    assert result.exit_code == 1
    (outcome,) = json.loads(result.stdout)["parity"]
    assert outcome["verdict"] == "disagree"
    assert outcome["difference"] == pytest.approx(1e-3, rel=1e-2)


def test_a_nan_is_a_disagreement(checks):
    checks(Check("mean", NUMPY, HERE, lambda x, y: [x.mean(), nan]))
    result = run("--parity", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["parity"][0]["difference"] is None


def test_a_library_that_fails_is_not_a_disagreement_and_its_message_is_shown(checks):
    checks(Check("mean", NUMPY, "raise ImportError('no libcudart')", means))
    result = run("--parity", "--json")
    assert result.exit_code == 0
    (outcome,) = json.loads(result.stdout)["parity"]
    assert outcome["verdict"] == "cannot be run"
    assert "fails (ImportError: no libcudart)" in outcome["note"]


def test_codes_run_in_one_process_on_the_cases_they_are_given():
    codes = {
        "process": "import os\ndef their(x):\n    return os.getpid()",
        "sum": "def their(x):\n    return float(x.sum())",
    }
    found = run_library(NUMPY, codes, {"a": {"x": [1.0, 2.0]}, "b": {"x": [5.0]}})
    assert found["sum"] == {"a": 3.0, "b": 5.0}
    assert found["process"]["a"] == found["process"]["b"]
    with pytest.raises(FincEvalError, match="fails"):
        run_library(NUMPY, {"bad": "def their(x):\n    return 1 / 0"}, {"a": {"x": [1.0]}})


def test_differences_are_relative_except_for_tiny_numbers():
    assert difference([1.0, 2.0], [1.0, 2.2]) == pytest.approx(0.2 / 2.2)
    assert difference([1e-12], [0.0]) == pytest.approx(1e-6)
    assert difference([1.0], [1.0, 1.0]) == difference([nan], [1.0]) == inf
