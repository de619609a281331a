import numpy as np
import pytest

import finc_eval as fe
from finc_eval.baselines.rarity import rarity
from finc_eval.baselines.spectral_clustering import most_novel


def distances(x, y):
    return np.stack([np.sqrt(np.square(row - y.astype(np.float64)).sum(1)) for row in x.astype(np.float64)])


def by_definition(gen, ref, k):
    radii, between = np.sort(distances(ref, ref), axis=1)[:, k], distances(gen, ref)
    scores = np.where(between < radii, radii, np.inf).min(1)
    return scores, (between - radii).min(1)


@pytest.mark.parametrize("k", [pytest.param(1, marks=pytest.mark.long), 3])
def test_scores_and_distances_are_those_of_their_definitions(digits, k):
    gen, ref = digits[0][:150], digits[0][300:550]
    found = rarity(gen, ref, k=k)
    scores, distance = by_definition(gen, ref, k)
    np.testing.assert_array_equal(found.inside, np.isfinite(scores))
    assert 0 < found.outside == (~np.isfinite(scores)).sum() < 150
    np.testing.assert_allclose(found.scores[found.inside], scores[found.inside], rtol=1e-9)
    assert np.isnan(found.scores[~found.inside]).all()
    np.testing.assert_allclose(found.distances[~found.inside], distance[~found.inside], rtol=1e-9)
    assert (found.distances[found.inside] == 0).all()


def test_an_order_on_a_line_by_hand():
    # Radii (k = 1): 1 around 0 and 1, 4 around 5, 15 around 20.
    ref = np.array([[0.0], [1], [5], [20]])
    gen = np.array([[0.5], [4], [30], [100], [35], [-1], [-5]])
    found = rarity(gen, ref, k=1)
    np.testing.assert_array_equal(found.inside, [True, True, True, False, False, False, False])
    np.testing.assert_allclose(found.scores[:3], [1, 4, 15])
    np.testing.assert_allclose(found.distances[3:], [65, 0, 0, 4])
    assert found.outside == 4
    assert found.order.tolist() == [3, 6, 4, 5, 2, 1, 0], "a sample on a surface is outside, at distance 0"
    assert most_novel(found, 0.3).tolist() == [3, 6] and most_novel(found, 0.01).tolist() == [3]
    assert str(found.signature).startswith("rarity|n:7/4|fx:array-1|neighbors:1|")


def test_kinds_the_reference_lacks_rank_first(digits):
    x, labels = digits
    order = rarity(x[2000:3000], x[:2000][labels[:2000] != 0]).order
    novel = (labels[2000:3000] == 0)[order]
    assert novel[:100].mean() > 2 * novel.mean()


@pytest.mark.parametrize("share", [0, 1.5])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(fe.FincEvalError, match=f"share must lie between 0 and 1, got {share}"):
        most_novel(rarity(np.eye(6), np.eye(6)), share)


def test_what_is_wrong_is_said_in_a_sentence():
    with pytest.raises(fe.FincEvalError, match="ref has 3 samples, too few for 3 neighbors of each: pass at least 4"):
        rarity(np.eye(3), np.eye(3))
    with pytest.raises(fe.FincEvalError, match="gen has 4 entries per embedding and ref 3"):
        rarity(np.eye(4), np.eye(4)[:, :3])
    with pytest.raises(fe.FincEvalError, match="gen: the embedding in row 0 is not finite"):
        rarity(np.full((2, 4), np.nan), np.eye(4), k=1)
