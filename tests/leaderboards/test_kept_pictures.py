"""Small pictures that a board keeps: its page shows all models without their samples, and nothing else is kept."""

import base64
import io
import json
import shutil

import numpy as np
import pytest
from _pages import Page
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError
from finc_eval.core.kept import sealed
from finc_eval.core.marks import CHECKSUM, checksum_of
from finc_eval.gallery.counts import LEAD_SAMPLES
from finc_eval.gallery.thumbnails import kept_thumbnails
from finc_eval.leaderboards.board_table import colors_of
from finc_eval.leaderboards.pictures import KEPT_EDGE, KEPT_PICTURES, PICTURED
from finc_eval.report.cards import anchor


def photographs(n, seed, low=0):
    """Smooth images of 80 pixels, as photographs are; `low` is added to their upper half."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 128, (n, 5, 5, 3)).astype(np.uint8)
    coarse[:, :3] += np.uint8(low)
    return np.stack([np.asarray(Image.fromarray(one).resize((80, 80), Image.Resampling.BICUBIC)) for one in coarse])


def run(*words, rc=0):
    done = CliRunner().invoke(app, ["leaderboard", *words])
    assert done.exit_code == rc, done.output
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A board of one model, in a folder whose samples of it are gone, and the samples of another model."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("FINC_EVAL_CACHE", str(folder / "cache"))
        for seed, (name, low) in enumerate((("a", 127), ("b", 0), ("ref", 0))):
            np.savez(f"{name}.npz", images=photographs(40, seed, low))
        run("--ref", "ref.npz", "a=a.npz", "--out", "board", "--extractor", "pixels", "--metrics", "kid", "--quiet")
    (folder / "a.npz").unlink()
    return folder


@pytest.fixture
def desk(made, tmp_path, monkeypatch):
    folder = shutil.copytree(made, tmp_path / "desk")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(folder / "cache"))
    return folder


ADD = ("add", "board", "--ref", "ref.npz", "b=b.npz", "--quiet")


def pictures_of(page, model):
    return page.find("img", inside=page.by_id(f"model-{model}"))


def read_page(folder):
    return Page((folder / "board" / "leaderboard.html").read_text())


def test_adding_a_model_writes_the_page_with_pictures_of_all_models(desk):
    before = {path.name for path in (desk / "board").iterdir()}
    run(*ADD)
    page = read_page(desk)
    assert pictures_of(page, "a") and "are not shown" not in " ".join(page.texts("p"))
    assert "Most typical" in page.texts("p") and "Members drawn at random" not in page.texts("p")
    rows = page.find("tr", inside=page.find("table", "heat")[0])
    assert all(page.find("img", inside=row) and not page.find("span", "missing", row) for row in rows[1:])
    assert {path.name for path in (desk / "board").iterdir()} == before
    shown = (desk / "board" / "leaderboard.html").read_bytes()
    run("render", "board")
    assert (desk / "board" / "leaderboard.html").read_bytes().count(b"data:image/") == shown.count(b"data:image/")


@pytest.mark.long
def test_pictures_are_few_and_small_and_say_nothing_of_where_they_come_from(desk):
    run(*ADD)
    entries = fe.Board("board").entries()
    for one in entries:
        assert 0 < len(one.pictures) <= KEPT_PICTURES + PICTURED * LEAD_SAMPLES
        assert len({picture.id for picture in one.pictures}) == len(one.pictures)
        for picture in one.pictures:
            with Image.open(io.BytesIO(base64.b64decode(picture.data))) as image:
                assert image.size == (picture.width, picture.height) and max(image.size) <= KEPT_EDGE
                assert not image.getexif()
    for path in (desk / "board" / "entries").iterdir():
        assert str(desk).encode() not in path.read_bytes()
    assert sum(path.stat().st_size for path in (desk / "board").rglob("*.json")) < 400_000


def test_each_kind_of_a_set_has_a_picture_and_its_own_kinds_have_more(desk):
    (entry,) = fe.Board("board").entries()
    reference, (first,) = fe.Board("board").reference(), entry.runs
    kept = {one.id for one in entry.pictures}
    leaves = range(reference.tree.leaves)
    assert all(first.examples[one].top_ids[0] in kept for one in leaves if first.members[one])
    excess = np.array(first.members[: len(leaves)]) / first.counted - reference.tally.members[: len(leaves)] / 40
    most = first.examples[int(excess.argmax())].top_ids[:3]
    assert set(most) <= kept


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", ["entries/b.json", "board.json"])
def test_a_kill_between_writes_is_repaired_by_the_same_command(desk, monkeypatch, name):
    """The index did not list the model yet, or a page was not written."""
    real = sealed.write_readable

    def killed(path, *rest):
        real(path, *rest)
        if path.name == name.rpartition("/")[2]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sealed, "write_readable", killed)
        assert CliRunner().invoke(app, ["leaderboard", *ADD]).exit_code != 0
    run(*ADD)
    page = read_page(desk)
    assert fe.Board("board").names == ("a", "b") and page.by_id("model-b") and pictures_of(page, "a")


def test_a_board_of_arrays_has_no_pictures(tmp_path):
    rng = np.random.default_rng(0)
    sets = {name: rng.normal(size=(80, 4)) for name in ("a", "b", "ref")}
    for name, rows in sets.items():
        np.save(tmp_path / f"{name}.npy", rows)
    board = fe.Board(tmp_path / "board")
    board.rank({"a": sets["a"]}, sets["ref"])
    board.add({"b": tmp_path / "b.npy"}, tmp_path / "ref.npy")
    assert [one.pictures for one in board.entries()] == [(), ()] and board.reference().pictures == ()
    page = Page(board.leaderboard().to_html(tmp_path / "page.html").read_text())
    assert not page.find("img") and not page.find("span", "missing")


@pytest.mark.long
def test_a_page_of_a_board_that_kept_nothing_stays_and_the_command_that_shows_it_anew_is_named(desk):
    for path in (desk / "board" / "entries").iterdir():
        data = json.loads(path.read_text())
        data["pictures"] = None
        data[CHECKSUM] = checksum_of(data)
        path.write_text(json.dumps(data))
        index = json.loads((desk / "board" / "board.json").read_text())
        index["models"]["a"]["checksum"] = data[CHECKSUM]
        index[CHECKSUM] = checksum_of(index)
        (desk / "board" / "board.json").write_text(json.dumps(index))
    before = (desk / "board" / "leaderboard.html").read_bytes()
    said = " ".join(run(*ADD).stdout.split())
    assert (
        "finc-eval leaderboard render board --samples a=PATH" in said and "b=" not in said.partition("render")[2][:60]
    )
    assert (desk / "board" / "leaderboard.html").read_bytes() == before
    refused = " ".join(run("render", "board", rc=3).stderr.split())
    assert "which are not kept: pass --samples a=PATH" in refused


def test_a_kind_of_picture_that_is_none_is_refused_in_a_sentence(desk):
    (path,) = (desk / "board" / "entries").iterdir()
    data = json.loads(path.read_text())
    data["pictures"][0] |= {"kind": "svg+xml"}
    data[CHECKSUM] = checksum_of(data)
    path.write_text(json.dumps(data))
    with pytest.raises(DataError, match="kind"):
        fe.Board("board").entries()


@pytest.mark.long
def test_samples_that_are_named_show_more_and_larger_pictures(desk):
    run(*ADD)
    few = len(read_page(desk).find("img"))
    run("render", "board", "--samples", "b=b.npz", "--samples", "ref=ref.npz")
    page = read_page(desk)
    assert len(page.find("img")) > few
    widths = {int(attrs["width"]) for tag, attrs, *_ in page.elements if tag == "img"}
    assert {KEPT_EDGE, 80} <= widths and pictures_of(page, "a")


@pytest.mark.long
def test_a_clip_is_kept_as_a_still(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    sets = {name: np.repeat(photographs(24, seed)[:, None], 8, 1) for seed, name in enumerate(("a", "ref"))}
    extracted = {name: fe.extract(clips, "motion") for name, clips in sets.items()}
    board = fe.Board(tmp_path / "board")
    board.add({"a": extracted["a"]}, extracted["ref"], metrics=["kid"])
    (entry,) = board.entries()
    shown, notes = kept_thumbnails([one.stated for one in entry.pictures])
    assert shown and not notes and not any(one.is_moving for one in shown.values())


def test_each_fault_has_a_card_with_pictures_of_the_model_beside_the_reference(desk):
    """Also of a model that is added when the samples of the first are gone."""
    run(*ADD)
    board, page = fe.Board("board").leaderboard(), read_page(desk)
    findings = [finding for row in board.rows for finding in row.findings]
    assert {finding.kind for finding in board["a"].findings} & {"look", "kind"} and findings
    cards = page.find("article", "look")
    assert len(cards) == len(findings)
    for card, finding in zip(cards, board["a"].findings, strict=False):
        first, folded = page.find("figure", inside=card)[:2], page.find("details", inside=card)
        shown = [len(page.find("img", inside=figure)) for figure in first]
        assert shown[0] >= min(3, len(finding.ids)) > 0
        assert len(shown) == 2 and (shown[1] > 0 or not finding.ids_other) and folded


def test_a_card_of_a_fault_draws_how_its_look_is_spread_and_folds_its_members(desk):
    run(*ADD)
    board, page = fe.Board("board").leaderboard(), read_page(desk)
    looks = [(row.name, finding) for row in board.rows for finding in row.findings if finding.spread is not None]
    assert looks
    for name, finding in looks:
        assert all(sum(shares) == pytest.approx(1, abs=0.01) for shares in finding.spread.shares.values())
        card = page.by_id(anchor(f"{name}: {finding.name}"))
        assert len(page.find("svg", "spread", card)) == 1
        (fold,) = page.find("details", "members", card)
        assert page.texts("code", inside=fold)[0].split() == [*finding.ids]


def test_a_model_that_is_added_changes_the_color_of_no_other(desk):
    run(*ADD)
    before = colors_of(fe.Board("board").leaderboard())
    np.savez("Aa.npz", images=photographs(40, 9))
    run("add", "board", "--ref", "ref.npz", "Aa=Aa.npz", "--quiet")
    after = colors_of(fe.Board("board").leaderboard())
    assert before == {"a": "model-0", "b": "model-1", "ref": "ref"}
    assert after == before | {"Aa": "model-2"}
