"""`finc-eval.toml`: defaults for repeated runs, which the command line overrides and results record."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import PARTS, VERBS, app, load_verb
from finc_eval.cli.options import TABLES
from finc_eval.core import progress
from finc_eval.core.record import CONFIG_NAME, Configured
from finc_eval.demo import example_sets


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "LONG", 0)  # short work is told, too
    for name, rows in zip(("x", "y"), example_sets(60), strict=True):
        np.save(f"{name}.npy", rows[:, ::7].astype(np.float32))
    return tmp_path


def compared(*more):
    result = run("compare", "--gen", "x.npy", "--ref", "y.npy", "--out", "o", "--json", *more)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def test_the_file_in_the_working_folder_has_defaults_and_options_win(folder):
    (folder / CONFIG_NAME).write_text("[compare]\nfeatures = 20\nmodes = 2\n[run]\nquiet = true\n")
    found, stderr = compared("--modes", 3)
    assert (found["settings"]["features"], found["settings"]["modes"]) == (20, 3)
    assert stderr == "", "quiet comes from the file"
    assert found["provenance"]["config"] == CONFIG_NAME


def test_a_named_file_takes_the_place_of_the_one_in_the_folder(folder):
    (folder / CONFIG_NAME).write_text("[compare]\nfeatures = 20\n")
    (folder / "mine.toml").write_text("[compare]\nfeatures = 10\n[kinds]\nseed = 1\n")
    found, stderr = compared("--config", "mine.toml")
    assert found["settings"]["features"] == 10 and stderr
    assert found["provenance"]["config"] == "mine.toml"


def test_without_a_file_a_result_names_none():
    found, _ = compared("--features", 10)
    assert found["provenance"]["config"] is None
    assert fe.compare("x.npy", "y.npy", features=10).provenance.config is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[compare]\nfeaturs = 1\n", 'finc-eval.toml [compare]: unknown key "featurs" (did you mean "features"?)'),
        ("[comparison]\n", "finc-eval.toml: unknown table [comparison]"),
        ("features = 20\n", "finc-eval.toml: unknown table [features]"),
        ("run = 3\n", "finc-eval.toml: run must be a table, got 3: write [run]"),
        ("[extract]\nn = 'all'\n", "finc-eval.toml [extract]: \"n\" must be a whole number, got 'all'"),
        ("[compare]\nnovel = 0.2\n", 'novel is a parameter of the method: write method = {name = "rarity", novel = …}'),
        ("[compare\n", "finc-eval.toml cannot be read as a TOML file"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(folder, text, sentence):
    (folder / CONFIG_NAME).write_text(text)
    result = run("compare", "--gen", "x.npy", "--ref", "y.npy", "--out", "o")
    assert result.exit_code == 3 and len(result.stderr.splitlines()) == 1
    assert sentence in result.stderr


def test_a_default_of_another_verb_does_not_stop_a_verb(folder):
    (folder / CONFIG_NAME).write_text('[compare]\nmethod = "rarity"\nfeatures = 20\n')
    result = run("kinds", "--gen", "x.npy", "--gen", "y.npy", "--out", "o", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["type"] == "kinds"


def test_a_sweep_of_sigma_takes_its_features_from_the_file(folder):
    (folder / CONFIG_NAME).write_text("[compare]\nfeatures = 30\n")
    sets = ("--gen", "x.npy", "--ref", "y.npy", "--parameter", "sigma", "--values", "5", "--out", "o")
    made = json.loads(run("compare", "sweep", *sets, "--json").stdout)
    assert made["points"][0]["comparison"]["settings"]["features"] == 30


def test_every_class_of_settings_with_a_table_is_known():
    for verbs in VERBS.values():
        for name in verbs:
            for part in (None, *PARTS.get(name, ())):
                load_verb(name, part)
    classes = [Configured]
    for cls in classes:
        classes += cls.__subclasses__()
    assert {cls.table for cls in classes[1:]} == set(TABLES)


def test_settings_are_read_in_python_from_the_same_file(folder):
    (folder / CONFIG_NAME).write_text("[compare]\nrho = 2.0\n[audit]\npairs = 5\n[extract]\nextractor = 'pixels'\n")
    assert fe.Settings.read(CONFIG_NAME).rho == 2
    assert fe.AuditSettings.read(CONFIG_NAME).pairs == 5
    assert fe.Extraction.read(CONFIG_NAME) == fe.Extraction("pixels")
    with pytest.raises(fe.DataError, match=r"has no table \[kinds\]"):
        fe.KindSettings.read(CONFIG_NAME)
