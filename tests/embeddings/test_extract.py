"""Samples become embeddings once, and rightly."""

import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from _cards import pixel_card
from _extraction import BATCH, ROUNDING, N, Steps, extract, message
from PIL import Image

from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.job import Job
from finc_eval.embeddings.writer import part_of
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.preprocess import resize_frames
from finc_eval.samples.source import fingerprint

pytestmark = pytest.mark.usefixtures("own_cache_folder")


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
    small = [resize_frames(image, load_card("pixels").preprocessing) for image in large]
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
    assert steps.of("embed") == [N]  # the work of the strict run was kept
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
    monkeypatch.setattr(Job, "_embedded", None)
    for source in (folder, tmp_path / "another name"):
        steps = Steps()
        assert extract(source, progress=steps).path == first.path
        assert steps.of("embed") == []
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
        extract(folder, out=out, batch_size=BATCH, progress=Steps("embed", 4, KeyboardInterrupt()))
    assert "gen.h5.part holds unfinished embeddings of other samples" in message(extract, images[:8], out=out)
    Image.fromarray(255 - images[5]).save(folder / "005.png")
    assert extract(folder, out=out).n == N, "the same folder, whose samples have changed"


def test_embeddings_that_are_cached_are_copied_to_the_file_that_is_asked_for(tmp_path, folder, monkeypatch):
    cached = extract(folder)
    monkeypatch.setattr(Job, "_fill", None)
    copy = extract(folder, out=tmp_path / "gen.h5")
    assert (copy.path, copy.key, copy.source) == (tmp_path / "gen.h5", cached.key, str(folder))
    np.testing.assert_array_equal(copy, cached)
    moved = folder.rename(tmp_path / "moved")
    for out in (tmp_path / "again.h5", None):
        assert extract(moved, out=out).source == str(moved)


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


def test_a_users_card_is_another_key(tmp_path, images):
    card = pixel_card(tmp_path / "gray.toml", ("std = [1.0", "std = [2.0"))
    mine, plain = extract(images, card), extract(images)
    assert mine.extractor == "gray"
    assert mine.key != plain.key
    np.testing.assert_array_equal(np.asarray(mine)[:, :784] * 2, np.asarray(plain)[:, :784])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"workers": 0}, "workers must be a whole number of at least 1, got 0"),
        ({"precision": "float8"}, "precision must be one of float32, bfloat16, float16, got 'float8'"),
        ({"device": "cuda:99"}, 'the device "cuda:99" cannot be used'),
        ({"device": "gpu"}, 'the device "gpu" cannot be used'),
        ({"extractor": "pixel"}, 'did you mean "pixels"?'),
    ],
)
def test_wrong_arguments_are_named(images, options, words):
    assert words in message(extract, images, **options)


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


def test_an_image_that_cannot_be_resized_is_a_failure_of_its_own(folder, tmp_path):
    Image.new("RGB", (200_000, 1)).save(folder / "line.png")
    cache = extract(folder, pixel_card(tmp_path / "crop.toml", ('"squash"', '"crop"')))
    assert cache.n == N
    ((name, reason),) = cache.failures
    assert name == "line.png"
    assert "200000" in reason
