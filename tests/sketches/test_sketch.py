from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch
from _portions import portions_of

import finc_eval as fe
from finc_eval.embeddings.keys import hashes_of, keys_of
from finc_eval.numerics.arrays import fold_of
from finc_eval.sketches.folds import BottomSample, fold_chunks
from finc_eval.sketches.sketch import MAX_EMBEDDING, sketch_all


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
    x, y = digits[0][:300, ::4], digits[0][300:550, ::4] * 0.7
    phi = fe.RandomFourierFeatures(dim=196, features=60, sigma=3.0, seed=1)
    c_x, c_y, eigenvalues = algorithm_1(x, y, phi, rho=1.5)
    a, b = fe.Sketch.of(x, phi), fe.Sketch.of(y, phi)
    assert np.abs(a.covariance.numpy() - c_x).max() < 1e-6
    assert np.abs(b.covariance.numpy() - c_y).max() < 1e-6
    comparison = fe.compare(gen=a, ref=b, rho=1.5, method=fe.Finc(rotation=None))
    np.testing.assert_allclose(comparison.spectrum.over[:10], eigenvalues[:10], atol=1e-5)
    found = np.array([mode.fitted_excess for mode in comparison.over])
    np.testing.assert_allclose(found, eigenvalues[:10], atol=1e-5)


@pytest.mark.parametrize("portion", [7, *(pytest.param(portion, marks=pytest.mark.long) for portion in (1, 1000))])
def test_portions_do_not_change_a_sketch(digits, phi, portion):
    x = digits[0][:400]
    whole = fe.Sketch.of(x, phi)
    with portions_of(portion):
        batched = fe.Sketch.of(x, phi)
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


@pytest.mark.parametrize(
    ("rows", "ids", "told"), [(1, 2, "1 embedding came with 2 ids"), (3, 1, "3 embeddings came with 1 id:")]
)
def test_ids_that_are_not_one_a_row_are_refused(phi, rows, ids, told):
    with pytest.raises(fe.DataError, match=told):
        fe.Sketch(phi).update(np.ones((rows, 784), np.float32), ["a", "b"][:ids])


def test_folds_follow_the_ids_and_are_of_like_size():
    keys = keys_of(*hashes_of([f"{i}.png" for i in range(10_000)]))
    folds = fold_of(keys)
    assert abs(folds.mean() - 0.5) < 0.02
    shuffled = np.random.default_rng(0).permutation(10_000)
    assert (fold_of(keys_of(*hashes_of([f"{i}.png" for i in shuffled]))) == folds[shuffled]).all()


def test_a_sketch_comes_back_from_its_file_as_it_was(digits, phi, tmp_path):
    held = fe.EmbeddingSet(digits[0][:400], metadata={"label": np.arange(400) % 7, "made/by": ["a"] * 400})
    sketch = fe.Sketch.of(held, phi, sample=50, groups="label")
    sketch.save(tmp_path / "a.h5")
    loaded = fe.load(tmp_path / "a.h5")
    assert torch.equal(loaded.covariance, sketch.covariance)
    assert torch.equal(loaded.embedding.mean_square(), sketch.embedding.mean_square())
    assert loaded.sample.ids == sketch.sample.ids
    assert loaded.sources == sketch.sources
    assert loaded.sample.columns == sketch.sample.columns and [*loaded.sample.columns] == ["label", "made/by"]
    assert loaded.repeats.n == 400 and np.array_equal(loaded.repeats.hashes, sketch.repeats.hashes)
    assert loaded.held().grouping == "label" and len(set(loaded.held().group_hashes())) == 7
    assert (loaded + fe.Sketch.of(digits[0][400:800], phi)).n == 800


PARTS = {
    "even and odd rows": (slice(0, 400, 2), slice(1, 400, 2), None, None),
    "named rows": (slice(0, 200), slice(200, 400), "row {}", None),
    "twice": (slice(0, 200), slice(0, 200), None, "add each set once"),
    "named rows that overlap": (slice(0, 200), slice(150, 350), "row {}", "is in both sketches"),
}


@pytest.mark.parametrize("case", PARTS)
def test_parts_of_a_set_add_and_no_sample_is_added_twice(digits, phi, case):
    first, second, ids, refused = PARTS[case]
    parts = [
        fe.EmbeddingSet(digits[0][rows], ids and [ids.format(row) for row in range(rows.start, rows.stop)])
        for rows in (first, second)
    ]
    sketches = [fe.Sketch.of(part, phi, sample=150) for part in parts]
    if refused:
        with pytest.raises(fe.DataError, match=refused):
            sketches[0] + sketches[1]
        return
    for total in (sketches[0] + sketches[1], sketches[1] + sketches[0]):
        assert total.n == 400 and len({*total.sample.ids}) == 150
        assert total.held().n == 150 and total.repeats.n == 400
    assert torch.equal((sketches[0] + sketches[1]).sample.rows, (sketches[1] + sketches[0]).sample.rows)


def test_a_sketch_file_says_that_it_is_not_private(digits, phi, tmp_path):
    fe.Sketch.of(digits[0][:40], phi).save(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert "without privacy noise" in file.attrs["privacy"].decode()


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


@pytest.mark.parametrize("sizes", [(700,), (100, 1, 0, 99, 500), (50,) * 14])
def test_chunks_hold_every_row_once_in_its_fold_and_are_of_one_size(sizes):
    keys = keys_of(*hashes_of([str(number) for number in range(700)]))
    rows = torch.arange(700.0)[:, None]
    starts = np.cumsum((0, *sizes))[:-1].tolist()
    parts = [(slice(start, start + size), start) for size, start in zip(sizes, starts, strict=True)]
    batches = [SimpleNamespace(keys=keys[part], rows=rows[part], start=start) for part, start in parts]
    embeddings = SimpleNamespace(n=700, batches=lambda *_: batches)
    found, last = ([], []), []
    with portions_of(64):
        chunks = list(fold_chunks(embeddings, fe.Run(device="cpu"), torch.as_tensor, "look"))
    for chunk in chunks:
        assert 0 < len(chunk.rows) <= 64
        found[chunk.fold].append(chunk)
        last += [chunk.fold] if len(chunk.rows) < 64 else []
    assert len(last) == len(set(last))
    assert all(len(chunk.rows) == 64 for of_fold in found for chunk in of_fold[:-1])
    for fold in (0, 1):
        index = torch.cat([chunk.index for chunk in found[fold]])
        np.testing.assert_array_equal(index.numpy(), np.flatnonzero(fold_of(keys) == fold))
        assert torch.equal(torch.cat([chunk.rows for chunk in found[fold]])[:, 0].long(), index)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_sketch_keeps_its_precision_on_file_and_says_it(digits, precision, tmp_path):
    x, phi = digits[0][:120, ::4], fe.RandomFourierFeatures(dim=196, features=60, sigma=3.0)
    sketch = fe.Sketch.of(x, phi, precision=precision)
    exact = phi(x).double().T @ phi(x).double() / 120
    error = float((sketch.covariance.double() - exact).abs().max())
    assert error < {"float32": 1e-8, "float64": 1e-16}[precision]
    sketch.save(tmp_path / "a.h5")
    loaded = fe.load(tmp_path / "a.h5")
    assert loaded.precision == precision
    assert loaded.covariance.dtype == (torch.float64 if precision == "float64" else torch.float32)
    assert torch.equal(loaded.covariance, sketch.covariance)
    assert f"prec:{precision}" in str(fe.compare(gen=loaded, ref=sketch, modes=2).signature).split("|")


@pytest.mark.parametrize("precisions", [("float32", "float64"), ("float64", "float32")])
def test_precisions_do_not_add_but_compare(digits, precisions):
    x, phi = digits[0][:, ::8], fe.RandomFourierFeatures(dim=98, features=30, sigma=3.0)
    parts = x[:100], x[100:220]
    first, second = (fe.Sketch.of(one, phi, precision=kind) for one, kind in zip(parts, precisions, strict=True))
    with pytest.raises(fe.FincEvalError, match="in {} and {}: make both with the same precision=".format(*precisions)):
        first + second
    mixed = fe.compare(gen=first, ref=second, modes=3)
    plain = fe.compare(*(fe.Sketch.of(one, phi) for one in parts), modes=3)
    assert f"prec:{'/'.join(precisions)}" in str(mixed.signature)
    assert mixed.over[0].excess == pytest.approx(plain.over[0].excess, abs=1e-5)
    with pytest.raises(fe.FincEvalError, match="precision must be one of float32, float64, got 'tf32'"):
        fe.Sketch(phi, precision="tf32")


def test_several_sketches_come_from_one_pass_each_as_if_alone(digits):
    x = digits[0][:500]
    maps = [fe.RandomFourierFeatures(784, 40, sigma=sigma) for sigma in (3.0, 6.0)] + [fe.CosineFeatures(784)]
    with portions_of(128):
        together, each = sketch_all(x, maps), [fe.Sketch.of(x, phi) for phi in maps]
    for sketch, alone, phi in zip(together, each, maps, strict=True):
        assert sketch.feature_map is phi
        assert torch.equal(sketch.covariance, alone.covariance)
        assert torch.equal(sketch.embedding.mean_square(), alone.embedding.mean_square())
        assert (sketch.sample.ids, sketch.sources) == (alone.sample.ids, alone.sources)


def test_a_file_holds_each_covariance_once_above_its_diagonal(digits, tmp_path):
    phi = fe.RandomFourierFeatures(dim=30, features=1000, sigma=6.0)
    fe.Sketch.of(digits[0][:50, 300:330], phi, sample=0).save(tmp_path / "a.h5")
    # Two folds of 2000² float32, of which the file has the half above the diagonal.
    assert (tmp_path / "a.h5").stat().st_size == pytest.approx(2 * 0.5 * 2000**2 * 4, rel=0.03)


def test_the_moments_of_very_long_embeddings_are_left_out():
    rows = np.random.default_rng(0).standard_normal((20, MAX_EMBEDDING + 1)).astype(np.float32)
    long = fe.Sketch.of(rows, fe.RandomFourierFeatures(MAX_EMBEDDING + 1, 5, sigma=50.0))
    assert long.embedding is None
    assert (long + fe.Sketch.of(rows + 1, long.feature_map)).embedding is None
    assert fe.Sketch.of(rows[:, 1:], fe.RandomFourierFeatures(MAX_EMBEDDING, 5, sigma=50.0)).embedding is not None


def test_ids_that_are_not_valid_unicode_survive_sketch_comparison_and_json(digits, tmp_path):
    """File names on Linux are bytes."""
    gen, ref = digits[0][:60, ::16], digits[0][60:120, ::16]
    reference = fe.Sketch.reference(ref, features=20)
    sketch = fe.Sketch(reference.feature_map)
    ids = [f"\udcff{row}.png" for row in range(len(gen))]
    sketch.update(gen, ids=ids)
    sketch.save(tmp_path / "gen.h5")
    loaded = fe.Sketch.load(tmp_path / "gen.h5")
    assert sorted(loaded.sample.ids) == sorted(ids)
    found = fe.compare(loaded, reference, modes=1)
    found.save(tmp_path / "comparison.h5")
    assert fe.load(tmp_path / "comparison.h5").to_json() == found.to_json()
    assert "\\udcff" in found.to_json()


def test_of_samples_with_equal_hashes_those_with_the_first_ids_stay():
    keys, ids = np.array([6, 2, 2, 2, 8], np.uint64), ["e", "c", "a", "b", "d"]
    sample = BottomSample(1, 3)
    sample.add(keys, ids, torch.arange(5.0)[:, None])
    assert sample.ids == ["a", "b", "c"] and sample.rows.flatten().tolist() == [2, 3, 1]
