"""Each row of the README's table runs as it is printed, on folders with planted faults, and says the fault first."""

import os
import re
import shlex
from itertools import takewhile
from pathlib import Path

import _readme_folders
import pytest
from _quick import EVERYTHING, quick
from typer.testing import CliRunner

from finc_eval.cli.app import app

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
ROWS = [re.findall(r"`finc-eval ([^`]*)`", line) for line in README.splitlines() if line.startswith("|")]
ROWS = [row for row in ROWS if row]

FIRST = {
    "compare --gen generated/": r"in color",
    "compare --gen new/": r"in color",
    "compare a=": r"^\d+ % of a is in color",
    "monitor": r"step 3000.*(gray|toned)",
    "leaderboard --ref": r"^one is worst: .*in color",
    "leaderboard add": r"^added three .*one is worst: .*in color",
    "leaderboard one": r"^one is worst: .*in color",
    "gate --init": r"kinds\.lose = .*basics\.copies = ",
    "gate --gen": r"^FAIL: .*in color",
    "gate --golden": r"^Red: all pictures are turned by 180°",
    "metrics": r"^generated against real: fd \d",
    "doctor weights": r"is not fetched because FINC_EVAL_OFFLINE is set",
    "evaluate": r"in color",
    "audit": r"^20 of 100 samples are training images",
    "private sketch release": r"ward\.sketch\.h5",
    "private sketch score": r"MMD",
    "private generate": r"synthetic",
    "kahm": r"models\.h5",
    "extract": r"3 embeddings",
}
"""What each command says first: the planted fault, or what it has made."""

CODES = {"gate --gen": 1, "gate --golden": 1, "doctor weights": 3}
"""Exit codes other than 0: a regression, a red night, and weights that cannot be fetched without a network."""

WHOLE = ("gate --init", "doctor weights")  # what prints a file, or a sentence of a refusal

FEW_VIEWS = {"finc_eval.memorization.nearness.SUSPECTS": 20}
"""Samples whose ten views are embedded: a tenth. tests/memorization/test_altered_copies.py has all."""

CHEAP = ("gate --golden", "kahm", "extract", "private generate")  # rows without a network of two seconds and more


def key_of(command):
    (key,) = [key for key in FIRST if command.startswith(key)]
    return key


def words_of(command):
    """The words of a command, with stars replaced as a shell does it."""
    words = shlex.split(command)
    return [str(name) for word in words for name in (sorted(Path().glob(word)) if "*" in word else [word])]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder, before = tmp_path_factory.mktemp("desk"), Path.cwd()
    with pytest.MonkeyPatch.context() as patch, quick(*EVERYTHING, FEW_VIEWS):
        patch.setenv("FINC_EVAL_CACHE", str(tmp_path_factory.mktemp("caches")))
        patch.setenv("FINC_EVAL_WEIGHTS", str(tmp_path_factory.mktemp("weights")))
        patch.setenv("FINC_EVAL_OFFLINE", "1")
        os.chdir(folder)
        _readme_folders.build()
        yield folder
        os.chdir(before)


def test_every_row_of_the_table_is_known():
    assert len(ROWS) >= 12
    assert {key_of(command) for row in ROWS for command in row} == set(FIRST)


def cases():
    for row in ROWS:
        marks = [] if row[0].startswith(CHEAP) else [pytest.mark.long]
        yield pytest.param(row, id=key_of(row[0]), marks=marks)


@pytest.mark.parametrize("row", list(cases()))
def test_a_row_runs_as_it_is_printed_and_says_the_planted_fault_first(desk, row):
    for command in row:
        key = key_of(command)
        done = CliRunner().invoke(app, words_of(command))
        assert done.exit_code == CODES.get(key, 0), done.output
        said = done.stderr if done.exit_code == 3 else done.stdout
        lines = said.splitlines()
        wide = [line for line in lines if len(line) > 120 and not line.startswith("/")]  # a path is never broken
        assert key in WHOLE or (len(lines) <= 12 and wide == []), said
        assert re.search(FIRST[key], " ".join(said.split())), said


@pytest.mark.parametrize("command", [pytest.param(command, id=key_of(command)) for row in ROWS for command in row])
def test_the_usual_help_shows_each_option_of_the_table(command):
    words = shlex.split(command)
    verb = [*takewhile(str.isalpha, words)]
    shown = CliRunner().invoke(app, [*verb, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}).output
    options = [word for word in words if word.startswith("--")]
    assert [option for option in options if not re.search(rf"{option} ", shown)] == []
