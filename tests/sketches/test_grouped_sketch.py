"""Sketches of samples in groups: the fold follows from the group, and the sizes of the groups are kept."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.errors import UsageError

ROWS = np.random.default_rng(0).normal(size=(600, 4)).astype(np.float32)
CLIPS = [f"clip{row // 3}" if row < 300 else "" for row in range(600)]
SETTINGS = fe.SketchSettings(features=20)


@pytest.fixture
def frames():
    return fe.EmbeddingSet(ROWS, ids=[f"s{row}" for row in range(600)], metadata={"clip": CLIPS})


def test_a_grouped_sketch_keeps_groups_together_and_knows_their_sizes(frames):
    sketch = fe.Sketch.reference(frames, SETTINGS, groups="clip")
    alone = fe.Sketch.reference(frames, SETTINGS)
    assert (sketch.groups, sketch.samples_per_group) == ("clip", 2)  # half of the samples have a group of three
    assert (alone.groups, alone.samples_per_group) == (None, 1)
    folds = (sketch.sample.keys & np.uint64(1)).tolist()
    of_clip: dict[str, set[int]] = {}
    for name, fold in zip(sketch.sample.ids, folds, strict=True):
        of_clip.setdefault(CLIPS[int(name[1:])] or name, set()).add(fold)
    assert all(len(found) == 1 for found in of_clip.values())
    assert sketch.folds[0].n != alone.folds[0].n


def test_a_sketch_of_shards_is_the_sketch_of_the_whole(frames):
    whole = fe.Sketch.reference(frames, SETTINGS, groups="clip")
    shards = [
        fe.EmbeddingSet(ROWS[part], ids=[f"s{row}" for row in range(600)[part]], metadata={"clip": CLIPS[part]})
        for part in (slice(0, 150), slice(150, 600))
    ]
    total = sum(
        (fe.Sketch.of(one, whole, groups="clip") for one in shards[1:]), fe.Sketch.of(shards[0], whole, groups="clip")
    )
    assert (total.n, total.groups, total.samples_per_group) == (600, "clip", 2)
    assert [fold.n for fold in total.folds] == [fold.n for fold in whole.folds]


def test_windows_are_grouped_by_their_video_in_a_set_and_in_batches():
    ids = [f"v{row // 6}.mp4#{row % 6}" for row in range(600)]
    whole = fe.Sketch.reference(fe.EmbeddingSet(ROWS, ids=ids), SETTINGS)
    streamed = fe.Sketch(whole.feature_map)
    for start in range(0, 600, 60):
        streamed.update(ROWS[start : start + 60], ids[start : start + 60])
    for sketch in (whole, streamed):
        assert (sketch.groups, sketch.samples_per_group) == ("video", 6)


def test_groups_are_written(frames, tmp_path):
    fe.Sketch.reference(frames, SETTINGS, groups="clip").save(tmp_path / "s.h5")
    back = fe.Sketch.load(tmp_path / "s.h5")
    assert (back.groups, back.samples_per_group) == ("clip", 2)


def test_a_sketch_of_a_set_without_the_column_is_refused():
    with pytest.raises(UsageError, match="no column 'clip'"):
        fe.Sketch.reference(ROWS, SETTINGS, groups="clip")
