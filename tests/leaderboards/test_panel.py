"""Boards side by side: disagreement between extractors, what a model makes more of than another, sections of models."""

import json
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from _pages import Page
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval import report
from finc_eval.cli.app import app
from finc_eval.core.errors import IncompatibleError, UsageError
from finc_eval.leaderboards.board_table import ranks

CENTERS = np.random.default_rng(0).normal(0, 4, (10, 8))


def samples(kinds, n, seed, **shift):
    rng = np.random.default_rng(seed)
    rows = CENTERS[rng.choice(kinds, n)] + rng.normal(size=(n, 8))
    rows[:, :4] += shift.get("first", 0)
    rows[:, 4:] += shift.get("last", 0)
    return rows.astype(np.float32)


SETS = {
    "even": samples(range(10), 220, 1, first=0.1, last=0.1),
    "left": samples(range(10), 220, 2, first=1.5),
    "right": samples(range(10), 220, 3, last=1.5),
}
REF = samples(range(10), 300, 4)


def board_of(columns, names=SETS, **options):
    settings = {"metrics": ("fd",), "rank_by": "fd", **options}
    return fe.leaderboard({name: SETS[name][:, columns] for name in names}, REF[:, columns], **settings)


@pytest.fixture(scope="module")
def boards():
    return board_of(slice(4)), board_of(slice(4, 8))


def test_models_that_two_extractors_rank_in_opposite_orders_are_flagged(boards):
    first, last = boards
    panel = first.beside({"last four": last}, "first four").panel
    assert [side.label for side in panel.sides] == ["first four", "last four"]
    assert panel.sides[1].places["right"].rank_set == last["right"].rank_set
    pairs = {frozenset((one.first, one.second)): one for one in panel.reversals}
    found = pairs[frozenset(("left", "right"))]
    better = found.first_better if found.first == "right" else found.second_better
    assert better == ("first four",)
    assert {"left", "right"} <= set(panel.moved)
    assert "even" not in panel.moved


@pytest.mark.long
def test_a_board_beside_one_that_agrees_flags_nothing(boards):
    first, _ = boards
    again = board_of(slice(4), seed=1)
    panel = first.beside({"again": again}).panel
    assert panel.sides[0].label == "array-4"
    assert (panel.reversals, panel.moved) == ((), ())
    page = Page(report.page(first.beside({"again": again}), {}))
    assert "No two boards surely disagree." in page.texts("p")


def test_the_page_and_the_terminal_have_the_ranks_of_all_boards(boards, capsys):
    first, last = boards
    both = first.beside({"last": last}, "first")
    page = Page(report.page(both, {}))
    table = page.find("table", "board")[0]
    rows = page.find("tr", "mode", table)
    heads = [one for one in page.texts("th", inside=table) if ":" in one]
    assert heads[:2] == ["first: Rank", "first: Group"] and heads[-2:] == ["last: Rank", "last: fd (not FID)"]
    shown = [page.texts("th", inside=row)[0] for row in rows[:-1]]  # the last row is of real data
    assert all(text.startswith(row.name) for text, row in zip(shown, both.rows, strict=True))
    told = " ".join(page.texts("p"))
    first_rank, last_rank = (ranks(side.places["left"].rank_set) for side in both.panel.sides)
    assert f"The rank of left depends on the space: {first_rank} by first and {last_rank} by last." in told
    assert "and surely worse by" in told
    report.show(both)
    assert "last:" in capsys.readouterr().out and "| last: Rank |" in both.to_markdown()
    frame = both.to_frame()
    there = frame[(frame["space"] == "last") & (frame["name"] == "left")].iloc[0]
    assert (there["rank.low"], there["rank.high"]) == last["left"].rank_set and there["value"] == last["left"].scores[
        "fd"
    ].value
    assert set(frame["space"]) == {"first", "last"}


def test_the_panel_has_a_short_text_and_a_line_per_model_and_board(boards):
    first, last = boards
    panel = first.beside({"last": last}, "first").panel
    assert repr(panel).startswith("Panel(by fd on first and last: ")
    frame = panel.to_frame()
    assert len(frame) == 6
    row = frame[(frame["board"] == "last") & (frame["name"] == "right")].iloc[0]
    assert (row["rank.low"], row["rank.high"]) == last["right"].rank_set
    assert row["interval.low"] < row["value"] < row["interval.high"]


def test_the_panel_comes_back_from_json(boards, tmp_path):
    first, last = boards
    both = first.beside({"last": last}, "first")
    both.to_json(tmp_path / "board.json")
    assert fe.load(tmp_path / "board.json").panel == both.panel


@pytest.mark.parametrize(
    "other, label, error, message",
    [
        ({}, None, UsageError, "at least two boards"),
        ({"array-4": "last"}, None, UsageError, "two boards are called 'array-4'"),
        ({"few": "few"}, None, IncompatibleError, "differ in right: rank the same models"),
        ({"shares": "shares"}, None, UsageError, "does not rank by 'fd'"),
    ],
)
def test_boards_that_do_not_go_together_are_refused(boards, other, label, error, message):
    first, last = boards
    known = {
        "last": lambda: last,
        "few": lambda: replace(last, rows=last.rows[:2]),
        "shares": lambda: board_of(slice(4), ("even", "left"), metrics=("kid",), rank_by="missing"),
    }
    with pytest.raises(error, match=message):
        first.beside({name: known[which]() for name, which in other.items()}, label)


@pytest.mark.long
def test_the_verbs_put_boards_side_by_side(tmp_path):
    for name, columns in (("one", slice(4)), ("two", slice(4, 8))):
        stored = fe.Board(tmp_path / name)
        cut = {label: rows[:300, columns] for label, rows in SETS.items()}
        stored.add(cut, REF[:220, columns], metrics=("fd",), rank_by="fd")
    words = ["leaderboard", "show", f"{tmp_path}/one", "--beside", f"two={tmp_path}/two", "--json"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert [side["label"] for side in json.loads(shown.stdout)["panel"]["sides"]] == ["array-4", "two"]
    done = CliRunner().invoke(app, ["leaderboard", "render", f"{tmp_path}/one", "--beside", f"two={tmp_path}/two"])
    assert done.exit_code == 0, done.output
    assert "depends on the space" in (tmp_path / "one" / "leaderboard.html").read_text()
    refused = CliRunner().invoke(app, [*words[:-2], f"two={tmp_path}/three"])
    assert refused.exit_code == 3


@pytest.fixture
def pictures(tmp_path):
    rng = np.random.default_rng(0)
    for name, high in (("one", 256), ("two", 128), ("ref", 256)):
        np.savez(tmp_path / f"{name}.npz", rng.integers(0, high, (30, 16, 16, 3), dtype=np.uint8))
    return {name: str(tmp_path / f"{name}.npz") for name in ("one", "two", "ref")}


def test_several_extractors_give_one_board_with_columns_for_each(pictures, tmp_path):
    models = {name: pictures[name] for name in ("one", "two")}
    cards = ["pixels", str(tmp_path / "small.toml")]
    card = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text()
    (tmp_path / "small.toml").write_text(card.replace('name = "pixels"', 'name = "small"'))
    words = ["leaderboard", *(f"{name}={path}" for name, path in models.items()), "--ref", pictures["ref"]]
    words += ["--out", str(tmp_path / "board"), "--metrics", "kid"]
    done = CliRunner().invoke(app, [*words, *(word for card in cards for word in ("--extractor", card))])
    assert done.exit_code == 0, done.output
    board = fe.load(tmp_path / "board" / "leaderboard.json")
    assert [side.label for side in board.panel.sides] == ["pixels", "small"]
    assert not fe.Board(tmp_path / "board").exists
    with pytest.raises(UsageError, match="got the spaces pixels, pixels"):
        fe.leaderboard(models, pictures["ref"], extractor=["pixels", "pixels"])


@pytest.mark.long
def test_the_kinds_that_one_model_makes_more_of_than_another_are_those_it_alone_has():
    models = {"all": samples(range(10), 900, 1), "half": samples(range(5), 900, 2)}
    board = fe.leaderboard(models, samples(range(10), 900, 3))
    more, less = board.more_of("all", "half"), board.more_of("half", "all")
    assert more and less
    gaps = [one.shares["all"].share - one.shares["half"].share for one in more]
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] > 0
    assert all(one.shares["all"].share > one.shares["half"].share for one in more)
    assert {one.id for one in board.more_of("ref", "half")} >= {one.id for one in more}
    assert board.more_of("all", "all") == ()
    with pytest.raises(UsageError, match=r"no model is called .hlf."):
        board.more_of("hlf", "all")
    page = Page(report.page(board, {}))
    rows = page.find("tr", "mode", page.find("table", "pairs")[0])
    cells = [page.texts("td", inside=row) for row in rows]
    place = [row.name for row in board.rows].index("all")
    assert cells[place][1 - place] == f"{len(more)} {more[0].title}"
    assert cells[place][place] == "–"


def test_every_model_has_a_section_that_the_table_links_to(boards):
    page = Page(report.page(boards[0], {}))
    sections = page.find("article", "profile")
    assert [page.texts("h3", inside=one)[0] for one in sections] == [row.name for row in boards[0].rows]
    links = [attrs["href"] for tag, attrs, _ in page.elements if tag == "a" and "#model-" in attrs.get("href", "")]
    assert links == [f"#model-{row.name}" for row in boards[0].rows]  # a link to a model stays when ranks change
    assert [page.attributes(one)["id"] for one in sections] == [link.removeprefix("#") for link in links]
    last = " ".join(page.texts("dd", inside=sections[-1]))
    assert "none, by fd" in last  # surely better than
