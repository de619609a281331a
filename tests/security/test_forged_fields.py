"""Files that somebody sends: each of their fields, forged, gives one sentence or a right answer, in bounded memory."""

import json
import shutil
from pathlib import Path

import pytest
from _bounded import bounded
from _forged_fields import fields, outcome
from _turns import turn
from faults.files_of_results import small_board
from faults.kinds import KINDS, quietly

import finc_eval as fe
from finc_eval.core.marks import CHECKSUM, checksum_of

FEW, MANY = 3, 30
"""Forged fields of a file in a quick test, which takes a part of all of them, and in each part of the long test."""

PARTS = 3
"""Further parts in the long test, which take turns: all parts of all files take an hour."""


def make_board(path):
    """Write an entry of a board, with the board beside it."""
    board = small_board(path)
    shutil.copy(board.folder / "entries" / "gen.json", path)


def use_board(path):
    """Draw a board with this file as an entry: somebody who forges an entry forges the index, too."""
    folder = path.with_suffix(".board")
    shutil.copy(path, folder / "entries" / "gen.json")
    index = json.loads((folder / "board.json").read_text())
    index["models"]["gen"]["checksum"] = json.loads(path.read_text())[CHECKSUM]
    index[CHECKSUM] = checksum_of(index)
    (folder / "board.json").write_text(json.dumps(index))
    fe.Board(folder).leaderboard().to_html(folder / "x.html")


def use_board_with_reference(path):
    folder = path.with_suffix(".board")
    shutil.copy(path, folder / "reference.h5")
    fe.Board(folder).leaderboard().to_html(folder / "x.html")


def make_board_with_reference(path):
    board = small_board(path)
    shutil.copy(board.folder / "reference.h5", path)


STORED = {
    name: (kind.suffix, kind.make, kind.use)
    for name, kind in KINDS.items()
    if kind.sealed and kind.suffix in (".json", ".h5", ".distances.h5")
} | {
    "entry on its board": (".json", make_board, use_board),
    "reference on its board": (".h5", make_board_with_reference, use_board_with_reference),
}

QUICK = {"comparison", "cache", "monitor", "board index", "result JSON"}
"""A file of each reader: a result in HDF5, embeddings, a state, an index with its checksum, and JSON."""


def test_the_fields_of_many_files_are_forged():
    assert len(STORED) > 15 and len(QUICK & STORED.keys()) == len(QUICK)


def forged(name, path, part, parts):
    """Return what went wrong when every so-manieth forged field of a file was used."""
    _, _, use = STORED[name]
    good, found = path.read_bytes(), []
    cases = [(how, place, value) for how, place, values in fields(path) for value in values]
    for how, place, value in cases[part::parts]:
        path.write_bytes(good)
        if how(path, place, value) and (fault := outcome(use, path)):
            found.append(f"{place} = {value!r:.40}: {fault}")
    path.write_bytes(good)
    return found


def count_cases(path):
    return sum(len(values) for _, _, values in fields(path))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files by their name, each made once."""
    files = {}

    def make(name):
        if name not in files:
            suffix, write, use = STORED[name]
            files[name] = tmp_path_factory.mktemp("forged") / "valid" / f"a{suffix}"
            files[name].parent.mkdir()
            quietly(write, files[name])
            # What is forged is a copy beside the valid files, which some readers of the tests look into.
            files[name] = Path(shutil.copytree(files[name].parent, files[name].parents[1] / "forged")) / f"a{suffix}"
            quietly(use, files[name])
        return files[name]

    return make


@pytest.mark.parametrize("name", sorted(QUICK))
def test_a_forged_field_is_one_sentence_or_a_right_answer(name, made):
    path = made(name)
    parts = max(1, count_cases(path) // FEW)
    assert bounded(forged, name, path, parts // 2, parts) == "[]"


@pytest.mark.long
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("name", sorted(STORED))
def test_more_forged_fields_are_one_sentence_or_a_right_answer(name, made):
    path = made(name)
    parts = max(1, count_cases(path) // MANY)
    part = turn() % PARTS * parts // PARTS
    assert bounded(forged, name, path, part, parts) == "[]", f"part {part} of {parts}"
