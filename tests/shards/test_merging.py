"""Merged shards of embeddings are the file that one process makes; what does not belong together is refused."""

import shutil
import tracemalloc
import warnings

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import DataError, FincEvalError, IncompatibleError
from finc_eval.core.files.copies import copy_content
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import new_file
from finc_eval.embeddings.cache import WHOLE
from finc_eval.embeddings.folder import explain
from finc_eval.embeddings.recipe import CACHE_LAYOUT, recipe_of
from finc_eval.private.dp.records import open_records
from finc_eval.samples.shards import MissingShards

N = 23


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path):
    """Images of many sizes in two classes, with a column of metadata, a copy and three that cannot be read."""
    rng, rows = np.random.default_rng(0), ["file_name,camera"]
    for number in range(N):
        name = f"{'ab'[number % 2]}/{number:02}.png"
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8 + number, 12, 3), dtype=np.uint8)).save(path)
        rows.append(f"{name},camera {number % 3}")
    shutil.copy(tmp_path / "set" / "a" / "00.png", tmp_path / "set" / "b" / "21.png")
    for name in ("a/00.png", "a/07b.png", "b/99.png"):
        (tmp_path / "set" / name).write_bytes(b"not a picture" + name.encode())
    (tmp_path / "set" / "metadata.csv").write_text("\n".join([*rows, "a/07b.png,", "b/99.png,"]))
    (tmp_path / "set" / "notes.txt").write_text("ignored")
    return tmp_path / "set"


def made(source, of, numbers=None, **options):
    return [
        fe.extract(source, "pixels", "part.h5", shard=f"{number}/{of}", **options).path
        for number in numbers or range(1, of + 1)
    ]


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("of", [3, *(pytest.param(of, marks=pytest.mark.long) for of in (1, 2, 7, 25, 40))])
def test_merged_shards_have_the_bytes_of_the_file_of_one_process(folder, of):
    whole = fe.extract(folder, "pixels", "whole.h5")
    merged = fe.merge(made(folder, of)[::-1], "merged.h5")
    assert merged.path.read_bytes() == whole.path.read_bytes()
    assert (merged.key, merged.shard, merged.n) == (whole.key, None, N - 1)
    assert [name for name, _ in merged.failures] == ["a/00.png", "a/07b.png", "b/99.png"]
    assert merged.columns == ("label", "camera") and merged.ignored == {".txt": 1}


def test_a_table_of_metadata_covers_the_set_and_not_each_shard(folder):
    names = fe.open_source(folder).ids
    table = {"id": names[::-1], "x": [*map(str, range(len(names)))]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        whole = fe.extract(folder, "pixels", "whole.h5", metadata=table)
        merged = fe.merge(made(folder, 2, metadata=table), "merged.h5")
    assert merged.column("x") == whole.column("x")


def test_a_random_subset_is_divided_like_a_set(folder):
    whole = fe.extract(folder, "pixels", "whole.h5", n=11, seed=3)
    merged = fe.merge(made(folder, 3, n=11, seed=3), "merged.h5")
    assert merged.path.read_bytes() == whole.path.read_bytes()


@pytest.mark.long
def test_rows_of_a_network_are_those_of_one_process_within_the_tolerance_of_batches(folder):
    whole = fe.extract(folder, out="whole.h5")
    parts = [fe.extract(folder, out="part.h5", shard=f"{number}/2").path for number in (1, 2)]
    merged = fe.merge(parts, "merged.h5")
    assert (merged.key, merged.ids) == (whole.key, whole.ids)
    np.testing.assert_allclose(merged, whole, atol=1e-5)


def test_a_shard_is_never_taken_for_the_same_samples_as_a_set(folder):
    whole, part = fe.extract(folder, "pixels"), fe.extract(folder, "pixels", shard="1/1")
    assert part.shard and part.key != whole.key
    assert fe.extract(folder, "pixels").shard is None
    assert fe.merge([part.path], "merged.h5").key == whole.key


def test_what_exists_is_not_made_again(folder):
    parts = made(folder, 3)
    before = [path.stat().st_mtime_ns for path in parts]
    merged = fe.merge(parts, "merged.h5").path.stat().st_mtime_ns
    made(folder, 3)
    assert [path.stat().st_mtime_ns for path in parts] == before
    assert fe.merge(parts, "merged.h5").path.stat().st_mtime_ns == merged


def test_a_missing_shard_is_named(folder):
    parts = made(folder, 3, [1, 3])
    with pytest.raises(MissingShards, match=r'shard 2/3 is missing: make it by shard="2/3", and merge again'):
        fe.merge(parts, "merged.h5")


def test_a_shard_that_is_given_twice_does_not_count_twice(folder, tmp_path):
    parts = made(folder, 3)
    shutil.copy(parts[1], tmp_path / "again.h5")
    with pytest.raises(DataError, match=r"both hold samples 9 to 16 of 25 .*: leave one out"):
        fe.merge([*parts, "again.h5"], "merged.h5")


def test_shards_of_other_samples_are_refused(folder):
    parts = made(folder, 2, [1])
    (folder / "a" / "02.png").rename(folder / "a" / "02x.png")
    (folder / "metadata.csv").unlink()
    parts += made(folder, 2, [2])
    with pytest.raises(IncompatibleError, match=r"of as many by other names: make one again"):
        fe.merge(parts, "merged.h5")
    (folder / "a" / "02x.png").unlink()
    with pytest.raises(IncompatibleError, match=r"of one of 24"):
        fe.merge([parts[0], *made(folder, 2, [2])], "merged.h5")


def with_other_labels(folder):
    text = (folder / "metadata.csv").read_text()
    (folder / "metadata.csv").write_text(text.replace("file_name,camera", "file_name,label"))
    return made(folder, 2, [2])


def with_another_column(folder):
    names = fe.open_source(folder).ids
    return made(folder, 2, [2], metadata={"id": names, "x": names})


UNLIKE = {
    "labels": (with_other_labels, r"a set of certain labels or prompts, and .* of one with others"),
    "numbers": (lambda folder: made(folder, 3, [3]), r"of a set of 2 shards, and .* of 3"),
    "extractors": (
        lambda folder: made(folder, 2, [2], precision="bfloat16"),
        r"unlike ways .precision: float32, now bfloat16.: make one again",
    ),
    "columns": (with_another_column, r"metadata label and camera, and .* label, camera and x"),
}


@pytest.mark.parametrize("unlike", UNLIKE)
def test_unlike_shards_are_refused_with_what_differs(folder, unlike):
    second, words = UNLIKE[unlike]
    parts = made(folder, 2, [1])
    with pytest.raises(IncompatibleError, match=words):
        fe.merge(parts + second(folder), "merged.h5")


def test_an_altered_shard_is_refused_and_nothing_is_left(folder, tmp_path):
    parts = made(folder, 3)
    data = bytearray(parts[1].read_bytes())
    place = bytes(data).index(fe.EmbeddingCache(parts[1])[3].tobytes())
    data[place + 5] ^= 1
    parts[1].write_bytes(data)
    with pytest.raises(DataError, match=r"part.2-of-3.h5 is damaged .embeddings is not what was written.: make this"):
        fe.merge(parts, "merged.h5")
    assert not list(tmp_path.glob("*merged*"))


def test_shards_whose_ids_are_not_those_of_their_set_are_refused(folder):
    (path,) = made(folder, 1)
    with StoredFile(path, WHOLE, CACHE_LAYOUT) as old, new_file("forged.h5", WHOLE, CACHE_LAYOUT) as new:
        copy_content(old, new)
        new.header["shard"]["ids"] = "0" * 64
    with pytest.raises(DataError, match=r"the ids in the shards of .* do not match the set: make all of them again"):
        fe.merge(["forged.h5"], "merged.h5")


def test_whole_sets_sketches_and_shards_in_the_place_of_the_result_are_refused(folder, tmp_path):
    fe.extract(folder, "pixels", "whole.h5")
    parts = made(folder, 2)
    fe.Sketch.reference(np.random.default_rng(0).normal(size=(40, 4)), features=20).save("sketch.h5")
    for given, out, why in (
        (["whole.h5"], "merged.h5", "whole.h5 holds a whole set, and merge joins shards"),
        ([*parts, "sketch.h5"], "merged.h5", "sketch.h5 is a sketch"),
        ([folder / "notes.txt"], "merged.h5", "was not written by finc-eval"),
        (parts, parts[0], "is one of the shards"),
        (parts, "sketch.h5", "is not a finc-eval embedding cache"),
        (parts, folder, "is a folder"),
        ([], "merged.h5", "a list of paths"),
        ("part.1-of-2.h5", "merged.h5", "a list of paths"),
    ):
        with pytest.raises(FincEvalError, match=why):
            fe.merge(given, out)
    assert isinstance(fe.merge(parts, "sketch.h5", force=True), fe.EmbeddingCache)


def test_a_set_without_a_readable_sample_is_refused(tmp_path):
    (tmp_path / "bad").mkdir()
    for number in range(4):
        (tmp_path / "bad" / f"{number}.png").write_bytes(b"no")
    with pytest.raises(DataError, match=r"none of the 4 samples of .*bad can be read"):
        fe.merge(made("bad", 2), "merged.h5")


USES = {
    "compare": lambda part, whole: fe.compare(part, whole),
    "compare of files": lambda part, whole: fe.compare(str(part.path), str(whole.path)),
    "kinds": lambda part, whole: fe.kinds({"a": part, "b": whole}),
    "metrics": lambda part, whole: fe.metrics(part, whole, ["fd"]),
    "reference": lambda part, whole: fe.Sketch.reference(part),
    "privacy": lambda part, whole: open_records(part, "the data"),
}


@pytest.mark.parametrize("use", USES)
def test_a_shard_is_not_taken_for_a_set(folder, use):
    whole, part = fe.extract(folder, "pixels", "whole.h5"), fe.extract(folder, "pixels", "part.h5", shard="1/2")
    with pytest.raises(
        FincEvalError, match=r"part.1-of-2.h5 is shard 1/2 of a set: join .* by finc-eval extract merge"
    ):
        USES[use](part, whole)


def test_a_shard_explains_itself(folder):
    part = fe.extract(folder, "pixels", "part.h5", shard="1/2")
    card = fe.load_card("pixels")
    assert explain(part, None, card, recipe_of(card, "float32")) == []
    assert part.to_dict()["shard"] == "1/2"


def test_a_shard_of_a_set_that_was_embedded_already_is_copied_with_its_own_command(folder, monkeypatch):
    fe.extract(folder, "pixels", shard="1/2").close()
    monkeypatch.setattr("sys.argv", ["finc-eval", "extract", "set", "--out", "part.h5", "--shard", "1/2"])
    assert made(folder, 2, [1]) and fe.EmbeddingCache("part.1-of-2.h5").shard.command == (
        "finc-eval",
        "extract",
        "set",
        "--out",
        "part.h5",
    )


def test_the_memory_of_a_merge_does_not_grow_with_the_set(tmp_path):
    peaks = {}
    for n in (2, 12):
        images = np.random.default_rng(0).integers(0, 256, (4 * n, 64, 64, 3), dtype=np.uint8)
        np.savez(tmp_path / f"{n}.npz", images)
        parts = [fe.extract(tmp_path / f"{n}.npz", "pixels", f"{n}.h5", shard=f"{i}/4").path for i in range(1, 5)]
        tracemalloc.start()
        fe.merge(parts, f"{n}-merged.h5")
        peaks[n] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[12] < peaks[2] + 1_000_000, peaks  # the rows themselves are 2.4 MB
