"""Exports of boards: what Hugging Face's own readers and the rules of Every Eval Ever make of them."""

import json
from importlib import resources

import numpy as np
import pytest
from _pages import HOSTILE
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.leaderboards.exports import Origin, _yaml, eval_results, every_eval_ever, model_index

yaml = pytest.importorskip("yaml")
hub = pytest.importorskip("huggingface_hub")

ORIGIN = Origin("lab/faces", "https://example.org/board", "a lab", when=1_700_000_000)
STRANGE = f'no: "yes"\n- {HOSTILE}'


@pytest.fixture(scope="module")
def board():
    rng = np.random.default_rng(0)
    ref = rng.normal(size=(600, 4)).astype(np.float32)
    models = {"a": ref[:300] * 1.3, STRANGE: rng.normal(size=(300, 4)).astype(np.float32)}
    return fe.leaderboard(models, ref[300:], metrics=("fd", "kid", "vendi"))


@pytest.mark.parametrize("name", ["a", STRANGE])
def test_eval_results_are_read_by_the_hub_library_with_interval_and_signature_in_the_notes(board, name):
    data = yaml.safe_load(eval_results(board, board[name], ORIGIN))
    found = {one.task_id: one for one in hub.parse_eval_result_entries(data)}
    assert list(found) == ["unmatched", "missing", "novel", "fd", "kid", "vendi"]
    for key, one in found.items():
        standing = board[name].scores[key]
        assert (one.dataset_id, one.value, one.source_url) == (ORIGIN.dataset, standing.value, ORIGIN.url)
        assert str(board.criterion(key).signature) in one.notes
        if standing.interval:
            assert "95 % interval [{:.6g}, {:.6g}]; rank".format(*standing.interval) in one.notes
    assert "not ranked: neither a higher nor a lower" in found["vendi"].notes


@pytest.mark.parametrize("name", ["a", STRANGE])
def test_the_model_index_is_read_by_the_hub_library(board, name):
    card = hub.ModelCard(model_index(board, board[name], ORIGIN))
    assert card.data.model_name == name
    found = {one.metric_type: one for one in card.data.eval_results}
    assert found["fd"].metric_value == board[name].scores["fd"].value
    assert found["fd"].dataset_type == "lab/faces"
    assert found["fd"].metric_args["signature"] == str(board.criterion("fd").signature)
    assert "95 % interval" in found["kid"].metric_args["notes"]


def test_small_numbers_stay_numbers_in_yaml(board):
    for value in (1e-5, -3e-12, 0.25, 1e22, 7, None, True):
        assert yaml.safe_load(_yaml({"a": [{"b": value}]})) == {"a": [{"b": value}]}


def test_every_eval_ever_has_what_its_schema_requires(board):
    """The rules of eval.schema.json 0.3.0, in so far as they concern these records."""
    record = json.loads(every_eval_ever(board, board["a"], ORIGIN))
    assert record.keys() == {
        "schema_version",
        "evaluation_id",
        "retrieved_timestamp",
        "source_metadata",
        "eval_library",
        "model_info",
        "evaluation_results",
    }
    assert record["schema_version"] == "0.3.0"
    assert record["evaluation_id"] == "finc-eval/a/1700000000"
    assert record["retrieved_timestamp"] == "1700000000"
    assert record["source_metadata"]["source_type"] in ("documentation", "evaluation_run")
    relationships = ("first_party", "third_party", "collaborative", "other")
    assert record["source_metadata"]["evaluator_relationship"] in relationships
    assert record["eval_library"]["additional_details"]["signature"] == str(board.signature)
    model = record["model_info"]["additional_details"]
    assert model["digest"] == board.sets["a"].digest
    assert model["deployment_type"] == model["model_availability"] == "unknown"
    names = [one["evaluation_name"] for one in record["evaluation_results"]]
    assert names == ["unmatched", "missing", "novel", "fd", "kid"]  # vendi does not have a better direction
    for one in record["evaluation_results"]:
        config, details = one["metric_config"], one["score_details"]
        standing = board["a"].scores[one["evaluation_name"]]
        assert (config["score_type"], config["lower_is_better"]) == ("continuous", True)
        assert float(config["min_score"]) <= details["score"] <= float(config["max_score"])
        assert details["score"] == standing.value
        assert isinstance(details["uncertainty"]["num_samples"], int)
        assert all(isinstance(text, str) for text in details["details"].values())
        if standing.interval:
            interval = details["uncertainty"]["confidence_interval"]
            assert (interval["lower"], interval["upper"]) == standing.interval
            assert details["uncertainty"]["standard_error"]["value"] == pytest.approx(standing.sampling_error)


def test_the_schema_of_every_eval_ever_accepts_the_record(board):
    package = pytest.importorskip("every_eval_ever")
    schema = json.loads((resources.files(package) / "schemas" / "eval.schema.json").read_text())
    for row in board.rows:
        pytest.importorskip("jsonschema").validate(json.loads(every_eval_ever(board, row, ORIGIN)), schema)


def test_the_verb_writes_one_file_per_model(board, tmp_path):
    board.to_json(tmp_path / "leaderboard.json")
    words = [
        "leaderboard",
        "export",
        f"{tmp_path}/leaderboard.json",
        "--dataset",
        "lab/faces",
        "--out",
        f"{tmp_path}/o",
    ]
    for kind, suffix in (("eval-results", ".yaml"), ("model-index", ".md"), ("every-eval-ever", ".json")):
        done = CliRunner().invoke(app, [*words, "--format", kind])
        assert done.exit_code == 0, done.output
        files = sorted(path.name for path in (tmp_path / "o").glob(f"*{suffix}"))
        assert (len(files) == 2 and files[0] == f"a{suffix}") or files[1] == f"a{suffix}"
    refused = CliRunner().invoke(app, [*words, "--format", "xml"])
    assert refused.exit_code == 3
    assert "must be one of eval-results, model-index, every-eval-ever" in refused.stderr
