"""Perceptual hashes: those of the library, distances that are the least over views, and copies that stay near."""

import numpy as np
import pytest
from imagehash import phash
from PIL import Image, ImageOps

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.pictures import EmbeddedSamples
from finc_eval.memorization import hashes, views
from finc_eval.memorization.hashes import (
    PLAIN_VIEWS,
    SHIFTED_VIEWS,
    TRAIN_VIEWS,
    WHOLE,
    HashedView,
    base_hashes,
    nearest_by_hash,
    nearest_hashes,
    query_views,
    view_hashes,
)
from finc_eval.memorization.views import ALTERATIONS, altered_distances

EVERY_VIEW = (*PLAIN_VIEWS, *SHIFTED_VIEWS)


@pytest.fixture(scope="module")
def pictures(digits):
    return [
        Image.fromarray(np.rint(255 * row).astype(np.uint8).reshape(28, 28)).convert("RGB") for row in digits[0][:220]
    ]


def with_pictures(images):
    return EmbeddingSet(np.zeros((len(images), 2), np.float32), images=images)


def bits_of(hashed):
    return np.unpackbits(hashed, axis=-1).astype(bool)


def test_the_hash_of_a_whole_picture_is_the_librarys(pictures):
    sized = pictures[0].resize((64, 64))
    assert (bits_of(view_hashes(sized, [WHOLE]))[0] == phash(sized, 16).hash.ravel()).all()
    other = view_hashes(sized, [HashedView(WHOLE.box, mirrored=True)])
    assert (bits_of(other)[0] == phash(ImageOps.mirror(sized), 16).hash.ravel()).all()


def test_a_shifted_view_undoes_a_shift_and_a_cropped_view_is_the_crop(pictures):
    image = pictures[1]
    right = np.pad(np.asarray(image), ((0, 0), (2, 0), (0, 0)), mode="edge")[:, :28]
    undone = view_hashes(Image.fromarray(right), [HashedView((2 / 28, 0, 30 / 28, 1))])
    assert (bits_of(undone) != bits_of(view_hashes(image, [WHOLE]))).sum() <= 8
    crop = image.resize((64, 64), Image.Resampling.LANCZOS, (0, 0, 25.2, 25.2))
    assert (bits_of(view_hashes(image, [TRAIN_VIEWS[1]]))[0] != phash(crop, 16).hash.ravel()).sum() <= 8


def test_a_large_picture_has_about_the_hash_of_its_small_version(pictures):
    large = pictures[0].resize((700, 500), Image.Resampling.BICUBIC)
    assert (bits_of(view_hashes(large, [WHOLE])) != bits_of(view_hashes(pictures[0], [WHOLE]))).sum() <= 16


def test_distances_are_the_least_over_views_of_both_and_ties_go_to_the_first(monkeypatch):
    monkeypatch.setattr(hashes, "HASH_ROWS", 7)
    monkeypatch.setattr(hashes, "HASH_QUERIES", 3)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 4, (count, views, 32), dtype=np.uint8) for count, views in ((10, 3), (40, 2)))
    y[20:] = y[:20]
    different = (bits_of(x)[:, :, None, None] != bits_of(y)[None, None]).sum(-1).min((1, 3))
    found = nearest_hashes(x, y, 5, Run(device="cpu"))
    order = np.argsort(different, axis=1, kind="stable")[:, :5]
    assert found.indices.tolist() == order.tolist()
    assert found.distances.tolist() == np.take_along_axis(different, order, 1).tolist()


@pytest.fixture(scope="module")
def nearest(pictures):
    """A function that finds the nearest of 120 pictures by every view, and what it finds for 60 fresh ones."""
    base = base_hashes(with_pictures(pictures[:120]), "train", Run())

    def find(images):
        return nearest_by_hash(with_pictures(images), base, 5, EVERY_VIEW, "gen", Run())

    return find, find(pictures[120:180])


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_altered_copies_of_digits_are_nearer_to_their_originals_than_any_fresh_digit_is(pictures, nearest, alteration):
    rng, (find, control) = np.random.default_rng(0), nearest
    found = find([ALTERATIONS[alteration](image, rng) for image in pictures[:20]])
    assert (found.indices[:, 0] == np.arange(20)).mean() >= 0.95
    assert (found.distances[:, 0] < control.distances[:, 0].min()).mean() >= 0.9


def test_hashes_do_not_depend_on_how_many_pictures_are_held(pictures, monkeypatch):
    samples = with_pictures(pictures[:10])
    whole = base_hashes(samples, "train", Run())
    monkeypatch.setattr(hashes, "PICTURES_HELD", 3)
    monkeypatch.setattr(hashes, "PICTURES_HASHED", 4)
    assert (base_hashes(samples, "train", Run()) == whole).all()
    assert whole.shape == (10, len(TRAIN_VIEWS), 32)


def test_pictures_in_files_are_read_in_one_pass_and_one_that_changed_is_refused(pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(hashes, "PICTURES_HASHED", 2)
    (tmp_path / "set").mkdir()
    for row, image in enumerate(pictures[:7]):
        image.save(tmp_path / "set" / f"{row}.png")
    samples = as_embeddings(fe.extract(tmp_path / "set", "pixels", tmp_path / "set.h5"))
    passes, read = [], EmbeddedSamples.read
    monkeypatch.setattr(EmbeddedSamples, "read", lambda self, ids: passes.append(len(ids)) or read(self, ids))
    assert (base_hashes(samples, "train", Run()) == base_hashes(with_pictures(pictures[:7]), "train", Run())).all()
    assert passes == [7]
    monkeypatch.setattr(EmbeddedSamples, "read", lambda self, ids: reversed([*read(self, ids)]))
    with pytest.raises(DataError, match="the pictures of train are not at hand"):
        base_hashes(samples, "train", Run())
    monkeypatch.setattr(EmbeddedSamples, "read", read)
    pictures[9].save(tmp_path / "set" / "5.png")
    with pytest.raises(DataError, match="the pictures of train are not at hand, or have changed"):
        base_hashes(samples, "train", Run())


def test_shifted_views_are_searched_where_that_is_affordable():
    assert query_views(5000, 5000) == EVERY_VIEW
    assert query_views(50_000, 50_000) == PLAIN_VIEWS


def test_a_set_without_pictures_is_refused_by_name():
    with pytest.raises(DataError, match="the pictures of train are not at hand"):
        base_hashes(as_embeddings(np.zeros((5, 2), np.float32)), "train", Run())


def test_alterations_keep_the_size_of_pictures_and_change_them(pictures):
    image, rng = pictures[0].resize((56, 28)), np.random.default_rng(0)
    for alter in ALTERATIONS.values():
        changed = alter(image, rng)
        assert changed.size == image.size
        assert (np.asarray(changed) != np.asarray(image)).any()


def test_planted_copies_are_nearer_by_hash_than_others_whatever_was_done_to_them(pictures, monkeypatch):
    monkeypatch.setattr(views, "MAX_ALTERED", 5)
    train = with_pictures(pictures[:100])
    found = altered_distances(train, base_hashes(train, "train", Run()), 20, EVERY_VIEW, 0, Run())
    assert list(found) == ["noise of 8/255", "JPEG 30", "crop of 90 %", "shift", "mirrored"]
    for distances in found.values():
        assert len(distances) == 5
        assert np.median(distances) < 0.5
