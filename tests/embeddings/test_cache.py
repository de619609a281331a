"""A cache file is read as what it is, and survives what happens to files."""

import re
import shlex
import shutil
import subprocess
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
from _extraction import message

import finc_eval as fe
from finc_eval.embeddings import writer as cache_writer
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.embeddings.cache import EXTRACT_AGAIN, EmbeddingCache
from finc_eval.embeddings.recipe import Identity, changes, origin_of, recipe_of
from finc_eval.embeddings.writer import CacheWriter, only_writer, part_of, whole_cache
from finc_eval.extractors.catalog import load_card
from finc_eval.samples.clips import Clip
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.reading import EVERYTHING
from finc_eval.samples.source import Manifest

MANIFEST = Manifest("folder", 10, "m" * 64, {".txt": 2})
RECIPE = recipe_of(load_card("pixels"), "float32")
IDENTITY = Identity("/data/gen", MANIFEST, "pixels", RECIPE)
WIDTHS = {"embeddings": 5}
IDS = [f"{number:03}.png" for number in range(10)]
ROWS = np.random.default_rng(0).normal(size=(10, 5)).astype(np.float32)
CONTENT = np.arange(10, dtype=np.uint64) + 2**63
REASONS = [None, None, "no image", None, None, None, None, None, "é" * 300, None]
ENCODINGS = [Encoding("JPEG", "RGB", 640, 480, False, 90 + row % 2) for row in range(10)]
GOOD = [0, 1, 3, 4, 5, 6, 7, 9]


@pytest.fixture(autouse=True)
def checkpoint_at_every_batch(monkeypatch):
    monkeypatch.setattr(cache_writer, "CHECKPOINT_SECONDS", 0)


def write(writer, stop=10, size=4):
    for start in range(writer.done, stop, size):
        here = slice(start, min(start + size, stop))
        writer.write(ROWS[here], CONTENT[here], REASONS[here], ENCODINGS[here])


def make(path, identity=IDENTITY, ids=IDS, widths=WIDTHS, **given):
    with only_writer(path), CacheWriter(path, identity.key, ids, widths, 4) as writer:
        write(writer)
        writer.finish(identity, **given)
    return path


def test_a_cache_gives_back_what_was_written(tmp_path):
    path = make(tmp_path / "gen.h5")
    with EmbeddingCache(path) as cache:
        assert (len(cache), cache.n, cache.dim, cache.path) == (8, 8, 5, path)
        assert cache.ids == [IDS[row] for row in GOOD]
        np.testing.assert_array_equal(np.asarray(cache), ROWS[GOOD])
        np.testing.assert_array_equal(cache.content, CONTENT[GOOD])
        assert cache.content.dtype == np.uint64
        assert cache.failures == [("002.png", "no image"), ("008.png", "é" * 100)]
        assert (cache.shape, cache.ndim, cache.dtype) == ((8, 5), 2, np.float32)
        assert (cache.extractor, cache.manifest_digest, cache.clip) == ("pixels", "m" * 64, None)
        assert (cache.recipe, cache.extractor_digest) == (RECIPE, IDENTITY.extractor_digest)
        assert (cache.labels, cache.prompts, cache.outputs) == (None, None, ())
        assert cache.profile.n == 8
        assert (cache.source, cache.ignored) == ("/data/gen", {".txt": 2})
        assert cache.key == IDENTITY.key
        assert repr(cache) == "EmbeddingCache('gen', n=8, dim=5, 'pixels', failures=2)"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["gen.h5"]


def test_rows_are_picked_as_numpy_picks_them(tmp_path, monkeypatch):
    monkeypatch.setattr("finc_eval.core.files.hdf5.BLOCK_BYTES", 60)  # three rows a block
    cache, rows = EmbeddingCache(make(tmp_path / "gen.h5")), ROWS[GOOD]
    mask = np.arange(8) % 3 == 0
    for index in (slice(2, 5), slice(None, None, -2), np.array([7, 0, 3, 3, -1]), [5, 1], [], mask, 6, -2):
        np.testing.assert_array_equal(cache[index], rows[index])
    batches = list(cache.batches(3))
    assert [len(batch) for batch in batches] == [3, 3, 2]
    np.testing.assert_array_equal(np.concatenate(batches), rows)
    with pytest.raises(IndexError):
        cache[8]
    assert np.asarray(cache, dtype=np.float64).dtype == np.float64


def test_a_cache_can_be_open_many_times(tmp_path):
    path = make(tmp_path / "gen.h5")
    caches = [EmbeddingCache(path) for _ in range(5)]
    with h5py.File(path) as plain:
        assert all(np.array_equal(cache, plain["embeddings"]) for cache in caches)


def test_ids_need_not_be_valid_unicode(tmp_path):
    ids = [*IDS[:-1], b"\xff.png".decode("utf-8", "surrogateescape")]
    assert EmbeddingCache(make(tmp_path / "gen.h5", ids=ids)).ids[-1] == ids[-1]


def test_the_key_follows_samples_and_recipe_and_no_name():
    other_samples = Identity("/data/gen", Manifest("folder", 10, "n" * 64, {}), "pixels", RECIPE)
    half = Identity("/data/gen", MANIFEST, "pixels", recipe_of(load_card("pixels"), "bfloat16"))
    assert len({IDENTITY.key, other_samples.key, half.key}) == 3
    assert IDENTITY.extractor_digest == other_samples.extractor_digest != half.extractor_digest
    assert Identity("array", MANIFEST, "mine", RECIPE).key == IDENTITY.key


def test_two_recipes_are_told_apart_part_by_part():
    other = {
        **RECIPE,
        "preprocessing": {**RECIPE["preprocessing"], "size": [32, 32]},
        "clip": {"frames": 16},
        "precision": "bfloat16",
    }
    assert changes(RECIPE, RECIPE) == []
    assert changes(RECIPE, other) == [
        "preprocessing.size: [28, 28], now [32, 32]",
        "precision: float32, now bfloat16",
        "clip.frames: absent, now 16",
    ]


def test_further_outputs_labels_and_prompts_ride_along(tmp_path):
    labels, prompts = [f"class {row % 3}" for row in range(10)], [f"prompt {row}" for row in range(10)]
    widths = {"embeddings": 3, "logits": 2}
    path = make(tmp_path / "gen.h5", widths=widths, columns={"label": labels, "prompt": prompts})
    with EmbeddingCache(path) as cache:
        np.testing.assert_array_equal(cache, ROWS[GOOD, :3])
        assert cache.outputs == ("logits",)
        logits = cache.output("logits")
        np.testing.assert_array_equal(logits, ROWS[GOOD, 3:])
        assert (logits.ids, logits.shape) == (cache.ids, (8, 2))
        assert cache.labels == [labels[row] for row in GOOD]
        assert cache.prompts == [prompts[row] for row in GOOD]
        text = message(cache.output, "logit")
        assert 'gen.h5 has no output "logit" (did you mean "logits"?): it has logits' in text
        assert cache.damage() is None and logits.damage() is None


def test_a_cache_becomes_a_tensor_or_a_data_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    cache = EmbeddingCache(make(tmp_path / "gen.h5", columns={"label": [str(row) for row in range(10)]}))
    np.testing.assert_array_equal(cache.to_torch().numpy(), ROWS[GOOD])
    frame = cache.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.index.tolist() == cache.ids
    assert frame.columns.tolist() == ["label", 0, 1, 2, 3, 4]
    np.testing.assert_array_equal(frame[[0, 1, 2, 3, 4]].to_numpy(), ROWS[GOOD])


def test_a_clip_policy_is_read_back(tmp_path):
    policy = {"frames": 16, "stride": 2, "windows": 3, "short": "loop", "fps": None}
    identity = Identity("/data/gen", MANIFEST, "mine", RECIPE | {"clip": policy})
    assert EmbeddingCache(make(tmp_path / "gen.h5", identity)).clip == Clip(16, 2, 3, "loop")


def test_one_changed_bit_of_a_row_is_found(tmp_path):
    path = make(tmp_path / "gen.h5")
    with h5py.File(path, "r+") as file:
        file["embeddings"][6, 2] = np.nextafter(file["embeddings"][6, 2], np.float32(9))
    cache = EmbeddingCache(path)
    assert cache.damage() == f"damaged (embeddings is not what was written): {EXTRACT_AGAIN}"
    assert "embeddings is not what was written" in message(lambda: cache[6])


@pytest.mark.parametrize("length", [0.1, 0.5, 0.99])
def test_a_truncated_cache_is_refused(tmp_path, length):
    path = make(tmp_path / "gen.h5")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * length)])
    text = message(EmbeddingCache, path)
    assert re.fullmatch(rf"{path} is damaged \(it has .* bytes\): {EXTRACT_AGAIN}", text)


def test_other_files_are_no_caches(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["embeddings"] = ROWS
    for path in (tmp_path / "a.txt", tmp_path / "other.h5"):
        assert message(EmbeddingCache, path).startswith(f"{path} is not a finc-eval embedding cache")
    assert message(EmbeddingCache, tmp_path).startswith(f"{tmp_path} is a folder: embed its samples first")
    assert "does not exist" in message(EmbeddingCache, tmp_path / "no.h5")


def test_a_cache_of_another_layout_is_refused(tmp_path, monkeypatch):
    path = make(tmp_path / "gen.h5")
    monkeypatch.setattr("finc_eval.embeddings.cache.CACHE_LAYOUT", 4)
    assert "has embeddings layout 3, this version reads 4" in message(EmbeddingCache, path)
    assert "has embeddings layout 3, this version reads 4" in message(whole_cache, path, IDENTITY.key)
    assert whole_cache(path, IDENTITY.key, force=True) is None


def unfinished(path, key=IDENTITY.key):
    with CacheWriter(path, key, IDS, WIDTHS, 4) as writer:
        write(writer, stop=8)
    return part_of(path)


def check_resumed(path, done, size=4):
    with CacheWriter(path, IDENTITY.key, IDS, WIDTHS, size) as writer:
        assert writer.done == done
        write(writer, size=size)
        writer.finish(IDENTITY)
    with EmbeddingCache(path) as cache:
        np.testing.assert_array_equal(cache, ROWS[GOOD])
        np.testing.assert_array_equal(cache.content, CONTENT[GOOD])
        assert cache.failures == [("002.png", "no image"), ("008.png", "é" * 100)]


def test_an_unfinished_cache_is_refused_by_readers_and_resumed_by_writers(tmp_path):
    part = unfinished(tmp_path / "gen.h5")
    assert "is unfinished: run the same finc-eval extract again" in message(EmbeddingCache, part)
    assert whole_cache(tmp_path / "gen.h5", IDENTITY.key) is None
    check_resumed(tmp_path / "gen.h5", 8)
    unfinished(tmp_path / "other batches.h5")
    check_resumed(tmp_path / "other batches.h5", 6, size=3)  # it begins at a whole batch
    unfinished(tmp_path / "of others.h5", "another key")
    check_resumed(tmp_path / "of others.h5", 0)


def flipped(place):
    """Change a bit of the records of a journal, at a part of their length."""

    def change(data):
        line = data.index(b"\n") + 1
        at = line + int(place * (len(data) - line))
        return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]

    return change


def ordered(*places):
    """Put the records of a journal in another order."""

    def change(data):
        line, *records = re.split(rb"(?=rows)", data)
        assert len(records) == 2
        return line + b"".join(records[place] for place in places)

    return change


AGAIN = "is damaged after [04] of 10 samples: the others are embedded again"
OTHER = "gen.h5.part is damaged, or of another version"
HARM = {
    "cut off by a kill": (lambda data: data[:-100], None, 4),
    "a bit of the first record": (flipped(0.02), AGAIN, 0),
    "a bit of the second record": (flipped(0.55), AGAIN, 4),
    "a bit near the end": (flipped(0.97), AGAIN, 4),
    "a record twice": (ordered(0, 0, 1), AGAIN, 4),
    "records exchanged": (ordered(1, 0), AGAIN, 0),
    "no first record": (ordered(1), AGAIN, 0),
    "nothing": (lambda _: b"", OTHER, 0),
    "zeros": (lambda _: bytes(5000), OTHER, 0),
    "HDF5": (lambda _: b"\x89HDF\r\n\x1a\n" + bytes(1000), OTHER, 0),
    "other JSON": (lambda _: b'{"key": 3}\n', OTHER, 0),
    "brackets": (lambda _: b"[" * 5000, OTHER, 0),
}
"""What happens to unfinished embeddings: the change, the warning, and the rows that are still believed."""


@pytest.mark.parametrize("harm", HARM)
def test_what_is_not_whole_of_unfinished_embeddings_is_made_again(tmp_path, harm):
    change, warning, done = HARM[harm]
    part = unfinished(tmp_path / "gen.h5")
    part.write_bytes(change(part.read_bytes()))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_resumed(tmp_path / "gen.h5", done)
    found = [str(one.message) for one in said if one.category is UserWarning]
    assert found == [] if warning is None else re.search(warning, *found)


def test_there_is_one_writer_at_a_time(tmp_path):
    path = tmp_path / "new" / "gen.h5"

    def second():
        with only_writer(path):
            pass

    with only_writer(path):
        assert "gen.h5 is being written by another process" in message(second)
    second()


def test_what_lies_at_the_target_is_whole_other_or_foreign(tmp_path):
    path = make(tmp_path / "gen.h5")
    assert whole_cache(path, IDENTITY.key).n == 8
    assert "holds the embeddings of /data/gen by pixels, which would be lost" in message(whole_cache, path, "0" * 64)
    other = origin_of("/data/ref", "pixels", {}, EVERYTHING)
    assert "which would be lost" in message(whole_cache, path, "0" * 64, other)
    assert whole_cache(path, "0" * 64, IDENTITY.origin) is None
    assert whole_cache(path, "0" * 64, force=True) is None
    assert whole_cache(tmp_path / "new.h5", "0" * 64) is None
    assert f"{tmp_path} is a folder: name the file" in message(whole_cache, tmp_path, "0" * 64)
    (tmp_path / "notes.txt").write_text("mine")
    assert "already exists and is not a finc-eval embedding cache" in message(
        whole_cache, tmp_path / "notes.txt", "0" * 64
    )


def test_too_little_room_is_said_before_anything_is_written(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 10_000})
    monkeypatch.setattr(cache_writer.shutil, "disk_usage", lambda path: usage)
    text = message(CacheWriter, tmp_path / "gen.h5", IDENTITY.key, IDS, WIDTHS, 4)
    assert f"{tmp_path} has 0 MB free and gen.h5 needs about 2 MB more" in text
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("x")

    def lock():
        with only_writer(tmp_path / "file" / "gen.h5"):
            pass

    assert f"{tmp_path / 'file' / 'gen.h5'} cannot be written" in message(lock)


def test_ids_of_a_cache_have_the_keys_of_the_same_ids_in_memory(tmp_path):
    ids = [*(f"é/clip.mp4#{window}" for window in range(5)), "a#b", "4#", "\udcff.png", "7", "#1"]
    cached = CachedEmbeddings(EmbeddingCache(make(tmp_path / "gen.h5", ids=ids)))
    held = fe.EmbeddingSet(ROWS[GOOD], [ids[row] for row in GOOD])
    assert (cached.id_keys() == held.id_keys()).all() and (cached.group_hashes() == held.group_hashes()).all()
    assert len(set(cached.group_hashes()[:4].tolist())) == 1 and len(set(cached.id_keys().tolist())) == 8
    assert cached.ids_at(np.array([6, 0])) == (ids[7], ids[0])


def test_the_tools_that_the_page_of_files_names_show_and_copy_a_cache(tmp_path):
    if shutil.which("h5dump") is None:
        pytest.skip("h5dump is not installed (Debian: hdf5-tools)")
    make(tmp_path / "gen.h5")
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    commands = page.split("```sh\n")[1].split("```")[0].splitlines()
    shown = [
        subprocess.run(shlex.split(one, comments=True), cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        for one in commands
    ]
    assert all(f'"{name}"' in shown[0] for name in ("embeddings", "ids", "checksums", "content"))
    assert '"pixels"' in shown[1] and '"000.png", "001.png", "003.png"' in shown[2]
    with EmbeddingCache(tmp_path / "small.h5") as copied:
        assert copied.damage() is None and copied.ids == [IDS[row] for row in GOOD]
