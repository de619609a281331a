"""Metrics by their names: each in the space it means, with intervals, floors and signatures."""

import json
import re
from importlib import resources

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.baselines.rarity import rarity
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.embeddings.search.neighbors import radii
from finc_eval.extractors.networks import fid_inception
from finc_eval.measures.frechet import frechet_distance
from finc_eval.measures.gaussians.opened import gaussian_statistics
from finc_eval.measures.gaussians.reference_statistics import write_statistics
from finc_eval.measures.inputs import MetricInputs
from finc_eval.measures.metrics import metrics as evaluate
from finc_eval.measures.precision_recall import precision_recall
from finc_eval.measures.registry import METRICS

MANY = ("kid", "fd_infinity", "precision_recall", "prdc", "rarity", "fld", "ndb", "prd", "clipped")
ANY = [name for name, metric in METRICS.items() if metric.extractor is None and name not in MANY]


def draw(n, shift=0.0, seed=0):
    return (np.random.default_rng(seed).normal(size=(n, 16)) + shift).astype(np.float32)


GEN, REF = draw(600, 0.3, 1), draw(800, 0.0, 2)


@pytest.fixture(scope="module")
def caches(tmp_path_factory, digits):
    folder = tmp_path_factory.mktemp("caches")
    images = (digits[0][:140].reshape(-1, 28, 28) * 255).round().astype(np.uint8)
    parts = {"gen": images[:60], "ref": images[60:]}
    return {name: fe.extract(part, "pixels", folder / f"{name}.h5") for name, part in parts.items()}


def test_every_metric_for_any_space_gives_a_number_with_its_signature():
    result = evaluate(GEN, REF, ANY)
    of_others = {"conditional_vendi", "conditional_rke", "scendi", "clip_score", "fwd"}  # of prompts, and of pixels
    assert result.failures.keys() == of_others
    assert all("needs" in reason or "takes pixels" in reason for reason in result.failures.values())
    assert [score.key for score in result.scores] == [name for name in ANY if name not in of_others]
    for score in result.scores:
        assert np.isfinite(score.value)
        assert Signature.parse(str(score.signature)) == score.signature
        assert ("n", "600/800") in score.signature.fields
    assert json.loads(result.to_json())["scores"][0]["key"] == ANY[0]
    assert fe.Scores.from_dict(result.to_dict()).scores == result.scores


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
        "fid is defined on inception-fid, and the embeddings of gen are of pixels: extract with "
        "--extractor inception-fid, or ask for fd"
    )
    assert "inception_score is defined on inception-fid" in result.failures["inception_score"]
    assert "do not say which extractor made them" in refusal_of(GEN, REF, ["fid"])


def test_precision_and_recall_say_by_which_convention():
    ours, theirs = (evaluate(GEN, REF, [name]) for name in ("precision_recall", "prdc"))
    assert [score.key for score in ours.scores] == ["precision", "recall"]
    assert [score.key for score in theirs.scores] == ["precision", "recall", "density", "coverage"]
    lines = ours["recall"].signature.differences(theirs["recall"].signature)
    assert lines == ["convention: kynkaanniemi and prdc", "neighbors: 3 and 5"]
    assert all(score.interval[0] < score.value < score.interval[1] for score in theirs.scores)


def test_moments_are_enough_for_a_frechet_distance(tmp_path):
    phi = fe.Sketch.reference(REF, features=50).feature_map
    exact = evaluate(GEN, REF, ["fd"])["fd"].value
    sketched = evaluate(fe.Sketch.of(GEN, phi), fe.Sketch.of(REF, phi), ["fd", "vendi"])
    assert sketched["fd"].value == pytest.approx(exact, rel=1e-6)
    assert sketched["fd"].interval is None
    assert "vendi needs the embeddings of both sets" in sketched.failures["vendi"]
    write_statistics(tmp_path / "ref.npz", gaussian_statistics(REF))
    assert evaluate(GEN, tmp_path / "ref.npz", ["fd"])["fd"].value == pytest.approx(exact, rel=1e-9)


def test_vendi_rke_and_mind_come_with_intervals_or_floors_that_hold():
    result = evaluate(GEN, REF, ["vendi", "vendi_q2", "vendi_qinf", "rke", "mind"])
    for score in result.scores[:4]:
        assert score.interval[0] < score.value < score.interval[1]
    assert result["mind"].value > 5 * result["mind"].floor > 0
    assert evaluate(draw(600, seed=3), REF, ["mind"])["mind"].value < 3 * result["mind"].floor
    assert "computed from 600 samples of each set" in result["mind"].notes[0]


@pytest.mark.parametrize("name", ["cmmd", "jedi"])
def test_biased_mmds_of_like_sets_read_about_their_floor(name):
    sets = [ArrayEmbeddings(draw(n, seed=seed)) for n, seed in ((300, 5), (900, 6))]
    (score,) = METRICS[name].compute(MetricInputs(name, *sets))
    assert score.value == pytest.approx(score.floor, rel=0.25)


def test_realism_is_a_mean_without_copies():
    score = evaluate(GEN, REF, ["realism"])["realism"]
    found = precision_recall(GEN, REF, convention="kynkaanniemi").realism
    assert score.value == pytest.approx(found.mean())
    assert score.interval[0] < score.value < score.interval[1]
    centers = REF[np.argsort(radii(REF, 3).squared ** 0.5)[:7]]
    copied = evaluate(np.concatenate([GEN, centers]), REF, ["realism"])["realism"]
    assert copied.value == pytest.approx(score.value, rel=0.01)
    assert "7 samples of infinite realism, copies of reference samples, are left out" in copied.notes
    assert "all 5 samples of gen are copies" in refusal_of(centers[:5], REF, ["realism"])


def test_rarity_averages_samples_inside_a_ball_and_says_how_many_are_outside():
    result = evaluate(GEN, REF, ["rarity"])
    found = rarity(GEN, REF)
    assert result["rarity"].value == pytest.approx(np.nanmean(found.scores))
    share = result["rarity_outside"]
    assert share.value == found.outside / 600
    assert share.interval[0] < share.value < share.interval[1]
    assert "all 600 samples of gen lie outside every ball" in refusal_of(GEN + 90, REF, ["rarity"])


def test_metrics_of_memorization_use_the_reference_as_training_set_and_take_a_third_set():
    test = draw(500, 0.0, 4)
    fresh, copies = (evaluate(gen, REF, ["fld", "authpct"], test=test) for gen in (draw(400, seed=5), REF[:400]))
    assert fresh["fld"].interval[0] < fresh["fld"].value < fresh["fld"].interval[1] < copies["fld"].value
    assert copies["fld_gap"].value < fresh["fld_gap"].value
    assert fresh["authpct"].value == pytest.approx(fresh["authpct"].floor, abs=10)
    assert copies["authpct"].value == 0
    assert "400 of 400 have the same embedding as a training sample" in copies["authpct"].notes
    assert evaluate(GEN, REF, ["authpct"])["authpct"].floor is None
    with pytest.raises(UsageError, match="fld needs a third set: real samples that the generator has not seen"):
        evaluate(GEN, REF, ["authpct", "fld"])


FEW = {
    "fd": (30, "no interval: in 16 dimensions that takes 200 samples of each set"),
    "prdc": (30, "gen has 30 samples: the balls of so few are large, so compare at equal n only; 10 000 are usual"),
    "vendi": (30, "no interval: that takes 200 samples; the score cannot exceed 30, their number"),
    "rke": (30, "higher: compare at equal n only"),
    "kid": (30, "of all pairs of samples: papers take subsets of 1000, which the sets are too small for"),
}
REFUSED = {
    "kid": (2, "this metric needs at least 3 samples in each set, gen has 2"),
    "mmd": (2, "this metric needs at least 3 samples in each set, gen has 2"),
    "prdc": (4, "gen has 4 samples, too few for 5 neighbors of each: pass at least 6"),
    "rarity": (3, "ref has 3 samples, too few for 3 neighbors of each: pass at least 4"),
    "fd": (1, "gen has 1 sample: a covariance needs at least two"),
    "fd_infinity": (19, "FD-infinity of 15 sizes needs at least 30 samples"),
    "authpct": (1, "ref has 1 sample, too few for 1 neighbor of each"),
    "mind": (1, "ref has 1 sample for a floor at 1: it needs at least 2"),
}


def refusal_of(gen, ref, metrics):
    """Return the message of an evaluation of which no metric can be computed."""
    with pytest.raises(DataError, match=f"{metrics[0]} could not be computed") as refused:
        evaluate(gen, ref, metrics)
    return str(refused.value)


@pytest.mark.parametrize("name", FEW)
def test_a_metric_of_few_samples_says_what_that_does_to_it(name):
    n, sentence = FEW[name]
    score, *_ = evaluate(draw(n), draw(n, seed=1), [name]).scores
    assert any(sentence in note for note in score.notes), score.notes


@pytest.mark.parametrize("name", REFUSED)
def test_a_metric_of_too_few_samples_says_how_many_it_takes(name):
    n, sentence = REFUSED[name]
    assert sentence in refusal_of(draw(n), draw(n, seed=1), [name])


def test_a_frechet_distance_of_fewer_samples_than_dimensions_has_no_interval():
    x, y = (np.random.default_rng(seed).normal(size=(250, 300)).astype(np.float32) for seed in (0, 1))
    score = evaluate(x, y, ["fd"])["fd"]
    assert score.interval is None
    assert score.floor > 0
    assert "no interval: in 300 dimensions that takes 301 samples of each set" in score.notes


@pytest.fixture(scope="module")
def inception_caches(tmp_path_factory, digits):
    """Caches of the card inception-fid with random weights, by a card of that name."""
    folder = tmp_path_factory.mktemp("inception")
    torch.manual_seed(0)
    torch.save(fid_inception.FidInception().state_dict(), folder / "random.pth")
    text = (resources.files("finc_eval.extractors.cards") / "inception-fid.toml").read_text()
    table = f'[weights]\nfile = "{folder}/random.pth"\nlicense = "none"\n\n'
    (folder / "card.toml").write_text(re.sub(r"\[weights\].*?\n\n", table, text, flags=re.DOTALL))
    images = (digits[0][:24].reshape(-1, 28, 28) * 255).round().astype(np.uint8)
    parts = {"gen": images[:12], "ref": images[12:]}
    return {name: fe.extract(part, folder / "card.toml", folder / f"{name}.h5") for name, part in parts.items()}


@pytest.mark.long
def test_sfid_is_the_distance_of_spatial_features_from_the_same_pass(inception_caches, tmp_path):
    gen, ref = inception_caches.values()
    spatial = [cache.output("spatial") for cache in (gen, ref)]
    assert {one.dim for one in spatial} == {2023}
    result = evaluate(gen, ref, ["fid", "sfid"])
    assert result["sfid"].value == frechet_distance(*spatial).value != result["fid"].value
    moments = {"mu": gaussian_statistics(ref), "mu_s": gaussian_statistics(spatial[1])}
    arrays = {name: one.mean.numpy() for name, one in moments.items()}
    arrays |= {name.replace("mu", "sigma"): one.covariance.numpy() for name, one in moments.items()}
    np.savez(tmp_path / "ref.npz", **arrays)
    of_file = evaluate(gen, tmp_path / "ref.npz", ["fid", "sfid", "inception_score"])
    assert not of_file.failures
    for name in ("fid", "sfid"):
        assert of_file[name].value == pytest.approx(result[name].value, rel=1e-6)
        assert "ref.npz does not say which extractor made it: inception-fid is assumed" in (of_file[name].notes)
    assert "each split has 1 sample: the score cannot exceed that" in of_file["inception_score_mean"].notes[0]
    np.savez(tmp_path / "plain.npz", mu=arrays["mu"], sigma=arrays["sigma"])
    assert "has no mu_s and sigma_s" in refusal_of(gen, tmp_path / "plain.npz", ["sfid"])


def test_a_metric_that_refuses_the_sets_does_not_stop_the_others(caches):
    result = evaluate(draw(40), draw(40, seed=5), ["fid", "fd"])
    assert "fid is defined on inception-fid" in result.failures["fid"]
    assert result["fd"].value > 0
    with pytest.raises(DataError, match="fid could not be computed: fid is defined on inception-fid"):
        result["fid"]


def test_one_name_is_one_metric_and_none_are_those_that_the_sets_allow():
    assert [score.key for score in evaluate(GEN, REF, "fd")] == ["fd"]
    assert {"fd", "kid_mean", "vendi"} <= {score.key for score in evaluate(draw(40), draw(40, seed=5))}
    reference = fe.Sketch.reference(REF, features=50)
    assert [score.key for score in evaluate(fe.Sketch.of(GEN, reference), reference)] == ["fd"]
    with pytest.raises(UsageError, match="no metric was named: name some of authpct, clip_score, clipped,"):
        evaluate(GEN, REF, [])
    with pytest.raises(UsageError, match=r'unknown metric "FIDS" \(did you mean "fid"'):
        evaluate(GEN, REF, ["FIDS"])
    assert [score.key for score in evaluate(GEN, REF, "FD")] == ["fd"]


def test_scores_are_walked_through_counted_and_asked_for_by_name():
    scores = evaluate(draw(40), draw(40, seed=5), ["mmd", "vendi"])
    assert [score.key for score in scores] == ["mmd", "vendi"]
    assert len(scores) == 2
    assert "mmd" in scores and scores["mmd"] in scores and "fid" not in scores
    assert repr(scores).startswith("Scores(gen against ref")
    with pytest.raises(UsageError, match=r"no score is called 'vendy' \(did.*: the scores are mmd and vendi"):
        scores["vendy"]


def test_an_interval_holds_the_unbiased_value_where_the_value_has_a_bias():
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(1200, 30)).astype(np.float32) for _ in range(2))
    scores = evaluate(x, y, ["fd", "kid"])
    for key in ("fd", "kid_mean"):
        low, high = scores[key].interval
        assert low <= scores[key].unbiased <= high
    assert not scores["fd"].interval[0] <= scores["fd"].value <= scores["fd"].interval[1]


def test_notes_call_a_cache_by_its_samples_and_not_by_its_key(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    images = np.random.default_rng(0).integers(0, 256, (30, 8, 8, 3), dtype=np.uint8)
    np.savez(tmp_path / "drawn.npz", images=images)
    gen = fe.extract(tmp_path / "drawn.npz", "pixels")
    (note, *_) = evaluate(gen, gen, "fd")["fd"].notes
    assert note.startswith("drawn.npz has 30 samples")


def test_a_wrong_name_is_answered_with_the_right_ones():
    with pytest.raises(UsageError, match=r'unknown metric "fidd" \(did you mean "fid"\?\): choose from authpct,'):
        evaluate("no such file", REF, ["fd", "fidd"])


def test_a_mistake_in_the_call_is_an_error_and_not_a_metric_left_out():
    with pytest.raises(UsageError, match='the device "cudaa" cannot be used'):
        evaluate(GEN, REF, ["fd"], run=fe.Run(device="cudaa"))


def run(*arguments):
    return CliRunner().invoke(app, ["metrics", *map(str, arguments)])


@pytest.mark.long
def test_the_command_prints_a_table_and_the_signatures(caches):
    sets = ("--gen", caches["gen"].path, "--ref", caches["ref"].path)
    result = run(*sets, "--metrics", "vendi,rke", "--verbose")
    assert result.exit_code == 0, result.stderr
    assert "vendi|n:60/80|fx:pixels@" in result.stdout
    found = json.loads(run(*sets, "--metrics", "vendi", "--json").stdout)
    (score,) = found["scores"]
    assert score["value"] == evaluate(caches["gen"], caches["ref"], ["vendi"])["vendi"].value


def test_the_command_takes_statistics_and_a_third_set(tmp_path):
    gen, ref = tmp_path / "gen.npy", tmp_path / "ref.npy"
    np.save(gen, GEN)
    np.save(ref, REF)
    write_statistics(tmp_path / "ref.npz", gaussian_statistics(REF))
    result = run("--gen", gen, "--ref", tmp_path / "ref.npz", "--metrics", "fd", "--json")
    assert result.exit_code == 0, result.stderr
    (score,) = json.loads(result.stdout)["scores"]
    assert score["value"] == pytest.approx(evaluate(GEN, REF, ["fd"])["fd"].value, rel=1e-6)
    result = run("--gen", gen, "--ref", ref, "--test", gen, "--metrics", "authpct", "--json")
    assert json.loads(result.stdout)["scores"][0]["floor"] > 0


def test_the_command_prints_the_scores_it_has_and_fails_for_the_others(caches):
    result = run("--gen", caches["gen"].path, "--ref", caches["ref"].path, "--metrics", "vendi,fid", "--verbose")
    assert result.exit_code == 3
    assert "vendi|n:60/80" in result.stdout
    assert "fid is defined on inception-fid" in result.stderr
    assert run("--gen", "a", "--ref", "b", "--metrics", "vendy").exit_code == 3
