"""Results as JSON: both ways, with a schema, and with where they come from."""

import json
import subprocess
from dataclasses import dataclass, replace

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.provenance import Provenance
from finc_eval.core.serialize import Document
from finc_eval.demo import example_sets


@dataclass(frozen=True, eq=False)
class Small(Document):
    """A result for tests."""

    type_name = "small"
    headline = "A result for tests."

    value: float
    parts: tuple[tuple[str, int], ...] = ()


@pytest.fixture(scope="module")
def comparison():
    return fe.compare(*(rows[:, ::8] for rows in example_sets(200)), features=50, modes=2)


def test_a_result_comes_back_from_its_json(comparison):
    again = type(comparison).from_dict(json.loads(comparison.to_json()))
    assert again.to_dict() == comparison.to_dict()
    assert again.settings == comparison.settings and again.signature == comparison.signature


NO_NUMBERS = (None, {}, [None, {}], ["x"], [[1]], 5)
NO_LISTS = [(name, one) for name in ("gen", "gen_scores") for one in NO_NUMBERS] + [("gen", [10**30]), ("gen", [1.5])]


@pytest.mark.parametrize(("field", "value"), NO_LISTS)
def test_a_field_that_is_no_list_of_numbers_is_one_sentence(comparison, field, value):
    data = comparison.to_dict()
    data["over"][0]["tails"][0][field] = value
    with pytest.raises(fe.DataError, match=rf"over.0.tails.0.{field} must be a list of (whole )?numbers"):
        type(comparison).from_dict(data)


def test_what_json_leaves_out_is_named_when_it_is_used(comparison):
    again = type(comparison).from_dict(comparison.to_dict())
    with pytest.raises(fe.DataError, match="read from JSON, which leaves arrays out: load its"):
        again.score(example_sets(200)[0])


def test_json_files_load(comparison, tmp_path):
    comparison.to_json(tmp_path / "c.json")
    assert fe.load(tmp_path / "c.json").to_dict() == comparison.to_dict()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "is not a result of finc-eval"),
        ('{"program": "finc-eval", "type": "poem"}', "is not a result of finc-eval"),
        ('{"program": "finc-eval", "type": "comparison", "layout": 3}', "was changed since it was written"),
    ],
)
def test_other_json_is_one_clear_sentence(tmp_path, text, message):
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(fe.DataError, match=message):
        fe.load(tmp_path / "c.json")


def test_numbers_that_are_not_finite_are_null():
    data = json.loads(Small(float("inf"), provenance=Provenance.here("cpu")).to_json())
    assert data["value"] is None


def test_numbers_of_numpy_and_names_that_are_not_text_become_json():
    settings = fe.Settings(rho=np.float32(2), modes=np.int64(3), features=np.int64(20), seed=np.int8(1))
    found = fe.compare(*(rows[:, ::8] for rows in example_sets(120)), settings)
    data = json.loads(found.to_json())
    assert data["settings"]["rho"] == 2 and data["settings"]["modes"] == 3
    strange = replace(found, gen=replace(found.gen, name="\udcff3.png"))
    assert type(found).from_dict(json.loads(strange.to_json())).gen.name == "\udcff3.png"


def test_the_schema_names_every_key_of_the_json(comparison):
    data, schema = comparison.to_dict(), comparison.json_schema()
    assert set(schema["properties"]) == set(data) == set(schema["required"])
    mode = schema["$defs"]["Direction"]
    assert set(mode["properties"]) == set(data["over"][0])
    assert "direction" not in mode["properties"] and "ratio" in mode["properties"]


def test_provenance_names_versions_device_and_checkout(tmp_path, monkeypatch):
    here = Provenance.here("cpu")
    assert {"python", "finc-eval", "torch"} <= set(here.versions) and here.device == "cpu"
    assert here.command is None
    monkeypatch.chdir(tmp_path)
    assert Provenance.here("cpu").git is None
    for command in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty"],
    ):
        subprocess.run(["git", *command], check=True, cwd=tmp_path)
    assert len(Provenance.here("cpu").git.revision) == 40


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        (["/somewhere/bin/finc-eval", "compare", "--rho", "2"], "finc-eval compare --rho 2"),  # without the folder
        (["finc-eval", "kinds", "--gen", "one=model one/"], "finc-eval kinds --gen 'one=model one/'"),  # for a shell
    ],
)
def test_the_command_line_is_recorded(monkeypatch, words, recorded):
    monkeypatch.setattr("sys.argv", words)
    assert Provenance.here("cpu").command == recorded
