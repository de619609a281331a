import h5py
import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.embeddings import sample_keys
from finc_eval.sketch import fold_of


@pytest.fixture(scope="module")
def phi():
    return fe.RandomFourierFeatures(dim=784, features=450, sigma=6.0, seed=0)


def algorithm_1(x, y, phi, rho):
    """The paper's Algorithm 1 in float64: one outer product a sample."""
    omega = phi.frequencies.numpy().astype(np.float64)

    def covariance(rows):
        total = np.zeros((2 * omega.shape[1],) * 2)
        for row in rows.astype(np.float64):
            phases = row @ omega
            feature = np.concatenate([np.cos(phases), np.sin(phases)]) / np.sqrt(omega.shape[1])
            total += np.outer(feature, feature)
        return total / len(rows)

    c_x, c_y = covariance(x), covariance(y)
    return c_x, c_y, np.linalg.eigvalsh(c_x - rho * c_y)[::-1]


def test_covariances_and_eigenvalues_equal_the_papers_algorithm(digits):
    x, y = digits[0][:600], digits[0][600:1100] * 0.7
    phi = fe.RandomFourierFeatures(dim=784, features=150, sigma=6.0, seed=1)
    c_x, c_y, eigenvalues = algorithm_1(x, y, phi, rho=1.5)
    a, b = fe.Sketch.of(x, phi), fe.Sketch.of(y, phi)
    assert np.abs(a.covariance.numpy() - c_x).max() < 1e-6
    assert np.abs(b.covariance.numpy() - c_y).max() < 1e-6
    comparison = fe.compare(gen=a, ref=b, rho=1.5, rotation=None)
    np.testing.assert_allclose(comparison.spectrum[0][:10], eigenvalues[:10], atol=1e-5)
    np.testing.assert_allclose([m.fitted_excess for m in comparison.modes], eigenvalues[:10], atol=1e-5)


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_the_batch_size_does_not_change_a_sketch(digits, phi, batch_size):
    x = digits[0][:1500]
    whole = fe.Sketch.of(x, phi, batch_size=1500)
    batched = fe.Sketch.of(x, phi, batch_size=batch_size)
    assert torch.allclose(batched.covariance, whole.covariance, atol=1e-6, rtol=0)
    for mine, other in zip(batched.folds, whole.folds, strict=True):
        assert mine.n == other.n
        assert torch.allclose(mine.mean(), other.mean(), atol=1e-6, rtol=0)
    assert batched.sample.ids == whole.sample.ids
    assert torch.equal(batched.sample.rows, whole.sample.rows)


def test_parts_add_up_to_the_whole_in_any_order(digits, phi):
    x = digits[0][:900]
    ids = [f"image-{i}" for i in range(900)]
    whole = fe.Sketch(phi, sample=100)
    whole.update(x, ids)
    parts = []
    for part in (slice(0, 200), slice(200, 650), slice(650, 900)):
        sketch = fe.Sketch(phi, sample=100)
        sketch.update(x[part], ids[part])
        parts.append(sketch)
    for merged in (parts[0] + parts[1] + parts[2], parts[2] + (parts[0] + parts[1])):
        assert merged.n == 900
        assert torch.allclose(merged.covariance, whole.covariance, atol=1e-6, rtol=0)
        assert [fold.n for fold in merged.folds] == [fold.n for fold in whole.folds]
        assert torch.allclose(merged.embedding.mean_square(), whole.embedding.mean_square(), rtol=1e-6, atol=1e-9)
        assert merged.sample.ids == whole.sample.ids


def test_the_covariance_is_the_mean_of_the_features_outer_products(digits, phi):
    x = digits[0][:300]
    features = phi(x).double()
    expected = features.T @ features / 300
    assert torch.allclose(fe.Sketch.of(x, phi).covariance.double(), expected, atol=1e-7)


def test_embedding_moments_are_those_of_the_embeddings(digits):
    x = digits[0][:500]
    center = x.mean(0) + 0.1
    phi = fe.RandomFourierFeatures(dim=784, features=20, sigma=6.0, center=center)
    moments = fe.Sketch.of(x, phi).embedding
    mean = moments.mean().numpy()
    np.testing.assert_allclose(mean + center, x.mean(0), atol=1e-6)
    covariance = moments.mean_square().numpy() - np.outer(mean, mean)
    np.testing.assert_allclose(covariance, np.cov(x.T.astype(np.float64), bias=True), atol=1e-6)


def test_folds_follow_the_ids_and_are_of_like_size():
    keys = sample_keys([f"{i}.png" for i in range(10_000)])
    folds = fold_of(keys)
    assert abs(folds.mean() - 0.5) < 0.02
    shuffled = np.random.default_rng(0).permutation(10_000)
    assert (fold_of(sample_keys([f"{i}.png" for i in shuffled])) == folds[shuffled]).all()


def test_a_sketch_comes_back_from_its_file_as_it_was(digits, phi, tmp_path):
    sketch = fe.Sketch.of(digits[0][:400], phi, sample=50)
    sketch.save(tmp_path / "a.h5")
    loaded = fe.load(tmp_path / "a.h5")
    assert torch.equal(loaded.covariance, sketch.covariance)
    assert torch.equal(loaded.embedding.mean_square(), sketch.embedding.mean_square())
    assert loaded.sample.ids == sketch.sample.ids
    assert loaded.sources == sketch.sources
    assert (loaded + sketch).n == 800


def test_a_sketch_file_says_that_it_is_not_private(digits, phi, tmp_path):
    fe.Sketch.of(digits[0][:40], phi).save(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert "without privacy noise" in file.attrs["privacy"]


def test_sketches_of_other_feature_maps_do_not_add(digits, phi):
    other = fe.RandomFourierFeatures(dim=784, features=450, sigma=6.0, seed=1)
    with pytest.raises(fe.FincEvalError, match="different feature maps"):
        fe.Sketch.of(digits[0][:10], phi) + fe.Sketch.of(digits[0][:10], other)


def test_embeddings_that_are_not_finite_are_refused_by_row(digits, phi):
    x = digits[0][:50].copy()
    x[17, 3] = np.nan
    with pytest.raises(fe.FincEvalError, match="row 17 is not finite"):
        fe.Sketch.of(x, phi)


def test_a_damaged_sketch_file_is_one_clear_sentence(digits, phi, tmp_path):
    path = tmp_path / "a.h5"
    fe.Sketch.of(digits[0][:40], phi).save(path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(fe.FincEvalError, match=r"a\.h5"):
        fe.Sketch.load(path)
