"""Each failure that a pipeline meets is one sentence and exit code 3, and leaves no half-written output."""

import errno
import os
import time

import numpy as np
import pytest
from _forks import forked
from _releases import release
from PIL import Image
from typer.testing import CliRunner

from finc_eval.cli.app import app
from finc_eval.gates.baseline import History

POLICY = "kinds.lose = 0.8\nkinds.min_share = 0.1\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "gate.toml").write_text(POLICY)
    for seed, name in enumerate(("old", "new", "ref")):
        np.save(f"{name}.npy", release(600, seed))
    return tmp_path


def words(*more, **named):
    given = {"gen": "new.npy", "baseline": "old.npy", "ref": "ref.npy", "policy": "gate.toml", "out": "out"} | named
    return ["gate", *(part for name, value in given.items() if value for part in (f"--{name}", value)), *more]


def refused(*more, **named):
    """The one sentence of a run that is refused; nothing may be left in the folder of results."""
    result = CliRunner().invoke(app, words(*more, **named))
    assert result.exit_code == 3, result.output
    lines = [line for line in result.stderr.splitlines() if line.startswith("finc-eval: ")]
    assert len(lines) == 1
    assert "Traceback" not in result.output
    return lines[0]


def nothing_left(folder):
    return not folder.exists() or not [*folder.iterdir()]


@pytest.mark.parametrize(
    ("named", "told"),
    [
        *(
            ({name: "missing.x"}, "missing.x does not exist")
            for name in ("gen", "baseline", "ref", "policy", "anchor", "train")
        ),
        ({"gen": None}, "needs the new release"),
        ({"gen": "narrow.npy"}, "entries per embedding"),
        ({"policy": "ref.npy"}, "ref.npy is a binary file, not a policy in TOML: pass another file"),
        ({"policy": "."}, ". is a folder, not a policy in TOML: pass another file"),
    ],
)
def test_a_wrong_input(place, named, told):
    np.save("narrow.npy", release(600, 1)[:, :8])
    assert told in refused(**named)
    assert nothing_left(place / "out")


@pytest.mark.parametrize(
    "text, told",
    [
        ("kinds = [", "cannot be read as a policy in TOML"),
        ("kinds.los = 0.5", "did you mean"),
        ("", "limits nothing"),
        ("kinds.new = -1.0", "gate.toml: new must lie between 0 and 1, got -1.0"),
    ],
)
def test_a_broken_policy(place, text, told):
    (place / "gate.toml").write_text(text)
    assert told in refused()
    assert nothing_left(place / "out")


def test_images_that_cannot_be_read(place):
    for folder in ("old", "new", "ref"):
        (place / folder).mkdir()
        for number, pixels in enumerate(np.random.default_rng(0).integers(256, size=(30, 8, 8, 3), dtype=np.uint8)):
            path = place / folder / f"{number}.png"
            if folder == "new":
                path.write_bytes(b"no image")
            else:
                Image.fromarray(pixels).save(path)
    assert "new" in refused("--extractor", "pixels", gen="new", baseline="old", ref="ref")
    assert nothing_left(place / "out")


@pytest.mark.one_of_each
@pytest.mark.parametrize("what", ["out", "baseline"])
def test_no_space_on_the_disk(place, monkeypatch, what):
    """The disk is full as the results are written, or as a release is promoted."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fail(*_, **__):
        raise full

    if what == "out":
        monkeypatch.setattr("finc_eval.core.storage.create_text", fail)
        told = refused()
    else:
        assert CliRunner().invoke(app, words("--first", baseline="releases", gen="old.npy")).exit_code == 0
        monkeypatch.setattr("finc_eval.gates.baseline.write_samples", fail)
        told = refused("--promote", baseline="releases", out="second")
        monkeypatch.undo()
        assert [one.name for one in (place / "releases").iterdir()] == ["0001"]
        assert History.open(place / "releases").latest.stated.number == 1
    assert "the disk is full" in told
    assert what == "baseline" or nothing_left(place / "out")


@pytest.mark.one_of_each
@pytest.mark.parametrize("begun", [False, True])
def test_killed_in_the_middle(place, begun):
    """Whenever the kill comes, there are all four files of a verdict or none, and the same command works again."""
    running = forked(app, words())
    while begun and running.is_alive() and not (place / "out").exists():
        time.sleep(0.01)
    running.kill()
    running.join()
    written = list((place / "out").glob("verdict.*")) if (place / "out").exists() else []
    assert len(written) in (0, 4)
    assert CliRunner().invoke(app, words()).exit_code == 0
    assert {path.name for path in (place / "out").iterdir()} == {
        f"verdict.{one}" for one in ("json", "html", "md", "xml")
    }


def test_an_interrupt_has_its_own_code_and_leaves_nothing(place, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("finc_eval.gates.gate.gather_evidence", interrupted)
    assert CliRunner().invoke(app, words()).exit_code == 130
    assert nothing_left(place / "out")
