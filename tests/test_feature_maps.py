import numpy as np
import pytest
import torch

from finc_eval import FincEvalError, RandomFourierFeatures
from finc_eval.approximation import approximation_error
from finc_eval.bandwidth import median_bandwidth
from finc_eval.kernels import gaussian_kernel


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


def test_centring_leaves_the_approximated_kernel_as_it_is(digits):
    x = torch.from_numpy(digits[0][:60])
    plain = RandomFourierFeatures(dim=784, features=200, sigma=6.0)
    centred = RandomFourierFeatures(dim=784, features=200, sigma=6.0, center=x.mean(0))
    np.testing.assert_allclose((plain(x) @ plain(x).T).numpy(), (centred(x) @ centred(x).T).numpy(), atol=1e-5)
    assert not torch.allclose(plain(x), centred(x), atol=1e-2)


def rms_errors(x, orthogonal, numbers=(250, 1000, 4000), seeds=3):
    """The kernel's error for each number of frequencies, over some seeds."""
    make = lambda r, seed: RandomFourierFeatures(784, r, sigma=6.0, seed=seed, orthogonal=orthogonal)  # noqa: E731
    return [np.mean([approximation_error(make(r, seed), x).rms for seed in range(seeds)]) for r in numbers]


def test_the_kernel_error_of_independent_frequencies_falls_as_one_over_root_r(digits):
    rms = rms_errors(torch.from_numpy(digits[0][:300]), orthogonal=False)
    assert rms[0] / rms[1] == pytest.approx(2, rel=0.15)
    assert rms[1] / rms[2] == pytest.approx(2, rel=0.15)


def test_orthogonal_frequencies_have_a_smaller_error(digits):
    x = torch.from_numpy(digits[0][:300])
    for orthogonal, independent in zip(rms_errors(x, True), rms_errors(x, False), strict=True):
        assert orthogonal < 0.95 * independent


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
