"""Embeddings that other programs saved are read from their files, with ids and columns."""

import os
import resource
import sys

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.embeddings.array_files import is_array_file
from finc_eval.embeddings.opening import as_embeddings

ROWS = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
IDS = [f"{number}.png" for number in range(30)]
LABELS = ["cat", "dog"] * 15


def npy(path):
    np.save(path / "x.npy", ROWS)
    return path / "x.npy"


def npz(path):
    np.savez(path / "x.npz", features=ROWS, ids=IDS, labels=LABELS)
    return path / "x.npz"


def tensor(path):
    torch.save(torch.from_numpy(ROWS), path / "x.pt")
    return path / "x.pt"


def tensors(path):
    torch.save({"embeddings": torch.from_numpy(ROWS), "epoch": 3}, path / "x.pth")
    return path / "x.pth"


def safetensors(path):
    save = pytest.importorskip("safetensors.torch").save_file
    save({"embeddings": torch.from_numpy(ROWS)}, path / "x.safetensors")
    return path / "x.safetensors"


def lists(path):
    table = pytest.importorskip("pyarrow").table({"embedding": list(ROWS), "id": IDS, "label": LABELS})
    pytest.importorskip("pyarrow.parquet").write_table(table, path / "x.parquet")
    return path / "x.parquet"


def columns(path):
    table = pytest.importorskip("pyarrow").table({f"f{j}": ROWS[:, j] for j in range(4)} | {"label": LABELS})
    pytest.importorskip("pyarrow.parquet").write_table(table, path / "y.parquet")
    return path / "y.parquet"


@pytest.mark.parametrize("save", [npy, npz, tensor, tensors, safetensors, lists, columns])
def test_rows_come_back_from_every_kind_of_file(save, tmp_path):
    path = save(tmp_path)
    assert is_array_file(path)
    found = as_embeddings(path)
    assert np.array_equal(found.rows_at(np.arange(30)).numpy(), ROWS)
    assert str(path) in found.name


@pytest.mark.parametrize("save", [npz, lists])
def test_ids_and_columns_come_with_the_rows(save, tmp_path):
    found = as_embeddings(save(tmp_path))
    assert found.ids_at(np.array([0, 29])) == ("0.png", "29.png")
    assert found.column("label") == LABELS


def test_an_npz_of_images_is_not_one_of_embeddings(tmp_path):
    np.savez(tmp_path / "images.npz", arr_0=np.zeros((3, 8, 8), np.uint8), arr_1=np.arange(3))
    assert not is_array_file(tmp_path / "images.npz")
    np.savez(tmp_path / "fid.npz", mu=ROWS[0], sigma=np.eye(4))
    assert not is_array_file(tmp_path / "fid.npz")
    assert not is_array_file(tmp_path / "missing.npy")


def test_of_several_arrays_one_must_be_called_embeddings(tmp_path):
    np.savez(tmp_path / "x.npz", one=ROWS, other=ROWS)
    with pytest.raises(fe.DataError, match=r"holds one \(30, 4\), other \(30, 4\): save one array of shape \(n, d\)"):
        as_embeddings(tmp_path / "x.npz")


def test_of_many_arrays_beside_the_embeddings_none_is_opened(tmp_path):
    many = {f"a{number}": ROWS for number in range(300)}
    np.savez(tmp_path / "x.npz", embeddings=ROWS, ids=IDS, **many)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        assert as_embeddings(tmp_path / "x.npz").ids_at(np.array([29])) == ("29.png",)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    np.savez(tmp_path / "x.npz", **many)
    with pytest.raises(fe.DataError, match=r"holds a0 \(30, 4\), .*, …: save one array of shape \(n, d\)"):
        as_embeddings(tmp_path / "x.npz")


@pytest.mark.parametrize("suffix", ["npy", "pt", "safetensors", "parquet"])
def test_a_damaged_file_is_one_sentence(suffix, tmp_path):
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(b"no such thing" * 9)
    with pytest.raises(fe.DataError, match=r"(cannot be read \(.*\)|is not a readable npy array): save it again"):
        as_embeddings(path)


def test_an_npz_whose_directory_is_damaged_is_one_sentence(tmp_path):
    np.savez(tmp_path / "x.npz", mu=ROWS[0], sigma=np.eye(4))
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[data.rfind(b"PK\x01\x02")] = 0
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(fe.DataError, match=r"cannot be read as an .npz"):
        fe.compare(tmp_path / "x.npz", ROWS)


def test_a_pickle_is_not_run(tmp_path):
    torch.save({"embeddings": ROWS.tolist(), "call": pytest.fail}, tmp_path / "x.pt")
    with pytest.raises(fe.DataError, match="reading it could run code"):
        as_embeddings(tmp_path / "x.pt")


def test_files_of_arrays_can_be_compared(tmp_path):
    rng = np.random.default_rng(1)
    for name in ("gen", "ref"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(60, 4)))
    found = fe.compare(tmp_path / "gen.npy", str(tmp_path / "ref.npy"), features=50)
    assert found.gen.n == 60


@pytest.mark.parametrize("form", [npy, npz, tensor])
@pytest.mark.parametrize(
    "read", [lambda rows: list(rows.batches(10)), lambda rows: rows.rows_at(np.arange(29, 10, -2))]
)
def test_a_file_cut_between_check_and_copy_kills_nothing(tmp_path, monkeypatch, form, read):
    monkeypatch.setattr(sys.modules[__name__], "ROWS", np.repeat(ROWS, 500, 1))  # several pages of memory
    path = form(tmp_path)
    monkeypatch.setattr("finc_eval.embeddings.array_files._state", lambda _: None)
    rows = as_embeddings(path)
    os.truncate(path, 100)
    with pytest.raises(DataError, match=rf"{path.name} changed while it was read"):
        read(rows)


@pytest.mark.parametrize("form", [npy, npz, tensor])
@pytest.mark.parametrize("how", ["cut", "replaced", "removed"])
def test_a_file_that_changes_while_it_is_read_is_one_sentence(tmp_path, form, how):
    """A process that touches what was cut off a mapped file is killed, so nothing of it may be touched."""
    path = form(tmp_path)
    batches = as_embeddings(path).batches(10)
    next(batches)
    if how == "cut":
        with path.open("r+b") as file:
            file.truncate(100)
    elif how == "replaced":
        path.write_bytes(path.read_bytes()[::-1])
        os.utime(path, ns=(1, 1))
    else:
        path.unlink()
    with pytest.raises(DataError, match=rf"{path.name} changed while it was read: run the same command again when"):
        list(batches)
