"""Yardsticks of a board: each number has what real data of the same size get beside it, in all outputs."""

import csv
import io

import numpy as np
import pytest
from _pages import Page

import finc_eval as fe
from finc_eval import report
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.leaderboards.board_table import REAL_DATA
from finc_eval.measures.inputs import split_reference

CENTERS = np.random.default_rng(0).normal(0, 4, (10, 8))
METRICS = ("fd", "kid", "vendi", "rke", "prdc")


def draw(n, seed, kinds=10):
    rng = np.random.default_rng(seed)
    return (CENTERS[rng.choice(kinds, n)] + rng.normal(size=(n, 8))).astype(np.float32)


REF = draw(800, 0)


@pytest.fixture(scope="module")
def board():
    return fe.leaderboard({"small": draw(220, 1), "large": draw(600, 2), "gaps": draw(600, 3, 7)}, REF, metrics=METRICS)


def parts(n):
    return [one.rows_at(np.arange(one.n)).numpy() for one in split_reference(as_embeddings(REF, "ref"), n)]


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", ["gaps", "small", "large"])
def test_a_floor_is_what_a_part_of_the_reference_gets_on_a_board_of_its_own(board, name):
    part, rest = parts(board.sets[name].n)
    real = fe.leaderboard({"real": part}, rest, metrics=METRICS)["real"].scores
    for key in ("kid", "prdc"):
        assert board[name].scores[key].floor == pytest.approx(real[key].value, rel=1e-6)
    # Samples are in other random blocks by other ids; "gaps" has more than 20.
    assert board[name].scores["fd"].floor == pytest.approx(real["fd"].value, abs=0.5)
    for key in ("unmatched", "missing", "novel"):  # kinds are those of all sets
        assert board[name].scores[key].floor == pytest.approx(real[key].value, abs=0.05)


@pytest.mark.parametrize("metric", ["vendi", "rke"])
def test_numbers_that_grow_have_their_yardstick_at_the_n_of_the_model(board, metric):
    for name in ("small", "large", "gaps"):
        equal = fe.metrics(REF[: board.sets[name].n], REF, metric).value
        assert board[name].scores[metric].floor == pytest.approx(equal, rel=0.1)  # other samples of the reference
    assert board["gaps"].scores[metric].value < 0.9 * board["gaps"].scores[metric].floor


@pytest.mark.long
def test_models_larger_than_the_reference_are_told_where_numbers_grow():
    sets = {"a": draw(900, 1), "b": draw(900, 2)}
    for ref, told in ((draw(300, 3), True), (draw(900, 3), False)):
        warnings = " ".join(fe.leaderboard(sets, ref, metrics=["vendi"]).warnings)
        assert ("the reference has 300 samples and models up to 900, and the values of vendi grow" in warnings) == told


def test_all_outputs_have_the_row_of_real_data(board, capsys):
    table = Page(report.page(board, {}))
    row = table.find("tr", "muted", table.find("table", "board")[0])[-1]
    cells = [table.texts("th", inside=row)[0], *table.texts("td", inside=row)]
    assert cells[0] == REAL_DATA and "–" not in cells[3:]
    assert " to " in cells[3 + [one.key for one in board.criteria].index("vendi")]  # models of 220 and of 600
    report.show(board)
    terminal, markdown = capsys.readouterr().out, board.to_markdown()
    for text in (terminal, markdown, board.to_latex()):
        assert REAL_DATA in text
    for text in (terminal, markdown):
        assert "220 to 400 of its samples against its others" in " ".join(text.split())
    profile = " ".join(table.texts("dd", inside=table.by_id("model-gaps")))
    assert profile.count("real data of the same size") == len(board.criteria)
    lines = list(csv.DictReader(io.StringIO(board.to_csv())))
    assert all(line["floor"] != "" for line in lines)
    data = board.to_dict()["rows"][0]["scores"]
    assert all(isinstance(one["floor"], float) for one in data.values())


@pytest.mark.long
def test_ranks_and_values_do_not_depend_on_yardsticks(board, monkeypatch):
    monkeypatch.setattr("finc_eval.leaderboards.yardsticks.Yardsticks.shares", lambda *_: {})
    monkeypatch.setattr("finc_eval.leaderboards.measures.Measuring._floor", lambda *_: None)
    sets = {name: draw(info.n, seed) for seed, (name, info) in enumerate(board.sets.items(), 1) if name != "ref"}
    sets["gaps"] = draw(600, 3, 7)
    again = fe.leaderboard(sets, REF, metrics=METRICS[:2])
    assert all(one.floor is None for row in again.rows for one in row.scores.values())
    assert REAL_DATA not in again.to_markdown()
    for row in again.rows:
        for key, one in row.scores.items():
            own = board[row.name].scores[key]
            assert (own.value, own.interval, own.rank_set) == (one.value, one.interval, one.rank_set)


@pytest.mark.long
def test_a_stored_board_keeps_the_yardsticks_of_each_model(tmp_path):
    stored = fe.Board(tmp_path / "board")
    stored.add({"a": draw(300, 1)}, REF, metrics=("kid", "vendi"))
    stored.add({"b": draw(600, 2)}, REF)
    rows = stored.leaderboard().rows
    assert len(rows) == 2 and all(one.floor is not None for row in rows for one in row.scores.values())
    a, b = (stored.leaderboard()[name].scores["vendi"].floor for name in "ab")
    assert a != b
