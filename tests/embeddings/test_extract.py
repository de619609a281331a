"""Samples become embeddings once, rightly, and whatever interrupts it."""

import errno
import shutil
import signal
import subprocess
import sys
import zipfile
from importlib import import_module, resources

import numpy as np
import pytest
import torch
from PIL import Image

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import silent
from finc_eval.core.run import Run
from finc_eval.embeddings import writer as cache_writer
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.files import only_writer, part_of
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.network import Embedder
from finc_eval.extractors.preprocess import resized
from finc_eval.samples import Sample, fingerprint, open_source

extraction = import_module("finc_eval.embeddings.extract")


def extract(
    source, extractor="pixels", out=None, *, progress=silent, device=None, batch_size=None, workers=2, **options
):
    run = Run(device, batch_size, workers, progress)
    return extraction.extract(source, extractor, out, run=run, **options)


N, BATCH = 40, 8
ROUNDING = 2e-7
CHILD = """
import os, pathlib, signal, sys
import finc_eval.embeddings.writer
from finc_eval.core.run import Run
from finc_eval.embeddings.extract import extract

source, out, target, count = *sys.argv[1:4], int(sys.argv[4])
finc_eval.embeddings.writer.CHECKPOINT_SECONDS = 0
calls = 0

def step(*_):
    global calls
    calls += 1
    if calls == count:
        os.kill(os.getpid(), signal.SIGKILL)

def progress(stage, done, total):
    if target == "wait" and stage == "extract":
        print("extracting", flush=True)
        sys.stdin.readline()
    if stage.startswith(target):
        step()

def killing(function):
    return lambda *arguments, **options: (step(), function(*arguments, **options))[1]

if target == "fsync":
    os.fsync = killing(os.fsync)
if target == "unlink":
    pathlib.Path.unlink = killing(pathlib.Path.unlink)
extract(source, "pixels", out=out, run=Run(batch_size=8, progress=progress))
"""


@pytest.fixture(autouse=True)
def own_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "default"))
    monkeypatch.setattr(cache_writer, "CHECKPOINT_SECONDS", 0)


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (N, 28, 28, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path, images):
    path = tmp_path / "set"
    path.mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(path / f"{number:03}.png")
    return path


@pytest.fixture
def broken_folder(folder):
    (folder / "003.png").write_bytes(b"no picture")
    (folder / "011.png").write_bytes((folder / "011.png").read_bytes()[:200])
    return folder


def child(*arguments):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", CHILD, *map(str, arguments)], **pipes)


def message(call, *arguments, **options):
    with pytest.raises(FincEvalError) as caught:
        call(*arguments, **options)
    return str(caught.value)


class Steps(list):
    """A progress that remembers what it was told, and may raise at one call of a stage."""

    def __init__(self, stage="", call=0, error=None):
        super().__init__()
        self.stage, self.call, self.error = stage, call, error

    def __call__(self, stage, done, total):
        self.append((stage, done))
        if self.error and len(self.of(self.stage)) == self.call:
            raise self.error

    def of(self, stage):
        return [done for name, done in self if name.startswith(stage)]


def test_folder_zip_npz_and_array_give_the_same_embeddings(tmp_path, folder, images):
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    np.savez_compressed(tmp_path / "set.npz", images)
    sources = (folder, tmp_path / "set.zip", tmp_path / "set.npz", images)
    caches = [extract(source, out=tmp_path / f"{number}.h5") for number, source in enumerate(sources)]
    expected = images.transpose(0, 3, 1, 2).reshape(N, -1) / np.float32(255)
    for cache, source in zip(caches, [*map(str, sources[:3]), "array"], strict=True):
        np.testing.assert_allclose(cache, expected, rtol=ROUNDING)
        np.testing.assert_array_equal(cache, caches[0])
        assert cache.content.tolist() == [fingerprint(image) for image in images]
        assert (cache.source, cache.extractor, cache.dim) == (source, "pixels", 2352)
        assert cache.recipe["loader"]["kind"] == "pixels"
    assert caches[0].ids == [f"{number:03}.png" for number in range(N)]


def test_embeddings_depend_on_neither_batch_size_nor_workers(tmp_path, images):
    ways = ((1, 1), (7, 3), (64, 8))
    caches = [extract(images, out=tmp_path / f"{size}.h5", batch_size=size, workers=workers) for size, workers in ways]
    for cache in caches[1:]:
        np.testing.assert_array_equal(cache, caches[0])


def test_other_sizes_are_resized_as_the_card_says(images):
    large = np.repeat(np.repeat(images[:3], 2, axis=1), 3, axis=2)
    small = [resized(image, load_card("pixels").preprocessing) for image in large]
    expected = np.stack(small).transpose(0, 3, 1, 2).reshape(3, -1) / np.float32(255)
    np.testing.assert_allclose(extract(large), expected, rtol=ROUNDING)


def test_unreadable_samples_are_recorded(broken_folder):
    (broken_folder / "notes.txt").write_text("x")
    cache = extract(broken_folder, batch_size=BATCH)
    assert [name for name, _ in cache.failures] == ["003.png", "011.png"]
    assert cache.failures[0][1] == "no image that can be recognized"
    assert cache.ignored == {".txt": 1}
    assert len(cache) == N - 2
    kept = [number for number in range(N) if number not in (3, 11)]
    assert cache.ids == [f"{number:03}.png" for number in kept]
    image = np.asarray(Image.open(broken_folder / "012.png"))
    row = cache[cache.ids.index("012.png")]
    np.testing.assert_allclose(row, (image.transpose(2, 0, 1) / np.float32(255)).ravel(), rtol=ROUNDING)


def test_strict_refuses_unreadable_samples_and_leaves_no_cache(tmp_path, broken_folder):
    out = tmp_path / "gen.h5"
    text = message(extract, broken_folder, out=out, strict=True)
    assert "2 unreadable samples (003.png: no image that can be recognized; 011.png:" in text
    assert not out.exists()
    steps = Steps()
    assert len(extract(broken_folder, out=out, progress=steps).failures) == 2
    assert steps.of("extract") == [N]  # the work of the strict run was kept
    assert "2 unreadable samples" in message(extract, broken_folder, out=out, strict=True)


def test_a_set_without_any_readable_sample_is_refused(tmp_path):
    (tmp_path / "set").mkdir()
    for number in range(5):
        (tmp_path / "set" / f"{number}.png").write_bytes(b"no picture")
    text = message(extract, tmp_path / "set", out=tmp_path / "gen.h5")
    assert "5 unreadable samples" in text
    assert "and 2 more" in text
    assert not (tmp_path / "gen.h5").exists()
    assert not part_of(tmp_path / "gen.h5").exists()


def test_the_same_samples_are_not_extracted_again(tmp_path, folder, images, monkeypatch):
    first = extract(folder)
    assert first.path == tmp_path / "default" / f"{first.key}.h5"
    written = first.path.stat().st_mtime_ns
    shutil.copytree(folder, tmp_path / "another name")
    monkeypatch.setattr(extraction._Job, "_embedded", None)
    for source in (folder, tmp_path / "another name"):
        steps = Steps()
        assert extract(source, progress=steps).path == first.path
        assert steps.of("extract") == []
    assert extract(first) is first
    shutil.copy(first.path, tmp_path / "copy.h5")
    np.testing.assert_array_equal(extract(folder, out=tmp_path / "copy.h5"), first)
    assert first.path.stat().st_mtime_ns == written


def test_a_changed_sample_is_extracted_though_all_names_are_the_same(tmp_path, folder, images):
    out = tmp_path / "gen.h5"
    before = extract(folder, out=out)
    Image.fromarray(255 - images[5]).save(folder / "005.png")
    steps = Steps()
    after = extract(folder, out=out, progress=steps)
    assert after.key != before.key
    assert any("gen.h5 is of other samples or another card" in stage for stage, _ in steps)
    changed = np.flatnonzero((np.asarray(after) != np.asarray(before)).any(axis=1))
    assert changed.tolist() == [5]


def test_the_embeddings_of_another_set_or_extractor_are_not_replaced(tmp_path, folder, images):
    out = tmp_path / "gen.h5"
    key = extract(folder, out=out).key
    other = shutil.copytree(folder, tmp_path / "other")
    Image.fromarray(255 - images[5]).save(other / "005.png")
    refused = message(extract, other, out=out)
    assert f"{out} holds the embeddings of {folder} by pixels, which would be lost" in refused
    assert "which would be lost" in message(extract, folder, "efficientnet-lite0", out=out)
    assert "which would be lost" in message(extract, images[:8], out=out)
    assert "which would be lost" in message(extract, iter(images), out=out, n=4)
    assert EmbeddingCache(out).key == key
    assert extract(other, out=out, force=True).key == EmbeddingCache(out).key != key


def test_unfinished_embeddings_of_another_set_are_not_replaced(tmp_path, folder, images):
    out = tmp_path / "gen.h5"
    with pytest.raises(KeyboardInterrupt):
        extract(folder, out=out, batch_size=BATCH, progress=Steps("extract", 4, KeyboardInterrupt()))
    assert "gen.h5.part holds unfinished embeddings of other samples" in message(extract, images[:8], out=out)
    Image.fromarray(255 - images[5]).save(folder / "005.png")
    assert extract(folder, out=out).n == N, "the same folder, whose samples have changed"


def test_embeddings_that_are_cached_are_copied_to_the_file_that_is_asked_for(tmp_path, folder, monkeypatch):
    cached = extract(folder)
    monkeypatch.setattr(extraction._Job, "_fill", None)
    copy = extract(folder, out=tmp_path / "gen.h5")
    assert (copy.path, copy.key, copy.source) == (tmp_path / "gen.h5", cached.key, str(folder))
    np.testing.assert_array_equal(copy, cached)
    moved = folder.rename(tmp_path / "moved")
    assert extract(moved, out=tmp_path / "again.h5").source == str(moved)


def test_the_old_cache_stays_until_the_new_one_is_whole(tmp_path, folder, images):
    out = tmp_path / "gen.h5"
    key = extract(folder, out=out).key
    with pytest.raises(KeyboardInterrupt):
        extract(images[::-1], out=out, force=True, progress=Steps("write cache", 1, KeyboardInterrupt()))
    assert EmbeddingCache(out).key == key
    np.testing.assert_array_equal(extract(images[::-1], out=out, force=True)[0], extract(images)[N - 1])


def test_other_peoples_files_are_never_overwritten(tmp_path, images):
    (tmp_path / "thesis.h5").write_text("years of work")
    assert "thesis.h5 already exists and is not a finc-eval embedding cache" in message(
        extract, images, out=tmp_path / "thesis.h5"
    )
    assert (tmp_path / "thesis.h5").read_text() == "years of work"


class Network(torch.nn.Module):
    """The pixels, with what `spoil` does to them."""

    def __init__(self, spoil):
        super().__init__()
        self.spoil, self.calls = spoil, 0

    def forward(self, batch):
        self.calls += 1
        return {"input": self.spoil(batch.flatten(1).clone(), self.calls)}


@pytest.fixture
def network(monkeypatch):
    """Put another network in the place of that of pixels."""

    def put(spoil):
        made = Network(spoil)
        monkeypatch.setattr("finc_eval.extractors.network.load_backbone", lambda card, device, weights: made)
        return made

    return put


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_embeddings_that_are_not_finite_are_refused_with_their_sample(folder, network, value):
    def spoil(rows, call):
        rows[3 if call == 2 else len(rows) :, 100] = value
        return rows

    network(spoil)
    text = message(extract, folder, batch_size=BATCH)
    assert "the embedding of sample 011.png by pixels holds NaN or infinity" in text


def test_a_network_of_another_dimension_than_its_card_is_refused(images, network):
    network(lambda rows, call: rows[:, :7])
    assert "gives input of shape (7,), the card says 2352: correct output.dimension" in message(extract, images)


def test_a_batch_that_does_not_fit_is_halved_until_it_does(images, network):
    sizes = []

    def hungry(rows, call):
        sizes.append(len(rows))
        if len(rows) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return rows

    network(hungry)
    expected = images.transpose(0, 3, 1, 2).reshape(N, -1) / np.float32(255)
    np.testing.assert_allclose(extract(images, batch_size=32), expected, rtol=ROUNDING)
    assert sizes == [32, 16, 8, *[4] * 10]


def test_a_device_without_room_for_one_sample_is_named(images, network):
    def starved(rows, call):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried")

    network(starved)
    assert "cpu has too little memory for one sample of pixels" in message(extract, images)


def test_a_users_card_is_another_key(tmp_path, images):
    text = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text()
    card = tmp_path / "gray.toml"
    card.write_text(text.replace('"pixels"', '"mine"', 1).replace("std = [1.0", "std = [2.0"))
    mine, plain = extract(images, card), extract(images)
    assert mine.extractor == "mine"
    assert mine.key != plain.key
    np.testing.assert_array_equal(np.asarray(mine)[:, :784] * 2, np.asarray(plain)[:, :784])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"workers": 0}, "workers must be a whole number of at least 1, got 0"),
        ({"precision": "float8"}, "the precision of a network must be one of float32, bfloat16, float16, got 'float8'"),
        ({"device": "cuda:99"}, 'the device "cuda:99" cannot be used'),
        ({"device": "gpu"}, 'the device "gpu" cannot be used'),
        ({"extractor": "pixel"}, 'did you mean "pixels"?'),
    ],
)
def test_wrong_arguments_are_named(images, options, words):
    assert words in message(extract, images, **options)


def test_ctrl_c_leaves_a_part_that_the_next_run_resumes(tmp_path, images):
    out = tmp_path / "gen.h5"
    with pytest.raises(KeyboardInterrupt):
        extract(images, out=out, batch_size=BATCH, progress=Steps("extract", 3, KeyboardInterrupt()))
    assert part_of(out).exists()
    assert not out.exists()
    steps = Steps()
    cache = extract(images, out=out, batch_size=BATCH, progress=steps)
    assert steps.of("extract, resumed") == [16, 24, 32, 40]
    np.testing.assert_array_equal(cache, extract(images))
    assert not part_of(out).exists()


@pytest.mark.parametrize(
    ("target", "count", "resumes_at"),
    [
        ("extract", 1, 0),  # nothing done yet
        ("extract", 3, 16),  # between batches
        ("fsync", 1, 8),  # rows written, their checkpoint not
        ("fsync", 3, 24),
        ("write cache", 1, N),  # while the whole cache is written
        ("fsync", 6, N),  # the whole cache written, not yet in its place
        ("unlink", 1, None),  # the whole cache in its place, the unfinished one still there
    ],
)
def test_kill_9_loses_nothing_that_was_done(tmp_path, broken_folder, target, count, resumes_at):
    out = tmp_path / "out" / "gen.h5"
    process = child(broken_folder, out, target, count)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert out.exists() == (resumes_at is None)

    steps = Steps()
    cache = extract(broken_folder, out=out, batch_size=BATCH, progress=steps)
    assert steps.of("extract")[:1] == ([] if resumes_at is None else [resumes_at])
    whole = extract(broken_folder, out=tmp_path / "whole.h5", batch_size=BATCH)
    np.testing.assert_array_equal(cache, whole)
    np.testing.assert_array_equal(cache.content, whole.content)
    assert (cache.ids, cache.failures) == (whole.ids, whole.failures)
    assert sorted(file.name for file in out.parent.iterdir()) == ["gen.h5"]


def test_of_two_extracts_at_once_one_is_refused_and_the_other_unharmed(tmp_path, folder):
    out = tmp_path / "gen.h5"
    process = child(folder, out, "wait", 0)
    assert process.stdout.readline() == "extracting\n"
    assert "gen.h5 is being written by another process" in message(extract, folder, out=out)
    process.communicate("\n" * 20)
    assert process.returncode == 0
    np.testing.assert_array_equal(EmbeddingCache(out), extract(folder, out=tmp_path / "alone.h5"))


def test_a_disk_that_fills_up_keeps_what_was_done(tmp_path, images, monkeypatch):
    out, write, calls = tmp_path / "gen.h5", cache_writer.CacheWriter._checkpoint, []

    def full(writer):
        calls.append(writer)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(writer)

    monkeypatch.setattr(cache_writer.CacheWriter, "_checkpoint", full)
    text = message(extract, images, out=out, batch_size=BATCH)
    assert f"the disk is full while writing {out}: the finished part is kept in gen.h5.part" in text
    assert "run the same command again" in text
    steps = Steps()
    np.testing.assert_array_equal(extract(images, out=out, batch_size=BATCH, progress=steps), extract(images))
    assert steps.of("extract, resumed")[0] == 24


def test_a_disk_without_room_is_refused_before_the_work(tmp_path, images, monkeypatch):
    monkeypatch.setattr(cache_writer.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    steps = Steps()
    assert "MB free and gen.h5 needs about" in message(extract, images, out=tmp_path / "gen.h5", progress=steps)
    assert steps.of("extract") == []


def test_nothing_heavy_is_imported_before_it_is_needed(tmp_path, images):
    out = tmp_path / "gen.h5"
    np.savez(tmp_path / "set.npz", images)
    extract(tmp_path / "set.npz", out=out)
    code = (
        "import sys; from finc_eval.embeddings.extract import extract; extract(sys.argv[1], 'pixels', out=sys.argv[2]);"
        "print(sorted({'torch', 'torchvision', 'timm', 'faiss', 'rich'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "set.npz"), str(out)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


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


def test_a_seeded_subset_is_taken_of_more_and_refused_of_fewer(images):
    few, again, other = (extract(images, n=10, seed=seed) for seed in (0, 0, 1))
    assert few.path == again.path != other.path
    assert few.n == other.n == 10
    assert few.ids != other.ids
    np.testing.assert_array_equal(few, extract(images)[[int(name) for name in few.ids]])
    text = message(extract, images, n=41)
    assert "40" in text and "41" in text


def test_what_the_samples_were_encoded_in_is_kept(folder):
    Image.open(folder / "000.png").convert("L").save(folder / "041.jpg", quality=60)
    profile = extract(folder).profile
    assert profile.formats == {"JPEG": 1, "PNG": N}
    assert (profile.n, profile.gray, profile.median_quality) == (N + 1, 1, 60)


def test_a_compiled_network_sees_batches_of_one_size(images, monkeypatch):
    card, shapes = load_card("pixels"), []

    def compiled(network, dynamic):
        def run(batch):
            shapes.append(tuple(batch.shape))
            return network(batch)

        return run

    monkeypatch.setattr(torch, "compile", compiled)
    plain, made = Embedder(card, "cpu"), Embedder(card, "cpu", compiled_for=16)
    for count in (16, 5, 40):
        part = torch.from_numpy(images[:count])
        torch.testing.assert_close(made(part), plain(part), rtol=0, atol=0)
    assert set(shapes) == {(16, 3, 28, 28)}


def test_a_network_that_cannot_be_compiled_runs_as_it_is(images, monkeypatch):
    def no_compiler(network, dynamic):
        def run(batch):
            raise RuntimeError("no C++ compiler")

        return run

    monkeypatch.setattr(torch, "compile", no_compiler)
    assert Embedder(load_card("pixels"), "cpu", compiled_for=16)(torch.from_numpy(images)).shape == (N, 2352)


def test_lower_precision_is_another_key_and_nearly_the_same_embedding(images):
    large = np.repeat(np.repeat(images[:2], 4, axis=1), 4, axis=2)
    exact, lower = (extract(large, "efficientnet-lite0", precision=kind) for kind in ("float32", "bfloat16"))
    assert exact.key != lower.key
    assert exact.outputs == ("logits",) and exact.output("logits").shape == (2, 1000)
    error = np.linalg.norm(np.asarray(exact) - np.asarray(lower), axis=1) / np.linalg.norm(exact, axis=1)
    assert 1e-6 < error.max() < 0.1


def leftovers(folder):
    return sorted(file.name for file in folder.iterdir() if not file.name.endswith(".h5"))


def test_a_folder_that_vanishes_midway_leaves_no_cache_that_would_pass_for_the_whole(tmp_path, folder):
    out, gone, steps = tmp_path / "gen.h5", tmp_path / "gone", []

    def vanish(stage, done, total):
        steps.append((stage, done))
        if stage == "extract" and done == 16:
            folder.rename(gone)

    text = message(extract, folder, out=out, batch_size=4, workers=1, progress=vanish)
    assert f"{folder} changed while it was read (" in text and "no such file or directory" in text
    assert not out.exists()
    gone.rename(folder)
    again = Steps()
    cache = extract(folder, out=out, batch_size=4, progress=again)
    assert cache.failures == []
    assert again.of("extract, resumed")[0] >= 16
    np.testing.assert_array_equal(cache, extract(folder))


def test_a_sample_that_could_not_be_read_for_a_moment_is_no_failure_of_the_set(tmp_path, broken_folder, monkeypatch):
    source = open_source(broken_folder)
    sample, first = type(source).sample, []

    def flaky(self, number):
        if number == 20 and not first:
            first.append(number)
            return Sample(self.ids[number], None, "input/output error")
        return sample(self, number)

    monkeypatch.setattr(type(source), "sample", flaky)
    out = tmp_path / "gen.h5"
    text = message(extract, broken_folder, out=out, batch_size=4)
    assert "changed while it was read (020.png: input/output error)" in text
    assert [name for name, _ in extract(broken_folder, out=out, batch_size=4).failures] == ["003.png", "011.png"]


def test_what_fails_before_the_first_row_leaves_nothing_behind(tmp_path, images):
    default = tmp_path / "default"
    assert "cannot be used" in message(extract, images, device="gpu")
    assert leftovers(default) == []
    assert "the network has no layer" in message(extract, images, own_card(tmp_path / "own.toml"))
    assert leftovers(default) == []


def own_card(path):
    text = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text()
    path.write_text(text.replace('layer = "input"', 'layer = "output"'))
    return path


def test_rows_that_were_done_survive_an_error_of_the_next_run(tmp_path, images):
    out = tmp_path / "gen.h5"
    with pytest.raises(KeyboardInterrupt):
        extract(images, out=out, batch_size=BATCH, progress=Steps("extract", 4, KeyboardInterrupt()))
    message(extract, images, out=out, batch_size=N, device="gpu")
    steps = Steps()
    extract(images, out=out, batch_size=BATCH, progress=steps)
    assert steps.of("extract, resumed")[0] >= BATCH


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
    folder, living = tmp_path / "default", f"{extraction.STREAM}{'b' * 32}.h5"
    folder.mkdir()
    with only_writer(folder / living):
        for name in (
            f"{extraction.STREAM}{'a' * 32}.h5.part",
            f".{extraction.STREAM}{'a' * 32}.h5.new",
            f"{living}.part",
        ):
            (folder / name).write_bytes(b"left")
        extract(iter(images), n=N, out=out and folder / out).close()
        assert [name for name in leftovers(folder) if not name.endswith(".lock")] == [f"{living}.part"]


def test_an_output_that_is_being_written_is_refused_before_a_stream_is_read(tmp_path, images):
    out, items = tmp_path / "gen.h5", iter(images)
    with only_writer(out):
        assert "gen.h5 is being written by another process" in message(extract, items, n=N, out=out)
    assert extract(items, n=N, out=out).n == N, "nothing was taken from it"


def test_an_output_in_a_place_that_is_no_folder_is_one_sentence(tmp_path, images):
    (tmp_path / "notes.txt").write_text("mine")
    for samples in (images, iter(images)):
        assert "cannot be written" in message(extract, samples, n=N, out=tmp_path / "notes.txt" / "gen.h5")
    assert "is not a finc-eval embedding cache: choose another name" in message(
        extract, images, out=tmp_path / "notes.txt"
    )
    (tmp_path / "default").write_text("no folder")
    for samples in (images, iter(images)):
        assert "cannot be written" in message(extract, samples, n=N)


def test_a_network_that_refuses_its_inputs_is_one_sentence_that_names_the_card(tmp_path, images, monkeypatch):
    monkeypatch.setattr("finc_eval.extractors.network.load_backbone", lambda *_: torch.nn.Linear(5, 5))
    text = message(extract, images, batch_size=BATCH)
    assert text.startswith("card pixels: the network fails on a batch of shape (8, 3, 28, 28) (")
    assert "mat1 and mat2 shapes cannot be multiplied" in text
    assert "check preprocessing.size" in text and "\n" not in text
    assert leftovers(tmp_path / "default") == []


def test_an_image_that_cannot_be_resized_is_a_failure_of_its_own(folder, tmp_path):
    text = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text()
    (tmp_path / "crop.toml").write_text(text.replace('"squash"', '"crop"'))
    Image.new("RGB", (200_000, 1)).save(folder / "line.png")
    cache = extract(folder, tmp_path / "crop.toml")
    assert cache.n == N
    ((name, reason),) = cache.failures
    assert name == "line.png"
    assert "200000" in reason
