"""`finc-eval kahm`, from digits to classes, fabricated samples, a membership score and two parties."""

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.embeddings.opening import as_embeddings


def run(verb, *arguments):
    return CliRunner().invoke(app, ["kahm", verb, *map(str, arguments), "--quiet"])


def done(verb, *arguments):
    result = run(verb, *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def sets(tmp_path_factory, digits):
    """Embeddings with labels: zeros, ones and twos to fit, others to classify, and the halves of two parties."""
    folder = tmp_path_factory.mktemp("kahm")
    rows = np.flatnonzero(digits[1] < 3)
    for name, chosen in {
        "train": rows[:300],
        "test": rows[300:500],
        "north": rows[:150],
        "south": rows[150:300],
    }.items():
        np.savez(folder / f"{name}.npz", embeddings=digits[0][chosen], labels=digits[1][chosen])
    np.savez(folder / "unlabeled.npz", embeddings=digits[0][:20])
    return folder


@pytest.fixture(scope="module")
def models(sets):
    done("fit", sets / "train.npz", "--components", 10, "--out", sets / "models.h5")
    return sets / "models.h5"


def test_components_that_samples_do_not_have_are_told(sets, tmp_path):
    told = run("fit", sets / "train.npz", "--components", 800, "--out", tmp_path / "models.h5")
    assert told.exit_code == 0
    assert re.search(r"^note: components is 800, but \d+ samples of 784 entries have at most \d+", told.stderr)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_classes_of_fresh_samples_are_those_of_the_library(sets, models, tmp_path):
    told = done("classify", sets / "test.npz", "--models", models, "--out", tmp_path / "c.csv", "--json")
    with np.load(sets / "test.npz") as file:
        x, labels = file["embeddings"], file["labels"].astype(str)
    fitted = fe.kahm.load_models(models)
    assert fitted.settings.components == 10 and fitted.classes == ("0", "1", "2")
    values = fitted.distances(x).values
    rows = rows_of(tmp_path / "c.csv")
    assert [row["class"] for row in rows] == [fitted.classes[place] for place in values.argmin(1)]
    np.testing.assert_allclose([float(row["distance"]) for row in rows], values.min(1), rtol=1e-5)
    scores = fe.kahm.matching_scores(values)
    np.testing.assert_allclose([float(row["score 2"]) for row in rows], scores[:, 2], atol=1e-6)
    found = json.loads(told)
    assert found["accuracy"] == (values.argmin(1) == labels.astype(int)).mean() >= 0.97
    assert min(row["auc"] for row in found["classes"]) > 0.98


def test_samples_without_labels_are_classified_and_not_judged(sets, models, tmp_path):
    told = done("classify", sets / "unlabeled.npz", "--models", models, "--out", tmp_path / "c.csv")
    assert "right for" not in told and len(rows_of(tmp_path / "c.csv")) == 20


@pytest.mark.parametrize(("samples", "are_own"), [("train", True), ("test", False)])
def test_an_accuracy_of_the_samples_of_the_models_is_called_that(sets, models, tmp_path, samples, are_own):
    for verb in (("classify", "--models", models), ("federate", "--party", f"a={models}")):
        told = done(verb[0], sets / f"{samples}.npz", *verb[1:], "--out", tmp_path / "c.csv", "--force")
        assert ("samples that the models were fitted to" in " ".join(told.split())) is are_own
    told = done("classify", sets / f"{samples}.npz", "--models", models, "--out", tmp_path / "c.csv", "--json")
    assert json.loads(told)["are_own"] is are_own


def test_a_label_that_no_model_has_is_told_in_place_of_an_accuracy(sets, models, tmp_path):
    with np.load(sets / "test.npz") as file:
        np.savez(tmp_path / "other.npz", embeddings=file["embeddings"], labels=np.where(file["labels"] == 0, 9, 1))
    told = done("classify", tmp_path / "other.npz", "--models", models, "--out", tmp_path / "c.csv")
    assert "the models have no class '9'" in " ".join(told.split())


def test_a_set_without_classes_cannot_be_fitted(sets, tmp_path):
    result = run("fit", sets / "unlabeled.npz", "--out", tmp_path / "m.h5")
    assert result.exit_code == 3
    assert re.search(r"unlabeled.npz has no labels: make a folder for each class", " ".join(result.stderr.split()))


def test_the_same_command_replaces_its_models_and_no_others(sets, models):
    done("fit", sets / "train.npz", "--components", 10, "--out", models)
    result = run("fit", sets / "test.npz", "--out", models)
    assert result.exit_code == 3 and "--force" in result.stderr


def test_models_of_fabricated_samples_classify_and_the_spent_file_stays(sets, tmp_path):
    out = tmp_path / "made.npz"
    told = done("fabricate", sets / "train.npz", "--epsilon", 8, "--out", out)
    assert "(8, 1e-05)-DP per element, which is (6272, 0.00784)-DP per record of 784 entries" in told
    with np.load(out) as made, np.load(sets / "train.npz") as raw:
        assert made["embeddings"].shape == raw["embeddings"].shape
        assert (made["labels"] == raw["labels"].astype(str)).all()
        assert 0.05 < np.abs(made["embeddings"] - raw["embeddings"]).mean() < 0.5
    assert "exists" in run("fabricate", sets / "train.npz", "--epsilon", 8, "--out", out).stderr
    done("fit", out, "--out", tmp_path / "m.h5")
    told = done("classify", sets / "test.npz", "--models", tmp_path / "m.h5", "--out", tmp_path / "c.csv", "--json")
    assert json.loads(told)["accuracy"] > 0.95


def test_noise_alone_is_what_definition_12_fits(sets, tmp_path):
    done("fabricate", sets / "train.npz", "--epsilon", 8, "--no-smooth", "--out", tmp_path / "noisy.npz")
    done("fabricate", sets / "train.npz", "--epsilon", 8, "--out", tmp_path / "smooth.npz")
    deviations = []
    for name in ("noisy", "smooth"):
        with np.load(tmp_path / f"{name}.npz") as made, np.load(sets / "train.npz") as raw:
            deviations.append(float((made["embeddings"] - raw["embeddings"]).std()))
    assert deviations[0] == pytest.approx(2**0.5 / 8, rel=0.05) and deviations[1] < deviations[0]


def test_the_same_samples_as_members_and_others_are_refused(sets, models):
    same = run("membership", "--models", models, "--members", sets / "train.npz", "--others", sets / "train.npz")
    assert same.exit_code == 3 and "are the same samples" in same.stderr


def test_the_membership_score_is_a_page_with_its_null(sets, models, tmp_path):
    inputs = ("--models", models, "--members", sets / "train.npz", "--others", sets / "test.npz")
    done("membership", *inputs, "--permutations", 19, "--out", tmp_path)
    score = fe.load(tmp_path / "membership-score.json")
    assert score.direction == "members nearer" and score.difference.p_value == 0.05
    assert len(score.difference.null) == 19 and score.settings == str(fe.kahm.load_models(models).settings)
    assert "equal densities stay below" in (tmp_path / "membership-score.html").read_text()


def test_two_parties_classify_together_at_one_place_and_around_a_folder(sets, tmp_path):
    parties = []
    for name in ("north", "south"):
        done("fit", sets / f"{name}.npz", "--components", 10, "--out", tmp_path / f"{name}.h5")
        parties += ["--party", f"{name}={tmp_path / name}.h5"]
    done("federate", sets / "test.npz", *parties, "--out", tmp_path / "here.csv")
    folder = tmp_path / "exchange"
    done("federate", sets / "test.npz", "--exchange", folder)
    for place in (0, 2):
        done("federate", *parties[place : place + 2], "--exchange", folder)
    done("federate", "--gather", "north,south", "--exchange", folder, "--out", tmp_path / "there.csv")
    assert rows_of(tmp_path / "here.csv") == rows_of(tmp_path / "there.csv")
    table = (tmp_path / "there.csv").read_text()
    (tmp_path / "there.csv").write_text(table[: table.rindex("\n199,") + 1])
    gather = ("--gather", "north,south", "--exchange", folder, "--out", tmp_path / "there.csv")
    assert "did not make it" in run("federate", *gather).stderr, "the classes of other samples"
    with np.load(sets / "test.npz") as file:
        found = np.array([row["class"] for row in rows_of(tmp_path / "here.csv")])
        assert (found == file["labels"].astype(str)).mean() > 0.95


def test_a_party_has_one_file_of_models(sets, models):
    both = ("--party", f"north={models}", "--party", f"north={sets / 'train.npz'}")
    result = run("federate", sets / "test.npz", *both, "--out", "c.csv")
    assert result.exit_code == 3 and "--party has north twice" in result.stderr


def test_options_that_are_no_step_are_refused(sets, tmp_path):
    for wrong in (
        (sets / "test.npz",),
        (sets / "test.npz", "--exchange", tmp_path, "--out", tmp_path / "c.csv"),
        ("--exchange", tmp_path),
    ):
        result = run("federate", *wrong)
        assert result.exit_code == 3 and "make no step of federated classification" in result.stderr


def test_models_and_samples_of_two_extractors_are_refused(sets, tmp_path):
    models = fe.kahm.fit_classes(np.random.default_rng(0).normal(size=(40, 784)), [0, 1] * 20)
    fe.kahm.save_models(tmp_path / "m.h5", fe.kahm.ClassModels(models.models, models.settings, "inception@1234"))
    images = np.random.default_rng(1).integers(0, 256, (20, 28, 28, 3), dtype=np.uint8)
    fe.extract(images, "pixels", tmp_path / "x.h5")
    inputs = (tmp_path / "x.h5", "--models", tmp_path / "m.h5", "--out", tmp_path / "c.csv")
    result = run("classify", *inputs)
    assert result.exit_code == 3 and "inception@1234" in result.stderr


def test_each_verb_has_a_page_that_says_what_the_terminal_does(sets, models, tmp_path):
    def paged(verb, *arguments, out, type_name, stem=""):
        told = done(verb, *arguments, "--out", tmp_path / out, "--report", tmp_path / verb)
        found = fe.load(tmp_path / verb / f"{stem or type_name}.json")
        assert found.type_name == type_name
        for sentence in found.says.values():
            assert sentence in " ".join(told.split()) or len(told.splitlines()) >= 10
        assert len(told.splitlines()) <= 12 and told.splitlines()[-1] == str(tmp_path / out)
        assert (tmp_path / verb / f"{stem or type_name}.html").exists()
        return found

    others = ("--others", sets / "test.npz")
    fit = paged("fit", sets / "train.npz", "--components", 10, *others, out="m.h5", type_name="models-fit")
    assert fit.samples == 300 and all(row.own < row.held_out for row in fit.classes)
    found = paged("classify", sets / "test.npz", "--models", models, out="c.csv", type_name="classification")
    assert len(found.yardsticks) == 2 and found.accuracy_interval[0] < found.accuracy
    together = paged("federate", sets / "test.npz", "--party", f"a={models}", out="d.csv", type_name="classification")
    assert together.parties == ("a",) and together.accuracy == found.accuracy
    named = {"out": "made.npz", "type_name": "fabrication", "stem": "fabrication-not-private"}
    fabricated = paged("fabricate", sets / "train.npz", "--epsilon", 8, *others, **named)
    assert fabricated.nearness.membership.direction == "members nearer" and fabricated.nearness.linked > 0.9


def test_what_is_fabricated_says_nothing_of_the_originals_unless_their_holder_asks(sets, tmp_path):
    told = done("fabricate", sets / "train.npz", "--epsilon", 8, "--out", tmp_path / "made.npz", "--json")
    data = json.loads(told)
    digest = as_embeddings(str(sets / "train.npz")).digest
    assert data["nearness"] is None and data["originals"] is None and digest not in told and not data["pairs"]
    with np.load(tmp_path / "made.npz") as made:
        assert sorted(made.files) == ["embeddings", "labels"]
    inputs = (sets / "train.npz", "--epsilon", 8, "--out", tmp_path / "more.npz")
    assert "which is made to be passed on" in " ".join(run("fabricate", *inputs, "--report", tmp_path).stderr.split())
    assert "pass --report DIR" in run("fabricate", *inputs, "--others", sets / "test.npz").stderr
    same = run("fabricate", *inputs, "--others", sets / "train.npz", "--report", tmp_path / "page")
    assert "are the same samples" in same.stderr
    assert not (tmp_path / "more.npz").exists(), "nothing was spent"


def test_answers_of_parties_have_a_page_without_labels(sets, models, tmp_path):
    folder = tmp_path / "exchange"
    done("federate", sets / "test.npz", "--exchange", folder)
    done("federate", "--party", f"a={models}", "--exchange", folder)
    gather = ("--gather", "a", "--exchange", folder)
    assert "pass --out classes.csv" in run("federate", *gather, "--report", tmp_path / "page").stderr
    done("federate", *gather, "--out", tmp_path / "c.csv", "--report", tmp_path / "page")
    found = fe.load(tmp_path / "page" / "classification.json")
    assert (found.samples, found.accuracy, found.set) == (200, None, None) and found.doubtful
