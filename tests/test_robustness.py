"""Inputs that break other tools: a right answer, or one clear error."""

import h5py
import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval import embeddings as embeddings_module


def noise(n, dim, seed):
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)


def clusters(shares, n, seed, dim=16, spread=0.1):
    """Samples of kinds with these shares around orthogonal centres of norm 5."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(len(shares), n, p=shares)
    return (5 * np.eye(dim)[kinds] + spread * rng.standard_normal((n, dim))).astype(np.float32)


def compare(gen, ref, **options):
    """A comparison whose every number is in its range."""
    found = fe.compare(gen=gen, ref=ref, **{"features": 100, **options})
    for mode in found.all_modes:
        assert 0 <= mode.mass_gen <= 1
        assert 0 <= mode.mass_ref <= 1
        assert 0 <= mode.stability <= 1
        assert 0 <= mode.p_value <= 1
        assert mode.excess_frequency is None or 0 <= mode.excess_frequency <= 1
        assert np.isfinite([mode.excess, *mode.interval, mode.fitted_excess, mode.standard_error]).all()
        assert np.isfinite(mode.direction).all()
    found.to_json()  # which refuses NaN
    return found


@pytest.mark.parametrize("n", [1, 5, 19])
def test_too_few_samples_are_one_sentence(n):
    with pytest.raises(fe.FincEvalError, match=f"gen has {n} samples: a comparison needs at least 20"):
        compare(noise(n, 4, 0), noise(100, 4, 1))


def test_fewer_samples_than_modes_are_enough():
    found = compare(noise(25, 4, 0), noise(30, 4, 1), modes=40)
    assert len(found.modes) <= 40
    assert found.significant() == ()


def test_a_constant_reference_asks_for_a_bandwidth_and_takes_one():
    constant, varied = np.ones((100, 4), np.float32), clusters([0.5, 0.5], 200, 0, dim=4)
    with pytest.raises(fe.FincEvalError, match=r"median distance of the reference embeddings is 0.*pass sigma"):
        compare(varied, constant)
    assert len(compare(varied, constant, sigma=1.0).significant()) >= 2


def test_two_equal_constants_do_not_differ():
    constant = np.ones((100, 4), np.float32)
    found = compare(constant, constant.copy(), sigma=1.0)
    assert found.significant() == ()


def test_a_set_that_repeats_one_sample_is_one_mode_of_frequency_one():
    varied = noise(2000, 8, 0)
    repeated = np.repeat(3 * noise(1, 8, 5), 10_000, axis=0)
    found = compare(repeated, varied, features=500)
    assert max(found.significant(), key=lambda mode: mode.excess).role == "over"
    assert found.modes[0].mass_gen == pytest.approx(1, abs=0.01)
    assert found.modes[0].excess_frequency == pytest.approx(1, abs=0.05)
    with pytest.raises(fe.FincEvalError, match="pass sigma"):
        compare(varied, repeated)
    found = compare(varied, repeated, features=500, sigma=found.settings.sigma)
    assert found.under_represented[0].mass_ref == pytest.approx(1, abs=0.01)


def test_one_dimension_is_enough():
    rng = np.random.default_rng(0)
    ref = rng.normal(0, 1, (2000, 1)).astype(np.float32)
    gen = np.concatenate([ref[:1500] * 0.98 + 0.01, rng.normal(6, 0.1, (500, 1)).astype(np.float32)])
    found = compare(gen, ref)
    assert (gen[found.modes[0].top_gen] > 5).all()
    assert found.modes[0].p_value < 1e-10


def test_twenty_thousand_dimensions_are_not_too_many():
    gen, ref = noise(200, 20_000, 0), noise(200, 20_000, 1)
    gen[:100] *= 0.2
    found = compare(gen, ref, features=100)
    assert found.modes[0].p_value < 1e-6
    assert (found.modes[0].top_gen < 100).all()


@pytest.mark.parametrize("rho", [0.0, -1.0, float("inf"), float("nan"), 1e30])
def test_a_rho_that_makes_no_sense_is_one_sentence(rho):
    with pytest.raises(fe.FincEvalError, match="rho must be"):
        compare(noise(50, 4, 0), noise(50, 4, 1), rho=rho)


def test_nothing_but_novel_kinds_passes_an_enormous_rho():
    ref = clusters([0.5, 0.5, 0.0], 1000, 1)
    assert compare(clusters([0.8, 0.2, 0.0], 1000, 0), ref, rho=1e6).significant() == ()


def test_half_precision_finds_the_same_modes():
    gen, ref = clusters([0.5, 0.3, 0.2], 800, 0), clusters([0.2, 0.3, 0.5], 800, 1)
    whole, half = compare(gen, ref), compare(gen.astype(np.float16), ref.astype(np.float16))
    for mine, other in ((whole.modes[0], half.modes[0]), (whole.under_represented[0], half.under_represented[0])):
        assert mine.id == other.id
        assert mine.excess == pytest.approx(other.excess, abs=2e-3)


def test_a_half_precision_cache_reads_as_float32(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (60, 28, 28, 3), np.uint8)
    paths = [tmp_path / "whole.h5", tmp_path / "half.h5"]
    for path in paths:
        fe.extract(images, extractor="pixels", out=path).close()
    with h5py.File(paths[1], "r+") as file:
        rows = file["embeddings"][:]
        del file["embeddings"]
        file["embeddings"] = rows.astype(np.float16)
    whole, half = (fe.load(path) for path in paths)
    assert half[:].dtype == half[[0, 3]].dtype == np.float32
    np.testing.assert_allclose(half[:], whole[:], atol=1e-3)
    found = compare(paths[1], paths[0])
    assert found.significant() == ()


@pytest.mark.parametrize("scale", [1e-20, 1e-3, 1e6, 1e15])
def test_the_unit_of_the_embeddings_does_not_matter(scale):
    gen, ref = clusters([0.5, 0.3, 0.2], 600, 0), clusters([0.2, 0.3, 0.5], 600, 1)
    plain, scaled = compare(gen, ref), compare(gen * np.float32(scale), ref * np.float32(scale))
    for mine, other in zip(plain.significant()[:2], scaled.significant()[:2], strict=True):
        assert mine.excess == pytest.approx(other.excess, abs=1e-3)


def test_one_enormous_outlier_changes_nothing_for_the_others():
    gen, ref = clusters([0.6, 0.4], 1000, 0), clusters([0.4, 0.6], 1000, 1)
    plain = compare(gen, ref)
    gen[7] = 1e6
    found = compare(gen, ref)
    assert found.modes[0].excess == pytest.approx(plain.modes[0].excess, abs=0.01)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_by_row(value):
    gen = noise(100, 4, 0)
    gen[41, 2] = value
    with pytest.raises(fe.FincEvalError, match="gen: the embedding in row 41 is not finite"):
        compare(gen, noise(100, 4, 1))


def reported(found):
    return {mode.id: mode for mode in found.all_modes if mode.p_value < 0.5}


def check_same(one, other):
    """The same modes: overlap above 0.999, p-values to 1e-3."""
    assert reported(one).keys() == reported(other).keys()
    for name, mode in reported(one).items():
        twin = reported(other)[name]
        assert float(mode.direction @ twin.direction) ** 2 > 0.999
        assert mode.p_value == pytest.approx(twin.p_value, abs=1e-3)


def test_the_batch_size_does_not_change_the_modes(digits):
    x, labels = digits
    gen, ref = x[:1500][labels[:1500] != 0], x[1500:3000]
    small, large = (fe.compare(gen=gen, ref=ref, features=300, batch_size=size) for size in (64, 8192))
    assert len(reported(small)) >= 3
    check_same(small, large)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("batch_size", [64, 8192])
def test_the_device_does_not_change_the_modes(digits, batch_size):
    x, labels = digits
    gen, ref = x[:1500][labels[:1500] != 0], x[1500:3000]
    cpu = fe.compare(gen=gen, ref=ref, features=300, device="cpu")
    check_same(cpu, fe.compare(gen=gen, ref=ref, features=300, device="cuda", batch_size=batch_size))


def test_each_set_is_read_twice(monkeypatch):
    passes = []
    batches = embeddings_module.Embeddings.batches
    monkeypatch.setattr(
        embeddings_module.Embeddings,
        "batches",
        lambda self, size=embeddings_module.BATCH_SIZE: passes.append(self.name) or batches(self, size),
    )
    compare(noise(3000, 4, 0), noise(2500, 4, 1))
    assert sorted(passes) == ["gen", "gen", "ref", "ref"]


@pytest.mark.parametrize("spread", [0.6, 0.9])
def test_the_excess_frequency_is_near_the_truth_where_the_mass_is_far_from_it(spread):
    # Six kinds; the first is 15 points more frequent in the generated set.
    gen = clusters([0.25, *[0.15] * 5], 4000, 0, spread=spread)
    ref = clusters([0.10, *[0.18] * 5], 4000, 1, spread=spread)
    mode = compare(gen, ref, features=1000).modes[0]
    assert mode.excess_frequency == pytest.approx(0.15, rel=0.35)
    assert mode.excess < 0.9 * mode.excess_frequency


def test_planted_kinds_are_found_again_and_noise_is_not(digits):
    planted = compare(clusters([0.6, 0.4], 1000, 0), clusters([0.3, 0.7], 1000, 1), features=300)
    assert planted.modes[0].stability > 0.95
    x = digits[0]
    halves = compare(x[:2000], x[2000:], features=300)
    assert np.mean([mode.stability for mode in halves.all_modes]) < 0.7


@pytest.mark.parametrize("options", [{"rho": 2.0}, {"kernel": "cosine"}])
def test_sketches_alone_give_the_same_modes_and_wider_intervals(digits, options):
    x, labels = digits
    gen, ref = x[:1500][labels[:1500] != 0] + 0.01, x[1500:3000] + 0.01
    rho, kernel = options.get("rho", 1.0), options.get("kernel", "gaussian")
    whole = fe.compare(gen=gen, ref=ref, features=300, rho=rho, kernel=kernel)
    sketches = [fe.Sketch.of(rows, whole.feature_map) for rows in (gen, ref)]
    alone = fe.compare(gen=sketches[0], ref=sketches[1], rho=rho)
    assert len(alone.all_modes) == len(whole.all_modes) > 5
    for mine, sharp in zip(alone.all_modes, whole.all_modes, strict=True):
        assert float(mine.direction @ sharp.direction) ** 2 > 0.99
        assert mine.interval[0] <= sharp.interval[0] < sharp.interval[1] <= mine.interval[1]
