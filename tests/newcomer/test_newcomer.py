"""Newcomers try the program: each command ends as it should, in one sentence, and touches no file but its own."""

import os
import subprocess
import sys
from pathlib import Path

import _commands
import _workshop
import pytest
from typer.testing import CliRunner

from finc_eval.cli.app import app

MAX_SENTENCE = 700
"""Characters of the sentence of a refusal."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """The newcomer's working folder; the caches are beside it."""
    folder, before = tmp_path_factory.mktemp("workshop"), Path.cwd()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINC_EVAL_CACHE", str(tmp_path_factory.mktemp("caches")))
        patch.setenv("FINC_EVAL_WEIGHTS", str(tmp_path_factory.mktemp("weights")))
        patch.setenv("FINC_EVAL_OFFLINE", "1")
        os.chdir(folder)
        _workshop.build(prepare)
        yield folder
        os.chdir(before)


def prepare(*words):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, (words, result.stderr)


def state(folder):
    """Number, size and time of change of every file below a folder, links not followed."""
    return {
        path.removeprefix(f"{folder}/"): (found.st_ino, found.st_size, found.st_mtime_ns)
        for top, _, names in os.walk(folder)
        for path in (f"{top}/{name}" for name in names)
        for found in [os.lstat(path)]  # of each command twice: pathlib takes three times as long
    }


def complaint(stderr):
    """The lines of a refusal, without progress and notes."""
    lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith("note: ")]
    return [line for line in lines if line.rpartition(":")[2].strip().count("/") != 1 or not line[-1].isdigit()]


def check_ending(command, code, stdout, stderr):
    assert code == command.code, stderr or stdout
    assert "Traceback" not in stderr and "Error:" not in stderr
    if command.code < 3:  # done, or a verdict
        assert command.says in stdout, stdout
        return
    lines = complaint(stderr)
    if lines[0].startswith("Usage:"):  # a wrong option: the usage, and a box with the sentence
        told = " ".join(" ".join(lines).replace("│", " ").split())
        assert told.count("─ Error ─") == 1
    else:
        assert len(lines) == 1, lines
        told = lines[0]
        assert told.startswith("finc-eval: ")
    assert command.says in told, told
    assert len(told) < MAX_SENTENCE


LONG = ("audit", "compare methods", "compare sweep", "gate --init", "compare kinds", "leaderboard", "private generate")
"""Verbs that compute for seconds, where they are not refused."""

LIKE_OTHERS = ("--batch-size", "--config", "--force", "--gen gen --ref ref.h5", "--n 60", "--method", "x.npz")
"""Parts of comparisons that quick tests elsewhere or other lines stand for."""


def named(commands):
    return pytest.mark.parametrize("command", [marked(one) for one in commands])


def marked(command):
    """A command under its line, with the mark of those that take seconds."""
    like_another = command.line.startswith("compare --gen") and any(part in command.line for part in LIKE_OTHERS)
    is_long = command.code == 0 and bool(command.writes) and (command.line.startswith(LONG) or like_another)
    return pytest.param(command, id=command.line or "(nothing)", marks=[pytest.mark.long] if is_long else [])


ENDINGS = {command.line: (*command.words[:1], command.code) for command in _commands.COMMANDS}
"""The verb of each command, and its exit code."""


@pytest.mark.by_turns(4)
@pytest.mark.one_of_each(by=lambda line: ENDINGS.get(line, line))
@named(_commands.COMMANDS)
def test_a_command_ends_as_it_should_and_changes_no_file_but_its_own(workshop, monkeypatch, command):
    before = state(workshop)
    kept = {name: (workshop / name).read_bytes() for name in command.writes if (workshop / name).exists()}
    monkeypatch.chdir(workshop / command.folder)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    result = CliRunner().invoke(app, command.words)
    after = state(workshop)
    restore(workshop, set(after) - set(before), kept)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    check_ending(command, result.exit_code, result.stdout, result.stderr)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed <= set(command.writes)
    assert [name for name in command.writes if name not in after] == []


def restore(folder, new, kept):
    """Bring the folder back, so that no command depends on another."""
    for name in new:
        (folder / name).unlink()
    for name, content in kept.items():
        (folder / name).write_bytes(content)


@pytest.mark.one_of_each
@named(_commands.AS_PROCESSES)
def test_a_process_ends_in_the_same_way(workshop, command):
    before = state(workshop)
    result = subprocess.run(
        [sys.executable, "-m", "finc_eval", *command.words],
        cwd=workshop,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    check_ending(command, result.returncode, result.stdout, result.stderr)
    assert state(workshop) == before


def test_the_table_is_as_large_as_the_trial():
    assert len(_commands.COMMANDS) >= 135
    lines = [(command.line, command.folder) for command in _commands.COMMANDS]
    assert len(set(lines)) == len(lines)
