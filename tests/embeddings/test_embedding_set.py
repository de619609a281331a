"""Metadata, groups and pictures of embeddings in memory, in caches and in parts of them."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import UsageError
from finc_eval.embeddings.base import ArrayEmbeddings, CachedEmbeddings
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.numerics.arrays import fold_of

ROWS = np.random.default_rng(0).normal(size=(600, 4)).astype(np.float32)
CLIPS = [f"clip{row // 3}" for row in range(600)]


def folds_by_group(embeddings, groups):
    """Return the set of folds of each group."""
    found: dict[str, set[int]] = {}
    for batch in embeddings.batches(128):
        for offset, fold in enumerate(fold_of(batch.keys).tolist()):
            found.setdefault(groups[batch.start + offset], set()).add(fold)
    return found


def test_a_set_keeps_ids_metadata_and_images():
    images = np.zeros((3, 5, 6, 3), np.uint8)
    images[2] = 9
    one = fe.EmbeddingSet(
        ROWS[:3], ids=["a", "b", "c"], metadata={"label": [1, None, 2.0], "x": ["", "u", "v"]}, images=images
    )
    assert one.columns == ("label", "x")
    assert one.column("label") == ["1", "", "2"]
    assert one.ids_between(1, 3) == ["b", "c"] and one.ids_at(np.array([2, 0])) == ("c", "a")
    (picture,) = one.images_at(np.array([2]))
    assert picture.size == (6, 5) and picture.getpixel((0, 0)) == (9, 9, 9)
    assert as_embeddings(one) is one


def test_plain_embeddings_have_neither_columns_groups_nor_pictures():
    plain = ArrayEmbeddings(ROWS)
    assert plain.columns == () and plain.group_hashes() is None and plain.images_at(np.array([0])) is None
    with pytest.raises(UsageError, match="embeddings has no column 'group': it has no metadata"):
        plain.grouped("group")


def test_a_data_frame_is_metadata():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"clip": CLIPS, "score": [None, 1.5, 2.0] * 200})
    one = fe.EmbeddingSet(ROWS, metadata=frame)
    assert one.columns == ("clip", "score") and one.column("score")[:3] == ["", "1.5", "2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": ["a"]}, "1 id for 600 embeddings"),
        ({"ids": ["a", "a", *range(598)]}, "the id 'a' occurs 2 times"),
        ({"metadata": {"clip": ["a"]}}, "the column 'clip' of embeddings has 1 value for 600 samples"),
        ({"metadata": {"clip": "abc"}}, "the column 'clip' must be a list"),
        ({"metadata": [1]}, "must be a mapping of columns or a pandas data frame, got list"),
        ({"images": [np.zeros((2, 2))]}, "1 image for 600 embeddings"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        fe.EmbeddingSet(ROWS, **arguments)


def test_an_unknown_column_gets_a_suggestion():
    one = fe.EmbeddingSet(ROWS, metadata={"clip": CLIPS})
    with pytest.raises(UsageError, match=r"no column 'clips' \(did you mean .clip.\?\)"):
        one.column("clips")


def test_a_group_lies_in_one_fold_and_has_one_hash():
    one = fe.EmbeddingSet(ROWS, metadata={"clip": CLIPS}).grouped("clip")
    folds = folds_by_group(one, CLIPS)
    assert all(len(found) == 1 for found in folds.values())
    assert 70 < sum(0 in found for found in folds.values()) < 130
    assert len(np.unique(one.group_hashes())) == 200
    assert np.array_equal(fold_of(one.group_hashes()), fold_of(one.id_keys()))


def test_grouping_changes_only_the_fold_bit_and_leaves_the_set_alone():
    one = fe.EmbeddingSet(ROWS, metadata={"clip": CLIPS})
    grouped = one.grouped("clip")
    before, after = (next(s.batches(600)).keys for s in (one, grouped))
    assert np.array_equal(before >> 1, after >> 1) and (before & 1 != after & 1).any()
    assert one.group_hashes() is None and one.grouping is None and grouped.grouping == "clip"
    assert grouped.grouped(None).group_hashes() is None


def test_a_sample_without_a_value_stands_for_itself():
    one = fe.EmbeddingSet(ROWS[:6], metadata={"clip": ["a", "a", "", "", None, "3"]}).grouped("clip")
    groups = one.group_hashes()
    assert groups[0] == groups[1] and len(np.unique(groups)) == 5


def test_windows_of_a_video_are_grouped_unless_told_otherwise():
    ids = [f"{name}.mp4#{window}" for name in "abc" for window in range(4)] + ["d.mp4"]
    one = fe.EmbeddingSet(ROWS[:13], ids=ids, metadata={"scene": ["x"] * 13})
    videos = [name.partition("#")[0] for name in ids]
    assert len(np.unique(one.group_hashes())) == 4 and one.grouping == "video"
    assert all(len(found) == 1 for found in folds_by_group(one, videos).values())
    assert len(np.unique(one.grouped("scene").group_hashes())) == 1


def test_a_part_of_a_set_keeps_metadata_and_groups():
    one = fe.EmbeddingSet(ROWS, metadata={"clip": CLIPS})
    rows = np.array([0, 1, 5, 4])
    part = Subset(one, rows).grouped("clip")
    assert part.columns == ("clip",) and part.column("clip") == ["clip0", "clip0", "clip1", "clip1"]
    assert np.array_equal(part.group_hashes(), one.grouped("clip").group_hashes()[rows])
    assert np.array_equal(next(part.batches()).keys & 1, part.group_hashes() & 1)
    assert Subset(one.grouped("clip"), rows).grouping == "clip"


def test_a_cache_reads_its_pictures_again_while_they_are_there(tmp_path: Path):
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(4):
        Image.new("RGB", (8, 8), (10 * number, 0, 0)).save(folder / f"{number}.png")
    with fe.extract(folder, "pixels", tmp_path / "cache.h5") as cache:
        one = CachedEmbeddings(cache)
        assert [p.getpixel((0, 0))[0] for p in one.images_at(np.array([3, 1]))] == [30, 10]
        (folder / "3.png").unlink()
        assert one.images_at(np.array([3, 1])) is None
        folder.rename(tmp_path / "away")
        assert CachedEmbeddings(cache).images_at(np.array([0])) is None


def test_half_of_a_surrogate_pair_is_an_id_like_any_other():
    """An npz of somebody else can hold it (found by the fuzz)."""
    rows = np.eye(30, dtype=np.float32)
    found = fe.EmbeddingSet(rows, ids=["\udf8f", *map(str, range(29))])
    assert len(np.unique(found.id_keys())) == 30
