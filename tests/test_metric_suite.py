"""Metrics by their names: each in the space it means, with intervals, floors and signatures."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli import app
from finc_eval.errors import FincEvalError
from finc_eval.metrics.frechet import frechet_distance
from finc_eval.metrics.gaussian import gaussian_statistics
from finc_eval.metrics.suite import METRICS, evaluate
from finc_eval.reference_statistics import write_statistics
from finc_eval.signature import Signature

MANY = ("kid", "fd_infinity", "precision_recall", "prdc")
ANY = [name for name, metric in METRICS.items() if metric.extractor is None and name not in MANY]


def draw(n, shift=0.0, seed=0):
    return (np.random.default_rng(seed).normal(size=(n, 16)) + shift).astype(np.float32)


GEN, REF = draw(600, 0.3, 1), draw(800, 0.0, 2)


@pytest.fixture(scope="module")
def caches(tmp_path_factory, digits):
    folder = tmp_path_factory.mktemp("caches")
    images = (digits[0][:1200].reshape(-1, 28, 28) * 255).round().astype(np.uint8)
    parts = {"gen": images[:500], "ref": images[500:]}
    return {name: fe.extract(part, "pixels", folder / f"{name}.h5") for name, part in parts.items()}


def test_every_metric_of_any_space_gives_a_number_and_what_pins_it():
    result = evaluate(GEN, REF, ANY)
    assert not result.failures
    assert [score.key for score in result.scores] == ANY
    for score in result.scores:
        assert np.isfinite(score.value)
        assert Signature.parse(str(score.signature)) == score.signature
        assert ("n", "600/800") in score.signature.fields
    assert json.loads(result.to_json())["scores"][0]["key"] == ANY[0]


def test_a_shifted_set_lies_beyond_its_floor_and_like_sets_do_not():
    shifted, alike = (evaluate(gen, REF, ["fd", "mmd"]) for gen in (GEN, draw(600, 0.0, 3)))
    fd = shifted["fd"]
    assert fd.value == frechet_distance(GEN, REF).value
    assert fd.interval[0] < 16 * 0.3**2 < fd.interval[1]
    assert fd.value > 5 * fd.floor
    assert alike["fd"].value < 3 * alike["fd"].floor
    assert shifted["mmd"].interval[0] > 0 > alike["mmd"].interval[0]


def test_a_name_that_means_a_space_refuses_another(caches):
    result = evaluate(caches["gen"], caches["ref"], ["fid", "mmd", "inception_score"])
    assert [score.key for score in result.scores] == ["mmd"]
    assert result.failures["fid"] == (
        f"fid is defined on inception-fid, and the embeddings of {caches['gen'].path} are of pixels: extract with "
        "--extractor inception-fid, or ask for fd"
    )
    assert "inception_score is defined on inception-fid" in result.failures["inception_score"]
    assert "do not say by what they were made" in evaluate(GEN, REF, ["fid"]).failures["fid"]


def test_precision_and_recall_say_by_which_convention():
    ours, theirs = (evaluate(GEN, REF, [name]) for name in ("precision_recall", "prdc"))
    assert [score.key for score in ours.scores] == ["precision", "recall"]
    assert [score.key for score in theirs.scores] == ["precision", "recall", "density", "coverage"]
    lines = ours["recall"].signature.differences(theirs["recall"].signature)
    assert lines == ["convention: kynkaanniemi and prdc", "neighbours: 3 and 5"]
    assert all(score.interval[0] < score.value < score.interval[1] for score in theirs.scores)


def test_moments_are_enough_for_a_frechet_distance(tmp_path):
    phi, _ = fe.reference_feature_map(REF, features=50)
    exact = evaluate(GEN, REF, ["fd"])["fd"].value
    sketched = evaluate(fe.Sketch.of(GEN, phi), fe.Sketch.of(REF, phi), ["fd", "vendi"])
    assert sketched["fd"].value == pytest.approx(exact, rel=1e-6)
    assert sketched["fd"].interval is None
    assert "vendi needs the embeddings of both sets" in sketched.failures["vendi"]
    write_statistics(tmp_path / "ref.npz", gaussian_statistics(REF))
    assert evaluate(GEN, tmp_path / "ref.npz", ["fd"])["fd"].value == pytest.approx(exact, rel=1e-9)


def test_what_one_metric_refuses_leaves_the_others(caches):
    result = evaluate(draw(40), draw(40, seed=5), ["kid", "fd"])
    assert "fewer than KID's subsets of 1000" in result.failures["kid"]
    assert result["fd"].value > 0


def test_a_wrong_name_is_answered_with_the_right_ones():
    with pytest.raises(FincEvalError, match=r'there is no metric "fidd" \(did you mean "fid"\?\): choose of fid,'):
        evaluate(GEN, REF, ["fidd"])


def run(*arguments):
    return CliRunner().invoke(app, ["metrics", *map(str, arguments)])


def test_the_command_prints_a_table_and_the_signatures(caches):
    sets = ("--gen", caches["gen"].path, "--ref", caches["ref"].path)
    result = run(*sets, "--metrics", "vendi,rke")
    assert result.exit_code == 0, result.stderr
    assert "vendi|n:500/700|fx:pixels@" in result.stdout
    found = json.loads(run(*sets, "--metrics", "vendi", "--json").stdout)
    (score,) = found["scores"]
    assert score["value"] == evaluate(caches["gen"], caches["ref"], ["vendi"])["vendi"].value


def test_the_command_prints_what_it_can_and_fails_for_the_rest(caches):
    result = run("--gen", caches["gen"].path, "--ref", caches["ref"].path, "--metrics", "vendi,fid")
    assert result.exit_code == 3
    assert "vendi|n:500/700" in result.stdout
    assert "fid is defined on inception-fid" in result.stderr
    assert run("--gen", "a", "--ref", "b", "--metrics", "vendy").exit_code == 3
