"""Stored boards: one file per model, adding, removing, rendering again, two processes at once, and refusals."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.kept import sealed
from finc_eval.core.marks import checksum_of
from finc_eval.estimates.error_source import MAX_PARTS, ErrorSource
from finc_eval.leaderboards.assemble import assemble
from finc_eval.leaderboards.entry import ENTRY, file_name
from finc_eval.leaderboards.measures import Measuring
from finc_eval.measures.registry import get_metric

CENTERS = np.random.default_rng(0).normal(0, 4, (10, 6))


def samples(kinds, n, seed):
    rng = np.random.default_rng(seed)
    return (CENTERS[rng.choice(kinds, n)] + rng.normal(size=(n, 6))).astype(np.float32)


REF = samples(range(10), 300, 0)
MODELS = {"good": samples(range(10), 200, 1), "gaps": samples(range(6), 200, 2), "Org/Twin": samples(range(10), 200, 3)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    fe.Board(folder).add({name: MODELS[name] for name in ("good", "gaps")}, REF)
    return folder


@pytest.fixture
def board(made, tmp_path):
    return fe.Board(shutil.copytree(made, tmp_path / "board"))


def contents(board):
    return {
        str(path.relative_to(board.folder)): path.read_bytes() for path in board.folder.rglob("*") if path.is_file()
    }


def test_adding_a_model_writes_its_file_and_the_index_alone(board):
    before = contents(board)
    assert board.add({"Org/Twin": MODELS["Org/Twin"]}, REF) == ("Org/Twin",)
    after = contents(board)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {"board.json", f"entries/{file_name('Org/Twin')}"}
    assert board.names == ("Org/Twin", "gaps", "good")
    ranked = board.leaderboard()
    assert ranked["gaps"].rank_set == (3, 3)
    assert not ranked.separable("good", "Org/Twin")


@pytest.mark.long
@pytest.mark.by_turns(3)
def test_a_board_of_all_models_at_once_has_the_numbers_of_leaderboard(board):
    stored, direct = board.leaderboard(), fe.leaderboard({name: MODELS[name] for name in board.names}, REF)
    for name in board.names:
        for key in ("unmatched", "missing", "novel", "fd"):
            one, other = stored[name].scores[key], direct[name].scores[key]
            assert one.value == pytest.approx(other.value, abs=0.01)
            assert one.rank_set == other.rank_set
    assert stored["good"].scores["fd"].interval == pytest.approx(direct["good"].scores["fd"].interval, rel=1e-6)


@pytest.mark.long
def test_a_board_that_was_ranked_at_once_is_kept_and_a_later_model_is_measured_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "boards").mkdir()
    labels = {name: [f"kind {number}" for number in range(len(rows))] for name, rows in MODELS.items()}
    first = {name: fe.EmbeddingSet(MODELS[name], metadata={"kind": labels[name]}) for name in ("good", "gaps")}
    board, direct = fe.Board("boards/one"), fe.leaderboard(first, REF)
    ranked = board.rank(first, REF)
    assert ranked.rows == direct.rows and ranked.kinds == direct.kinds
    kept = board.leaderboard()
    assert kept.rows == direct.rows and [one.shares for one in kept.kinds] == [one.shares for one in direct.kinds]
    measured = []
    measure = Measuring.measure
    monkeypatch.setattr(Measuring, "measure", lambda *one: measured.append(one[1]) or measure(*one))
    board.add({"Org/Twin": MODELS["Org/Twin"]}, REF)
    assert measured == ["Org/Twin"]
    later = board.leaderboard()["good"].scores["fd"]
    assert (later.value, later.interval) == (kept["good"].scores["fd"].value, kept["good"].scores["fd"].interval)
    with pytest.raises(UsageError, match="boards/one has Org/Twin, which this command does not measure: add models"):
        board.rank(first, REF)
    assert board.rank(first, REF, force=True).rows == direct.rows and board.names == ("gaps", "good")


@pytest.mark.long
def test_a_paired_board_is_ranked_and_not_kept(board):
    prompts = {"prompt": [f"a {number}" for number in range(200)]}
    models = {name: fe.EmbeddingSet(MODELS[name], metadata=prompts) for name in ("good", "gaps")}
    ref = fe.EmbeddingSet(REF[:200], metadata=prompts)
    assert board.rank(models, ref, pairs="prompt").rows == fe.leaderboard(models, ref, pairs="prompt").rows
    assert not board.exists


def test_the_first_command_leads_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in {"a": MODELS["good"], "b": MODELS["gaps"], "c": MODELS["Org/Twin"], "ref": REF}.items():
        np.save(f"{name}.npy", rows)

    def run(*words):
        done = CliRunner().invoke(app, ["leaderboard", *words])
        assert done.exit_code == 0, done.output
        return " ".join(done.output.split())

    said = run("--ref", "ref.npy", "a=a.npy", "b=b.npy")
    again = "leaderboard add reports/a-vs-b-vs-ref --ref ref.npy "
    assert f"to add a model: finc-eval {again}NAME=PATH" in said
    assert "reports/a-vs-b-vs-ref/leaderboard.html" in run(*again.split()[1:], "c=c.npy")
    run("render", "reports/a-vs-b-vs-ref")
    assert {row.name for row in fe.load("reports/a-vs-b-vs-ref/leaderboard.json").rows} == {"a", "b", "c"}


def test_metrics_of_a_model_do_not_change_when_another_is_added_and_rendering_twice_gives_the_same_bytes(board):
    before = board.leaderboard()
    board.add({"Org/Twin": MODELS["Org/Twin"]}, REF)
    after = board.leaderboard()
    assert after["good"].scores["fd"].value == before["good"].scores["fd"].value
    assert after["good"].scores["fd"].interval == before["good"].scores["fd"].interval
    assert board.leaderboard().to_json() == after.to_json()
    assert [board.leaderboard().to_html(board.folder / f"{i}.html").read_bytes() for i in (1, 2)] == [
        (board.folder / "1.html").read_bytes()
    ] * 2


@pytest.mark.long
def test_the_order_of_adding_leaves_no_trace_but_in_provenance(tmp_path):
    texts = []
    for order in (("b", "c"), ("c", "b")):
        board = fe.Board(tmp_path / order[0])
        board.add({"a": MODELS["good"]}, REF)
        for name in order:
            board.add({name: MODELS["gaps" if name == "b" else "Org/Twin"]}, REF)
        texts.append(board.leaderboard().to_dict()["rows"])
    assert texts[0] == texts[1]


@pytest.mark.long
def test_what_is_kept_of_a_model_does_not_grow_with_samples(tmp_path):
    sizes = {}
    for n in (1500, 3000):
        board = fe.Board(tmp_path / str(n))
        board.add({"a": samples(range(10), n, 1)}, samples(range(10), n, 2), metrics=("fd",))
        sizes[n] = (board.folder / "entries" / "a.json").stat().st_size
    assert sizes[3000] < 1.05 * sizes[1500]


def test_the_covariance_that_parts_of_the_reference_give_is_that_of_all_its_samples():
    rng, ratios = np.random.default_rng(0), []
    for _ in range(40):
        one, other = rng.normal(size=(2, 5000))
        one, other = one - one.mean(), 0.8 * one + 0.6 * (other - other.mean())
        parts = [ErrorSource("ref", each).summed().parts for each in (one, other)]
        assert len(parts[0]) == MAX_PARTS
        ratios.append(float(parts[0] @ parts[1]) / float(one @ other))
    assert np.mean(ratios) == pytest.approx(1, abs=0.02)
    assert np.std(ratios) < 0.08


def test_a_removed_model_is_gone_with_its_file_also_where_a_command_before_was_killed(board):
    board.add({"Org/Twin": MODELS["Org/Twin"]}, REF)
    file = Path(board.index.models["Org/Twin"].file)
    kept = (board.folder / file).read_bytes()
    board.remove(["Org/Twin"])
    (board.folder / file).write_bytes(kept)  # as a kill leaves it, after the index is written
    assert board.names == ("gaps", "good")
    board.remove(["Org/Twin"])
    assert sorted(path.name for path in (board.folder / "entries").iterdir()) == ["gaps.json", "good.json"]
    for name, message in (("Org/Twin", "'Org/Twin' is not on"), ("goof", r"'goof' is not .* .did you mean .good")):
        with pytest.raises(UsageError, match=message):
            board.remove([name])


@pytest.mark.one_of_each
@pytest.mark.parametrize("full", ["Org", "board.json"])
def test_a_full_disk_leaves_the_board_as_it_was_whatever_file_has_no_room(board, monkeypatch, full):
    """The index did not fit in, and left the file of a model that no index lists."""
    before, real = contents(board), os.fsync

    def no_room(descriptor):
        if full in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(DataError, match="the disk is full while writing"):
        board.add({"new": MODELS["good"], "Org/Twin": MODELS["Org/Twin"]}, REF)
    assert contents(board) == before
    monkeypatch.undo()
    assert board.add({"new": MODELS["good"]}, REF) == ("new",)


def test_locks_that_fail_are_one_sentence(board, monkeypatch):
    def failing(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", failing)
    with pytest.raises(DataError, match=r"board\.json lies on a disk that does not lock files .*No locks available"):
        board.remove(["good"])


def test_a_name_like_the_file_of_another_model_does_not_remove_it(board):
    board.add({"wide model": MODELS["Org/Twin"]}, REF)
    file = Path(board.index.models["wide model"].file)
    assert file_name(file.stem) == file.name
    with pytest.raises(UsageError, match="is not on the board"):
        board.remove([file.stem])
    assert (board.folder / file).exists()


PROGRAM = """
import sys, numpy as np, finc_eval as fe
rows = np.load(sys.argv[1])
for number in range(3):
    fe.Board(sys.argv[2]).add({f"{sys.argv[3]}{number}": rows[number * 40 :][:120]}, np.load(sys.argv[4]))
"""


@pytest.mark.long
def test_two_processes_that_add_at_once_lose_nothing(board, tmp_path):
    np.save(tmp_path / "rows.npy", MODELS["good"])
    np.save(tmp_path / "ref.npy", REF)
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "rows.npy"), str(board.folder)]
    running = [subprocess.Popen([*words, letter, str(tmp_path / "ref.npy")]) for letter in "xy"]
    assert [one.wait() for one in running] == [0, 0]
    assert board.names == ("gaps", "good", "x0", "x1", "x2", "y0", "y1", "y2")
    assert len(board.leaderboard().rows) == 8


@pytest.mark.long
def test_a_command_that_another_has_overtaken_in_making_the_board_adds_to_it(board, tmp_path, monkeypatch):
    for name, rows in (("c", MODELS["good"][::-1]), ("ref", REF)):
        np.save(tmp_path / f"{name}.npy", rows)
    seen = iter([False])  # it looks for the board before the other has written it
    monkeypatch.setattr(fe.Board, "exists", property(lambda self: next(seen, True)))
    words = ["add", str(board.folder), "--ref", f"{tmp_path}/ref.npy", f"c={tmp_path}/c.npy"]
    done = CliRunner().invoke(app, ["leaderboard", *words])
    assert done.exit_code == 0, done.output
    assert board.names == ("c", "gaps", "good")


@pytest.mark.long
def test_settings_are_of_a_new_board_and_options_must_be_those_of_a_board_that_exists(board, tmp_path):
    asked = fe.LeaderboardSettings(metrics=("kid",), seed=3)
    board.add({"c": MODELS["good"][::-1]}, REF, asked)
    new = fe.Board(tmp_path / "new")
    new.add({"c": MODELS["good"]}, REF, asked, seed=4)
    assert (new.reference().settings.metrics, new.reference().settings.seed) == (("kid",), 4)
    with pytest.raises(IncompatibleError, match="seed is 3 here and 0 in"):
        board.add({"d": MODELS["gaps"]}, REF, asked, seed=3)


@pytest.mark.parametrize(
    "models, ref, options, error, message",
    [
        ({"good": "gaps"}, REF, {}, UsageError, "good is on the board with other samples: remove it first"),
        ({}, REF, {}, UsageError, "no model was given"),
        ({"ref": "good"}, REF, {}, UsageError, 'cannot be called "ref"'),
        ({"c": "good"}, REF[1:], {}, IncompatibleError, r"the digest of ref is \w+ here and \w+ in .*reference.h5"),
        ({"c": "good"}, REF, {"seed": 3}, IncompatibleError, "seed is 3 here and 0 in .*reference.h5"),
        ({"c": "good"}, REF, {"levels": 3}, UsageError, "unknown option 'levels'"),
    ],
)
def test_what_does_not_belong_on_a_board_is_refused(board, models, ref, options, error, message):
    before = contents(board)
    with pytest.raises(error, match=message):
        board.add({name: MODELS[which] for name, which in models.items()}, ref, **options)
    assert contents(board) == before


def test_a_model_is_added_again_with_the_same_samples_as_after_a_kill(board):
    before = contents(board)
    assert board.add({"good": MODELS["good"]}, REF) == ()
    assert contents(board) == before
    assert board.add({"good": MODELS["good"], "c": MODELS["good"][::-1]}, REF) == ("c",)
    assert board.names == ("c", "gaps", "good")


@pytest.mark.long
def test_samples_that_are_added_are_embedded_by_the_extractor_of_the_board(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))
    rng = np.random.default_rng(0)
    for name in ("one", "two", "real"):
        np.save(tmp_path / f"{name}.npy", rng.integers(0, 256, (30, 8, 8, 3), np.uint8))
    kept, ref = fe.Board(tmp_path / "board"), fe.extract(tmp_path / "real.npy", "pixels", tmp_path / "real.h5")
    kept.add({"one": fe.extract(tmp_path / "one.npy", "pixels", tmp_path / "one.h5")}, ref)
    kept.add({"two": tmp_path / "two.npy"}, tmp_path / "real.npy")
    assert kept.names == ("one", "two")


def test_sets_of_another_extractor_and_sets_that_are_too_small_are_refused(board):
    with pytest.raises(IncompatibleError, match=r"the extractor of ref is array-5 here and array-6 in .*reference.h5"):
        board.add({"c": MODELS["good"][:, :5]}, REF[:, :5])
    with pytest.raises(DataError, match="c has 19 samples: at least 20 of each set are needed"):
        board.add({"c": MODELS["good"][:19]}, REF)


@pytest.mark.parametrize("name", ["reference.h5", "entries/good.json"])
def test_a_board_of_an_earlier_layout_is_refused_in_one_sentence(board, name, monkeypatch):
    if name == "reference.h5":
        monkeypatch.setattr("finc_eval.leaderboards.reference.LAYOUT", 4)
    else:
        monkeypatch.setattr("finc_eval.leaderboards.stored.ENTRY", replace(ENTRY, layout=4))
    with pytest.raises(fe.FincEvalError, match=rf"{name} .*layout 3") as told:
        board.leaderboard()
    assert "\n" not in str(told.value)


@pytest.mark.one_of_each
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_kind_that_the_board_has_never_seen_is_far(board, share):
    """It lies in another direction: of its samples the nearest kind would take all."""
    rows = MODELS["good"].copy()
    new = int(share * len(rows))
    rows[:new] = samples([0], new, 3) @ -np.eye(rows.shape[1], dtype=np.float32) * 3
    board.add({"new": rows}, REF)
    ranked = board.leaderboard()
    far = next(kind for kind in ranked.kinds if kind.id == "far")
    assert far.shares["new"].share == pytest.approx(share, abs=0.02)
    assert far.p_value <= 0.05 and far.shares["ref"].share == 0
    assert ranked["new"].scores["unmatched"].value == pytest.approx(share, abs=0.05)


@pytest.mark.long
def test_later_samples_of_the_same_law_are_hardly_ever_far(board):
    later = [samples(range(10), 1000, 100 + seed) for seed in range(3)]
    board.add({f"later {place}": rows for place, rows in enumerate(later)}, REF)
    entries = [one for one in board.entries() if one.name.startswith("later")]
    place = board.reference().tree.leaves - 1
    assert all(one.runs[0].members[place] <= 15 for one in entries)
    assert not any(kind.id == "far" and kind.p_value <= 0.05 for kind in board.leaderboard().kinds)


def test_an_entry_of_another_board_is_refused_with_field_both_values_and_file(board, tmp_path):
    other = fe.Board(tmp_path / "other")
    other.add({"good": MODELS["good"], "gaps": MODELS["gaps"]}, REF[:280])
    strange = (other.folder / "entries" / "good.json").read_bytes()
    (board.folder / "entries" / "good.json").write_bytes(strange)
    ours, theirs = board.reference().shared[0][1], other.reference().shared[0][1]
    with pytest.raises(IncompatibleError, match=rf"entries/good.json does not .*ref: {theirs} and {ours}"):
        board.leaderboard()


def test_an_entry_whose_metric_has_changed_since_is_refused_and_one_of_another_version_is_not(board, monkeypatch):
    path = board.folder / "entries" / "good.json"
    data = json.loads(path.read_text())
    data["provenance"]["versions"]["finc-eval"] = "0.0.5"
    data["checksum"] = checksum_of(data)
    path.write_text(json.dumps(data))
    index = json.loads((board.folder / "board.json").read_text())
    index["models"]["good"]["checksum"] = data["checksum"]
    index["checksum"] = checksum_of(index)
    (board.folder / "board.json").write_text(json.dumps(index))
    assert len(board.leaderboard().rows) == 2
    for versions, refused in ((("0.0.4",), False), (("0.0.4", "0.0.6"), True)):
        monkeypatch.setitem(get_metric("fd").__dict__, "numbers_changed_in", versions)
        if not refused:
            board.leaderboard()
            continue
        with pytest.raises(IncompatibleError, match=r"good.json was made by .* 0.0.5, and fd is another .* 0.0.6 on"):
            board.leaderboard()


@pytest.mark.parametrize("name", ["board.json", "entries/good.json", "reference.h5"])
def test_a_changed_file_is_refused_by_name(board, name):
    path = board.folder / name
    data = path.read_bytes()
    path.write_bytes(data.replace(b"good", b"evil", 1) if name != "reference.h5" else data[:-9] + b"x" * 9)
    with pytest.raises(DataError, match=re.escape(name)):
        board.leaderboard()


def test_an_old_file_under_a_new_index_is_refused(board):
    path = board.folder / "entries" / "good.json"
    old = path.read_bytes()
    board.remove(["good"])
    board.add({"good": MODELS["Org/Twin"]}, REF)
    path.write_bytes(old)
    with pytest.raises(DataError, match=r"good\.json is not the file that board.json lists"):
        board.leaderboard()


def test_a_metric_that_an_entry_lacks_leaves_it_unranked(board):
    entries = board.entries()
    run = entries[0].runs[0]
    run.measures.clear()
    text = ENTRY.text(entries[0])
    assert '"measures": {}' in text
    reference = board.reference()
    ranked = assemble(reference, entries, reference.settings, ())
    assert ranked[entries[0].name].scores["fd"].reason == "it was not measured"
    assert ranked[entries[0].name].scores["fd"].rank_set is None
    assert ranked[entries[0].name].scores["missing"].rank_set is not None


def test_a_board_of_one_model_has_its_numbers_and_a_folder_without_a_board_is_refused(tmp_path):
    board = fe.Board(tmp_path / "board")
    with pytest.raises(DataError, match="is not a stored board: pass the folder of a board, or add"):
        board.leaderboard()
    board.add({"a": MODELS["good"]}, REF)
    assert board.leaderboard()["a"].rank_set == (1, 1)
    board.remove(["a"])
    with pytest.raises(UsageError, match="has lost all its models: add one"):
        board.leaderboard()


def test_samples_that_are_on_a_board_under_two_names_are_told(board):
    board.add({"copy": MODELS["good"]}, REF)
    assert board.leaderboard().warnings[0].startswith("good and copy have the same samples")


def test_a_stored_board_names_the_command_that_renders_it(board):
    assert board.leaderboard().provenance.command == "finc-eval leaderboard render board"
    assert board.leaderboard("fd").provenance.command == "finc-eval leaderboard render board --rank-by fd"


def test_the_example_board_is_ranked_as_its_page_says():
    folder = Path(__file__).parents[2] / "reports" / "leaderboard"
    ranked, shown = fe.Board(folder / "pixels").leaderboard(), fe.load(folder / "leaderboard.json")
    assert [row.name for row in ranked.rows][::6] == ["ddpm", "wgan_collapsed"]
    for row, other in zip(ranked.rows, shown.rows, strict=True):
        assert (row.name, row.rank_set, row.group) == (other.name, other.rank_set, other.group)
        for key, standing in row.scores.items():
            assert standing.rank_set == other.scores[key].rank_set
            assert (standing.value or 0) == pytest.approx(other.scores[key].value or 0, rel=1e-6)


def test_an_entry_comes_back_as_it_was(board):
    path = board.folder / "entries" / "gaps.json"
    entry, checksum = ENTRY.read(path)
    assert ENTRY.text(entry) == path.read_text() and board.index.models["gaps"].checksum == checksum
    assert len(entry.runs[0].measures["fd"].ref_influence) == len(REF)
    assert entry.runs[0].info.digest
    assert entry.runs[0].measures["fd"].interval[0] < entry.runs[0].measures["fd"].value


def test_findings_of_an_entry_of_an_earlier_version_are_read_by_their_names_now(board):
    path = board.folder / "entries" / "gaps.json"
    now = {"kind": "look", "share_gen": 0.4, "share_ref": 0.1}
    earlier = {"what": "look", "share": 0.4, "before": 0.1}
    shared = {"name": "blurry", "whole": False, "p_value": 0.01, "parts": []}
    read = []
    for names in (now, earlier):
        data = json.loads(path.read_text())
        data["runs"][0]["findings"] = [{**shared, **names}]
        path.write_text(json.dumps(data | {"checksum": checksum_of(data)}))
        read.append(ENTRY.read(path)[0].runs[0].findings)
    assert read[0] == read[1] and read[1][0].kind == "look" and read[1][0].share_gen == 0.4


@pytest.mark.parametrize("runs", [None, 3, [3], [{"findings": 3}], [{"findings": [3]}], [{}]])
def test_an_entry_that_was_forged_is_one_sentence_before_and_after_an_upgrade(board, runs):
    path = board.folder / "entries" / "gaps.json"
    data = json.loads(path.read_text()) | {"runs": runs}
    path.write_text(json.dumps(data | {"checksum": checksum_of(data)}))
    with pytest.raises(DataError, match=r"gaps\.json") as told:
        ENTRY.read(path)
    assert "\n" not in str(told.value)


@pytest.mark.long
def test_a_board_does_not_tell_where_its_samples_lie(tmp_path, monkeypatch):
    folder = tmp_path / "far away"
    folder.mkdir()
    images = np.random.default_rng(0).integers(0, 256, (60, 4, 4, 3), dtype=np.uint8)
    np.savez(folder / "model.npz", images=images)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    board = fe.Board(tmp_path / "board")
    board.add({"a": fe.extract("far away/model.npz", "pixels")}, fe.extract(images[::-1].copy(), "pixels"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    board.add({"b": fe.extract(folder / "model.npz", "pixels")}, fe.extract(images[::-1].copy(), "pixels"))
    a, b = (board.entries()[place].runs[0].info.source for place in (0, 1))
    assert (a, b) == ("far away/model.npz", "model.npz")
    assert b"far away" not in (board.folder / "entries" / "b.json").read_bytes()


def test_files_of_models_are_told_apart_where_cases_are_not():
    names = ["model", "Model", "MODEL", "a/b", "a b", "..", "", "x" * 300]
    files = [file_name(name).lower() for name in names]
    assert len(set(files)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9][\w.-]{0,100}\.json", file) for file in files)


def test_a_folder_of_other_files_is_not_made_a_board(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(UsageError, match=r"has other files, such as a\.png: name a new folder"):
        fe.Board(tmp_path).add(MODELS, REF)
    assert [one.name for one in tmp_path.iterdir()] == ["a.png"]


def test_a_board_of_odd_names_and_columns_is_read_back_as_it_was_written(tmp_path):
    names = ['a"b', "a\\b", "#", "😀 é", "1.2.3.4.5.6.7.8.9", "\x7f", "con"]
    label = "kind|\n[x] = \u2028"
    rng = np.random.default_rng(0)

    def samples(n, seed):
        return fe.EmbeddingSet(
            np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32),
            metadata={label: [names[i] for i in rng.integers(0, len(names), n)]},
        )

    board = fe.Board(tmp_path / "board")
    ref = samples(80, 0)
    board.rank({name: samples(60, 1 + i) for i, name in enumerate(names)}, ref, by=label)
    assert set(board.names) == set(names) and board.reference().settings.by == label
    shown = board.leaderboard()
    assert {row.name for row in shown.rows} == set(names)
    assert set(names) <= {kind.name for kind in shown.by.kinds}


def test_a_board_that_could_not_be_read_back_is_not_written(tmp_path, monkeypatch):
    """A number that JSON has no word for, in what the file of a model says."""
    rows = np.random.default_rng(0).normal(size=(3, 60, 6)).astype(np.float32)
    board = fe.Board(tmp_path / "board")
    board.add({"a": rows[0]}, rows[1])
    before = {path: path.read_bytes() for path in (tmp_path / "board").rglob("*") if path.is_file()}
    monkeypatch.setattr(sealed, "_text", lambda *_: json.dumps({"program": "finc-eval"}))
    with pytest.raises(fe.DataError, match="is not written, because finc-eval could not read it back"):
        board.add({"b": rows[2]}, rows[1])
    assert {path: path.read_bytes() for path in (tmp_path / "board").rglob("*") if path.is_file()} == before
