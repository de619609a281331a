"""Metrics of each class are those of its samples alone, and statistics are written for other tools."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import FincEvalError
from finc_eval.measures.gaussians.reference_statistics import read_statistics

RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=(n, 6)).astype(np.float32) for n in (300, 360))
LABELS = {"x": np.array(["a", "b", "c"])[np.arange(300) % 3], "y": np.array(["a", "b", "c"])[np.arange(360) % 3]}
X[LABELS["x"] == "b"] += 1


def labeled(rows, labels):
    return fe.EmbeddingSet(rows, metadata={"label": list(labels)})


@pytest.mark.parametrize("names", ["fd", "kid", "prdc", "vendi", "mmd", ["fd", "kid"]], ids=str)
def test_a_metric_of_a_class_is_that_of_its_samples(names):
    scores = fe.metrics(labeled(X, LABELS["x"]), labeled(Y, LABELS["y"]), names, by="label")
    whole = fe.metrics(X, Y, names)
    for name in "abc":
        alone = fe.metrics(X[LABELS["x"] == name], Y[LABELS["y"] == name], names)
        for score in alone:
            assert scores[score.key, name].value == pytest.approx(score.value, rel=1e-6)
            assert scores[score.key].value == whole[score.key].value
    assert len(scores) == 4 * len(whole)


def test_classes_without_a_value_and_samples_without_a_class_are_said():
    ours = np.where(LABELS["x"] == "c", "only here", LABELS["x"]).astype(object)
    ours[:7] = ["", None, float("nan"), "", "", "", ""]
    theirs = LABELS["y"].copy()
    theirs[theirs == "b"] = ""
    scores = fe.metrics(labeled(X, ours), labeled(Y, theirs), "fd", by="label")
    said = " ".join(scores["fd"].notes)
    assert [score.of for score in scores] == [None, "a"]
    assert "7 samples of gen have no class" in said and "120 samples of ref have no class" in said
    assert "only here (no sample of ref)" in said and "b (no sample of ref)" in said
    with pytest.raises(FincEvalError, match="fd was not computed for a class 'b'"):
        scores["fd", "b"]


STANDING_FOR_NOTHING = ["NA", "None", "null", "nan", "N/A", "NULL"]


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", STANDING_FOR_NOTHING)
def test_a_class_of_words_may_be_called_as_a_missing_value(name, tmp_path):
    ours, theirs = (np.where(labels == "c", name, labels) for labels in LABELS.values())
    scores = fe.metrics(labeled(X, ours), labeled(Y, theirs), "fd", by="label")
    assert {score.of for score in scores} == {None, "a", "b", name}
    assert "no class" not in " ".join(scores["fd"].notes)
    np.savez(tmp_path / "x.npz", embeddings=X, label=ours)
    assert fe.metrics(tmp_path / "x.npz", labeled(Y, theirs), "fd", by="label")["fd", name].value is not None


@pytest.mark.one_of_each("name", "others")
@pytest.mark.parametrize("name", STANDING_FOR_NOTHING)
@pytest.mark.parametrize(
    "others", [("0", "1"), ("1.5", "-2e3"), ("2024-01-05", "2024-02-05T10:00:00Z"), ("True", "false")], ids=str
)
def test_a_missing_value_among_numbers_and_dates_is_named(name, others):
    ours = np.where(LABELS["x"] == "c", name, np.where(LABELS["x"] == "a", *others))
    theirs = np.where(LABELS["y"] == "a", *others)
    scores = fe.metrics(labeled(X, ours), labeled(Y, theirs), "fd", by="label")
    assert {score.of for score in scores} == {None, *others}
    assert f"100 samples of gen have no class (written {name})" in " ".join(scores["fd"].notes)


@pytest.mark.parametrize("word", ["NA", "None"])
@pytest.mark.parametrize("way", [0, 1])
def test_a_word_of_one_set_where_another_has_no_value_is_told(word, way):
    texts = [np.where(labels == "c", one, labels) for labels, one in zip(LABELS.values(), ("", word), strict=True)]
    sets = [labeled(rows, own) for rows, own in zip((X, Y), texts, strict=True)][:: 1 - 2 * way]
    of, other = ("ref", "gen") if way == 0 else ("gen", "ref")
    told = f"{word!r} of label is a class of {of}, and {other} has samples without a value"
    assert told in " ".join(fe.metrics(*sets, "fd", by="label")["fd"].notes)
    same = labeled(X, np.where(LABELS["x"] == "c", word, LABELS["x"]))
    assert "without a value" not in " ".join(fe.metrics(same, sets[0 if way else 1], "fd", by="label")["fd"].notes)


@pytest.mark.parametrize("by, message", [("labels", 'did you mean "label"'), ("x", "no column 'x'")])
def test_a_column_that_is_not_there_is_named(by, message):
    with pytest.raises(FincEvalError, match=message):
        fe.metrics(labeled(X, LABELS["x"]), labeled(Y, LABELS["y"]), "fd", by=by)


def test_moments_have_no_classes(tmp_path):
    np.savez(tmp_path / "st.npz", mu=Y.mean(0).astype(float), sigma=np.cov(Y.T))
    with pytest.raises(FincEvalError, match="pass its samples"):
        fe.metrics(labeled(X, LABELS["x"]), tmp_path / "st.npz", "fd", by="label")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in (("x", X), ("y", Y)):
        np.savez(f"{name}.npz", embeddings=rows, label=LABELS[name])
    return lambda *words: CliRunner().invoke(app, ["metrics", "--gen", "x.npz", "--ref", *words, "--quiet"])


def test_the_command_shows_classes_and_writes_statistics(run):
    done = run("y.npz", "--metrics", "fd", "--by", "label", "--out", "o", "--save-statistics", "st.npz")
    assert done.exit_code == 0 and all(f"fd of {name}" in done.output for name in "abc"), done.output
    assert fe.load("o/scores.json")["fd", "b"].value > 1
    stored = np.load("st.npz")
    assert np.allclose(stored["mu"], Y.mean(0), atol=1e-6) and np.allclose(stored["sigma"], np.cov(Y.T), atol=1e-5)
    assert stored["n"] == 360 and read_statistics("st.npz").n == 360
    again = run("st.npz", "--metrics", "fd", "--json")
    assert json.loads(again.output)["scores"][0]["value"] == pytest.approx(fe.load("o/scores.json")["fd"].value)
    assert run("y.npz", "--metrics", "fd", "--save-statistics", "st.npz").exit_code == 0  # its own earlier file
    assert "exists" in run("y.npz", "--save-statistics", "x.npz").output
    assert ".npz" in run("y.npz", "--save-statistics", "st.txt").output


@pytest.mark.one_of_each
@pytest.mark.parametrize("limit", ["lose", "moved", "new"])
@pytest.mark.parametrize("missing", ["", float("nan"), None])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_gate_says_that_labels_are_missing_and_not_that_a_kind_was_lost(limit, missing, share):
    rows = RNG.normal(size=(3, 400, 4)).astype(np.float32)
    labels = np.array([f"k{number % 8}" for number in range(400)], object)
    own = labels.copy()
    own[(labels == "k3") & (np.arange(400) < 400 * share)] = missing
    gen, baseline, ref = (labeled(*one) for one in zip(rows, (own, labels, labels), strict=True))
    verdict = fe.gate(gen, baseline, ref, {"kinds": {"column": "label", limit: 0.1}})
    assert verdict.overall == "error" and {one.verdict for one in verdict.limits} == {"missing"}
    assert f"label is missing for {int(50 * share)} of 400 samples of gen" in verdict.limits[0].note
    whole = fe.gate(baseline, baseline, ref, {"kinds": {"column": "label", limit: 0.1}})
    assert "missing for" not in " ".join(one.note for one in whole.limits)
