"""Arrays of npz files, read by block or mapped: the same values as numpy's, or one sentence."""

import io
import zipfile

import numpy as np
import pytest

from finc_eval.core.errors import DataError
from finc_eval.core.files import npz
from finc_eval.core.files.npz import NpzFile

ARRAYS = {
    "floats": np.random.default_rng(0).standard_normal((700, 5)).astype(np.float32),
    "columns": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "images": np.random.default_rng(0).integers(0, 256, (40, 6, 7, 3), dtype=np.uint8),
    "texts": np.array(["a", "ünï", ""]),
    "bytes": np.array([b"a", b"bc"]),
    "one": np.array("layout"),
    "none": np.empty((0, 3), np.float32),
    "large_end": np.arange(5, dtype=">i4"),
}


@pytest.fixture(params=["stored", "compressed"])
def path(tmp_path, request):
    {"stored": np.savez, "compressed": np.savez_compressed}[request.param](tmp_path / "a.npz", **ARRAYS)
    return tmp_path / "a.npz"


@pytest.mark.parametrize("block", [1, 64, 1 << 20])
def test_values_are_those_of_numpy(path, monkeypatch, block):
    monkeypatch.setattr(npz, "BLOCK_BYTES", block)
    file = NpzFile(path)
    assert file.names == list(ARRAYS)
    for name, expected in ARRAYS.items():
        for found in (file.array(name), file.mapped(name)):
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(found, expected)


def test_only_what_is_stored_uncompressed_is_mapped_and_a_change_stays_in_memory(tmp_path):
    np.savez(tmp_path / "a.npz", **ARRAYS)
    np.savez_compressed(tmp_path / "b.npz", **ARRAYS)
    found = NpzFile(tmp_path / "a.npz").mapped("floats")
    assert isinstance(found, np.memmap)
    assert not isinstance(NpzFile(tmp_path / "b.npz").mapped("floats"), np.memmap)
    found[0] = 9
    np.testing.assert_array_equal(NpzFile(tmp_path / "a.npz").array("floats"), ARRAYS["floats"])


def test_rows_come_in_batches_of_any_size(path):
    rows = NpzFile(path).rows("images")
    assert (len(rows), rows.shape, rows.dtype) == (40, (40, 6, 7, 3), np.uint8)
    for size in (1, 7, 40, 100):
        batches = list(rows.batches(size))
        assert all(len(batch) <= size for batch in batches)
        np.testing.assert_array_equal(np.concatenate(batches), ARRAYS["images"])
    with pytest.raises(DataError, match=r"columns is stored in Fortran order: save np.ascontiguousarray\(columns\)"):
        NpzFile(path).rows("columns")


def test_damage_anywhere_is_one_sentence(path):
    whole = path.read_bytes()
    for place in range(0, len(whole), 197):
        data = bytearray(whole)
        data[place] ^= 0xFF
        path.write_bytes(data)
        for read in (NpzFile.array, NpzFile.mapped, lambda file, name: list(file.rows(name).batches(9))):
            try:
                file = NpzFile(path)
                for name in file.names:
                    read(file, name)
            except DataError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize("read", [NpzFile.array, NpzFile.mapped])
def test_a_flipped_byte_of_the_values_is_noticed_also_where_they_are_mapped(tmp_path, read):
    np.savez(tmp_path / "a.npz", floats=ARRAYS["floats"])
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(DataError, match=r"a.npz is damaged \(floats.npy: Bad CRC-32.*\): save it again"):
        read(NpzFile(tmp_path / "a.npz"), "floats")


def claimed(path, shape, dtype, data=b""):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", head.getvalue() + data)
    return NpzFile(path)


@pytest.mark.parametrize("read", [NpzFile.array, NpzFile.mapped, NpzFile.rows])
def test_lengths_that_cannot_be_are_one_sentence_and_take_no_memory(tmp_path, read):
    with pytest.raises(DataError, match=r"is damaged \(x.npy: 128 bytes for the shape"):
        read(claimed(tmp_path / "a.npz", (10**11, 28, 28), "|u1"), "x")
    for shape in [(-2, -3), (2, -1, -3), (-1,)]:
        with pytest.raises(DataError, match=r"x.npy cannot be read \(not an array of numpy\)"):
            read(claimed(tmp_path / "a.npz", shape, "|u1", bytes(6)), "x")


def test_what_would_fill_the_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "1MB")
    file = claimed(tmp_path / "a.npz", (2, 2_000_000), "|u1", bytes(4_000_000))
    assert (tmp_path / "a.npz").stat().st_size < 10_000
    for read, size in ((NpzFile.array, "4 MB"), (NpzFile.mapped, "4 MB"), (NpzFile.rows, "2 MB")):
        with pytest.raises(DataError, match=f"takes {size} when decoded, above the 1 MB of FINC_EVAL_MAX_DECODED"):
            read(file, "x")
    np.savez(tmp_path / "b.npz", x=np.zeros((2, 2_000_000), np.uint8))
    assert NpzFile(tmp_path / "b.npz").mapped("x").shape == (2, 2_000_000)


def test_what_is_not_an_npz_or_holds_objects_is_one_sentence(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.npz does not exist"):
        NpzFile(tmp_path / "nowhere.npz")
    (tmp_path / "a.npz").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"a.npz cannot be read as an .npz \(File is not a zip file\)"):
        NpzFile(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", x=np.array([{}, []], object))
    with pytest.raises(DataError, match=r"x.npy holds Python objects, which are not read"):
        NpzFile(tmp_path / "b.npz").array("x")
