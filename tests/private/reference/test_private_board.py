"""Boards on a private reference: ranks by distance, with the guarantee, and nothing of the private set."""

import json

import numpy as np
import pytest
from _private import sketch_of_known_noise
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.private.reference.result import DISTANCE_KEY

SETTINGS_OF_SAMPLES = [
    ({"metrics": ("fd",)}, "metrics"),
    ({"by": "label"}, "by"),
    ({"pairs": "prompt"}, "pairs"),
    ({"seed": 1}, "seed"),
    ({"rank_by": "fd"}, "rank_by"),
    ({"scores": "aesthetic"}, "scores"),
    ({"votes": "votes.csv"}, "votes"),
    ({"extractor": ["pixels", "inception-fid"]}, "one extractor"),
]
"""Options that a board on a private sketch cannot take, and what the refusal names."""


@pytest.fixture(scope="module")
def sketch(sets, transform):
    return sketch_of_known_noise(sets[1], transform)


@pytest.fixture(scope="module")
def models(sets):
    """Halves of a generator, the first inverted too: the last is surely farther than the other two."""
    gen = sets[2]
    return {"one": gen[:400], "two": gen[400:800], "inverted": 1 - gen[:400]}


@pytest.fixture(scope="module")
def board(models, sketch):
    return fe.leaderboard(models, sketch)


def test_models_are_ranked_by_their_distance_with_the_values_of_the_sketch(board, models, sketch):
    assert [row.rank_set for row in board.rows] == [(1, 2), (1, 2), (3, 3)]
    assert board.rows[2].name == "inverted" and not board.separable("one", "two")
    for name, gen in models.items():
        score = sketch.score(gen)
        standing = board[name].scores[DISTANCE_KEY]
        assert (standing.value, *standing.interval) == pytest.approx((score.value, *score.interval))
        assert standing.sampling_error == pytest.approx(score.standard_error)
    assert board.guarantees == sketch.guarantees and board.distances[0].n == 400


def test_two_models_differ_on_a_board_as_in_a_comparison(sets, models, sketch):
    """Both have one owner, the differences of scores, in which the noise that all models share cancels."""
    two = {"with sevens": sets[2][:400], "without": sets[3][400:800]}
    (pair,) = sketch.compare(two).pairs
    assert fe.leaderboard(two, sketch).criterion().p_value(*two) == pytest.approx(pair.p_value, abs=0.02)


def test_training_runs_of_a_model_are_a_row(models, sketch):
    board = fe.leaderboard({"a": [models["one"], models["two"]], "b": models["inverted"]}, sketch)
    found = board["a"].scores[DISTANCE_KEY]
    assert board["a"].runs == 2 and found.training_error is not None
    scores = [sketch.score(models[name]).value for name in ("one", "two")]
    assert found.value == pytest.approx(np.mean(scores))
    with pytest.raises(fe.UsageError, match="are the same samples"):
        fe.leaderboard({"a": [models["one"], models["one"]]}, sketch)


@pytest.mark.parametrize(("options", "named"), SETTINGS_OF_SAMPLES)
def test_what_needs_samples_of_the_reference_is_refused(options, named, models, sketch):
    with pytest.raises(fe.UsageError, match=named):
        fe.leaderboard(models, sketch, **options)


def test_another_extractor_than_that_of_the_sketch_is_refused_before_any_sample_is_embedded(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 3), dtype=np.uint8)
    sketch = fe.privacy.release_sketch(images[:40], public=images[40:], extractor="pixels", epsilon=8, ledger=None)
    for judge in (
        lambda: fe.leaderboard({"a": images}, sketch, extractor="efficientnet-lite0"),
        lambda: fe.gate(images, images[:40], sketch, {"private": {"farther": 1.0}}, extractor="efficientnet-lite0"),
    ):
        with pytest.raises(fe.UsageError, match=r"extractor is efficientnet-lite0, .* by pixels: leave extractor out"):
            judge()


def test_a_board_is_written_with_its_guarantee_and_read_back(board, sketch, tmp_path):
    sketch.save(tmp_path / "ref.h5")
    back = fe.load(board.to_json(tmp_path / "board.json") and tmp_path / "board.json")
    assert isinstance(back, fe.Leaderboard) and back.to_dict() == board.to_dict()
    assert {"order", "distance", "guarantee", "blind"} <= board.says.keys()
    assert board.to_dict()["guarantees"][0]["epsilon"] == 1.0
    assert board.kinds == () and all(not row.is_searched for row in board.rows)
    page = board.to_html(tmp_path / "board.html").read_text()
    assert board.says["guarantee"] in page and "What is promised to each private record" in page


def test_no_output_has_anything_of_the_private_set(sets, transform, models, tmp_path):
    """The name and the digest of the private set are nowhere: the digest of the reference is of what was released."""
    np.save(tmp_path / "patients.npy", sets[1])
    sketch = sketch_of_known_noise(str(tmp_path / "patients.npy"), transform)
    sketch.save(tmp_path / "ref.h5")
    for name, gen in models.items():
        np.save(tmp_path / f"{name}.npy", gen)
    command = ["leaderboard", "--ref", tmp_path / "ref.h5", *(f"{name}={tmp_path / name}.npy" for name in models)]
    ran = CliRunner().invoke(app, [*map(str, command), "--out", str(tmp_path / "out"), "--quiet"])
    assert ran.exit_code == 0, ran.output
    added = CliRunner().invoke(app, ["leaderboard", "add", str(tmp_path / "out"), *map(str, command[1:4])])
    assert added.exit_code != 0 and "a board on it is not kept" in " ".join(added.output.split())
    files = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert files.keys() == {"leaderboard.html", "leaderboard.json"}
    secrets = ("patients", fe.EmbeddingSet(sets[1]).digest)
    assert not [secret for secret in secrets for text in (*files.values(), ran.output) if secret in text]
    assert json.loads(files["leaderboard.json"])["sets"]["ref"]["digest"] == sketch.digest
