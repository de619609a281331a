import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.feature_maps.base import CosineFeatures
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.measures.frechet import fd_infinity, frechet_distance, frechet_interval, fvd, same_set_floor
from finc_eval.measures.gaussians.gaussian import GaussianStatistics, blocks_of_embeddings
from finc_eval.measures.gaussians.opened import gaussian_statistics
from finc_eval.measures.inputs import split_reference
from finc_eval.sketches.sketch import Sketch

DIM = 16
SCALES = torch.arange(1, DIM + 1, dtype=torch.double) ** -0.5


def law(shift=0.0, gain=1.0, n=None):
    covariance = torch.diag((gain * SCALES).square())
    return GaussianStatistics(n, shift * SCALES, covariance, "the law", f"array-{DIM}")


def drawn(n, shift=0.0, gain=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (SCALES * (shift + gain * torch.randn(n, DIM, generator=generator, dtype=torch.double))).float()


def test_of_commuting_gaussians_it_is_the_distance_of_means_and_of_standard_deviations():
    found = frechet_distance(law(0.5, 1.2), law())
    squares = float(SCALES.square().sum())
    assert found.mean_term == pytest.approx(0.25 * squares, rel=1e-12)
    assert found.covariance_term == pytest.approx(0.04 * squares, rel=1e-12)
    assert found.value == pytest.approx(0.29 * squares, rel=1e-12)


def test_covariances_that_do_not_commute_have_the_closed_form_of_two_dimensions():
    # tr (AB)^½ = √(tr AB + 2 √(det A det B)) for 2 × 2 matrices.
    a, b = torch.tensor([[2.0, 0.9], [0.9, 1.0]]).double(), torch.tensor([[1.0, -0.4], [-0.4, 3.0]]).double()
    x, y = (GaussianStatistics(None, torch.zeros(2).double(), m, "the law", "array-2") for m in (a, b))
    root = float(((a @ b).trace() + 2 * (a.det() * b.det()).sqrt()).sqrt())
    assert frechet_distance(x, y).value == pytest.approx(7 - 2 * root, rel=1e-12)


def test_a_set_is_at_distance_zero_of_itself_exactly():
    x = drawn(300)
    assert frechet_distance(x, x.clone()).value == 0
    assert frechet_distance(x[:10], x[:10]).value == 0


def test_rounding_below_zero_is_set_to_zero_and_reported():
    x = drawn(300)
    orders = [torch.randperm(300, generator=torch.Generator().manual_seed(seed)) for seed in range(20)]
    found = [frechet_distance(x, x[order]) for order in orders]
    for one in found:
        assert 0 <= one.value < 1e-12
        assert one.value - one.slack == one.mean_term + one.covariance_term
    assert any(0 < one.slack < 1e-12 for one in found)


@pytest.mark.parametrize("n, m", [(2, 2), (10, 300), (10, 12), (300, 400), (16, 17)])
def test_samples_and_their_statistics_agree_also_without_full_rank(n, m):
    x, y = drawn(n, 0.3), drawn(m, seed=1)
    plain = [
        GaussianStatistics(len(rows), rows.double().mean(0), rows.double().T.cov(), "the law", f"array-{DIM}")
        for rows in (x, y)
    ]
    expected = frechet_distance(*plain).value
    assert frechet_distance(x, y).value == pytest.approx(expected, rel=1e-10)
    assert frechet_distance(x, plain[1]).value == pytest.approx(expected, rel=1e-10)


def test_it_is_symmetric():
    x, y = drawn(10, 0.3), drawn(300, seed=1)
    assert frechet_distance(x, y).value == pytest.approx(frechet_distance(y, x).value, rel=1e-12)


def test_a_covariance_far_from_the_origin_keeps_its_digits():
    x = drawn(5000)
    moved = x.double() + 4096
    rounded = (moved.float().double() - 4096).float()
    expected, found = gaussian_statistics(rounded), gaussian_statistics(moved.float())
    torch.testing.assert_close(found.covariance, expected.covariance, rtol=1e-10, atol=1e-12)


def test_sketches_have_the_distance_of_their_samples():
    x, y = drawn(500, 0.3), drawn(400, seed=1)
    phi = RandomFourierFeatures(DIM, 50, sigma=2.0, center=y.mean(0))
    expected = frechet_distance(x, y).value
    sketches = Sketch.of(x, phi), Sketch.of(y, phi)
    assert frechet_distance(*sketches).value == pytest.approx(expected, rel=1e-6)
    shards = Sketch.of(x[:123], phi) + Sketch.of(x[123:], phi)
    assert frechet_distance(shards, sketches[1]).value == pytest.approx(expected, rel=1e-6)


def test_files_of_sketches_open(tmp_path):
    x, y = drawn(50, 0.3), drawn(40, seed=1)
    Sketch.of(y, CosineFeatures(DIM)).save(tmp_path / "ref.h5")
    assert frechet_distance(x, tmp_path / "ref.h5").value == pytest.approx(frechet_distance(x, y).value, rel=1e-6)


@pytest.mark.long
def test_the_jackknife_finds_the_bias_and_its_interval_the_truth():
    truth = frechet_distance(law(0.3, 1.2), law()).value
    found = [frechet_interval(drawn(500, 0.3, 1.2, 2 * i), drawn(500, seed=2 * i + 1)) for i in range(40)]
    plain, corrected = (np.array([getattr(one, name) for one in found]) for name in ("value", "corrected"))
    error = corrected.std() / 40**0.5
    assert plain.mean() > truth + 4 * error, "the plain distance reads too high"
    assert abs(corrected.mean() - truth) < 3 * error
    assert np.mean([one.standard_error for one in found]) == pytest.approx(corrected.std(), rel=0.35)
    assert sum(one.low <= truth <= one.high for one in found) >= 34
    assert {one.covers for one in found} == {"both sets"}


def test_an_interval_needs_no_sample_where_the_set_came_as_sketches_of_shards():
    x, y = drawn(900, 0.3), drawn(400, seed=1)
    phi = RandomFourierFeatures(DIM, 20, sigma=2.0, center=y.mean(0))
    found = frechet_interval([Sketch.of(part, phi) for part in x.split(90)], Sketch.of(y, phi))
    assert found.covers == "the generated set"
    other = frechet_interval(x, gaussian_statistics(y))
    assert found.value == pytest.approx(other.value, rel=1e-6)
    assert found.corrected == pytest.approx(other.corrected, rel=0.1)
    assert found.standard_error == pytest.approx(other.standard_error, rel=0.8)


def named(rows, ids):
    """Embeddings whose ids travel with their rows."""
    return as_embeddings(fe.EmbeddingSet(rows, ids), "set")


def test_blocks_follow_the_ids_whatever_their_order():
    x, ids = drawn(200), [f"{i}.png" for i in range(200)]
    order = torch.randperm(200, generator=torch.Generator().manual_seed(3))
    sets = named(x, ids), named(x[order], [ids[i] for i in order])
    one, other = (blocks_of_embeddings(embeddings, 5) for embeddings in sets)
    assert [part.n for part in one.parts] == [part.n for part in other.parts] == [40] * 5
    for k in range(5):
        torch.testing.assert_close(one.statistics(k).mean, other.statistics(k).mean, rtol=0, atol=1e-12)


def test_the_windows_of_a_video_share_a_block():
    videos = named(drawn(60), [f"{i}.mp4" for i in range(60)])
    windows = named(drawn(60).repeat_interleave(4, 0), [f"{i // 4}.mp4#{i % 4}" for i in range(240)])
    one, other = (blocks_of_embeddings(embeddings, 6) for embeddings in (videos, windows))
    assert [part.n for part in other.parts] == [40] * 6
    for k in range(6):
        torch.testing.assert_close(one.statistics(k).mean, other.statistics(k).mean, rtol=0, atol=1e-12)
    errors = [frechet_interval(embeddings, law()).standard_error for embeddings in (videos, windows)]
    assert errors[1] == pytest.approx(errors[0], rel=0.1), "four copies of a sample say no more than one"


def test_fd_infinity_takes_away_what_too_few_generated_samples_add():
    x, y = drawn(4000, 0.1, seed=5), law()
    truth = frechet_distance(law(0.1), law()).value
    found = fd_infinity(x[:1000], y, seed=1)
    plain = frechet_distance(x[:1000], y).value
    assert abs(found.value - truth) < abs(plain - truth)
    assert found.slope > 0
    assert (len(found.sizes), found.sizes[0], found.sizes[-1]) == (15, 100, 1000)
    assert found == fd_infinity(x[:1000], y, seed=1)
    assert found.value != fd_infinity(x[:1000], y, seed=2).value


def test_the_floor_is_what_fresh_samples_of_the_reference_read():
    reference = drawn(600)
    fresh = [frechet_distance(drawn(500, seed=100 + i), drawn(600, seed=200 + i)).value for i in range(20)]
    floor = np.mean([same_set_floor(reference, 500, seed=i) for i in range(20)])
    assert floor == pytest.approx(np.mean(fresh), rel=0.15)
    parts = split_reference(as_embeddings(reference), 100)
    measured = frechet_distance(*parts).value
    assert [part.n for part in parts] == [100, 500]
    scale = (1 / 100 + 1 / 600) / (1 / 100 + 1 / 500)
    assert same_set_floor(reference, 100) == pytest.approx(measured * scale, rel=1e-12)


def test_the_floor_of_a_grouped_reference_is_that_of_independent_groups():
    """A set of few videos has no two parts: both parts would show clips of the same videos."""
    rng = np.random.default_rng(0)
    videos = rng.normal(size=(60, DIM)).repeat(10, 0)
    rows = (videos + 0.1 * rng.normal(size=videos.shape)).astype(np.float32)
    grouped = as_embeddings(rows).with_groups(np.arange(60).repeat(10).astype(np.uint64), "video")
    parts = split_reference(grouped, 300)
    seen = [{*part.group_hashes().tolist()} for part in parts]
    assert not seen[0] & seen[1] and [part.n for part in parts] == [300, 300]
    apart, together = (frechet_distance(*split_reference(one, 300)).value for one in (grouped, as_embeddings(rows)))
    assert apart > 4 * together
    one = as_embeddings(rows).with_groups(np.zeros(600, np.uint64), "video")
    assert [part.n for part in split_reference(one, 300)] == [300, 300]


def test_too_few_samples_are_explained():
    (found,) = frechet_distance(drawn(DIM), drawn(100, seed=1)).warnings
    assert "has 16 samples in 16 dimensions" in found
    assert not frechet_distance(drawn(DIM + 1), drawn(100, seed=1)).warnings
    with pytest.raises(FincEvalError, match="the generated set has 1 sample: a covariance needs at least two"):
        frechet_distance(drawn(1), drawn(100))
    with pytest.raises(FincEvalError, match="19 independent samples, too few for 10 blocks: give at least 20"):
        frechet_interval(drawn(19), drawn(100))
    with pytest.raises(FincEvalError, match="FD-infinity of 15 sizes needs at least 30 samples"):
        fd_infinity(drawn(16), drawn(100))
    with pytest.raises(FincEvalError, match="has 3 samples for a floor at 3: it needs at least 4"):
        same_set_floor(drawn(3), 3)


def test_fvd_refuses_a_handful_of_clips_and_warns_below_the_usual_number():
    with pytest.raises(FincEvalError, match=r"FVD of 255 clips .* would be mostly the error of the covariance"):
        fvd(drawn(255), drawn(3000))
    found = fvd(drawn(256), drawn(2048, seed=1))
    assert found.value == frechet_distance(drawn(256), drawn(2048, seed=1)).value
    assert found.warnings == (
        "the generated set has 256 clips: published FVDs have 2048, and fewer give a higher value",
    )


def test_sets_that_do_not_compare_are_refused():
    with pytest.raises(FincEvalError, match="the generated set has 16 entries per embedding and the reference 8"):
        frechet_distance(drawn(40), drawn(40)[:, :8])
    bad = drawn(40)
    bad[7, 3] = float("nan")
    with pytest.raises(FincEvalError, match="the generated set: the embedding in row 7 is not finite"):
        frechet_distance(bad, drawn(40))
    with pytest.raises(FincEvalError, match="came as statistics of all its samples: an interval needs embeddings"):
        frechet_interval(law(), drawn(40))


def test_a_set_of_one_embedding_only_has_a_distance_and_a_warning():
    found = frechet_distance(drawn(1).expand(50, DIM), law(n=100))
    assert found.covariance_term == pytest.approx(float(SCALES.square().sum()), rel=1e-9)
    assert found.warnings == (
        "all samples of the generated set have the same embedding: look at them before trusting a number",
    )


@pytest.mark.parametrize("n", [5, DIM, 50])
def test_products_with_a_covariance_are_the_same_without_it(n):
    rows = np.random.default_rng(0).normal(size=(n, DIM))
    found, whole = gaussian_statistics(rows), np.cov(rows.astype(np.float32), rowvar=False)
    columns = torch.eye(DIM, dtype=torch.float64)[:, :3]
    np.testing.assert_allclose(found.times(columns), whole[:, :3], rtol=1e-9, atol=1e-12)
    assert float(found.trace) == pytest.approx(np.trace(whole), rel=1e-9)
    np.testing.assert_allclose(found.covariance, whole, rtol=1e-9, atol=1e-12)
    assert not found.is_constant
