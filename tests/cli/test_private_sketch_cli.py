"""`finc-eval private sketch`, from folders of digits to a ranking."""

import errno
import json
import os
import re
import shutil

import numpy as np
import pytest
from _cards import small_pixel_card
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.privacy import Ledger, PrivateSketch

pytestmark = pytest.mark.usefixtures("seeded_noise")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs a verb; verbs that embed use 8 x 8 pixels: the axes of the usual 28 x 28 take seconds."""
    card = small_pixel_card(tmp_path_factory.mktemp("card") / "small.toml", 8)

    def command(verb, *arguments):
        extractor = ("--extractor", card) if verb in ("release", "score", "compare") else ()
        return CliRunner().invoke(app, ["private", "sketch", verb, *map(str, (*extractor, *arguments))])

    return command


@pytest.fixture(scope="module")
def folders(tmp_path_factory, digits):
    """Digits in folders: public, of two owners, and of two generators, of which one makes ones and sevens only."""
    folder = tmp_path_factory.mktemp("sets")
    images, labels = digits
    rows = np.split(np.arange(700), [100, 300, 400, 480])
    rows[4] = rows[4][np.isin(labels[rows[4]], (1, 7))]
    for name, chosen in zip(("public", "ward", "clinic", "good", "bad"), rows, strict=True):
        (folder / name).mkdir()
        for row in chosen:
            image = Image.fromarray((images[row].reshape(28, 28) * 255).astype(np.uint8))
            image.save(folder / name / f"{row:04d}.png")
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path_factory.getbasetemp() / "private-sketch-cache"))


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.jsonl", 3.0, 1e-5)


@pytest.fixture
def ward(folders, ledger, tmp_path):
    """What releases the ward's digits; the name and the price of the release are left."""
    chosen = ("--public", folders / "public", "--dims", 5, "--ledger", ledger.path)
    return ("release", "--data", folders / "ward", *chosen)


def test_two_owners_release_and_a_stranger_ranks_two_generators(run, folders, ward, ledger, tmp_path):
    ours, theirs, both = (tmp_path / f"{name}.h5" for name in ("ours", "theirs", "both"))
    result = run(*ward, "--epsilon", 3, "--out", ours)
    assert result.exit_code == 0, result.stderr
    assert "private sketch of 200 records" in result.stdout
    assert "any attacker's AUC ≤ 0.694" in result.stdout
    shared = ("--feature-map-of", ours, "--epsilon", 3, "--ledger", ledger.path)
    result = run("release", "--data", folders / "clinic", *shared, "--out", theirs)
    assert result.exit_code == 0, result.stderr
    assert run("merge", ours, theirs, "--out", both).exit_code == 0
    assert json.loads(run("inspect", both, "--json").stdout)["m"] == 300
    shown = run("inspect", "--ledger", ledger.path)
    assert shown.exit_code == 0
    assert len(ledger.accounts()) == 2

    page = tmp_path / "out" / "private-score.html"
    result = run("score", "--gen", folders / "bad", "--ref", both, "--out", page.parent, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == json.loads(page.with_suffix(".json").read_text())
    assert "What is promised to each private record" in page.read_text()
    models = [f"{name}={folders / name}" for name in ("good", "bad")]
    result = run("compare", *models, "--ref", both, "--out", page.parent, "--verbose")
    assert result.exit_code == 0, result.stderr
    scores = json.loads((page.parent / "private-comparison.json").read_text())["scores"]
    assert [score["name"] for score in scores] == ["good", "bad"]
    assert "Who is nearer" in result.stdout


def test_a_budget_that_does_not_suffice_leaves_nothing_behind(run, ward, ledger, tmp_path):
    out = tmp_path / "s.h5"
    result = run(*ward, "--epsilon", 4, "--out", out)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "at most epsilon 3 is left after 0 releases" in result.stderr
    assert not out.exists()
    assert ledger.spendings() == ()


def test_a_release_is_not_overwritten_and_nothing_is_spent_on_the_attempt(run, ward, ledger, tmp_path):
    out = tmp_path / "s.h5"
    assert run(*ward, "--epsilon", 1, "--out", out).exit_code == 0
    content = out.read_bytes()
    result = run(*ward, "--epsilon", 1, "--out", out)
    assert result.exit_code == 3
    assert "what it cost would be lost" in result.stderr
    assert out.read_bytes() == content
    assert len(ledger.spendings()) == 1


def test_a_run_that_fails_leaves_no_ledger_with_its_budget(run, folders, ward, tmp_path):
    book = tmp_path / "new.ledger"
    asked = ("release", "--public", folders / "public", "--epsilon", 1, "--ledger", book, "--out", tmp_path / "s.h5")
    result = run(*asked, "--data", tmp_path / "nowhere", "--budget", 7)
    assert result.exit_code == 3
    assert not book.exists()
    assert run(*asked, "--data", folders / "ward", "--budget", 2).exit_code == 0
    assert Ledger(book).budget.epsilon == 2


def test_public_pictures_that_cannot_be_read_are_left_out(run, folders, ledger, tmp_path):
    shutil.copytree(folders / "public", tmp_path / "public")
    (tmp_path / "public" / "torn.png").write_bytes(b"PNG?")
    out = tmp_path / "s.h5"
    result = run(
        *("release", "--data", folders / "ward", "--public", tmp_path / "public", "--ledger", ledger.path),
        *("--epsilon", 1, "--out", out),
    )
    assert result.exit_code == 0, result.stderr
    public = len([*(folders / "public").iterdir()])
    assert f"of {public} public embeddings" in PrivateSketch.load(out).transform.origin


def test_where_a_sketch_would_not_fit_nothing_is_spent(run, ward, ledger, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("finc_eval.core.storage.os.fsync", full)
    result = run(*ward, "--epsilon", 1, "--out", tmp_path / "s.h5")
    assert result.exit_code == 3
    assert "disk is full" in result.stderr and "nothing is spent" in result.stderr
    (tmp_path / "file").touch()
    result = run(*ward, "--epsilon", 1, "--out", tmp_path / "file" / "s.h5")
    assert result.exit_code == 3
    assert "cannot be written" in result.stderr
    assert ledger.spendings() == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((), "scales must not come from the private set"),
        (("--length-scale", 3), "--length-scale and --radius go together"),
        (("--public", "{ward}"), "fitted on the private set itself"),
        (("--length-scale", 3, "--radius", 3, "--epsilon", 0), "epsilon must be a positive number, got 0"),
        (("--length-scale", 3, "--radius", 3, "--budget", 9), "has a budget of epsilon 3, which is set once"),
        (("--feature-map-of", "{ledger}"), "is damaged"),
        (("--feature-map-of", "{ward}"), "ward is a folder, not a file"),
        (("--length-scale", 3, "--radius", 3, "--classes", "a,b"), "no labels"),
    ],
)
def test_what_cannot_be_released_says_so_and_spends_nothing(run, folders, ledger, tmp_path, change, message):
    places = {"ward": folders / "ward", "ledger": ledger.path}
    chosen = [str(one).format(**places) for one in change]
    given = ("--data", folders / "ward", "--ledger", ledger.path, "--out", tmp_path / "s.h5")
    result = run("release", *given, *chosen, *(() if "--epsilon" in chosen else ("--epsilon", 1)))
    assert result.exit_code == 3
    assert message in result.stderr
    assert result.stderr.count("finc-eval:") == 1 and "Traceback" not in result.stderr
    assert ledger.spendings() == ()


def test_a_choice_that_does_not_exist_is_refused_and_spends_nothing(run, ward, ledger, tmp_path):
    result = run(*ward, "--epsilon", 1, "--adjacency", "swap", "--out", tmp_path / "s.h5")
    assert result.exit_code == 3
    assert "'swap' is not one of" in result.stderr
    assert ledger.spendings() == ()


def test_a_score_needs_a_sketch_and_two_samples(run, folders, ward, ledger, tmp_path):
    result = run("score", "--gen", folders / "good", "--ref", ledger.path)
    assert (result.exit_code, "is damaged" in result.stderr) == (3, True)
    out = tmp_path / "s.h5"
    assert run(*ward, "--epsilon", 1, "--out", out).exit_code == 0
    np.savez(tmp_path / "one.npz", images=np.zeros((1, 28, 28, 3), np.uint8))
    result = run("score", "--gen", tmp_path / "one.npz", "--ref", out)
    assert (result.exit_code, "needs at least two samples" in result.stderr) == (3, True)
    assert run("inspect").exit_code == run("inspect", out, "--ledger", ledger.path).exit_code == 3


@pytest.mark.long
def test_a_release_is_loaded_as_what_it_is_and_scores_folders_by_its_own_extractor(run, folders, ward, tmp_path):
    out = tmp_path / "s.h5"
    words = ["private", "sketch", *map(str, ward), "--extractor", "pixels", "--epsilon", "1", "--out", str(out)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert isinstance(fe.load(out), PrivateSketch)
    asked = ["private", "sketch", "score", "--gen", str(folders / "good"), "--ref", str(out), "--json"]
    result = CliRunner().invoke(app, asked)  # without --extractor
    assert result.exit_code == 0, result.stderr
    score = json.loads(result.stdout)
    assert score["type"] == "private-score"
    assert score["interval"][0] <= score["value"] <= score["interval"][1]
    assert "any attacker's AUC ≤ 0.575" in score["guarantees"][0]["promise"]


def test_a_private_sketch_is_not_a_reference_of_verbs_that_take_samples(run, folders, ward, tmp_path):
    out = tmp_path / "s.h5"
    assert run(*ward, "--epsilon", 1, "--out", out).exit_code == 0
    sketch = fe.load(out)
    assert isinstance(sketch, PrivateSketch)
    result = CliRunner().invoke(app, ["metrics", "--gen", str(folders / "good"), "--ref", str(out)])
    assert result.exit_code == 3
    told = "is a private sketch, which finc-eval evaluate, private sketch score .* take as --ref .*: here pass samples"
    assert re.search(told, result.stderr)
    x = np.zeros((100, 4), np.float32)
    for ref in (out, sketch):
        for take in (
            lambda ref: fe.metrics(x, ref, ["fd"]),
            lambda ref: fe.compare(x, ref),
            lambda ref: fe.kinds({"gen": x, "ref": ref}),
            lambda ref: fe.audit(x, ref, x),
        ):
            with pytest.raises(fe.DataError, match=told):
                take(ref)
