"""LaTeX, Markdown and CSV of a board from the command line: faults, yardsticks and units stand in each."""

import csv
import io

import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval import report
from finc_eval.cli.app import app

FAULTY = {"tex": r"a\&b (one sample, 60 times", "md": "b (one sample, 60 times"}
KID = {"tex": r"kid $\times$ 10$^3$", "md": "kid × 10³"}
BETWEEN = {"tex": "&", "md": "|"}


def draw(n, seed):
    return np.random.default_rng(seed).normal(size=(n, 6)).astype("f4")


@pytest.fixture(scope="module")
def board():
    models = {"a&b": np.concatenate([np.repeat(draw(1, 1), 60, 0), draw(240, 4)]), "plain": draw(300, 2)}
    return fe.leaderboard(models, draw(300, 3), metrics=("kid", "vendi"))


@pytest.fixture
def path(board, tmp_path):
    board.to_json(tmp_path / "board.json")
    return tmp_path / "board.json"


def written(path, form):
    for _ in range(2):  # its own file is written again
        done = CliRunner().invoke(app, ["report", str(path), "--format", form])
        assert done.exit_code == 0, done.output
    return path.with_suffix(f".{form}").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["tex", "md"])
def test_the_table_has_faults_and_yardsticks_and_all_cells(path, form):
    text = written(path, form)
    (row,) = [line for line in text.splitlines() if FAULTY[form] in line and "rank" in line]
    (heads,) = [
        line for line in text.splitlines() if "unmatched," in line and "Group" in line and BETWEEN[form] in line
    ]
    (real,) = [line for line in text.splitlines() if line.lstrip("| ").startswith("real data, same size")]
    assert KID[form] in heads
    columns = [len(line.replace(r"\&", "").split(BETWEEN[form])) for line in (heads, row, real)]
    assert len(set(columns)) == 1
    if form == "tex":
        assert text.startswith("% finc-eval: leaderboard") and text.isascii()


def test_the_csv_has_the_fault_and_the_yardstick_of_each_number(board, path):
    lines = list(csv.DictReader(io.StringIO(written(path, "csv"))))
    assert {line["name"]: line["fault"] for line in lines} == {"a&b": board["a&b"].fault, "plain": ""}
    assert board["a&b"].fault and all(line["floor"] for line in lines)


def test_a_latex_file_of_others_is_not_overwritten(path):
    path.with_suffix(".tex").write_text("% mine\n")
    done = CliRunner().invoke(app, ["report", str(path), "--format", "tex"])
    assert done.exit_code == 3 and "did not make it" in " ".join(done.stderr.split())
    assert path.with_suffix(".tex").read_text() == "% mine\n"


def test_kinds_stand_by_name_with_the_share_of_each_model_in_every_text(board, capsys):
    differ = [one for one in board.kinds if one.p_value <= 0.05]
    assert differ
    report.show(board)
    for text in (board.to_markdown(), board.to_latex(), capsys.readouterr().out):
        for kind in differ:
            (row,) = [line for line in text.splitlines() if kind.title in line and line.count("%") >= 3]
            for one in kind.shares.values():
                assert f"{one.share:.1%}".removesuffix("%") in row
