"""Samples that change while they are read: no row of new bytes is kept under the key of the old."""

import io
import os
import tarfile
import threading
import zipfile
from importlib import import_module

import numpy as np
import pytest
from _videos import encode
from PIL import Image

from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.extractors.catalog import load_card
from finc_eval.samples import files
from finc_eval.samples.clips import Clip
from finc_eval.samples.opening import open_clips, open_source

extract = import_module("finc_eval.embeddings.extract").extract

N, BATCH = 40, 8


pytestmark = pytest.mark.usefixtures("own_cache_folder")


@pytest.fixture(scope="module")
def pictures():
    """Two versions of 40 pictures as PNG, each of the same size in bytes: they are not compressed."""
    images = np.random.default_rng(0).integers(0, 256, (2, N, 28, 28, 3), dtype=np.uint8)
    return [[encoded(image) for image in version] for version in images]


def encoded(image):
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=0)
    return buffer.getvalue()


def as_folder(path, pictures):
    path.mkdir(exist_ok=True)
    for number, data in enumerate(pictures):
        (path / f"{number:03}.png").write_bytes(data)
    return path


def as_zip(path, pictures):
    with zipfile.ZipFile(path, "w") as archive:
        for number, data in enumerate(pictures):
            archive.writestr(zipfile.ZipInfo(f"{number:03}.png"), data)
    return path


def as_tar(path, pictures):
    with tarfile.open(path, "w") as archive:
        for number, data in enumerate(pictures):
            info = tarfile.TarInfo(f"{number:03}.png")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def as_npz(path, pictures):
    np.savez(path, images=np.stack([np.asarray(Image.open(io.BytesIO(data))) for data in pictures]))
    return path


FORMS = {"set": as_folder, "set.zip": as_zip, "set.tar": as_tar, "set.npz": as_npz}


def rewriting(change, at=16):
    def progress(stage, done, total):
        if stage.startswith("embed") and done == at:
            change()

    return Run(batch_size=BATCH, workers=1, progress=progress)


@pytest.mark.parametrize("form", FORMS)
def test_samples_that_are_rewritten_midway_are_refused_and_the_old_bytes_keep_their_rows(tmp_path, pictures, form):
    old, new = pictures
    write, place, out = FORMS[form], tmp_path / form, tmp_path / "gen.h5"
    right = np.asarray(extract(write(place, old), "pixels", tmp_path / "right.h5"))
    size = place.stat().st_size

    def rewrite():
        write(place, [*old[:30], *new[30:]])

    # The checksums of zip and npz notice it, too.
    with pytest.raises(DataError, match=r"changed while it was read \(|set\.npz is damaged"):
        extract(place, "pixels", out, run=rewriting(rewrite))
    assert place.stat().st_size == size
    assert not out.exists()
    write(place, old)
    again = extract(place, "pixels", out, run=Run(batch_size=BATCH))
    np.testing.assert_array_equal(again, right)
    assert again.failures == []


def test_a_run_on_the_new_bytes_begins_again_under_their_own_key(tmp_path, pictures):
    old, new = pictures
    folder, out = as_folder(tmp_path / "set", old), tmp_path / "gen.h5"
    with pytest.raises(DataError, match="changed while it was read"):
        extract(folder, "pixels", out, run=rewriting(lambda: as_folder(folder, new)))
    found = extract(folder, "pixels", out, run=Run(batch_size=BATCH))
    np.testing.assert_array_equal(found, extract(as_folder(tmp_path / "new", new), "pixels"))


def test_files_that_are_rewritten_all_the_time_never_give_a_row_of_other_bytes(tmp_path, pictures):
    """Writers in another thread: whatever is kept is of the bytes of its key."""
    old, new = pictures
    folder, done = as_folder(tmp_path / "set", old), threading.Event()
    right = {tuple(row) for version in pictures for row in as_rows(tmp_path / "version", version)}

    def rewrite():
        while not done.is_set():
            for version in (new, old):
                as_folder(folder, version)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for number in range(5):
            out = tmp_path / f"{number}.h5"
            try:
                rows = np.asarray(extract(folder, "pixels", out))
            except DataError as error:
                assert "changed while it was read" in str(error) and not out.exists()
            else:
                assert {tuple(row) for row in rows} <= right
    finally:
        done.set()
        writer.join()


def as_rows(path, pictures):
    return np.asarray(extract(as_folder(path, pictures), "pixels"))


def test_every_source_hashes_the_bytes_that_it_decodes(tmp_path, pictures):
    sources = [open_source(write(tmp_path / form, pictures[0])) for form, write in FORMS.items()]
    images = np.stack([np.asarray(Image.open(io.BytesIO(data))) for data in pictures[0]])
    sources += [open_source(images), open_source(list(images)), open_source(images[..., 0]), open_source(images, n=9)]
    clip = Clip(frames=4, stride=2, windows=2, short="loop")
    sources += [open_clips(images.reshape(4, 10, 28, 28, 3), clip)]
    np.savez(tmp_path / "clips.npz", images.reshape(4, 10, 28, 28, 3))
    sources += [open_clips(tmp_path / "clips.npz", clip)]
    (tmp_path / "frames").mkdir()
    as_folder(tmp_path / "frames" / "one", [*pictures[0][:10], b"damaged"])
    sources += [open_clips(tmp_path / "frames", clip), open_clips(as_videos(tmp_path / "videos"), clip)]
    sources += [open_source(broken(tmp_path / "broken", pictures[0]))]
    for source in sources:
        samples = list(source.samples())
        assert [sample.content for sample in samples] == list(source.contents(range(len(source.ids)))), source.kind
        assert len(samples) == len(source.ids)


def broken(path, pictures):
    folder = as_folder(path, [*pictures[:3], pictures[3][:500], b"no picture"])
    (folder / "gone.png").symlink_to(path / "nowhere.png")
    return folder


def as_videos(path):
    path.mkdir()
    frames = np.random.default_rng(1).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    (path / "a.mp4").write_bytes(encode("mp4", frames))
    (path / "cut.mp4").write_bytes(encode("mp4", frames)[:-200])
    return path


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_video_that_is_rewritten_while_it_is_decoded_has_another_digest(tmp_path, monkeypatch, in_memory):
    monkeypatch.setattr(files, "MAX_BYTES_IN_MEMORY", 1 << 20 if in_memory else 0)
    source = open_clips(as_videos(tmp_path / "videos"), Clip(frames=4, stride=1, windows=2, short="loop"))
    hashed = list(source.contents([0, 1]))
    windows = source.windows(0, [0, 1], source.ids)
    first = next(windows)
    assert first.content == hashed[0]
    data = (tmp_path / "videos" / "a.mp4").read_bytes()
    os.utime(tmp_path / "videos" / "a.mp4", ns=(1, 1))
    with (tmp_path / "videos" / "a.mp4").open("r+b") as file:
        file.write(data[::-1])
    # Bytes in memory are still those that were hashed; of a large file nothing more is believed.
    assert (next(windows).content == hashed[1]) == in_memory


def test_a_dataset_with_random_augmentation_is_refused_with_what_to_do(tmp_path):
    class Random:
        def __init__(self):
            self.rng = np.random.default_rng(0)

        def __len__(self):
            return 5

        def __getitem__(self, number):
            return self.rng.integers(0, 256, (28, 28, 3), dtype=np.uint8)

    with pytest.raises(DataError, match=r"changed while it was read \(0: .* remove random augmentation"):
        extract(Random(), "pixels")


def test_samples_that_were_too_large_are_read_when_more_is_allowed(tmp_path, pictures, monkeypatch):
    folder = as_folder(tmp_path / "set", pictures[0][:5])
    Image.new("RGB", (100, 100)).save(folder / "large.png")
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "100kB")
    for out in (None, tmp_path / "gen.h5"):
        with extract(folder, "pixels", out) as small:
            assert small.failures == [
                ("large.png", "100x100 pixels are more than the 8,333 that FINC_EVAL_MAX_DECODED allows")
            ]
            assert small.key == extract(folder, "pixels", out).key
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "1MB")
    for out in (tmp_path / "gen.h5", tmp_path / "other.h5", None):
        with extract(folder, "pixels", out) as whole:
            assert (whole.n, whole.failures) == (6, [])
    assert isinstance(whole, EmbeddingCache)
    assert load_card("pixels").name == whole.extractor
