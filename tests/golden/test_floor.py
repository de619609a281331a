"""The file of nights: rows, damage of every kind, two nights at once, a kill at any moment, and months of nights."""

import json
import os
import stat
import time
from pathlib import Path

import numpy as np
import pytest
from _forks import exit_code, forked
from _nights import noisy, scenes

import finc_eval as fe
from finc_eval.core import storage
from finc_eval.golden.floor import RANGES, read_floor
from finc_eval.golden.nights import MEASURES

FIELDS = ["night", "machine", "id", "shows", *MEASURES, "gen", "ref", "verdict", "p", "all_p", "beyond", "all_beyond"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The bytes of a floor of three nights of two pairs."""
    path, rng = tmp_path_factory.mktemp("made") / "floor.jsonl", np.random.default_rng(0)
    for _ in range(3):
        fe.Golden(path).add({name: noisy(one, rng) for name, one in scenes(2).items()}, scenes(2), machine="h200")
    return path.read_bytes()


@pytest.fixture
def floor(tmp_path, made):
    path = tmp_path / "floor.jsonl"
    path.write_bytes(made)
    return path


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def add(path):
    return fe.Golden(path).add(scenes(2), scenes(2), machine="h200")


def test_a_night_is_a_row_for_each_pair_and_two_runs_in_one_night_are_two_nights(floor):
    rows = rows_of(floor)
    assert [one["id"] for one in rows] == ["p00", "p01"] * 3
    assert {tuple(one) for one in rows} == {tuple(FIELDS)}
    assert rows[0]["machine"] == "h200" and rows[0]["verdict"] == "green" and rows[0]["p"] is None
    assert rows[4]["p"] is not None and len({one["night"] for one in rows}) == 3
    assert rows[0]["ref"] == rows[2]["ref"] and rows[0]["gen"] != rows[2]["gen"]
    same = "\n".join(json.dumps(one | {"night": "2026-11-27"}) for one in rows)
    assert len(read_floor(same.encode(), "floor.jsonl").nights) == 3


TO_THE_BIT = {
    "equal": lambda one, night: one,
    "brighter": lambda one, night: np.minimum(one.astype(int) + 7, 255).astype(np.uint8),
    "two states": lambda one, night: one if night % 2 else noisy(one, np.random.default_rng(1)),
    "three states": lambda one, night: noisy(one, np.random.default_rng(night % 3), 1 + night % 3),
}
"""What an engine that repeats itself makes of a picture, by the number of the night."""


@pytest.mark.one_of_each("name", "machines")
@pytest.mark.parametrize("name", TO_THE_BIT)
@pytest.mark.parametrize("machines", [(None,), ("a", "b")])
def test_an_engine_that_repeats_itself_to_the_bit_is_never_red(tmp_path, name, machines):
    golden, floor = scenes(3), fe.Golden(tmp_path / "floor.jsonl")
    for night in range(12 * len(machines)):
        made = {key: TO_THE_BIT[name](one, night // len(machines)) for key, one in golden.items()}
        found = floor.add(made, golden, machine=machines[night % len(machines)])
        assert found.verdict == "green", found.sentence


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", TO_THE_BIT)
def test_one_odd_night_of_such_an_engine_is_amber(tmp_path, name):
    golden, floor = scenes(3), fe.Golden(tmp_path / "floor.jsonl")
    for night in range(14):
        floor.add({key: TO_THE_BIT[name](one, night) for key, one in golden.items()}, golden)
    odd = {key: noisy(one, np.random.default_rng(9), 12) for key, one in golden.items()}
    assert floor.add(odd, golden).verdict == "amber"


def test_rows_that_were_made_elsewhere_need_measures_and_digests_alone():
    row = {"night": "2026-11-27", "machine": None, "id": "p00", "gen": "a", "ref": "b"}
    good = row | dict(zip(MEASURES, (35.0, 0.98, 0.99, 0.99, 0.1, 0.0, 0.0), strict=True))
    bad = good | {"thumb": 0.1, "structure": 0.1}
    text = "\n".join(map(json.dumps, [good, good, bad]))
    found = read_floor(text.encode(), "floor.jsonl")
    assert [one.is_broken for one in found.nights] == [False, False, True] and not found.notes


FORGED = [0, -1, 2**62, 1e308, "", "x" * 2000, [], {}, [[]], True, None, "NaN"]
"""Values that a field of a row may have been given."""


MAY_BE = {
    **dict.fromkeys(MEASURES, lambda value, name: is_number(value) and RANGES[name][0] <= value <= RANGES[name][1]),
    **dict.fromkeys(("night", "id", "gen", "ref"), lambda value, _: isinstance(value, str) and 0 < len(value) <= 1000),
    **dict.fromkeys(
        ("machine",), lambda value, _: value is None or (isinstance(value, str) and 0 < len(value) <= 1000)
    ),
    **dict.fromkeys(("p", "all_p"), lambda value, _: value is None or (is_number(value) and 0 <= value <= 1)),
    **dict.fromkeys(("beyond", "all_beyond"), lambda value, _: value is None or isinstance(value, bool)),
    "shows": lambda value, _: isinstance(value, str) and len(value) <= 1000,
    "verdict": lambda value, _: False,
}
"""Whether a forged value may be one of a row, by the field."""


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


@pytest.mark.parametrize("field", FIELDS)
def test_a_forged_field_is_a_row_that_is_told_and_left_out_or_one_in_its_range(made, field):
    first, *rest = made.decode().splitlines()
    for value in FORGED:
        text = "\n".join([json.dumps(json.loads(first) | {field: value}), *rest])
        found = read_floor(text.encode(), "some/floor.jsonl")
        assert len(found.notes) == (not MAY_BE[field](value, field)), (value, found.notes)
        for note in found.notes:
            assert note.startswith("Line 1 of floor.jsonl is left out, as it cannot be read (") and field in note
            assert len(note) < 400 and "\n" not in note


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [0, "", [], 2**62], ids=str)
@pytest.mark.long
def test_a_night_is_added_to_a_floor_with_a_forged_field(floor, field, value):
    first, *rest = floor.read_text().splitlines()
    floor.write_text("\n".join([json.dumps(json.loads(first) | {field: value}), *rest]) + "\n")
    before = floor.read_bytes()
    assert add(floor).verdict == "green" and floor.read_bytes().startswith(before)


DAMAGE = {
    "cut": lambda line: line[: len(line) // 2],
    "cut by a letter": lambda line: line[:-1],
    "NUL": lambda line: line[:40] + b"\0" + line[41:],
    "not UTF-8": lambda line: line[:40] + b"\xff\xfe" + line[42:],
    "not JSON": lambda line: b"hello",
    "NaN": lambda line: line.replace(b'"psnr": ', b'"psnr": NaN, "x": '),
    "infinite": lambda line: line.replace(b'"psnr": ', b'"psnr": Infinity, "x": '),
    "half a list": lambda line: b"[1, 2",
    "a list": lambda line: b"[1, 2]",
    "a number": lambda line: b"7",
    "huge": lambda line: b'{"night": "' + b"x" * 3_000_000 + b'"}',
    "deep": lambda line: b"[" * 100_000,
    "many digits": lambda line: line.replace(b'"psnr": ', b'"psnr": ' + b"9" * 5000),
    "no measure": lambda line: line.replace(b'"ssim"', b'"ssin"'),
    "no id": lambda line: line.replace(b'"id"', b'"ib"'),
    "a carriage return": lambda line: line[:40] + b"\r" + line[40:],
}
"""Damage of a line, by its name."""


@pytest.mark.one_of_each("name", "place")
@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("place", [0, 3, 5])
def test_a_damaged_line_is_told_with_its_number_and_skipped_and_stays_as_it_is(floor, name, place):
    lines = floor.read_bytes().splitlines()
    lines[place] = DAMAGE[name](lines[place])
    end = b"" if place == 5 else b"\n"  # a line that was cut has no end
    floor.write_bytes(b"\n".join(lines) + end)
    before = floor.read_bytes()
    night = add(floor)
    assert f"Line {place + 1} of floor.jsonl is left out, as it cannot be read (" in night.sentence
    assert len(night.sentence) < 1000 and "Traceback" not in night.sentence
    assert {one.known for one in night.pairs} == {2, 3}
    after = floor.read_bytes()
    assert after.startswith(before) and len(read_floor(after, "").nights) == 4


def test_many_damaged_lines_are_counted(floor):
    floor.write_bytes(floor.read_bytes() + b"no\n" * 50)
    notes = [one for one in add(floor).told.values() if "left out" in one]
    assert len(notes) == 4 and notes[-1] == "47 more lines of floor.jsonl are left out, too."


@pytest.mark.parametrize(
    "content", [b"hello\n", b"\x89PNG\r\n\x1a\n\0\0", b"a,b\n1,2\n", b'{"type": "verdict"}', b"\0" * 9]
)
def test_another_file_is_refused_and_stays_as_it_is(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    for act in (add, lambda one: fe.Golden(one).accept("2026")):
        with pytest.raises(fe.DataError, match="not a floor of golden pictures, and nothing is added"):
            act(path)
    assert path.read_bytes() == content


def test_a_folder_and_a_pipe_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, words in ((tmp_path, "is a folder"), (tmp_path / "pipe", "is a pipe")):
        with pytest.raises(fe.DataError, match=words):
            add(path)


def test_an_empty_file_is_a_floor_without_nights_and_links_and_permissions_stay(tmp_path):
    place, link = tmp_path / "shared.jsonl", tmp_path / "floor.jsonl"
    place.write_bytes(b"")
    place.chmod(0o640)
    link.symlink_to(place)
    add(link)
    assert link.is_symlink() and len(place.read_text().splitlines()) == 2
    assert stat.S_IMODE(place.stat().st_mode) == 0o640


def add_nights(path, count, machine):
    picture = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    for _ in range(count):
        fe.Golden(path).add({"a": picture}, {"a": picture}, machine=machine)
        with path.with_suffix(".done").open("a") as done:  # a line is written whole
            done.write("added\n")


def test_two_nights_at_once_lose_nothing(tmp_path):
    path = tmp_path / "floor.jsonl"
    running = [forked(add_nights, path, 8, name) for name in "ab"]
    assert [exit_code(one) for one in running] == [0, 0]
    found = read_floor(path.read_bytes(), "")
    assert sorted(one.machine for one in found.nights) == ["a"] * 8 + ["b"] * 8 and not found.notes
    assert {one.name for one in tmp_path.iterdir()} == {"floor.jsonl", "floor.done"}


def test_a_killed_night_leaves_the_finished_ones_and_no_half_row(tmp_path):
    path, done = tmp_path / "floor.jsonl", tmp_path / "floor.done"
    process = forked(add_nights, path, 10_000, "a")
    while not done.exists() or len(done.read_text().splitlines()) < 3:
        assert process.is_alive()
        time.sleep(0.01)
    process.kill()
    process.join()
    finished, found = len(done.read_text().splitlines()), read_floor(path.read_bytes(), "")
    assert finished <= len(found.nights) <= finished + 1 and not found.notes
    add(path)
    assert len(read_floor(path.read_bytes(), "").nights) == len(found.nights) + 1


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_night_that_fails_while_it_is_written_leaves_the_file_as_it_was(floor, monkeypatch, step):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    before = floor.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fail)
        with pytest.raises(fe.DataError, match="the disk is full while writing"):
            add(floor)
    assert floor.read_bytes() == before and [one.name for one in floor.parent.iterdir()] == ["floor.jsonl"]
    assert storage.lock_of(floor).exists() is False and add(floor).verdict == "green"


def test_500_nights_of_ten_pairs_take_seconds(tmp_path):
    path, rng = tmp_path / "floor.jsonl", np.random.default_rng(0)
    golden = scenes(10)
    night = fe.Golden(path).add(golden, golden)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [
        json.dumps(row | {"night": f"night {number}", "psnr": 42 + rng.normal() / 9, "p": rng.random(), "all_p": 0.5})
        for number in range(500)
        for row in rows
    ]
    path.write_text("\n".join(lines) + "\n")
    start = time.process_time()
    night = fe.Golden(path).add(golden, golden)
    assert night.pairs[0].known == 500 and len(night.history) == 365
    spent = time.process_time() - start
    assert spent < 10, spent  # CPU seconds; at most 1.5 were measured


def test_nights_are_accepted_by_the_beginning_of_their_time(floor):
    golden = fe.Golden(floor)
    night = rows_of(floor)[-1]["night"]
    assert golden.accept(night) == f"Accepted: 1 night, from {night} to {night}. Known from now on."
    assert golden.accept(night) == "Nothing changed: these nights were accepted before."
    assert rows_of(floor)[-1] == {"accept": night, "machine": None}
    with pytest.raises(fe.UsageError, match="has no night '2020': its last nights are"):
        golden.accept("2020")
    with pytest.raises(fe.UsageError, match="has no night ''"):
        golden.accept("")
    with pytest.raises(fe.UsageError, match="has no night"):
        golden.accept(night, machine="other")
    with pytest.raises(fe.UsageError, match="its last nights are none"):
        fe.Golden(floor.with_name("new.jsonl")).accept("2026")
    assert not floor.with_name("new.jsonl").exists()
    broken = golden.add({name: one * 0 for name, one in scenes(2).items()}, scenes(2))
    with pytest.raises(fe.UsageError, match=r"has pairs that are red by themselves, such as p00, .* golden ones"):
        golden.accept(broken.night)
