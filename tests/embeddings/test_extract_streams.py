"""Samples of a running generator, which can be read only once."""

import errno
from importlib import import_module

import numpy as np
import pytest
from _extraction import N, extract, leftovers, message
from PIL import Image

from finc_eval.embeddings import writer as cache_writer
from finc_eval.embeddings.writer import STREAM, only_writer
from finc_eval.samples.source import fingerprint

pytestmark = pytest.mark.usefixtures("own_cache_folder")


def batches_of(images, size):
    return (images[start : start + size] for start in range(0, len(images), size))


def asked(images):
    """A generator of images as a training loop has one: so many more each time."""
    rest = iter(images)
    return lambda count: np.stack([image for _, image in zip(range(count), rest, strict=False)])


@pytest.mark.parametrize(("make", "n"), [(iter, N), (lambda images: batches_of(images, 7), N), (asked, N), (iter, 12)])
def test_images_can_come_from_a_running_generator(tmp_path, images, make, n):
    cache = extract(make(images), n=n)
    np.testing.assert_array_equal(cache, np.asarray(extract(images))[:n])
    assert cache.path == tmp_path / "default" / f"{cache.key}.h5"
    assert cache.content.tolist() == [fingerprint(image) for image in images[:n]]
    assert not [file for file in (tmp_path / "default").iterdir() if "part" in file.name]
    out = extract(make(images), out=tmp_path / "named.h5", n=n)
    assert out.key == cache.key and out.path == tmp_path / "named.h5"


def test_a_generator_that_ends_too_early_leaves_nothing(tmp_path, images):
    assert "40" in message(extract, iter(images), n=50)
    assert not [file for file in (tmp_path / "default").iterdir() if file.suffix == ".h5" or "part" in file.name]


def test_classes_and_prompts_ride_along(tmp_path, images):
    np.savez(tmp_path / "set.npz", images=images, labels=np.arange(N) % 3)
    assert extract(tmp_path / "set.npz").labels == [str(row % 3) for row in range(N)]
    folder = tmp_path / "set"
    folder.mkdir()
    for number in range(3):
        Image.fromarray(images[number]).save(folder / f"{number}.png")
    captions = "file_name,text\n0.png,a cat\n1.png,a dog\n2.png,a fish\n"
    (folder / "metadata.csv").write_text(captions)
    before = extract(folder)
    assert before.prompts == ["a cat", "a dog", "a fish"]
    (folder / "metadata.csv").write_text(captions.replace("fish", "bird"))
    after = extract(folder)
    assert after.prompts[2] == "a bird"
    assert after.key != before.key


def test_a_full_disk_keeps_nothing_of_what_can_be_read_only_once(tmp_path, images, monkeypatch):
    out = tmp_path / "gen.h5"

    def full(writer):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache_writer.CacheWriter, "_checkpoint", full)
    assert "nothing half-written is left" in message(extract, iter(images), n=N, out=out)
    assert [file.name for file in tmp_path.iterdir()] == []


def test_what_can_be_read_only_once_is_locked_while_it_is_read(tmp_path, images):
    default, cache_folder = tmp_path / "default", import_module("finc_eval.embeddings.folder")
    seen = []

    def deleting():
        for number, image in enumerate(images):
            if number == 30:
                (entry,) = cache_folder.entries()
                seen.append(message(cache_folder.remove, entry))
            yield image

    assert extract(deleting(), n=N, batch_size=4).n == N
    assert "is being written by another process" in seen[0]
    assert leftovers(default) == []
    assert len(list(default.iterdir())) == 1, "the cache, and no lock"


@pytest.mark.parametrize("out", [None, "gen.h5"])
def test_what_a_kill_leaves_of_a_stream_is_removed_by_the_next_one_but_not_what_another_writes(tmp_path, images, out):
    folder, living = tmp_path / "default", f"{STREAM}{'b' * 32}.h5"
    folder.mkdir()
    with only_writer(folder / living):
        for name in (f"{STREAM}{'a' * 32}.h5.part", f".{STREAM}{'a' * 32}.h5.new", f"{living}.part"):
            (folder / name).write_bytes(b"left")
        extract(iter(images), n=N, out=out and folder / out).close()
        assert [name for name in leftovers(folder) if not name.endswith(".lock")] == [f"{living}.part"]


def test_an_output_that_is_being_written_is_refused_before_a_stream_is_read(tmp_path, images):
    out, items = tmp_path / "gen.h5", iter(images)
    with only_writer(out):
        assert "gen.h5 is being written by another process" in message(extract, items, n=N, out=out)
    assert extract(items, n=N, out=out).n == N, "nothing was taken from it"
