"""Which environment is tested besides that of `make test`: landings by turns see all of them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from _turns import of_other_turns, of_this_turn

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
from turn import NAMES, SECONDS_A_DAY, chosen

ROOT = Path(__file__).parent.parent

ALL = {"oldest": (3, 11), "middle": (3, 12), "newest": (3, 13)}


def over_days(tested, found, days=12):
    """Return the environments of consecutive days, from a Sunday on."""
    return [chosen(tested, found, {}, day * SECONDS_A_DAY + 100) for day in range(20_000, 20_000 + days)]


@pytest.mark.parametrize(
    ("tested", "found", "turns"),
    [
        ((3, 11), ALL, {"oldest", "middle", "newest", "wheel"}),
        ((3, 12), ALL, {"oldest", "newest", "wheel"}),  # make test sees the middle Python
        ((3, 13), ALL, {"oldest", "middle", "wheel"}),
        (
            (3, 11),
            {"oldest": (3, 11), "newest": (3, 11)},
            {"oldest", "wheel"},
        ),  # besides the newest packages of make test
        ((3, 11), {"oldest": (3, 11), "newest": (3, 13)}, {"oldest", "newest", "wheel"}),
        ((3, 11), {"oldest": (3, 11), "middle": (3, 12), "newest": (3, 12)}, {"oldest", "newest", "wheel"}),
        ((3, 12), {"middle": (3, 12), "newest": (3, 12)}, {"newest", "wheel"}),
        ((3, 13), {"newest": (3, 13)}, {"newest", "wheel"}),
        ((3, 13), {}, {"newest", "wheel"}),
    ],
)
def test_consecutive_days_reach_each_environment_that_differs_from_that_of_make_test(tested, found, turns):
    days = over_days(tested, found)
    assert {*days} == {*days[: len(turns)]} == turns


def test_a_day_has_a_single_turn_and_the_number_of_a_run_on_github_counts_instead():
    turns = over_days((3, 11), ALL, 1)
    assert [chosen((3, 11), ALL, {}, 20_000 * SECONDS_A_DAY + hour * 3_600) for hour in range(24)] == turns * 24
    runs = [chosen((3, 11), ALL, {"GITHUB_RUN_NUMBER": str(run)}, 0) for run in (7, 8, 9, 10)]
    assert sorted(runs) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_variable_decides_whatever_there_is(name):
    assert chosen((3, 13), {}, {"TURN": name, "GITHUB_RUN_NUMBER": "1"}, 0) == name


def test_cases_that_take_turns_are_all_reached(monkeypatch):
    seen = []
    for run in range(40, 43):
        monkeypatch.setenv("GITHUB_RUN_NUMBER", str(run))
        seen.append("".join(of_this_turn(iter("abcdefgh"), 3)))
    assert sorted("".join(seen)) == [*"abcdefgh"] and {*map(len, seen)} == {2, 3}


def test_long_cases_by_turns_are_all_reached_and_those_of_make_test_run_in_each(monkeypatch):
    def case(test, number, **marks):
        return SimpleNamespace(nodeid=f"t.py::{test}[{number}]", get_closest_marker=marks.get)

    by_turns = pytest.mark.by_turns(3).mark
    table = [case("of_a_table", n, by_turns=by_turns, long=n > 1 or None) for n in range(9)]
    alike = [case("of_the_same", n, by_turns=by_turns, long=True) for n in (5, 3)]
    items = [*table, *alike, case("without_turns", 0, long=True)]
    runs = []
    for run in range(40, 43):
        monkeypatch.setenv("GITHUB_RUN_NUMBER", str(run))
        others = {one.nodeid for one in of_other_turns(items)}
        runs.append({one.nodeid for one in items} - others)
    always = {one.nodeid for one in (*table[:2], items[-1])}
    assert set.intersection(*runs) == always and set.union(*runs) == {one.nodeid for one in items}
    assert sorted(sum(one.nodeid in run for one in table[2:]) for run in runs) == [2, 2, 3]
    for one, like in zip(alike, (table[5], table[3]), strict=True):
        assert [one.nodeid in run for run in runs] == [like.nodeid in run for run in runs], "they share what is made"


def test_an_unknown_turn_is_refused_with_what_there_is():
    with pytest.raises(ValueError, match="TURN is 'new': set it to oldest, middle, newest or wheel, or unset it"):
        chosen((3, 11), ALL, {"TURN": "new"}, 0)


def test_make_finds_the_pythons_that_pyenv_installs_and_whose_shims_do_not_run(tmp_path):
    if not shutil.which("make"):
        pytest.skip("needs make")

    def program(path, does):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)

    shutil.copy(ROOT / "Makefile", tmp_path)
    installed = tmp_path / "pyenv" / "versions"
    for minor in (11, 12, 13, 14):
        program(tmp_path / "shims" / f"python3.{minor}", "exit 127")
    for minor in (10, 11, 13):
        program(installed / f"3.{minor}.4" / "bin" / "python3", "exit 0")
    program(tmp_path / ".venv" / "bin" / "python", 'for word in "$@"; do echo "$word"; done')
    tools = {str(Path(shutil.which(name)).parent) for name in ("make", "sh")}
    variables = {"PATH": os.pathsep.join([str(tmp_path / "shims"), *tools]), "PYENV_ROOT": str(tmp_path / "pyenv")}
    command = ["make", "--silent", "turn"]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
    pythons = [f"{installed}/3.{minor}.4/bin/python3" for minor in (11, 13)]
    assert done.stdout.splitlines() == ["scripts/turn.py", f"oldest={pythons[0]}", "middle=", f"newest={pythons[1]}"]
