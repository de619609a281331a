"""An option that is given twice counts both times: files of scores, of votes, and names of judges."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from finc_eval.cli.app import app
from finc_eval.cli.verbs.leaderboard import score_sources
from finc_eval.core.errors import UsageError

N = 24
IDS = [str(number) for number in range(N)]


def drawn(seed):
    return np.random.default_rng(seed).normal(size=N).round(4).tolist()


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Sets, scores by two judges in a file each, tables with a column model, and votes of two people."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("one", "two", "ref"):
        np.save(f"{name}.npy", rng.normal(size=(N, 4)))
    for seed, name in enumerate(("one", "two")):
        for judge, step in (("clip", 0), ("aes", 10)):
            rows = zip(IDS, drawn(seed + step), strict=True)
            (tmp_path / f"{name}-{judge}.csv").write_text(f"id,{judge}\n" + "".join(f"{a},{b}\n" for a, b in rows))
    for judge in ("hps", "vqa"):
        rows = [
            f"{name},{id},{one}\n"
            for k, name in enumerate(("one", "two"))
            for id, one in zip(IDS, drawn(k + len(judge)), strict=True)
        ]
        (tmp_path / f"{judge}.csv").write_text(f"model,id,{judge}\n" + "".join(rows))
    for seed, voter in enumerate(("ann", "ben")):
        wins = np.random.default_rng(seed).choice(["one", "two", "tie"], 30)
        rows = [f"p{n},one,two,{one},{voter}\n" for n, one in enumerate(wins)]
        (tmp_path / f"{voter}.csv").write_text("prompt,left,right,winner,voter\n" + "".join(rows))


def board(*words):
    done = CliRunner().invoke(
        app,
        [
            "leaderboard",
            "one=one.npy",
            "two=two.npy",
            "--ref",
            "ref.npy",
            "--metrics",
            "kid",
            *words,
            "--out",
            "o",
            "--force",
            "--json",
        ],
    )
    return done.exit_code, json.loads(done.stdout) if done.exit_code == 0 else done.output


@pytest.mark.one_of_each("judges")
@pytest.mark.parametrize(
    ("words", "judges"),
    [
        (
            ["--scores", "one=one-clip.csv,two=two-clip.csv", "--scores", "one=one-aes.csv,two=two-aes.csv"],
            {"clip", "aes"},
        ),
        (["--scores", "one=one-clip.csv,one=one-aes.csv,two=two-clip.csv,two=two-aes.csv"], {"clip", "aes"}),
        (["--scores", "one=one-clip.csv", "--scores", "two=two-clip.csv"], {"clip"}),
        (["--scores", "hps.csv", "--scores", "vqa.csv"], {"hps", "vqa"}),
        (["--scores", "hps.csv,vqa.csv"], {"hps", "vqa"}),
        (["--scores", "one=one-clip.csv,two=two-clip.csv", "--scores", "hps.csv"], {"clip", "hps"}),
        (["--scores", "hps.csv,vqa.csv", "--judges", "vqa"], {"vqa"}),
    ],
)
def test_all_files_of_scores_are_on_the_board(files, words, judges):
    code, found = board(*words)
    assert code == 0, found
    assert {one["judge"] for one in found["scores"]} == judges
    assert all(one["value"] is not None for one in found["scores"])


@pytest.mark.parametrize("words", [["--votes", "ann.csv", "--votes", "ben.csv"], ["--votes", "ann.csv,ben.csv"]])
def test_all_files_of_votes_are_on_the_board(files, words):
    code, found = board(*words)
    assert code == 0, found
    assert [one["votes"] for one in found["votes"]] == [60, 60]


def test_a_file_of_votes_that_is_given_twice_counts_once(files):
    _, found = board("--votes", "ann.csv", "--votes", "ann.csv")
    assert [one["votes"] for one in found["votes"]] == [30, 30]
    assert any("each vote counts once" in one for one in found["warnings"])


def test_the_terminal_says_what_counts_as_better(files):
    done = CliRunner().invoke(
        app, ["leaderboard", "one=one.npy", "two=two.npy", "--ref", "ref.npy", "--scores", "hps.csv", "--out", "o"]
    )
    assert done.exit_code == 0 and "higher hps counts as better" in " ".join(done.output.split())


def test_many_files_may_make_a_text_that_is_longer_than_any_path(files):
    """VBench's 16 dimensions of two models are 32 files."""
    for number in range(32):
        Path(f"one-{number:03d}-{'x' * 40}.csv").write_text(f"id,judge {number}\n0,1\n1,2\n")
    names = sorted(map(str, Path().glob("one-0*.csv")))
    found = score_sources([",".join(f"one={name}" for name in names)])
    assert found == {"one": names} and len(",".join(names)) > 1000


def test_columns_beside_files_are_refused(files):
    with pytest.raises(UsageError, match="--scores names 'aesthetic' beside files, and it is not a file"):
        score_sources(["one=one-clip.csv", "aesthetic"])
    assert score_sources(["aesthetic", "clip,vqa"]) == ["aesthetic", "clip", "vqa"]
    with pytest.raises(UsageError, match="--scores is NAME=FILE, got =x"):
        score_sources(["=x"])
