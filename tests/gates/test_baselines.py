"""Baselines are bundles that never change: promoted after a pass, refused after a regression, followed to the first."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from _forks import exit_code, forked
from _releases import release
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import UsageError
from finc_eval.core.storage import only_writer_of
from finc_eval.embeddings.array_files import StoredArrays
from finc_eval.gates import baseline
from finc_eval.gates.baseline import Bundle, History

POLICY = (
    "kinds.lose = 0.8\nkinds.moved = 0.2\nkinds.min_share = 0.1\nmetrics.fd.difference = 1.0\nbasics.duplicates = 0.5\n"
)


def gate(*arguments, gen="new.npy", code=0, out="out"):
    options = ["--gen", gen, "--baseline", "releases", "--ref", "ref.npy", "--policy", "gate.toml", "--out", out]
    result = CliRunner().invoke(app, ["gate", *options, "--force", *arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def place(tmp_path, monkeypatch):
    return prepare(tmp_path, monkeypatch)


def prepare(tmp_path, monkeypatch):
    """Work in a folder with a policy, a reference and releases."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "gate.toml").write_text(POLICY)
    for name, rows in {
        "ref": release(400, 3),
        "first": release(400, 1),
        "new": release(400, 2),
        "bad": release(400, 4, lost=8),
    }.items():
        np.save(f"{name}.npy", rows)
    return tmp_path


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A folder with a history of one baseline."""
    with pytest.MonkeyPatch.context() as patch:
        place = prepare(tmp_path_factory.mktemp("begun"), patch)
        gate("--first", gen="first.npy")
    return place


@pytest.fixture
def history(begun, tmp_path, monkeypatch):
    """A copy of a history with one baseline, in the present folder."""
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "releases"


def test_the_first_baseline_is_labelled_in_every_output(place):
    shown = gate("--first", gen="first.npy").output
    written = [(place / "out" / f"verdict.{suffix}").read_text() for suffix in ("json", "html", "md", "xml")]
    for text in (shown, *written):
        assert "nothing was compared with a release before" in " ".join(text.split())
    assert {one.name for one in (place / "releases" / "0001").iterdir()} == {
        "baseline.json",
        "verdict.json",
        "first.npz",
        "kinds.tree",
    }
    assert "already" in gate("--first", code=3).output


def test_without_a_baseline_nothing_passes(place):
    assert "does not exist" in gate(code=3).output
    (place / "releases").mkdir()
    assert "no baseline yet" in gate("--promote", code=3).output
    assert not (place / "out").exists()


def test_a_folder_of_other_files_is_not_made_a_history(place):
    (place / "releases").mkdir()
    (place / "releases" / "notes.txt").write_text("mine")
    assert "releases has other files, such as notes.txt: name a new folder" in gate("--first", code=3).output
    assert [one.name for one in (place / "releases").iterdir()] == ["notes.txt"]


def test_a_policy_is_not_written_while_a_baseline_is_made(place):
    assert "--init writes a policy and judges no release" in gate("--init", "--first", code=3).output


def test_an_array_is_promoted_as_a_file_is(history):
    kept, new = History.open(history), np.load("new.npy")
    verdict = fe.gate(new, kept.latest.folder, "ref.npy", POLICY_TABLE)
    assert kept.promote(verdict, new) == kept.folder / "0002"
    with pytest.raises(UsageError, match="this release is the latest baseline already"):
        History.open(history).promote(verdict, new)


def test_a_release_that_passed_is_the_next_baseline(history):
    gate("--promote")
    first, second = History.open(history).bundles
    assert (second.stated.parent, second.stated.anchor, second.stated.reason) == (first.checksum, first.checksum, None)
    assert second.stated.scores.keys() == {"fd"}
    assert len(second.stated.shares) >= 5
    assert second.verdict.baseline == first.checksum
    assert fe.gate("new.npy", second.folder, "ref.npy", POLICY_TABLE).overall == "pass"
    for again in ("new.npy", "releases/0002", "releases"):
        told = gate("--promote", gen=again, code=3, out="other").output.splitlines()[-1]
        assert told == "finc-eval: this release is the latest baseline already, releases/0002: pass a new one"
    assert not Path("other").exists()


POLICY_TABLE = {"kinds": {"lose": 0.8, "min_share": 0.1}}


def test_after_a_regression_only_a_reason_promotes(history):
    shown = gate("--promote", gen="bad.npy", code=1)
    assert "not promoted" in shown.output
    assert [one.name for one in history.iterdir() if one.name != "refused"] == ["0001"]
    gate("--promote", gen="bad.npy", code=1)
    assert len(History.open(history).refused) == 1
    gate("--promote", "--reason", "new dataset", gen="bad.npy", code=1)
    assert History.open(history).latest.stated.reason == "new dataset"
    assert "--promote" in gate("--reason", "x", code=3).output


@pytest.mark.long
def test_limits_that_never_fired_are_named(history):
    gate("--promote", gen="bad.npy", code=1)
    told = next(one for one in gate("--json").stdout.splitlines() if "never fired" in one)
    assert "in 3 verdicts of releases: basics.duplicates" in told
    assert "metrics.fd" not in told


@pytest.mark.long
def test_the_distances_to_the_last_and_to_the_first_baseline_are_printed(history):
    gate("--promote")
    np.save("third.npy", release(1200, 5))
    shown = " ".join(gate(gen="third.npy").output.split())
    for earlier in ("baseline", "anchor"):
        assert re.search(rf"have moved between \d+ kinds since the {earlier}", shown)
    verdict = fe.load("out/verdict.json")
    assert [one.to for one in verdict.distances] == ["baseline", "anchor"]
    assert {"kinds.moved", "kinds.moved-anchor", "metrics.fd-anchor"} <= {one.rule for one in verdict.limits}


@pytest.mark.parametrize("name", ["baseline.json", "verdict.json", "first.npz", "kinds.tree"])
def test_an_edited_bundle_is_refused(history, name):
    path = history / "0001" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    assert gate(code=3).output.count("finc-eval: ") == 1
    path.unlink()
    gate(code=3)


def test_a_bundle_made_by_hand_does_not_follow(history):
    """Its checksum is right, its place in the history is not."""
    shutil.copytree(history / "0001", history / "0002")
    assert "does not follow" in gate(code=3).output


def test_a_killed_promotion_leaves_the_history_as_it_was(history, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    verdict = fe.gate("new.npy", history, "ref.npy", POLICY_TABLE)
    monkeypatch.setattr("finc_eval.gates.baseline.write_samples", killed)
    with pytest.raises(KeyboardInterrupt):
        History.open(history).promote(verdict, "new.npy")
    monkeypatch.undo()
    assert [one.name for one in history.iterdir()] == ["0001"]
    assert History.open(history).latest.stated.number == 1


@pytest.mark.long
def test_a_promotion_that_was_killed_for_good_is_made_again(history):
    """SIGKILL as the samples are written: nothing can clean up, and what is left is in nobody's way."""

    def promote_and_die():
        baseline.write_text = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        gate("--promote")

    assert exit_code(forked(promote_and_die)) == -signal.SIGKILL
    assert (history / ".0002.tmp" / "new.npz").is_file()
    assert [one.folder.name for one in History.open(history).bundles] == ["0001"]
    gate()  # without promotion: compares with the first baseline, and leaves all as it is
    gate("--promote")
    assert sorted(one.name for one in history.iterdir()) == ["0001", "0002"]


def test_two_processes_do_not_write_one_baseline(history):
    verdict = fe.gate("new.npy", history, "ref.npy", POLICY_TABLE)
    before = History.open(history)
    with only_writer_of(history / "0002"), pytest.raises(fe.DataError, match="another process"):
        before.promote(verdict, "new.npy")
    before.promote(verdict, "new.npy")
    with pytest.raises(fe.UsageError, match="judge the release anew"):
        before.promote(verdict, "new.npy")
    assert sorted(one.name for one in history.iterdir()) == ["0001", "0002"]


def test_only_what_was_judged_is_promoted(history):
    verdict = fe.gate("new.npy", history, "ref.npy", POLICY_TABLE)
    np.save("new.npy", release(400, 4, lost=8))
    with pytest.raises(fe.UsageError, match="these samples were not judged"):
        History.open(history).promote(verdict, "new.npy")
    assert [one.name for one in history.iterdir()] == ["0001"]


@pytest.mark.long
def test_a_column_of_any_name_is_kept_or_refused(history):
    def named(column):
        return fe.EmbeddingSet(release(400, 6), metadata={column: ["a", "b"] * 200})

    for column in ("labels", "ids", "embeddings"):
        verdict = fe.gate(named(column), history, "ref.npy", POLICY_TABLE)
        with pytest.raises(fe.UsageError, match=f"cannot keep a column called '{column}'"):
            History.open(history).promote(verdict, named(column))
    verdict = fe.gate(named("file"), history, "ref.npy", POLICY_TABLE)
    folder = History.open(history).promote(verdict, named("file"))
    assert StoredArrays(folder / "gen.npz").column("file")[:3] == ["a", "b", "a"]


def test_what_a_bundle_holds_is_what_was_judged(history, place):
    columns = {"prompt": [str(i) for i in range(400)]}
    named = fe.EmbeddingSet(release(400, 6), [f"s{i}" for i in range(400)], columns)
    verdict = fe.gate(named, history, "ref.npy", POLICY_TABLE)
    folder = History.open(history).promote(verdict, named)
    again = Bundle.open(folder)
    found = fe.gate(named, folder, "ref.npy", POLICY_TABLE | {"pairs": "id"})
    assert found.overall == "pass"
    assert json.loads((folder / "baseline.json").read_text())["n"] == again.stated.n == 400


@pytest.mark.long
def test_slow_drift_fails_against_the_anchor_by_the_third_release(place):
    """Releases, each with 1 % more of a new kind, at a limit of 2 %: the last release alone would pass all."""
    policy = {"kinds": {"new": 0.02, "column": "kind"}}

    def made(step):
        new = 30 * step
        return fe.EmbeddingSet(release(3000, step), metadata={"kind": ["new"] * new + ["old"] * (3000 - new)})

    ref = fe.EmbeddingSet(release(3000, 99), metadata={"kind": ["old"] * 3000})
    anchor, last, alone, drift = made(0), made(0), [], []
    for step in range(1, 4):
        new = made(step)
        alone.append(fe.gate(new, last, ref, policy).overall)
        drift.append(fe.gate(new, last, ref, policy, anchor=anchor).overall)
        last = new
    assert set(alone) == {"pass"}
    assert drift.index("regression") <= 2


def test_releases_are_counted_by_the_kinds_that_the_baseline_keeps(history):
    """Whatever the reference is now, the kinds are those of the first baseline."""
    kept = History.open(history).latest.kinds
    for ref in ("ref.npy", release(240, 33)):
        verdict = fe.gate("new.npy", history, ref, POLICY_TABLE)
        assert verdict.tree.digest == kept.digest
        assert kept.digest[:12] in str(verdict.signature)
    assert fe.gate("new.npy", "first.npy", release(240, 33), POLICY_TABLE).tree.digest != kept.digest
    assert History.open(history).promote(verdict, "new.npy").name == "0002"
    assert History.open(history).latest.kinds.digest == kept.digest


def test_a_baseline_without_limits_on_lost_kinds_keeps_none(place):
    (place / "gate.toml").write_text("kinds.new = 0.3\n")
    gate("--first", gen="first.npy")
    assert History.open(place / "releases").latest.kinds is None
    assert fe.gate("new.npy", "releases", "ref.npy", POLICY_TABLE).overall == "pass"
