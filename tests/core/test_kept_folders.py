"""Folders and files that commands add to over months: what a kill or a power cut leaves, and what the next run does."""

import json
import os
import shutil
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from _forks import killed_after

import finc_eval as fe
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.kept.folder import KeptFolder, check_digests, new_part
from finc_eval.core.kept.sealed import Sealed
from finc_eval.core.marks import checksum_of
from finc_eval.core.record import Record
from finc_eval.gates.baseline import History
from finc_eval.golden.floor import add_lines, content_of
from finc_eval.same_ids import kept as pairs

POLICY = {"kinds": {"lose": 0.9}}


def rows(seed, n=60):
    return np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32)


class Board:
    """A board of a model, to which another is added."""

    def make(self, place):
        fe.Board(place).add({"a": rows(1)}, rows(0), metrics=("kid",))

    def change(self, place):
        fe.Board(place).add({"b": rows(2)}, rows(0))

    def read(self, place):
        return [row.name for row in fe.Board(place).leaderboard().rows]


class Removed(Board):
    """A board of two models, from which one is removed."""

    def make(self, place):
        fe.Board(place).add({"a": rows(1), "b": rows(2)}, rows(0), metrics=("kid",))

    def change(self, place):
        with suppress(fe.UsageError):  # it is removed, and so is its file
            fe.Board(place).remove(["b"])


@cache
def verdict(seed, first=False):
    return fe.gate(rows(seed, 300), rows(9, 300), rows(0, 300), POLICY, first=first)


class Releases:
    """A history of a baseline, after which another is promoted."""

    def make(self, place):
        History.open(place).promote(verdict(1, first=True), rows(1, 300), reason="the first")

    def change(self, place):
        history = History.open(place)
        if len(history.bundles) == 1:
            history.promote(verdict(2), rows(2, 300), reason="a reason")

    def read(self, place):
        return [one.stated.content for one in History.open(place).bundles]


class Refused(Releases):
    """A history that keeps the verdict on a release that failed."""

    def change(self, place):
        failed = fe.gate(rows(2, 300) + 9, rows(1, 300), rows(0, 300), POLICY)
        assert History.open(place).promote(failed, rows(2, 300) + 9) is None

    def read(self, place):
        return [one.overall for one in History.open(place).refused]


class Followed:
    """A monitor that is saved after each look."""

    def make(self, place):
        place.mkdir()
        followed = fe.Monitor(rows(0, 200))
        followed.update(1, rows(1))
        followed.save(place / "monitor.h5")

    def change(self, place):
        followed = fe.Monitor.load(place / "monitor.h5")
        if followed.steps == [1]:
            followed.update(2, rows(2))
        followed.save(place / "monitor.h5")

    def read(self, place):
        return fe.Monitor.load(place / "monitor.h5").steps


class Pairs:
    """Measured pairs, to which others are added."""

    def add(self, first):
        keys = np.arange(4000, dtype=np.uint64).reshape(2000, 2)
        known = pairs.KeptPairs(keys, 2000, ["x"])
        new = np.intersect1d(known.missing, np.arange(first, first + 1000))
        if len(new):
            known.add(new, np.ones((len(new), 1)))

    def make(self, place):
        self.at(place)
        self.add(0)

    def at(self, place):
        os.environ["FINC_EVAL_CACHE"] = str(place)

    def change(self, place):
        self.at(place)
        self.add(1000)

    def read(self, place):
        self.at(place)
        keys = np.arange(4000, dtype=np.uint64).reshape(2000, 2)
        return 2000 - len(pairs.KeptPairs(keys, 2000, ["x"]).missing)


class Nights:
    """A floor of golden pictures, to which a night is added."""

    def make(self, place):
        place.mkdir()
        add_lines(place / "floor.jsonl", b"", ["first"])

    def change(self, place):
        path = place / "floor.jsonl"
        if b"second" not in content_of(path):
            add_lines(path, content_of(path), ["second"])

    def read(self, place):
        return content_of(place / "floor.jsonl").split()


STORES = [Board, Removed, Releases, Refused, Followed, Pairs, Nights]


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", os.environ.get("FINC_EVAL_CACHE", ""))


@pytest.mark.long
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("store", STORES)
def test_a_kill_at_any_step_leaves_the_old_or_the_new_state_and_the_same_command_goes_on(store, tmp_path):
    store = store()
    store.make(tmp_path / "old")
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    old = store.read(tmp_path / "old")
    store.change(tmp_path / "new")
    new, seen = store.read(tmp_path / "new"), []
    names = {path.relative_to(tmp_path / "new") for path in (tmp_path / "new").rglob("*")}
    for steps in range(60):
        place = tmp_path / str(steps)
        shutil.copytree(tmp_path / "old", place)
        code = killed_after(steps, store.change, place)
        assert store.read(place) in (old, new), steps
        seen.append(store.read(place) == new)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.change(place)
        assert store.read(place) == new
        # A lock that nobody holds goes with the next file of its name.
        left = {path.relative_to(place) for path in place.rglob("*") if path.suffix != ".lock"}
        assert left == names, steps
        shutil.rmtree(place)
        if code == 0:
            break
    assert seen == sorted(seen) and seen[-1] and not seen[0]


@pytest.mark.one_of_each
@pytest.mark.parametrize("store", STORES)
def test_every_new_file_is_on_the_disk_before_it_has_its_name(store, tmp_path, monkeypatch):
    """Else a power cut leaves a name with a part of its content, or with none."""
    store, place, synced, real = store(), tmp_path / "place", set(), os.fsync
    store.make(place)
    before = {path.stat().st_ino for path in place.rglob("*") if path.is_file()}
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.add(os.fstat(descriptor).st_ino), real(descriptor)))
    store.change(place)
    new = {path.stat().st_ino: path.name for path in place.rglob("*") if path.is_file()}
    assert not {name for number, name in new.items() if number not in before | synced}


@dataclass(frozen=True)
class Listed(Record):
    name: str
    n: int


LISTED = Sealed(Listed, "listed", 2, "a list", "make it again")


def test_a_sealed_record_comes_back_with_its_checksum(tmp_path):
    checksum = LISTED.write(tmp_path / "list.json", Listed("a", 3))
    assert LISTED.read(tmp_path / "list.json") == (Listed("a", 3), checksum)
    assert (tmp_path / "list.json").read_text() == LISTED.text(Listed("a", 3))


@pytest.mark.parametrize(
    "change, told",
    [
        ({"n": 4}, "was changed since it was written: make it again"),
        ({"type": "other"}, "is not a list of finc-eval of this version: make it again"),
        ({"layout": 1}, "was written by an earlier version"),
        ({"layout": 3}, "was written by a later version"),
        ({"checksum": None}, "was changed since it was written: make it again"),
    ],
)
def test_a_sealed_file_that_is_not_what_was_written_is_one_sentence(tmp_path, change, told):
    path = tmp_path / "list.json"
    LISTED.write(path, Listed("a", 3))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=f"list.json {told}"):
        LISTED.read(path)


def test_a_record_that_would_be_read_as_something_else_is_not_written(tmp_path):
    lossy = Sealed(Listed, "listed", 2, "a list", "make it again", lambda data: data | {"n": 0})
    with pytest.raises(DataError, match="it would be read as something else"):
        lossy.write(tmp_path / "list.json", Listed("a", 3))
    assert not [*tmp_path.iterdir()]


def test_what_an_earlier_version_wrote_is_upgraded(tmp_path):
    path = tmp_path / "list.json"
    LISTED.write(path, Listed("a", 3))
    data = json.loads(path.read_text())
    data["count"] = data.pop("n")
    path.write_text(json.dumps(data | {"checksum": checksum_of(data)}))
    upgrading = Sealed(Listed, "listed", 2, "a list", "make it again", lambda data: {"n": data.get("count")} | data)
    assert upgrading.read(path)[0] == Listed("a", 3)


def test_numbered_parts_come_in_their_order_and_other_files_are_refused(tmp_path):
    kept = KeptFolder(tmp_path, ("refused",))
    for name in ("0002", "10000", "9999", "refused", ".hidden"):
        (tmp_path / name).mkdir()
    assert kept.numbered == ["0002", "9999", "10000"]
    kept.check_own()
    (tmp_path / "photos").mkdir()
    with pytest.raises(UsageError, match="has other files, such as photos"):
        kept.check_own()
    assert KeptFolder(tmp_path / "none").numbered == [] and KeptFolder(tmp_path / "none").names_in("x", ".json") == []


def test_all_files_of_a_part_are_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    synced, real = set(), os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.add(os.fstat(descriptor).st_ino), real(descriptor)))
    with new_part(tmp_path / "0001", "it stays") as place:
        for name in "ab":
            (place / name).write_bytes(b"x")
    assert {path.stat().st_ino for path in (tmp_path / "0001").iterdir()} == synced


def test_a_part_that_fails_leaves_nothing_and_one_that_is_there_is_never_changed(tmp_path):
    with pytest.raises(ZeroDivisionError), new_part(tmp_path / "0001", "it stays") as place:
        (place / "a").write_bytes(b"x")
        raise ZeroDivisionError
    assert not [*tmp_path.iterdir()]
    with new_part(tmp_path / "0001", "it stays") as place:
        (place / "a").write_bytes(b"x")
    with pytest.raises(UsageError, match="0001 exists, and it stays"), new_part(tmp_path / "0001", "it stays"):
        raise AssertionError("not reached")
    assert [path.name for path in tmp_path.iterdir()] == ["0001"]


@pytest.mark.parametrize("name", ["../secret", "gone", "a", "link"])
def test_a_listed_file_that_is_missing_changed_or_elsewhere_is_refused(tmp_path, name):
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "a").write_bytes(b"changed")
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(DataError) as told:
        check_digests(folder, {name: "0" * 64}, "was changed: restore it")
    assert "\n" not in str(told.value)
