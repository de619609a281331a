"""The multi-view distance: which samples are suspects, what their views are, and that mirrored copies become near."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.subset import Subset
from finc_eval.memorization.tails import calibrated_distances
from finc_eval.memorization.views import altered_views, multi_view_distances, suspects


def test_views_are_mirrored_widened_and_shifted_by_a_pixel_of_a_digit():
    pixels = np.random.default_rng(0).integers(0, 256, (28, 28, 3), dtype=np.uint8)
    mirrored, widened, *shifted = altered_views(pixels)
    assert (mirrored == pixels[:, ::-1]).all()
    assert (widened[2:-2, 2:-2] == pixels).all()
    assert 28 / widened.shape[0] == pytest.approx(0.9, abs=0.03)
    assert len(shifted) == 8
    assert (shifted[0][1:, 1:] == pixels[:-1, :-1]).all()
    assert (shifted[-1][:-1, :-1] == pixels[1:, 1:]).all()
    assert not any((view == pixels).all() for view in shifted)


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


def test_mirrored_copies_are_at_no_distance_by_a_view_and_those_who_are_no_suspects_keep_theirs(cached):
    train, fresh, copies = (Subset(cached, np.arange(*ends)) for ends in ((0, 150), (150, 200), (200, 210)))
    plain = [calibrated_distances(nearest(one, train, 20).distances) for one in (copies, fresh)]
    by_hash = np.zeros(10), np.arange(1.0, 51)
    (found, partners), (control, others) = multi_view_distances(
        {"gen": copies, "holdout": fresh}, plain, by_hash, train, 20, 30, Run()
    )
    assert (plain[0] > 0.3).all()
    assert (found == 0).all()
    assert partners.tolist() == list(range(10))
    assert (control <= plain[1]).all()
    kept = others < 0
    assert kept.sum() > 20
    assert (control[kept] == plain[1][kept]).all()


def test_views_need_the_extractor_of_the_embeddings(digits):
    train = as_embeddings(digits[0][:100])
    with pytest.raises(DataError, match="the extractor of embeddings in memory is not known"):
        multi_view_distances({"gen": train}, [np.zeros(100)], [np.zeros(100)], train, 20, 10, Run())
