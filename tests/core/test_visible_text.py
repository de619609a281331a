"""Names and texts of others are shown on the terminal and cannot command it."""

import io
import json
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import BudgetError, DataError, IncompatibleError, UsageError
from finc_eval.core.terminal import visible, visible_output
from finc_eval.report.terminal import print_table

CLEAR, RTL, CSI = "\x1b[2J", "\u202e", "\x9b"


def test_controls_and_direction_marks_are_shown_and_all_else_is_left_alone():
    assert visible(f"a{CLEAR}b{RTL}c{CSI}d\r") == r"a\u001b[2Jb\u202ec\u009bd\u000d"
    assert visible("Größe\t= 3 ≤ σ, 中文 🙂\n") == "Größe\t= 3 ≤ σ, 中文 🙂\n"


@pytest.mark.parametrize("kind", [UsageError, DataError, IncompatibleError, BudgetError])
def test_errors_spell_them_out_for_python_too(kind):
    assert str(kind(f"a{CLEAR}b{RTL}c{CSI}d\t")) == r"a\u001b[2Jb\u202ec\u009bd" + "\t"


def test_names_of_tensors_in_a_file_do_not_command_the_terminal(tmp_path):
    torch.save({f"mu{CLEAR}": torch.zeros(1).expand(9), "x": torch.zeros(9, 9)}, tmp_path / "a.pt")
    with pytest.raises(DataError, match=r"the tensor mu.u001b.2J shows 1 number as 9"):
        fe.metrics(tmp_path / "a.pt", np.zeros((9, 9)), "fd")


def test_a_file_of_more_than_tensors_is_refused_in_our_words(tmp_path):
    torch.save({"mu": np.zeros(9), "sigma": np.eye(9)}, tmp_path / "a.pt")
    with pytest.raises(DataError, match=r"a.pt holds more than tensors, such as numpy arrays, .*: save tensors alone"):
        fe.metrics(np.zeros((9, 9)), tmp_path / "a.pt", "fd")


def test_in_json_they_stay_the_same_text():
    name = f"{RTL}x{CSI}y"
    assert json.loads(visible(json.dumps(name, ensure_ascii=False))) == name


def test_output_is_visible_and_the_colors_of_rich_are_not_touched(capsys):
    with visible_output():
        print(f"name{CLEAR}")
        print(f"error{RTL}", file=sys.stderr)
        Console(force_terminal=True, color_system="standard", markup=True).print("[red]x[/red]")
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == r"name\u001b[2J"
    assert "\x1b[31m" in out
    assert err == "error\\u202e\n"
    print(CLEAR)
    assert CLEAR in capsys.readouterr().out


def test_a_table_shows_them_in_cells_title_and_headings(capsys):
    print_table(f"t{CSI}", [f"h{RTL}", "n"], [[f"c{CLEAR}", "1"]])
    out = capsys.readouterr().out
    assert not {CSI, RTL, "\x1b"} & set(out)
    assert all(one in out for one in (r"t\u009b", r"h\u202e", r"c\u001b[2J"))


@pytest.mark.skipif(sys.platform == "win32", reason="such names of files do not exist there")
def test_names_of_files_reach_the_terminal_as_text(tmp_path):
    for number in range(3):
        Image.fromarray(np.full((8, 8), 40 * number, np.uint8)).save(tmp_path / f"{number}.png")
    (tmp_path / f"torn{CLEAR}{RTL}.png").write_bytes(b"PNG?")
    result = CliRunner().invoke(
        app, ["extract", str(tmp_path), "--extractor", "pixels", "--out", str(tmp_path / "o.h5")]
    )
    assert result.exit_code == 0, result.stderr
    assert r"unreadable: torn\u001b[2J\u202e.png" in result.stdout
    missing = CliRunner().invoke(app, ["extract", f"{tmp_path}/{CLEAR}{RTL}"])
    assert missing.exit_code == 3
    assert not {"\x1b", RTL} & set(result.output + missing.output + missing.stderr)


def test_a_stream_that_others_have_closed_is_let_go_in_silence(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stream)
    with visible_output():
        kept = sys.stdout
    stream.close()
    kept.close()
