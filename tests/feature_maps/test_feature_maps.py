import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval import CosineFeatures, FincEvalError, RandomFourierFeatures
from finc_eval.feature_maps.approximation import approximation_error
from finc_eval.feature_maps.base import MAX_COSINE_ENTRIES
from finc_eval.feature_maps.fourier import FREQUENCY_BITS
from finc_eval.numerics.kernels import gaussian_kernel, median_bandwidth
from finc_eval.numerics.precision import round_mantissa


def test_cosines_come_before_sines_and_are_scaled_by_one_over_root_r(digits):
    x = digits[0][:5]
    phi = RandomFourierFeatures(dim=784, features=30, sigma=8.0, seed=3)
    phases = x.astype(np.float64) @ phi.frequencies.numpy().astype(np.float64)
    expected = np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / np.sqrt(30)
    np.testing.assert_allclose(phi(x).numpy(), expected, atol=2e-6)


def test_frequencies_are_normal_with_the_inverse_bandwidth_as_deviation():
    phi = RandomFourierFeatures(dim=300, features=1000, sigma=4.0)
    assert float(phi.frequencies.std()) == pytest.approx(1 / 4.0, rel=0.01)
    assert abs(float(phi.frequencies.mean())) < 0.002


def test_every_feature_vector_has_norm_one(digits):
    phi = RandomFourierFeatures(dim=784, features=50, sigma=5.0)
    np.testing.assert_allclose(phi(digits[0][:100]).norm(dim=1).numpy(), 1, atol=1e-6)


def test_a_seed_fixes_the_map_and_another_seed_changes_it():
    same = [RandomFourierFeatures(dim=4, features=8, sigma=1.0, seed=5).digest for _ in range(2)]
    assert same[0] == same[1]
    assert same[0] != RandomFourierFeatures(dim=4, features=8, sigma=1.0, seed=6).digest


def test_centering_leaves_the_approximated_kernel_as_it_is(digits):
    x = torch.from_numpy(digits[0][:60])
    plain = RandomFourierFeatures(dim=784, features=200, sigma=6.0)
    centered = RandomFourierFeatures(dim=784, features=200, sigma=6.0, center=x.mean(0))
    np.testing.assert_allclose((plain(x) @ plain(x).T).numpy(), (centered(x) @ centered(x).T).numpy(), atol=1e-5)
    assert not torch.allclose(plain(x), centered(x), atol=1e-2)


def rms_errors(x, orthogonal, numbers=(100, 400, 1600), seeds=3):
    """The kernel's error for each number of frequencies, over some seeds."""
    make = lambda r, seed: RandomFourierFeatures(784, r, sigma=6.0, seed=seed, orthogonal=orthogonal)  # noqa: E731
    return [np.mean([approximation_error(make(r, seed), x).rms for seed in range(seeds)]) for r in numbers]


def test_the_kernel_error_of_independent_frequencies_falls_as_one_over_root_r(digits):
    rms = rms_errors(torch.from_numpy(digits[0][:300]), orthogonal=False)
    assert rms[0] / rms[1] == pytest.approx(2, rel=0.15)
    assert rms[1] / rms[2] == pytest.approx(2, rel=0.15)


def test_orthogonal_frequencies_have_a_smaller_error(digits):
    x = torch.from_numpy(digits[0][:300])
    some = [rms_errors(x, orthogonal, (250, 1000)) for orthogonal in (True, False)]
    assert all(orthogonal < 0.95 * independent for orthogonal, independent in zip(*some, strict=True))


def test_the_gaussian_kernel_has_the_two_in_its_convention():
    x = torch.tensor([[0.0, 0.0]])
    y = torch.tensor([[3.0, 4.0]])
    assert float(gaussian_kernel(x, y, sigma=5.0)) == pytest.approx(np.exp(-0.5))


def test_the_bandwidth_is_half_the_median_distance():
    rows = torch.tensor([[0.0], [1.0], [3.0]])  # distances 1, 2, 3
    assert median_bandwidth(rows) == pytest.approx(1.0)


def test_a_reference_of_identical_samples_asks_for_a_bandwidth():
    with pytest.raises(FincEvalError, match="pass sigma"):
        median_bandwidth(torch.ones(10, 3))


@pytest.mark.parametrize(("argument", "value"), [("dim", 0), ("features", -1), ("sigma", 0.0), ("sigma", float("nan"))])
def test_parameters_out_of_range_are_named(argument, value):
    with pytest.raises(FincEvalError, match=f"{argument} must be a positive number, got {value}"):
        RandomFourierFeatures(**{"dim": 3, "features": 4, "sigma": 1.0, argument: value})


def test_embeddings_of_another_dimension_are_refused():
    with pytest.raises(FincEvalError, match=r"shape \(n, 3\).*got \(2, 4\)"):
        RandomFourierFeatures(dim=3, features=4, sigma=1.0)(np.zeros((2, 4), np.float32))


def cosines(frequencies):
    """The cosine of the angle between every two frequencies, the diagonal left out."""
    unit = torch.nn.functional.normalize(frequencies.double(), dim=0)
    return unit.T @ unit - torch.eye(unit.shape[1], dtype=torch.double)


@pytest.mark.parametrize(("dim", "features"), [(64, 200), (64, 64), (64, 10), (1, 3)])
def test_frequencies_are_at_right_angles_in_groups_of_d(dim, features):
    frequencies = RandomFourierFeatures(dim, features, sigma=2.0).frequencies
    assert frequencies.shape == (dim, features)
    angles = cosines(frequencies)
    groups = torch.arange(features) // dim
    inside = groups[:, None] == groups
    # Each entry has lost 12 of 23 bits, a relative error of at most 2⁻¹², and those errors average out.
    assert float(angles[inside].abs().max()) < 2e-4
    if features > dim:
        assert float(angles[~inside].abs().max()) > 0.3
    independent = RandomFourierFeatures(dim, features, sigma=2.0, orthogonal=False).frequencies
    assert dim == 1 or float(cosines(independent)[inside].abs().max()) > 0.2


@pytest.mark.parametrize("dim", [1, 16, 300])
def test_orthogonal_frequencies_are_as_long_as_gaussian_vectors(dim):
    squares = RandomFourierFeatures(dim, 6000, sigma=2.0).frequencies.double().square().sum(0)
    # Of σ⁻²χ²(d): mean d/σ², variance 2d/σ⁴.
    assert float(squares.mean()) == pytest.approx(dim / 4, rel=4 * (2 / dim / 6000) ** 0.5)
    assert float(squares.var()) == pytest.approx(2 * dim / 16, rel=0.25)


def test_every_orthogonal_frequency_points_anywhere():
    directions = torch.cat([RandomFourierFeatures(3, 3, sigma=1.0, seed=s).frequencies for s in range(2000)], 1)
    first = directions[:, ::3] / directions[:, ::3].norm(dim=0)
    # QR alone would give the first column of every group a sign, or an axis, that it likes best.
    assert float(first.mean(1).abs().max()) < 4 * (1 / 3 / 2000) ** 0.5
    assert float((first @ first.T / 2000 - torch.eye(3) / 3).abs().max()) < 0.03


@pytest.mark.one_of_each("dim")
@pytest.mark.parametrize(("dim", "features"), [(5, 8), (5, 3), (40, 12)])
def test_the_kernel_of_orthogonal_frequencies_is_unbiased(dim, features):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(6, dim, generator=generator) * dim**-0.5
    x[1] = x[0] + 0.3 * (x[1] - x[0])
    pairs = torch.triu_indices(6, 6, 1)
    exact = gaussian_kernel(x, x, sigma=0.8)[*pairs]
    assert float(exact.min()) < 0.4
    assert float(exact.max()) > 0.8
    products = []
    for seed in range(1000):
        phi = RandomFourierFeatures(dim, features, sigma=0.8, seed=seed)(x)
        products.append((phi @ phi.T)[*pairs])
    values = torch.stack(products).double()
    error = (values.mean(0) - exact).abs() / (values.std(0) / 1000**0.5)
    assert float(error.max()) < 4


def test_the_same_frequencies_come_whatever_the_number_of_threads():
    threads = torch.get_num_threads()
    digests = set()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            digests.add(RandomFourierFeatures(dim=500, features=800, sigma=7.0, seed=3).digest)
    finally:
        torch.set_num_threads(threads)
    assert len(digests) == 1


def test_orthogonal_frequencies_keep_no_bits_on_which_libraries_differ():
    frequencies = RandomFourierFeatures(dim=50, features=120, sigma=7.0).frequencies
    assert torch.equal(round_mantissa(frequencies, FREQUENCY_BITS), frequencies)
    assert not torch.equal(round_mantissa(frequencies, FREQUENCY_BITS + 1), frequencies)


def test_features_are_the_same_whatever_precision_torch_is_set_to(digits):
    x, before = digits[0][:300], torch.get_float32_matmul_precision()
    phi = RandomFourierFeatures(dim=784, features=100, sigma=6.0)
    expected = phi(x)
    try:
        torch.set_float32_matmul_precision("medium")
        assert torch.equal(phi(x), expected)
    finally:
        torch.set_float32_matmul_precision(before)


def test_either_half_of_the_frequencies_is_a_map_of_its_own(digits):
    x = torch.from_numpy(digits[0][:20])
    phi = RandomFourierFeatures(dim=784, features=31, sigma=6.0)
    start = 0
    for entries in phi.halves():
        part = phi.frequencies[:, start : start + len(entries) // 2]
        alone = RandomFourierFeatures(*part.shape, sigma=6.0, frequencies=part)
        torch.testing.assert_close(phi(x)[:, entries] * (31 / part.shape[1]) ** 0.5, alone(x), rtol=0, atol=1e-6)
        start += part.shape[1]
    assert start == 31
    assert RandomFourierFeatures(dim=784, features=1, sigma=6.0).halves() is None
    assert CosineFeatures(784).halves() is None


def test_the_features_of_the_cosine_kernel_are_exact(digits):
    x = torch.from_numpy(digits[0][:300])
    error = approximation_error(CosineFeatures(784), x)
    assert error.rms < 1e-7
    assert error.max < 1e-6
    a, b = x[0].double(), x[1].double()
    cosine = float(a @ b / (a.norm() * b.norm()))
    assert float(CosineFeatures(784).exact(x[:1], x[1:2])) == pytest.approx(cosine, abs=1e-6)


def test_a_cosine_does_not_depend_on_the_length_of_an_embedding(digits):
    x = torch.from_numpy(digits[0][:100])
    phi = CosineFeatures(784)
    torch.testing.assert_close(phi(x).norm(dim=1), torch.ones(100))
    for scale in (1e-30, 0.01, 1e30):
        torch.testing.assert_close(phi(x * scale), phi(x), rtol=1e-5, atol=1e-7)


def test_an_embedding_of_zeros_has_no_cosine(digits):
    x = digits[0][:50].copy()
    x[20] = 0
    with pytest.raises(FincEvalError, match="an embedding is zero, which has no cosine with others"):
        fe.compare(gen=x, ref=digits[0][50:100], kernel="cosine")


def eigenvalues_of_unit_rows(x, y, rho):
    x, y = (rows.astype(np.float64) / np.linalg.norm(rows.astype(np.float64), axis=1)[:, None] for rows in (x, y))
    return np.linalg.eigvalsh(x.T @ x / len(x) - rho * y.T @ y / len(y))[::-1]


@pytest.mark.parametrize("rho", [1.0, 2.0])
def test_with_the_cosine_kernel_the_spectrum_is_that_of_the_unit_rows(digits, rho):
    x, y = digits[0][:250, ::8], digits[0][500:800, ::8] * 3
    raw = fe.compare(gen=x, ref=y, rho=rho, kernel="cosine", method=fe.Finc(rotation=None, clusters=False))
    over, under = eigenvalues_of_unit_rows(x, y, rho), eigenvalues_of_unit_rows(y, x, rho)
    np.testing.assert_allclose(raw.spectrum.over[:10], over[:10], atol=1e-6)
    np.testing.assert_allclose(raw.spectrum.under[:10], under[:10], atol=1e-6)
    fitted = np.array([mode.fitted_excess for mode in raw.over])
    assert len(fitted) > 0 or rho > 1
    assert all(np.abs(over[:10] - value).min() < 1e-6 for value in fitted)
    assert (np.diff(fitted) <= 0).all()
    assert (raw.settings.kernel, raw.settings.sigma, raw.settings.features) == ("cosine", None, 98)
    assert raw.kernel_error.max < 1e-6
    assert not any("sigma" in warning for warning in raw.warnings)


def test_the_cosine_kernel_comes_back_from_the_file_of_a_sketch_and_of_a_comparison(digits, tmp_path):
    x, y = digits[0][:100, ::8], digits[0][200:320, ::8]
    phi = CosineFeatures(98)
    fe.Sketch.of(x, phi).save(tmp_path / "x.h5")
    fe.Sketch.of(y, phi).save(tmp_path / "y.h5")
    found = fe.compare(gen=tmp_path / "x.h5", ref=tmp_path / "y.h5", modes=2)
    direct = fe.compare(gen=fe.Sketch.of(x, phi), ref=fe.Sketch.of(y, phi), modes=2)
    assert found.signature == direct.signature
    assert [mode.excess for mode in found.over] == [mode.excess for mode in direct.over]
    found.save(tmp_path / "c.h5")
    loaded = fe.load(tmp_path / "c.h5")
    assert isinstance(loaded.feature_map, CosineFeatures)
    assert loaded.feature_map.digest == phi.digest
    np.testing.assert_array_equal(loaded.score(x[:20]), found.score(x[:20]))


def test_unlike_kernels_do_not_compare(digits):
    x = digits[0]
    gaussian = fe.Sketch.of(x[:50], RandomFourierFeatures(784, 392, sigma=6.0))
    with pytest.raises(FincEvalError, match="different feature maps"):
        fe.compare(gen=fe.Sketch.of(x[:50], CosineFeatures(784)), ref=gaussian)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "cosine", "sigma": 3.0}, r"sigma 3\.0 was given, but the cosine kernel has no bandwidth"),
        ({"kernel": "laplace"}, "kernel must be one of gaussian, cosine, got 'laplace'"),
    ],
)
def test_what_a_kernel_does_not_have_is_refused(digits, arguments, message):
    with pytest.raises(FincEvalError, match=message):
        fe.compare(gen=digits[0][:50], ref=digits[0][50:100], **arguments)


@pytest.mark.parametrize("dim", [0, MAX_COSINE_ENTRIES + 1])
def test_the_cosine_kernel_has_a_largest_dimension(dim):
    with pytest.raises(FincEvalError, match=f"takes embeddings of 1 to 16384 entries, got {dim}"):
        CosineFeatures(dim)


@pytest.mark.parametrize("far", [0.0, 1e4])
def test_features_are_cosines_and_sines_of_differences_from_the_center_however_far_it_is(far):
    rows = torch.from_numpy(np.random.default_rng(0).integers(-200, 200, (30, 3)) / 64 + far).float()
    phi = RandomFourierFeatures(3, 50, sigma=1.5, seed=0, center=torch.full((3,), far))
    phases = (rows.double() - far) @ phi.frequencies.double()
    expected = torch.cat([phases.cos(), phases.sin()], 1) / 50**0.5
    np.testing.assert_allclose(phi(rows), expected, atol=1e-5)
    np.testing.assert_allclose(phi(rows.clone().requires_grad_()).detach(), expected, atol=1e-5)
    squared = (rows.double()[:, None] - rows.double()[None]).square().sum(2)
    np.testing.assert_allclose(phi.exact(rows, rows), (-squared / (2 * 1.5**2)).exp(), atol=1e-5)


@pytest.mark.parametrize("dim, features", [(8, 60), (32, 60), (196, 450)])
def test_features_of_a_row_have_the_same_bits_in_any_batch(dim, features):
    rows = torch.randn(48, dim, generator=torch.Generator().manual_seed(0))
    phi = fe.RandomFourierFeatures(dim, features, sigma=dim**0.5)
    for size in (1, 2, 3, 17):
        assert torch.equal(torch.cat([phi(part) for part in rows.split(size)]), phi(rows))
