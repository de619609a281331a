"""A finc-eval file gives back what was written, or one sentence: never what somebody or something else put there."""

import gc
import json
import os
import re
import shutil
import subprocess
import warnings
import zlib

import h5py
import numpy as np
import pytest
from _files import content, forge

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.core.files.copies import copy_content, join_content
from finc_eval.core.files.hdf5 import BLOCK_BYTES
from finc_eval.core.files.npz import NpzFile
from finc_eval.core.files.parsed import MAX_DEPTH, foreign_json, json_lines, parse_json, parse_toml
from finc_eval.core.files.stored import StoredFile, existing_file, file_type, header_of, stated_in
from finc_eval.core.files.writing import new_file

ROWS = np.random.default_rng(0).standard_normal((3 * BLOCK_BYTES // 40 + 17, 10)).astype(np.float32)
TEXTS = ["", "é", b"\xff.png".decode("utf-8", "surrogateescape"), "a/b", "x" * 300]


def written(path):
    with new_file(path, "test", 3) as file:
        file.header |= {"number": 1.5, "list": [1, None, "é"], "name": "é ü", "long": [0] * 9999}
        rows = file.rows("deep/rows", ROWS.shape, "<f4")
        for start in range(0, len(ROWS), 700):
            rows.append(ROWS[start : start + 700])
        file.array("numbers", np.arange(5, dtype=">i8"))
        file.array("scalar", np.float64(0.5))
        file.array("none", np.zeros((0, 4), np.uint8))
        file.texts("texts", TEXTS)
        file.texts("no texts", [])
    return path


@pytest.fixture(scope="module")
def whole_file(tmp_path_factory):
    """The bytes of a file with all that a file can hold."""
    return written(tmp_path_factory.mktemp("whole") / "a.h5").read_bytes()


@pytest.fixture
def path(whole_file, tmp_path):
    path = tmp_path / "a.h5"
    path.write_bytes(whole_file)
    return path


def read(path):
    with existing_file(path, "test", 3) as file:
        arrays = (
            file.array("numbers", 5, dtype="<i8"),
            file.array("scalar", dtype="<f8"),
            file.array("none", None, 4, dtype="|u1"),
        )
        texts = file.texts("texts", 5).all(), file.texts("no texts").all()
        return file.header, file.array("deep/rows", None, 10), arrays, texts


def test_what_was_written_is_read(path):
    header, rows, (numbers, scalar, none), texts = read(path)
    assert header == {"number": 1.5, "list": [1, None, "é"], "name": "é ü", "long": [0] * 9999}
    np.testing.assert_array_equal(rows, ROWS)
    assert (numbers.tolist(), float(scalar), none.shape, texts) == ([0, 1, 2, 3, 4], 0.5, (0, 4), (TEXTS, []))
    assert (file_type(path), stated_in(path).layout, header_of(path)["number"]) == ("test", 3, 1.5)


def test_parts_are_read_on_demand(path):
    with existing_file(path, "test", 3) as file:
        rows, texts = file.rows("deep/rows", None, 10), file.texts("texts")
        for start, stop in (
            (0, 1),
            (6000, 7000),
            (len(ROWS) - 1, len(ROWS) + 9),
            (5, 5),
            (9, 3),
            (len(ROWS), len(ROWS) + 1),
        ):
            np.testing.assert_array_equal(rows.between(start, stop), ROWS[start:stop])
        assert [texts.between(1, 3), texts.between(4, 9), texts.between(3, 1)] == [TEXTS[1:3], TEXTS[4:], []]


def test_other_programs_read_arrays_texts_and_settings(path):
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["deep/rows"], ROWS)
        assert (json.loads(file.attrs["list"]), file.attrs["name"].decode()) == ([1, None, "é"], "é ü")
        assert file["texts"].asstr(errors="surrogateescape")[:].tolist() == TEXTS
        assert len(json.loads(file["documents/long"][0])) == 9999
        sums = file["checksums"][:].tolist()
        assert sums[:4] == [zlib.crc32(ROWS[start : start + 6553]) for start in range(0, len(ROWS), 6553)]


def test_nothing_is_of_variable_length_and_all_that_describes_an_array_has_a_checksum(path):
    kinds, filters = set(), set()

    def look(_, one):
        kinds.update(value.dtype.kind for value in (one, *one.attrs.values()) if hasattr(value, "dtype"))
        if isinstance(one, h5py.Dataset):
            filters.add(one.compression)

    with h5py.File(path) as file:
        file.visititems(look)
        kinds |= {file.attrs.get_id(name).dtype.kind for name in file.attrs}
        assert file.libver[0] != "earliest" or file.id.get_create_plist().get_version()[0] >= 2
        assert all(file.attrs.get_id(name).get_storage_size() <= 3000 for name in file.attrs)
    assert kinds <= set("fiuS") and filters == {None, "gzip"}


HEADERS = [
    "pixels", "", "3", "-1e5", "null", "true", "[]", "{", '"', " 1", "a\0", "a\0b", "\ud800", "\udcff", "é" * 5000,
    "x" * 5000, None, True, 0, 1.5, -1e300, [], {}, [None, {"a": ["\x00"]}], ["y" * 9000], 2**62,
]  # fmt: skip


@pytest.mark.parametrize("value", HEADERS, ids=range(len(HEADERS)))
def test_a_value_of_the_header_is_what_it_was(tmp_path, value):
    with new_file(tmp_path / "a.h5", "test", 3) as file:
        file.header["value"] = value
    with existing_file(tmp_path / "a.h5", "test", 3) as file:
        assert file.header == {"value": value} and type(file.header["value"]) is type(value)


LISTS = {
    "none": [],
    "empty texts": ["", "", ""],
    "a NUL at the end": ["a\0", "b"],
    "a NUL within": ["a\0b", "c"],
    "a long text": ["a", "é" * 5000, ""],
    "no UTF-8": ["\udcff", "x\udc80x"],
    "many": [str(number) * (number % 7) for number in range(30_000)],
}


@pytest.mark.parametrize("name", LISTS)
def test_texts_are_what_they_were_also_as_a_copy_of_parts(tmp_path, name):
    texts = LISTS[name]
    for file_name, part in (("a.h5", texts[:2]), ("b.h5", texts[2:]), ("whole.h5", texts)):
        with new_file(tmp_path / file_name, "test", 3) as file:
            file.array("numbers", np.ones((len(part), 3)))
            file.texts("texts", part)
    with new_file(tmp_path / "joined.h5", "test", 3) as file:
        opened = lambda path: StoredFile(path, "test", 3)  # noqa: E731
        assert [*join_content([tmp_path / "a.h5", tmp_path / "b.h5"], opened, file)] == [1, 2]
    assert (tmp_path / "joined.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    with existing_file(tmp_path / "joined.h5", "test", 3) as file:
        found = file.texts("texts", len(texts))
        assert found.all() == texts and found.between(1, 3) == texts[1:3]
        file.check()


def test_the_same_content_is_the_same_bytes(path, tmp_path):
    assert written(tmp_path / "b.h5").read_bytes() == path.read_bytes()
    with new_file(tmp_path / "c.h5", "test", 3) as new, StoredFile(path, "test", 3) as old:
        copy_content(old, new)
    assert (tmp_path / "c.h5").read_bytes() == path.read_bytes()


def visited(old, new):
    """A copy as many write it: every array, with its attributes, by its path."""

    def take(name, one):
        made = new.create_dataset(name, data=one[()]) if isinstance(one, h5py.Dataset) else new.require_group(name)
        made.attrs.update(one.attrs)

    old.visititems(take)
    new.attrs.update(old.attrs)


def by_h5py(copy):
    def make(path, target):
        with h5py.File(path) as old, h5py.File(target, "w") as new:
            copy(old, new)

    return make


def by_tool(tool, *options):
    def make(path, target):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (Debian: hdf5-tools)")
        given = ["-i", path, "-o", target, "-s", "/", "-d", "/all"] if tool == "h5copy" else [path, target]
        subprocess.run([tool, *options, *map(str, given)], check=True, capture_output=True)

    return make


def _each(old, new):
    for name in old:
        old.copy(name, new)
    for name, value in old.attrs.items():
        new.attrs[name] = value


COPIES = {
    "h5py, the root": by_h5py(lambda old, new: old.copy("/", new, "copy")),
    "h5py, each part": by_h5py(_each),
    "h5py, visited": by_h5py(visited),
    "h5repack": by_tool("h5repack"),
    "h5repack GZIP": by_tool("h5repack", "-f", "GZIP=1"),
    "h5repack SHUF": by_tool("h5repack", "-f", "SHUF", "-f", "GZIP=9", "-f", "FLET"),
    "h5repack NONE": by_tool("h5repack", "-f", "NONE"),
    "h5repack CONTI": by_tool("h5repack", "-l", "CONTI"),
    "h5repack CHUNK": by_tool("h5repack", "-l", "CHUNK=7"),
    "h5repack latest": by_tool("h5repack", "-L"),
    "h5copy": by_tool("h5copy"),
}


@pytest.mark.one_of_each(by=lambda copy: copy.split()[0].strip(","))
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_by_another_program_is_right(path, whole, tmp_path, name):
    COPIES[name](path, tmp_path / "copy.h5")
    np.testing.assert_equal(read(tmp_path / "copy.h5"), whole)
    assert file_type(tmp_path / "copy.h5") == "test"


CHANGES = {
    "a number": lambda file: file["deep/rows"].__setitem__((5000, 3), 9.5),
    "a text": lambda file: file["texts"].__setitem__(1, "e"),
    "a value": lambda file: file.attrs.create("number", np.array(b"2.5", h5py.string_dtype("utf-8", 3))),
    "a value more": lambda file: file.attrs.create("more", np.array(b"2", h5py.string_dtype("utf-8", 1))),
    "a value less": lambda file: file.attrs.__delitem__("number"),
    "an array less": lambda file: file.__delitem__("numbers"),
    "an array more": lambda file: file.create_dataset("more", data=[1.0]),
    "another name": lambda file: file.move("numbers", "counts"),
    "another shape": lambda file: (file["numbers"].attrs and None) or _reshape(file),
    "another type": lambda file: _replace(file, "numbers", np.arange(5, dtype="<u8")),
    "checksums": lambda file: _replace(file, "checksums", np.zeros(file["checksums"].shape, "<u4")),
    "no checksums": lambda file: file.__delitem__("checksums"),
    "texts of any length": lambda file: _replace(file, "texts", [text.encode("utf-8", "replace") for text in TEXTS]),
    "numbers in attributes": lambda file: file.attrs.__setitem__("number", 1.5),
    "a link to itself": lambda file: file.__setitem__("loop", h5py.SoftLink("/loop")),
    "a group in itself": lambda file: file["deep"].__setitem__("self", file["deep"]),
}


def _replace(file, name, values):
    del file[name]
    file[name] = values


def _reshape(file):
    _replace(file, "deep/rows", ROWS.reshape(-1, 5))


@pytest.mark.parametrize("name", CHANGES)
def test_what_another_program_changed_is_found(path, name):
    with h5py.File(path, "r+") as file:
        CHANGES[name](file)
    with pytest.raises(DataError, match=r"a\.h5 is damaged \([^\n]*\): make it again"):
        read(path)


@pytest.fixture(scope="module")
def whole(whole_file, tmp_path_factory):
    """Return all that the reader returns for a file."""
    path = tmp_path_factory.mktemp("read") / "a.h5"
    path.write_bytes(whole_file)
    return read(path)


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_found_or_means_nothing(path, whole, seed):
    rng, data = np.random.default_rng(seed), bytearray(path.read_bytes())
    place = int(rng.integers(len(data)))
    match seed % 4:
        case 0:
            data[place] ^= 1 << int(rng.integers(8))
        case 1:
            data[place : place + 16] = bytes(len(data[place : place + 16]))
        case 2:
            del data[place:]
        case 3:  # where the structures are
            data[int(rng.integers(4000))] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)
    try:
        found = read(path)
    except DataError as error:
        assert re.fullmatch(
            r"\S*a\.h5 (is damaged \([^\n]*\)|was not written by [^\n]*)(: make it again|here)", str(error)
        )
    else:
        np.testing.assert_equal(found, whole)


def test_rows_are_checked_block_by_block(path):
    with h5py.File(path, "r+") as file:
        file["deep/rows"][2 * 6553, 0] += 1
    with StoredFile(path, "test", 3) as file:
        rows = file.rows("deep/rows", None, 10)
        np.testing.assert_array_equal(rows.between(0, 100), ROWS[:100])
        with pytest.raises(DataError, match="deep/rows is not what was written"):
            rows.between(2 * 6553 + 5, len(ROWS))


def external_link(file, secret):
    del file["deep/rows"]
    file["deep/rows"] = h5py.ExternalLink(secret, "rows")


def external_storage(file, secret):
    del file["deep/rows"]
    file.create_dataset("deep/rows", ROWS.shape, "<f4", external=[(secret, 0, 4 * ROWS.size)])


def virtual(file, secret):
    del file["deep/rows"]
    layout = h5py.VirtualLayout(ROWS.shape, "<f4")
    layout[:] = h5py.VirtualSource(secret, "rows", ROWS.shape)
    file.create_virtual_dataset("deep/rows", layout)


def soft_link(file, secret):
    file.move("deep/rows", "elsewhere")
    file["deep/rows"] = h5py.SoftLink("/elsewhere")


def foreign_filter(file, secret):
    del file["deep/rows"]
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk(ROWS.shape)
    made.set_filter(32001, h5py.h5z.FLAG_OPTIONAL)  # Blosc, which HDF5 would load as a program
    space = h5py.h5s.create_simple(ROWS.shape)
    h5py.h5d.create(file.id, b"deep/rows", h5py.h5t.IEEE_F32LE, space, made)


@pytest.mark.parametrize("lead", [external_link, external_storage, virtual, soft_link, foreign_filter])
def test_nothing_leads_out_of_a_file(path, tmp_path, lead, monkeypatch):
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["rows"] = ROWS
    with h5py.File(path, "r+") as file:
        lead(file, str(tmp_path / "secret.h5"))
    monkeypatch.setattr(h5py.Dataset, "read_direct", lambda *_: pytest.fail("it was read"))
    with pytest.raises(DataError, match=r"is damaged \(deep/rows (is a link|lies in another file|has the filter)"):
        StoredFile(path, "test", 3)
    assert header_of(path) is None


@pytest.mark.parametrize(
    "error", [KeyError("x"), TypeError("y"), ZeroDivisionError(), fe.UsageError("z\nz"), RecursionError()]
)
def test_whatever_content_does_is_one_sentence_about_its_file(path, error):
    def use():
        with existing_file(path, "test", 3, "ask again"):
            raise error

    with pytest.raises(DataError, match=r"a\.h5 is damaged \(.*\): ask again$") as caught:
        use()
    assert "\n" not in str(caught.value) and caught.value.__cause__ is error


def test_what_is_not_a_file_is_one_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, message in (("pipe", "is a pipe, not a file"), ("", "is a folder, not"), ("none", "does not exist")):
        with pytest.raises(DataError, match=message):
            StoredFile(tmp_path / name, "test", 3)
    assert file_type(tmp_path / "pipe") is file_type(tmp_path) is None


def test_a_file_of_another_type_or_layout_is_named(path):
    with pytest.raises(
        DataError, match=r"is a finc-eval file of the type 'test', which fe\.load opens: here pass a sk"
    ):
        StoredFile(path, "sketch", 3)
    with pytest.raises(DataError, match=r"earlier version .*has test layout 3, this version reads 4\): make it"):
        StoredFile(path, "test", 4)


def test_a_forged_file_is_read_as_it_is(path):
    forge(path, lambda header, arrays: (header.update(number=9), arrays.update(numbers=np.zeros(5, np.int64))))
    assert content(path)[1]["number"] == 9 and read(path)[2][0].tolist() == [0] * 5


REFUSED = {
    parse_json: ("JSON", ["{", "NaN", "-Infinity", "1e999", "9" * 5000, "[" * 100_000, b"\xff", '{"a":' * 100_000]),
    parse_toml: ("a TOML file", ["a", "a = inf", "a = nan", f"a = {'9' * 300}", "a = " + "[" * 10_000]),
    foreign_json: ("JSON", ["{", "[" * 100_000, "[" * 51 + "]" * 51, b"\xff", "9" * 5000]),
}


@pytest.mark.parametrize("parse", REFUSED)
def test_text_of_no_use_is_one_sentence(parse):
    what, texts = REFUSED[parse]
    for text in texts:
        with pytest.raises(DataError, match=rf"^the file cannot be read as {what} \([^\n]*\): [^\n]*$"):
            parse(text, "the file")


def test_json_of_other_programs_may_have_what_they_write():
    assert foreign_json("[" * MAX_DEPTH + "]" * MAX_DEPTH, "a")
    found = list(json_lines('{"a": NaN, "c": "\u2028"}\n\n{"a": -Infinity, "b": 123456789012345678901234}', "a.jsonl"))
    assert str(found[0]["a"]) == "nan" and found[1] == {"a": float("-inf"), "b": 123456789012345678901234}
    with pytest.raises(DataError, match=r"^a\.jsonl: line 3 cannot be read as JSON"):
        list(json_lines("{}\n\n{", "a.jsonl"))


@pytest.mark.parametrize(
    "opened", [lambda folder: StoredFile(folder / "a.h5", "test", 3), lambda folder: NpzFile(folder / "a.npz")]
)
def test_a_reader_that_nobody_closed_leaves_no_open_file(whole_file, tmp_path, opened):
    (tmp_path / "a.h5").write_bytes(whole_file)
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    gc.freeze()  # what other tests left: the collection below walks over the reader alone
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        reader = opened(tmp_path)
        reader.itself = reader  # the garbage collector alone ends it
        del reader
        gc.collect()
    assert not [str(one.message) for one in told if one.category is ResourceWarning]
