"""Counts that files claim are asked before lists are made of them: many samples in few bytes are one sentence."""

import io
import json
import re
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as arrow
import pytest
import torch
from _bounded import bounded
from PIL import Image
from pyarrow import parquet

from finc_eval.core.errors import DataError
from finc_eval.core.memory import counted, numbered
from finc_eval.embeddings.array_files import StoredArrays
from finc_eval.embeddings.columns import metadata_table
from finc_eval.embeddings.keys import hash_rows
from finc_eval.private.synthesis.files import read_columns
from finc_eval.samples.clips import Clip
from finc_eval.samples.opening import open_clips, open_source

LIST = r"the list of [\d,]+ (samples|clips|lines|rows) takes .* when decoded, above the .* of FINC_EVAL_MAX_DECODED"


@pytest.fixture(autouse=True)
def hundred_megabytes(monkeypatch):
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "100MB")


def png(size=8):
    stream = io.BytesIO()
    Image.new("RGB", (size, size)).save(stream, "PNG")
    return stream.getvalue()


def rows_of_one_picture(path, rows, files=1, **columns):
    for number in range(files):
        image = arrow.DictionaryArray.from_arrays(np.zeros(rows, "i4"), arrow.array([png()]))
        table = arrow.table({"image": image, **columns})
        parquet.write_table(table, path / f"{number}.parquet", row_group_size=rows, store_schema=False)
    return path if files > 1 else path / "0.parquet"


def sparse_npy(path, *shape):
    with (path / "a.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        file.truncate(file.tell() + int(np.prod(shape)))
    return path / "a.npy"


def packed_npz(path, *shape):
    np.savez_compressed(path / "a.npz", arr_0=np.zeros(shape, np.uint8))
    return path / "a.npz"


def video(path):
    frames = [Image.new("L", (4, 4), number) for number in range(3)]
    frames[0].save(path / "a.gif", save_all=True, append_images=frames[1:])
    return path


def lines(path, name, text):
    (path / "0.png").write_bytes(png())
    (path / name).write_text(text)
    return path


class Long:
    """A dataset that says how long it is."""

    def __len__(self):
        return 10**9

    def __getitem__(self, number):
        return Image.new("L", (4, 4))


def ids_of(source, **options):
    return len(open_source(source, **options).ids)


COUNTS = {
    "rows of one picture in a parquet": lambda path: ids_of(rows_of_one_picture(path, 3_000_000)),
    "rows of one picture in three parquets": lambda path: ids_of(rows_of_one_picture(path, 200_000, 3)),
    "pictures of one pixel in an npy": lambda path: ids_of(sparse_npy(path, 300_000_000, 1, 1, 3)),
    "gray pictures of one pixel in an npy": lambda path: ids_of(sparse_npy(path, 300_000_000, 1, 4)),
    "pictures of one pixel in an npz": lambda path: ids_of(packed_npz(path, 600_000, 1, 1, 3)),
    "items of a dataset": lambda path: ids_of(Long()),
    "images of an iterator": lambda path: ids_of(iter([]), n=10**9),
    "images of a function": lambda path: ids_of(lambda n: None, n=10**9),
    "windows of a video": lambda path: len(open_clips(video(path), Clip(2, 1, 10**9, "loop")).ids),
    "windows of clips in an npz": lambda path: len(
        open_clips(packed_npz(path, 2, 1, 1, 1, 3), Clip(1, 1, 10**9, "loop")).ids
    ),
    "prompts in a text": lambda path: ids_of(lines(path, "prompts.txt", "a\n" * 4_000_000)),
    "prompts in a table": lambda path: ids_of(lines(path, "prompts.tsv", "prompt\n" + "a\n" * 4_000_000)),
    "prompts in a file of the user": lambda path: ids_of(
        lines(path, "other.csv", "prompt\n" + "a\n" * 4_000_000), prompts=path / "other.csv"
    ),
    "records of a table": lambda path: read_columns(lines(path, "a.csv", "a\n" + "1\n" * 4_000_000) / "a.csv"),
    "embeddings without numbers": lambda path: StoredArrays(sparse_npy(path, 10**12, 0)),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", COUNTS)
def test_a_count_is_asked_before_a_list_is_made(case, tmp_path):
    found = bounded(COUNTS[case], tmp_path)
    assert re.search(LIST, found), found


def test_each_kind_of_set_has_ids_by_number():
    assert numbered(3, "x") == ["0", "1", "2"]
    assert [*counted("abc", "x")] == [*"abc"]
    with pytest.raises(DataError, match=LIST):
        numbered(600_000, "x")
    with pytest.raises(DataError, match=LIST):
        any(counted(iter(lambda: False, True), "x"))


def test_rows_that_share_a_picture_are_refused_while_they_are_read(tmp_path):
    source = open_source(rows_of_one_picture(tmp_path, 200_000))
    assert len(source.ids) == 200_000
    assert re.search(
        r"its images, to row [\d,]+, are more than 100 times its size, because rows share them: keep one row of each",
        bounded(lambda: source.manifest().n),
    )


def test_a_few_rows_may_share_a_picture(tmp_path):
    assert open_source(rows_of_one_picture(tmp_path, 5000)).manifest().n == 5000


def test_labels_of_a_parquet_that_are_one_long_text(tmp_path):
    label = arrow.DictionaryArray.from_arrays(np.zeros(6400, "i4"), arrow.array(["x" * 100_000]))
    path = rows_of_one_picture(tmp_path, 6400, label=label)
    assert re.search(r"takes .* when decoded", bounded(ids_of, path))


@pytest.mark.parametrize("groups", [1, 7, 1000])
def test_any_rows_of_any_groups_are_read(groups, tmp_path):
    rows = [png(4 + number % 5) for number in range(1000)]
    parquet.write_table(arrow.table({"image": rows}), tmp_path / "a.parquet", row_group_size=-(-1000 // groups))
    source = open_source(tmp_path / "a.parquet")
    for numbers in (range(1000), [0, 63, 64, 999], [500], range(100, 300, 7)):
        assert [one.pixels.shape[0] for one in source.take(numbers)] == [4 + number % 5 for number in numbers]


def test_rows_of_several_files_are_read(tmp_path):
    for number in range(3):
        parquet.write_table(arrow.table({"image": [png(4 + number)] * 10}), tmp_path / f"{number}.parquet")
    source = open_source(tmp_path)
    assert source.ids[9:11] == ["0/9", "1/0"]
    assert [one.pixels.shape[0] for one in source.take([9, 10, 25])] == [4, 5, 6]


@pytest.mark.long
@pytest.mark.one_of_each
@pytest.mark.parametrize(("n", "dim"), [(64, 1_000_000), (4, 16_000_000)])
def test_wide_rows_are_hashed_in_bounded_memory(n, dim):
    rows = torch.zeros(n, dim)
    assert bounded(lambda: len(hash_rows(rows))) == str(n)


MOST_THAT_READING_ADDS = """
import ctypes, re, sys
from pathlib import Path

import pyarrow as arrow

from finc_eval.core import heap
from finc_eval.embeddings.array_files import StoredArrays

def highest():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def read(path):
    found = StoredArrays(path)
    for _ in found.batches():
        pass
    return found

# Both pools of memory keep freed parts for a while, which are not the reader's: these thresholds let go at once.
arrow.set_memory_pool(arrow.system_memory_pool())
heap._set(ctypes.CDLL(None).mallopt, {heap.M_MMAP_THRESHOLD: 1 << 20, heap.M_TRIM_THRESHOLD: 1 << 20})
read(Path(sys.argv[1]))  # what is loaded once does not count
Path("/proc/self/clear_refs").write_text("5")  # the highest mark begins anew
before = highest()
found = read(Path(sys.argv[2]))
print((1024 * (highest() - before) - found._rows.nbytes) // 10**6)
"""
"""Prints by how much the memory of a process of its own grows beyond the rows of a file, in MB, while they are read."""


@pytest.mark.by_turns(3)
@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "dim", "dtype", "fixed"),
    [
        (40, 500_000, "f4", False),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                (80, 500_000, "f4", False),
                (20, 1_000_000, "f8", True),
                (80, 500_000, "f4", True),
                (20, 1_000_000, "f8", False),
                (1000, 40_000, "f4", False),
                (1000, 40_000, "f4", True),
            )
        ),
    ],
)
def test_wide_lists_are_read_without_a_second_copy(n, dim, dtype, fixed, tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "1GB")
    for name, entries in (("small", 10), ("large", dim)):
        values = arrow.array(np.random.default_rng(0).random(n * entries).astype(dtype))
        kind = arrow.FixedSizeListArray if fixed else arrow.ListArray
        ends = np.arange(0, n * entries + 1, entries, "i4")
        lists = kind.from_arrays(values, entries) if fixed else kind.from_arrays(ends, values)
        parquet.write_table(arrow.table({"e": lists}), tmp_path / f"{name}.parquet", use_dictionary=False)
    files = [tmp_path / "small.parquet", tmp_path / "large.parquet"]
    ran = subprocess.run([sys.executable, "-c", MOST_THAT_READING_ADDS, *files], capture_output=True, check=True)
    assert int(ran.stdout) < 0.75 * n * dim * np.dtype(dtype).itemsize / 1e6  # of 80 or 160 MB


@pytest.mark.parametrize(
    "kind", [arrow.list_(arrow.float32()), arrow.large_list(arrow.float64()), arrow.list_(arrow.float32(), 3)]
)
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 1000])
def test_lists_of_a_parquet_become_rows(kind, rows, tmp_path):
    values = np.arange(3.0 * rows).reshape(rows, 3)
    table = {"e": arrow.array(values.tolist(), kind), "n": [None, *range(rows - 1)], "id": [*map(str, range(rows))]}
    parquet.write_table(arrow.table(table), tmp_path / "a.parquet")
    found = StoredArrays(tmp_path / "a.parquet")
    assert np.array_equal(found.rows_at(np.arange(rows)).numpy(), values.astype("f4"))
    assert found.columns == ("n",)
    assert found.ids_between(0, rows) == table["id"]


@pytest.mark.parametrize("values", [[[1.0], [1.0, 2.0]], [[1.0, 2.0]] * 64 + [[1.0]], [[1.0], None]])
def test_lists_of_several_lengths_are_refused(values, tmp_path):
    parquet.write_table(arrow.table({"e": values}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="its lists have several lengths"):
        StoredArrays(tmp_path / "a.parquet")


def test_metadata_of_a_parquet_are_those_of_its_rows(tmp_path):
    parquet.write_table(arrow.table({"id": [*map(str, range(200))], "a": [*range(200)]}), tmp_path / "a.parquet")
    columns, _ = metadata_table(tmp_path / "a.parquet", [*map(str, range(200))])
    assert columns == {"a": [*map(str, range(200))]}


def test_a_file_of_a_saved_dataset_counts_once(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_dict({"x": [1]}).save_to_disk(str(tmp_path / "saved"))
    state = tmp_path / "saved" / "state.json"
    listed = json.loads(state.read_text())
    listed["_data_files"] *= 100_000
    state.write_text(json.dumps(listed))
    assert "lists data-00000-of-00001.arrow more than once" in bounded(open_source, tmp_path / "saved")


@pytest.mark.parametrize(("suffix", "read"), [(".zip", open_source), (".npz", StoredArrays)])
def test_a_member_without_a_name_is_one_sentence(suffix, read, tmp_path):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("x", b"")
    data = bytearray(made.getvalue())
    for start, place in ((b"PK\3\4", 26), (b"PK\1\2", 28)):  # lengths of the name, and of what follows it
        struct.pack_into("<HH", data, data.index(start) + place, 0, 1)
    (tmp_path / f"x{suffix}").write_bytes(data)
    found = bounded(read, tmp_path / f"x{suffix}")
    assert found.startswith(str(tmp_path)) and "holds" in found, found
