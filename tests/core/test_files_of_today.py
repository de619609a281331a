"""Files that users have: a board, a history of baselines and results of the version before, which open and go on.

`earlier/kept.zip` was written by the commit c1c527d7, from `sets()`.
"""

from pathlib import Path
from zipfile import ZipFile

import pytest

import finc_eval as fe
from finc_eval.demo import example_sets
from finc_eval.gates.baseline import History
from finc_eval.leaderboards.entry import ENTRY

KEPT = Path(__file__).parent / "earlier" / "kept.zip"


def sets():
    """Return the generated set and the reference behind the files, (300, 27) each: some pixels of digits."""
    return tuple(one[:, 203:581:14] for one in example_sets(300))


@pytest.fixture
def kept(tmp_path):
    with ZipFile(KEPT) as file:
        file.extractall(tmp_path)
    return tmp_path


def test_a_board_is_ranked_and_takes_another_model(kept):
    gen, ref = sets()
    board = fe.Board(kept / "board")
    assert {row.name for row in board.leaderboard().rows} == {"a", "b"}
    assert board.add({"a": gen[:150], "c": gen[150:]}, ref[150:]) == ("c",)
    assert {row.name for row in board.leaderboard().rows} == {"a", "b", "c"}
    assert len(board.leaderboard().to_html(kept / "page.html").read_text()) > 1000


def test_findings_of_a_board_keep_their_names_and_sizes(kept):
    named = {}
    for name in ("board/entries/a", "pictures/entries/dark"):
        entry, _ = ENTRY.read(kept / f"{name}.json")
        named |= {one.name: one for one in entry.runs[0].findings}
    assert {name: one.kind for name, one in named.items()} == {
        "nearly one sample, 67 times": "repeat",
        "what differs has no name, such as many small changes": "sets",
        "darker": "look",
    }
    assert all(one.share_gen > one.share_ref for one in named.values())


def test_a_history_judges_a_release_and_takes_another_baseline(kept):
    _, ref = sets()
    history = History.open(kept / "history")
    assert [one.overall for one in history.refused] == ["regression"] and history.latest.verdict.overall == "pass"
    verdict = fe.gate(ref[150:], kept / "history", ref[:150], {"kinds": {"lose": 0.5, "min_share": 0.1}})
    assert history.promote(verdict, ref[150:], reason="another").name == "0002"
    assert len(History.open(kept / "history").bundles) == 2


@pytest.mark.parametrize("name", ["comparison", "leaderboard", "course", "history/refused/be19be37261a1d10"])
def test_a_result_opens_in_all_forms(kept, name):
    found = fe.load(kept / f"{name}.json")
    assert found.to_html(kept / "page.html").exists() and found.to_markdown() and found.headline
