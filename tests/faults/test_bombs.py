"""Small files that would fill the memory: each is one sentence, or a failure of one sample, and takes little memory."""

import io
import tarfile
import threading
import time
import zipfile

import numpy as np
import pyarrow as arrow
import pytest
import torch
from PIL import Image
from pyarrow import parquet

from finc_eval.core.errors import DataError
from finc_eval.core.memory import max_decoded
from finc_eval.embeddings.array_files import StoredArrays
from finc_eval.embeddings.columns import metadata_table
from finc_eval.samples import files, images
from finc_eval.samples.clips import Clip
from finc_eval.samples.opening import open_source
from finc_eval.samples.video_files import open_path_of_clips

LIMIT = "above the 2 MB of FINC_EVAL_MAX_DECODED"


@pytest.fixture(autouse=True)
def two_megabytes(monkeypatch):
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "2MB")


def npz(path, **members):
    """An npz of zeros: name to (shape, type)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (shape, dtype) in members.items():
            head = io.BytesIO()
            np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
            archive.writestr(f"{name}.npy", head.getvalue() + bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize))
    return path


def picture(width=8, height=8):
    buffer = io.BytesIO()
    Image.new("L", (width, height)).save(buffer, "PNG")
    return buffer.getvalue()


def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("_", "."), data)
    return path


def test_labels_and_rows_of_an_npz(tmp_path):
    wide = npz(tmp_path / "a.npz", images=((50, 4, 4), "|u1"), labels=((50,), "<U20000"))
    with pytest.raises(DataError, match=f"a.npz: labels, 50 labels of type <U20000, takes 4 MB when decoded, {LIMIT}"):
        open_source(wide)
    large = npz(tmp_path / "b.npz", images=((2, 1000, 1000), "|u1"))
    with pytest.raises(DataError, match=rf"each row of images, of shape \(1000, 1000\), takes 12 MB .*{LIMIT}"):
        open_source(large)
    clips = npz(tmp_path / "c.npz", images=((2, 20, 100, 100, 3), "|u1"))
    with pytest.raises(DataError, match=f"each row of images, .*{LIMIT}"):
        open_path_of_clips(clips, Clip(2, 1, 1, "loop"))


def test_metadata_of_a_zip_and_of_a_tar(tmp_path):
    table = b"file_name,text\n" + b"0.png,a\n" * 50_000
    with pytest.raises(DataError, match=f"a.zip/metadata.csv takes 3.2 MB when decoded, {LIMIT}"):
        open_source(zipped(tmp_path / "a.zip", metadata_csv=table, a_png=picture()))
    with tarfile.open(tmp_path / "b.tar", "w") as archive:
        for name, data in (("a.png", picture()), ("a.txt", bytes(400_000))):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    with pytest.raises(DataError, match=f"b.tar: a.txt takes 3.2 MB when decoded, {LIMIT}"):
        open_source(tmp_path / "b.tar")


def test_members_of_a_zip_are_failures_that_are_not_unpacked(tmp_path):
    path = zipped(tmp_path / "a.zip", a_png=bytes(3_000_000), b_png=picture())
    source = open_source(path)
    bomb, good = source.samples()
    assert bomb.error == f"a file of 3 MB, which takes 6 MB when decoded, {LIMIT}"
    assert good.error is None
    assert [bomb.content, good.content] == list(source.contents([0, 1]))


def test_pictures_of_many_pixels_are_failures(tmp_path):
    (tmp_path / "set").mkdir()
    for name, size in (("large", (1000, 1000)), ("small", (300, 300))):
        (tmp_path / "set" / f"{name}.png").write_bytes(picture(*size))
    large, small = open_source(tmp_path / "set").samples()
    assert large.error == "1000x1000 pixels are more than the 166,666 that FINC_EVAL_MAX_DECODED allows"
    assert small.error is None


def test_threads_decode_no_more_side_by_side_than_is_allowed(tmp_path, monkeypatch):
    """Each picture takes more than a half of what is allowed, so none is decoded beside another."""
    (tmp_path / "set").mkdir()
    for number in range(12):
        (tmp_path / "set" / f"{number}.png").write_bytes(picture(300, 300))
    inside, most, lock, rgb = [0], [0], threading.Lock(), images.rgb
    meeting = threading.Barrier(2)

    def watched(image, *how):
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        if max_decoded() > 10**9:
            meeting.wait(20)  # two of them are here at the same time
        found = rgb(image, *how)
        with lock:
            inside[0] -= 1
        return found

    monkeypatch.setattr(images, "rgb", watched)
    source = open_source(tmp_path / "set")
    assert list(source.mapped(lambda sample: sample.error, range(12), 8)) == [None] * 12
    assert most[0] == 1
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "1GiB")
    list(source.mapped(lambda sample: sample.error, range(12), 8))
    assert most[0] > 1 and not meeting.broken


def test_threads_hash_no_more_side_by_side_than_is_allowed(tmp_path, monkeypatch):
    (tmp_path / "set").mkdir()
    for number in range(8):
        (tmp_path / "set" / f"{number}.png").write_bytes(bytes(700_000))
    inside, most, lock, digest = [0], [0], threading.Lock(), files.content_digest

    def watched(data):
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.01)
        with lock:
            inside[0] -= 1
        return digest(data)

    monkeypatch.setattr(files, "content_digest", watched)
    assert len(open_source(tmp_path / "set").digests()) == 8
    assert most[0] == 1


def test_windows_of_folders_of_frames(tmp_path):
    (tmp_path / "set" / "one").mkdir(parents=True)
    for number in range(4):
        (tmp_path / "set" / "one" / f"{number}.png").write_bytes(picture(300, 300))
    (sample,) = open_path_of_clips(tmp_path / "set", Clip(4, 1, 1, "loop")).samples()
    assert sample.error == f"a window of 4.32 MB when decoded, {LIMIT}"


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_tables_of_metadata(tmp_path, suffix):
    (tmp_path / f"t{suffix}").write_bytes(b"file_name,a\n" + b"0.png,1\n" * 40_000)
    with pytest.raises(DataError, match=f"takes 2.56 MB when decoded, {LIMIT}"):
        metadata_table(tmp_path / f"t{suffix}", ["0.png"])


def test_a_parquet_file_that_repeats_one_long_text(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(arrow.table({"id": [str(n) for n in range(5000)], "a": ["x" * 10_000] * 5000}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match=f"t.parquet, to row [0-9,]+, takes .* when decoded, {LIMIT}"):
        metadata_table(path, ["0"])


def test_embeddings_of_other_programs(tmp_path):
    compressed = npz(tmp_path / "a.npz", embeddings=((1000, 1000), "<f4"))
    with pytest.raises(DataError, match=f"a.npz: the array embeddings takes 4 MB when decoded, {LIMIT}"):
        StoredArrays(compressed)
    np.savez(tmp_path / "b.npz", embeddings=np.zeros((1000, 1000), np.float32))
    assert StoredArrays(tmp_path / "b.npz").n == 1000  # mapped, and so of any size
    torch.save(torch.zeros(1, 1).expand(1000, 1000), tmp_path / "c.pt")
    with pytest.raises(DataError, match="the tensor embeddings shows 1 number as 1,000,000: save its contiguous"):
        StoredArrays(tmp_path / "c.pt")
    parquet.write_table(arrow.table({"e": [[0.0] * 100] * 5000}), tmp_path / "d.parquet")
    with pytest.raises(DataError, match=f"d.parquet takes 4 MB when decoded, {LIMIT}"):
        StoredArrays(tmp_path / "d.parquet")
