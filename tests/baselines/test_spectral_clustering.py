import numpy as np
import pytest

import finc_eval as fe
from finc_eval.baselines import spectral_clustering as module
from finc_eval.baselines.rarity import rarity
from finc_eval.baselines.spectral_clustering import affinity, most_novel, spectral_clustering


def planted(sizes=(40, 25, 15), seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return (10 * np.eye(len(sizes), 8)[labels] + rng.standard_normal((len(labels), 8))).astype(np.float32), labels


@pytest.mark.parametrize("kept", [(0, 1, 2), (0, 2), (1, 2)])
def test_planted_kinds_are_found_largest_first_in_the_order_of_the_samples(kept):
    rows, labels = planted()
    chosen = np.random.default_rng(1).permutation(np.flatnonzero(np.isin(labels, kept)))
    found = spectral_clustering(rows, chosen, len(kept))
    np.testing.assert_array_equal(found, np.searchsorted(kept, labels[chosen]))


def test_the_affinity_is_sparse_symmetric_and_that_of_its_definition():
    rows, _ = planted()
    matrix = affinity(rows, 4)
    assert (matrix != matrix.T).nnz == 0
    assert matrix.nnz <= 2 * 4 * len(rows)
    distances = np.sqrt(np.square(rows[:, None].astype(np.float64) - rows[None]).sum(2))
    widths = np.sort(distances, axis=1)[:, 4]
    i, j = matrix.nonzero()
    expected = np.exp(-(distances[i, j] ** 2) / (widths[i] * widths[j]))
    np.testing.assert_allclose(matrix[i, j], expected, rtol=1e-9)
    near = (distances <= np.minimum.outer(np.zeros_like(widths), widths) + widths[:, None]) & (distances > 0)
    assert set(zip(i.tolist(), j.tolist(), strict=True)) == set(zip(*np.nonzero(near | near.T), strict=True))


def test_copies_are_of_one_kind():
    rows = np.repeat(np.array([[0.0, 0], [9, 0], [0, 9]], np.float32), [20, 12, 8], axis=0)
    assert np.bincount(spectral_clustering(rows, np.arange(40), 3)).tolist() == [20, 12, 8]


def test_classes_the_reference_lacks_come_out_as_clusters(assets):
    with np.load(assets / "ucf101" / "vgg16_relu6_mean.npz") as data:
        features, labels = data["features"].astype(np.float32), data["label"]
    novel = np.isin(labels, [2, 7, 11])
    ref, gen = features[~novel][::2], np.concatenate([features[~novel][1::2], features[novel]])
    kinds = np.concatenate([labels[~novel][1::2], labels[novel]])
    samples = most_novel(rarity(gen, ref), novel.sum() / len(gen))
    assert np.isin(kinds[samples], [2, 7, 11]).mean() > 0.5
    found = spectral_clustering(gen, samples, 6)
    members = [kinds[samples][found == cluster] for cluster in range(6)]
    purities = [np.bincount(one).max() / len(one) for one in members]
    assert np.mean(purities) > 0.6


def test_the_seed_decides():
    rows, _ = planted((30, 30, 30))
    one, two = (spectral_clustering(rows, np.arange(90), 4, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("count", "clusters", "message"),
    [
        (5, 5, "number of novel samples, 5, is too small for 5 clusters: take a larger share, or fewer clusters"),
        (5, 1, "clusters must be a whole number of at least 2, got 1"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(count, clusters, message):
    with pytest.raises(fe.FincEvalError, match=message):
        spectral_clustering(planted()[0], np.arange(count), clusters)


@pytest.mark.parametrize(("count", "neighbors"), [(3, 2), (4, 3), (5, 4), (32, 6), (33, 7), (80, 8)])
def test_samples_have_log_two_of_their_number_and_one_more_as_neighbors(count, neighbors, monkeypatch):
    asked = []
    monkeypatch.setattr(module, "affinity", lambda one, k, device: asked.append(k) or affinity(one, k, device))
    spectral_clustering(planted()[0], np.arange(0, 80, 80 // count)[:count], 2)
    assert asked == [neighbors]


@pytest.mark.parametrize(("share", "count"), [(0.01, 1), (0.05, 2), (0.25, 10), (1.0, 40)])
def test_a_share_of_the_most_novel_samples_is_at_least_one(share, count):
    found = rarity(planted()[0][:40], planted(seed=1)[0])
    chosen = most_novel(found, share)
    assert len(set(chosen.tolist())) == count
    assert found.distances[chosen].min() >= np.delete(found.distances, chosen).max(initial=-np.inf)
