"""The work for each file that an option names grows as its rows do: eight times the rows, at most 20 times as long.

The options come from the command line itself, so that a new one is here on the day it comes.
"""

import json
import re

import numpy as np
import pytest
from test_growth import LEAST_SECONDS, TIMES, measured
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import PARTS, VERBS, app, load_verb
from finc_eval.core.marks import CHECKSUM, checksum_of

SLOWER = 20
"""Times as long that it may take: linear work takes 8 times as long, and quadratic work 64 times."""

TABLES = re.compile(r"CSV|\.csv|\.jsonl?\b|TOML|\.toml|a card")
"""What the help of an option says whose file has rows or keys."""

WRITTEN = {"--out", "--format", "--json", "--comment", "--force"}
"""Options whose files are written."""

OF_ARRAYS = {"--text"}
"""Options whose file has arrays, as a set has."""


def options():
    """Yield the name and the help of each parameter of every verb."""

    def walk(command):
        for one in command.params:
            yield one.opts[0], f"{getattr(one, 'help', '') or ''}"
        for inside in getattr(command, "commands", {}).values():
            yield from walk(inside)

    for verbs in VERBS.values():
        for verb in verbs:
            for part in (None, *PARTS.get(verb, ())):
                yield from walk(load_verb(verb, part))


NAMED = sorted({name for name, text in options() if TABLES.search(text) and name not in WRITTEN | OF_ARRAYS})


def sets(folder):
    rng = np.random.default_rng(0)
    for name in ("a", "b", "ref"):
        np.save(folder / f"{name}.npy", rng.normal(size=(80, 4)).astype("f4"))


def images(folder):
    np.savez(folder / "x.npz", images=np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), dtype=np.uint8))


def lines(path, head, rows):
    path.write_text("".join(f"{line}\n" for line in (head, *rows)))
    return path


BOARD = ("leaderboard", "rank", "a=a.npy", "b=b.npy", "--ref", "ref.npy", "--metrics", "kid", "--out", "o", "--force")
GATE = ("gate", "--gen", "a.npy", "--baseline", "b.npy", "--ref", "ref.npy", "--out", "o", "--force", "--policy")
EXTRACT = ("extract", "x.npz", "--extractor", "pixels", "--out", "x.h5", "--force")
GENERATE = ("private", "generate", "--out", "o.csv", "--epsilon", "1", "--budget", "9", "--ledger", "l", "--force")


def votes(folder, n, winner):
    rows = (f"p{number},a,b,{winner(number)},v" for number in range(4_000 * n))
    return lines(folder / "v.csv", "prompt,left,right,winner,voter", rows)


def scores(folder, n, row):
    (folder / "s.jsonl").write_text("".join(f"{json.dumps(row(number))}\n" for number in range(200 * n)))
    lines(folder / "sb.csv", "id,aes", (f"{number},{number % 7}" for number in range(80)))


def policy(folder, n):
    names = json.dumps([f"none{number}" for number in range(80 * n)])
    (folder / "p.toml").write_text(f"kinds.lose = 0.5\nkinds.only = {names}\n")


def card(folder, n):
    (folder / "c.toml").write_text("".join(f"key{number} = {number}\n" for number in range(1500 * n)))


def described(folder, n):
    text = "".join(f"[columns.c{number}]\nlow = 0\nhigh = 1\n" for number in range(150 * n))
    (folder / "t.toml").write_text(text)
    lines(folder / "d.csv", "c0,c1", (f"{number % 2},0.5" for number in range(50)))


def records(folder, n):
    (folder / "t.toml").write_text("[columns.a]\nlow = 0\nhigh = 1\n")
    lines(folder / "d.csv", "a", (f"{number % 2}" for number in range(2_000 * n)))


def result(folder, n):
    found = fe.metrics(np.load(folder / "a.npy"), np.load(folder / "ref.npy"), "kid")
    data = found.to_dict()
    data["warnings"] = [f"warning {number}" for number in range(1_000 * n)]
    data[CHECKSUM] = checksum_of(data)
    (folder / "r.json").write_text(json.dumps(data))


def board(folder, n):
    models = {name: np.load(folder / f"{name}.npy") for name in "ab"}
    ref = np.load(folder / "ref.npy")
    if not (folder / "brd").exists():
        fe.Board(folder / "brd").add(models, ref, metrics=("kid",))
    data = fe.leaderboard(models, ref, metrics=("kid",)).to_dict()
    data["warnings"] = [f"warning {number}" for number in range(1_000 * n)]
    data[CHECKSUM] = checksum_of(data)
    (folder / "leaderboard.json").write_text(json.dumps(data))


ROWS = {
    "--beside": {"warnings": (board, ("leaderboard", "show", "brd", "--beside", "leaderboard.json"))},
    "extractor": {"keys": (card, ("doctor", "extractors", "check", "c.toml"))},
    "--votes": {
        "rows": (lambda folder, n: votes(folder, n, lambda number: "ab"[number % 2]), (*BOARD, "--votes", "v.csv")),
        "models that are not on the board": (
            lambda folder, n: votes(folder, n, lambda number: f"m{number}"),
            (*BOARD, "--votes", "v.csv"),
        ),
    },
    "--scores": {
        "rows": (
            lambda folder, n: scores(folder, n, lambda number: {"id": str(number % 80), "aes": number % 7}),
            (*BOARD, "--scores", "a=s.jsonl,b=sb.csv"),
        ),
        "a column in each row": (
            lambda folder, n: scores(folder, n, lambda number: {"id": str(number), f"c{number}": 1.0}),
            (*BOARD, "--scores", "a=s.jsonl,b=sb.csv"),
        ),
    },
    "--protocol": {"keys": (card, ("metrics", "--gen", "a.npy", "--ref", "ref.npy", "--protocol", "c.toml"))},
    "--policy": {"names of kinds": (policy, (*GATE, "p.toml"))},
    "--config": {"keys": (card, ("metrics", "--gen", "a.npy", "--ref", "ref.npy", "--config", "c.toml"))},
    "--extractor": {"keys": (card, ("extract", "x.npz", "--extractor", "c.toml", "--out", "x.h5"))},
    "--prompts": {
        "rows": (
            lambda folder, n: lines(folder / "q.csv", "file_name,prompt", (f"{k},a {k}" for k in range(2_000 * n))),
            (*EXTRACT, "--prompts", "q.csv"),
        )
    },
    "--metadata": {
        "rows": (
            lambda folder, n: lines(folder / "m.csv", "file_name,x", (f"{k},{k}" for k in range(2_000 * n))),
            (*EXTRACT, "--metadata", "m.csv"),
        )
    },
    "--data": {"rows": (records, (*GENERATE, "--data", "d.csv", "--table", "t.toml"))},
    "--table": {"columns": (described, (*GENERATE, "--data", "d.csv", "--table", "t.toml"))},
    "result": {"warnings": (result, ("report", "r.json", "--out", "o", "--force"))},
}
"""What grows in the file of each option: how it is written, and the command that reads it."""


def test_each_option_that_names_a_table_is_here():
    assert sorted(ROWS) == NAMED


CASES = [(name, what) for name, cases in ROWS.items() for what in cases]


@pytest.mark.long
@pytest.mark.by_turns(2)
@pytest.mark.parametrize(("name", "what"), CASES, ids=[f"{name}: {what}" for name, what in CASES])
def test_eight_times_the_rows_take_about_eight_times_as_long(name, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    sets(tmp_path)
    images(tmp_path)
    write, command = ROWS[name][what]

    def run():
        is_quiet = command[0] in ("report", "doctor") or "show" in command
        ended = CliRunner().invoke(app, command if is_quiet else [*command, "--quiet"])
        assert ended.exit_code in (0, 1, 2, 3), ended.output

    write(tmp_path, 1)
    run()  # what is loaded and compiled once does not count
    small = measured(run)
    write(tmp_path, TIMES)
    assert measured(run) < SLOWER * max(small, LEAST_SECONDS)
