"""A finc-eval file gives back what was written, or one sentence: never what somebody or something else put there."""

import gc
import json
import os
import subprocess
import sys
import warnings

import h5py
import numpy as np
import pytest
from _files import content, forge

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.core.files.front import BLOCK_BYTES, FRONT_BYTES, Front, file_type, front_of
from finc_eval.core.files.npz import NpzFile
from finc_eval.core.files.parsed import MAX_DEPTH, foreign_json, json_lines, parse_json, parse_toml
from finc_eval.core.files.reading import StoredFile, copy_content, existing_file, header_of
from finc_eval.core.files.writing import new_file

ROWS = np.random.default_rng(0).standard_normal((3 * BLOCK_BYTES // 40 + 17, 10)).astype(np.float32)
TEXTS = ["", "é", b"\xff.png".decode("utf-8", "surrogateescape"), "a/b", "x" * 300]


def written(path):
    with new_file(path, "test", 3) as file:
        file.header |= {"number": 1.5, "list": [1, None, "é"]}
        rows = file.rows("deep/rows", ROWS.shape, "<f4")
        for start in range(0, len(ROWS), 700):
            rows.append(ROWS[start : start + 700])
        file.array("numbers", np.arange(5, dtype=">i8"))
        file.array("scalar", np.float64(0.5))
        file.array("none", np.zeros((0, 4), np.uint8))
        file.texts("texts", TEXTS)
        file.texts("no texts", [])
    return path


@pytest.fixture
def path(tmp_path):
    return written(tmp_path / "a.h5")


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
    assert header == {"number": 1.5, "list": [1, None, "é"]}
    np.testing.assert_array_equal(rows, ROWS)
    assert (numbers.tolist(), float(scalar), none.shape, texts) == ([0, 1, 2, 3, 4], 0.5, (0, 4), (TEXTS, []))
    assert (file_type(path), front_of(path).layout, header_of(path)["number"]) == ("test", 3, 1.5)


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


def test_other_programs_read_the_arrays(path):
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["deep/rows"], ROWS)
        assert json.loads(file["header"][()])["number"] == 1.5
        text = file["texts/utf8"][:].tobytes()
        ends = file["texts/ends"][:].tolist()
        kinds = []
        file.visititems(
            lambda _, one: kinds.append((one.dtype.kind, len(one.attrs))) if hasattr(one, "dtype") else None
        )
    assert [text[a:b] for a, b in zip([0, *ends], ends, strict=False)][1] == "é".encode()
    assert {kind for kind, _ in kinds} <= set("fiuS") and {count for _, count in kinds} == {
        0
    }  # no heaps that could hang


def test_the_same_content_is_the_same_bytes(path, tmp_path):
    assert written(tmp_path / "b.h5").read_bytes() == path.read_bytes()
    with new_file(tmp_path / "c.h5", "test", 3) as new, StoredFile(path, "test", 3) as old:
        copy_content(old, new)
    assert (tmp_path / "c.h5").read_bytes() == path.read_bytes()


def test_a_changed_bit_of_what_is_read_is_found(path):
    data = path.read_bytes()
    front = front_of(path)
    places = [3, 100, front.start + 7, *(entry["start"] for entry in content_entries(path) if entry["crc32"])]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"a\.h5 (is damaged|was not written|is of the type|has test layout)"):
            read(path)


def content_entries(path):
    with StoredFile(path, "test", 3) as file:
        return list(file.arrays.values())


def test_rows_are_checked_block_by_block(path):
    with StoredFile(path, "test", 3) as file:
        start = file.arrays["deep/rows"]["start"]
    data = bytearray(path.read_bytes())
    data[start + 2 * BLOCK_BYTES] ^= 1
    path.write_bytes(data)
    with StoredFile(path, "test", 3) as file:
        rows = file.rows("deep/rows", None, 10)
        np.testing.assert_array_equal(rows.between(0, 100), ROWS[:100])
        with pytest.raises(DataError, match="deep/rows is not what was written"):
            rows.between(2 * BLOCK_BYTES // 40 + 5, len(ROWS))


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.update(shape=[10**12, 10]),
        lambda entry: entry.update(shape=[-1, 10]),
        lambda entry: entry.update(shape=None),
        lambda entry: entry.update(start=-5),
        lambda entry: entry.update(start=10**15),
        lambda entry: entry.update(dtype="|O"),
        lambda entry: entry.update(dtype="<f8"),
        lambda entry: entry.update(crc32=["a"]),
        lambda entry: entry.update(crc32=[]),
        lambda entry: entry.clear(),
    ],
)
def test_a_table_of_arrays_that_is_wrong_reads_nothing_beyond_the_file(path, change):
    front = front_of(path)
    data = path.read_bytes()
    header = json.loads(data[front.start : front.start + front.length])
    change(header["arrays"]["deep/rows"])
    resealed(path, data, header)
    with pytest.raises(DataError, match=r"a\.h5 is damaged \(.*\): make it again"):
        read(path)


def resealed(path, data, header):
    import hashlib

    text = json.dumps(header).encode()
    front = Front("test", 3, len(data) + len(text), len(data), len(text), hashlib.sha256(text).hexdigest())
    path.write_bytes(front.encoded() + data[FRONT_BYTES:] + text)


@pytest.mark.parametrize("header", [[], {}, {"arrays": 3, "program": "finc-eval", "type": "test", "layout": 3}, 7])
def test_a_header_that_is_something_else_is_one_sentence(path, header):
    resealed(path, path.read_bytes(), header)
    with pytest.raises(DataError, match=r"a\.h5"):
        StoredFile(path, "test", 3)
    assert header_of(path) is None


def test_links_and_outside_storage_of_a_foreign_file_are_never_followed(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_bytes(b"password" * 100)
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file.create_dataset("ids", (100,), "S8", external=[(str(secret), 0, 800)])
        file["embeddings"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "embeddings")
        file.attrs.update(program="finc-eval", kind="embeddings", schema=2)
    for opened in (fe.load, fe.EmbeddingCache):
        with pytest.raises(DataError, match="is not a finc-eval embedding cache of this version"):
            opened(tmp_path / "foreign.h5")
    for opened in (fe.Sketch.load, fe.Comparison.load, fe.privacy.PrivateSketch.load, fe.kahm.load_models):
        with pytest.raises(DataError, match="was not written by finc-eval of this version"):
            opened(tmp_path / "foreign.h5")


def test_an_outside_link_added_to_a_file_of_ours_is_not_seen(path, tmp_path):
    (tmp_path / "secret").write_bytes(bytes(4 * ROWS.size))
    with h5py.File(path, "r+") as file:
        del file["deep/rows"]
        file.create_dataset("deep/rows", ROWS.shape, "<f4", external=[(str(tmp_path / "secret"), 0, 4 * ROWS.size)])
    with pytest.raises(DataError, match="is damaged"):
        read(path)


def test_reading_needs_no_hdf5(path):
    code = (
        "import sys\nfrom finc_eval.core.files.reading import existing_file\n"
        f"with existing_file({str(path)!r}, 'test', 3) as file: file.check()\nassert 'h5py' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
def test_a_reader_that_nobody_closed_leaves_no_open_file(tmp_path, opened):
    written(tmp_path / "a.h5")
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    gc.collect()  # what other tests left
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        reader = opened(tmp_path)
        reader.itself = reader  # the garbage collector alone ends it
        del reader
        gc.collect()
    assert not [str(one.message) for one in told if one.category is ResourceWarning]
