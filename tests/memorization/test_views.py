"""The multi-view distance: which samples are suspects, what their views are, and that mirrored copies become near."""

import numpy as np
import pytest
from PIL import Image, ImageOps

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.core.progress import silent
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.subset import Subset
from finc_eval.memorization.hashes import (
    EVERY_VIEW,
    TRAIN_VIEWS,
    WHOLE,
    HashedView,
    aligning_views,
    base_hashes,
    view_hashes,
)
from finc_eval.memorization.tails import calibrated_distances
from finc_eval.memorization.views import (
    SuspectViews,
    ViewSource,
    altered_view,
    multi_view_distances,
    suspect_views,
    suspects,
    views_of,
)


def test_views_are_mirrored_widened_and_shifted_as_the_hash_says():
    pixels = np.random.default_rng(0).integers(0, 256, (28, 28, 3), dtype=np.uint8)
    views = views_of(HashedView((-2 / 28, 1 / 28, 26 / 28, 29 / 28)))
    mirrored, widened, shifted = (altered_view(pixels, view) for view in views)
    assert (mirrored == pixels[:, ::-1]).all()
    assert (widened[2:-2, 2:-2] == pixels).all()
    assert 28 / widened.shape[0] == pytest.approx(0.9, abs=0.03)
    assert shifted.shape == pixels.shape and (shifted[:-1, 2:] == pixels[1:, :-2]).all()
    assert views_of(WHOLE) == views_of(views[0]) == views[:2]


def test_the_aligning_view_undoes_a_shift(digits):
    pictures = [Image.fromarray(np.rint(255 * row.reshape(28, 28)).astype(np.uint8)) for row in digits[0][:12]]
    base = np.stack([view_hashes(picture, TRAIN_VIEWS) for picture in pictures])
    right = [Image.fromarray(np.pad(np.asarray(one), ((0, 0), (2, 0)), mode="edge")[:, :28]) for one in pictures]
    found = aligning_views([*right, *map(ImageOps.mirror, pictures)], base, EVERY_VIEW, Run())
    assert sum(view.box[0] == pytest.approx(2 / 28) and view.box[1] == 0 for view in found[:12]) > 9
    assert all(view.mirrored for view in found[12:])


def test_suspects_are_the_lowest_on_any_score_whatever_their_place():
    rng = np.random.default_rng(0)
    scores = rng.random((2, 100))
    chosen = suspects(list(scores), 20)
    assert set(chosen) == {*np.argsort(scores[0])[:10], *np.argsort(scores[1])[:10]}
    order = rng.permutation(100)
    assert set(order[suspects(list(scores[:, order]), 20)]) == set(chosen)


def test_of_equal_scores_none_is_taken_where_only_some_could_be():
    assert suspects([np.zeros(50)], 10).tolist() == []
    assert suspects([np.array([0.0, 1, 1, 1, 2])], 2).tolist() == [0]
    assert suspects([np.arange(5.0)], 9).tolist() == [0, 1, 2, 3, 4]


@pytest.fixture(scope="module")
def cached(digits, tmp_path_factory):
    """Digits by their pixels: 150 of a training set, 50 others, and 10 of the training set mirrored."""
    folder = tmp_path_factory.mktemp("views")
    images = np.rint(digits[0][:200].reshape(-1, 28, 28) * 255).astype(np.uint8)
    np.savez(folder / "images.npz", images=np.concatenate([images, images[:10, :, ::-1]]))
    return as_embeddings(fe.extract(folder / "images.npz", "pixels", folder / "images.h5"))


@pytest.fixture
def measured(cached, tmp_path, monkeypatch):
    """A function that measures ten mirrored copies and fifty other digits, with a folder of caches of their own."""
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path))
    train, fresh, copies = (Subset(cached, np.arange(*ends)) for ends in ((0, 150), (150, 200), (200, 210)))
    plain = [calibrated_distances(nearest(one, train, 20).distances) for one in (copies, fresh)]
    screens = [plain, (np.zeros(10), np.arange(1.0, 51))]
    hashes = base_hashes(train, "train", Run())

    def measure(embed, viewed=("gen", "holdout")):
        sets = {"gen": copies, "holdout": fresh}
        return multi_view_distances(sets, screens, train, hashes, 20, 30, embed, Run(), viewed)

    return train, plain, measure


def test_mirrored_copies_are_at_no_distance_by_a_view_and_those_who_are_no_suspects_keep_theirs(measured):
    train, plain, measure = measured
    (found, partners), (control, others) = measure(SuspectViews(train, Run()))
    assert (plain[0] > 0.3).all()
    assert (found == 0).all()
    assert partners.tolist() == list(range(10))
    assert (control <= plain[1]).all()
    kept = others < 0
    assert kept.sum() > 20
    assert (control[kept] == plain[1][kept]).all()


def test_views_are_embedded_once_and_only_of_the_sets_that_are_asked_for(measured, tmp_path, monkeypatch):
    train, plain, measure = measured
    embed = SuspectViews(train, Run())
    (found, _), (control, _) = measure(embed, ("gen",))
    assert (found == 0).all() and (control == plain[1]).all()
    assert len([*tmp_path.glob("*.h5")]) == 1
    monkeypatch.setattr(SuspectViews, "_embed", lambda *_: pytest.fail("a view is embedded again"))
    assert (measure(embed, ("gen",))[0][0] == found).all()


def test_an_audit_that_was_stopped_while_views_were_embedded_embeds_the_others_alone(measured, monkeypatch):
    train, *_ = measured
    decoded, take = [], ViewSource.take

    def counted(self, numbers):
        decoded.append(len(numbers))
        return take(self, numbers)

    def stop(stage, done, total):
        if 0 < done < total:
            raise KeyboardInterrupt

    embed = SuspectViews(train, Run(batch_size=4))
    with pytest.raises(KeyboardInterrupt):
        embed(*(asked := (train, "gen", {row: views_of(WHOLE) for row in range(10)})), stop)
    monkeypatch.setattr(ViewSource, "take", counted)
    again = SuspectViews(train, Run(batch_size=4))
    rows, _ = again(*asked, silent)
    assert len(rows) == 20 and min(decoded) == 16  # all are read for their digests, 16 to be embedded
    assert (rows[::2] == train.rows_at(np.arange(10)).unflatten(1, (3, 28, 28)).flip(3).flatten(1)).all()


def test_views_need_the_extractor_of_the_embeddings(digits):
    train = as_embeddings(digits[0][:100])
    assert suspect_views(train, Run()) is None
    with pytest.raises(DataError, match="the extractor of embeddings in memory is not known"):
        SuspectViews(train, Run())
