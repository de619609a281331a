from math import cos, exp, sin

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.core.errors import UsageError
from finc_eval.feature_maps import approximation
from finc_eval.feature_maps.approximation import (
    AUTO_BOUND,
    AUTO_FEATURES,
    approximation_error,
    eigenvector_residuals,
    enough_features,
    theorem_1_bound,
)
from finc_eval.private.hermite.hermite import TotalDegree


@pytest.fixture(scope="module")
def sample(digits):
    return torch.from_numpy(digits[0][:200])


def maps(seed=0):
    return lambda features: fe.RandomFourierFeatures(784, features, sigma=6.0, seed=seed)


def test_the_error_of_the_kernel_is_that_over_all_pairs_of_different_samples(sample):
    phi = fe.RandomFourierFeatures(784, 30, sigma=6.0, center=sample.mean(0))
    rows, frequencies = sample[:12].double().numpy(), phi.frequencies.double().numpy()
    errors = []
    for i, x in enumerate(rows):
        for y in rows[:i]:
            pairs = zip(frequencies.T @ (x - phi.center.numpy()), frequencies.T @ (y - phi.center.numpy()), strict=True)
            approximate = sum(cos(a) * cos(b) + sin(a) * sin(b) for a, b in pairs) / 30
            errors.append(approximate - exp(-((x - y) ** 2).sum() / (2 * 6.0**2)))
    found = approximation_error(phi, sample[:12])
    assert found.pairs == len(errors) == 66
    assert found.rms == pytest.approx(np.square(errors).mean() ** 0.5, abs=1e-6)
    assert found.max == pytest.approx(np.abs(errors).max(), abs=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_error_does_not_depend_on_the_unit_of_the_embeddings(sample, scale):
    phi = fe.RandomFourierFeatures(784, 50, sigma=6.0)
    scaled = fe.RandomFourierFeatures(phi.dim, phi.features, sigma=6.0 * scale, frequencies=phi.frequencies / scale)
    assert approximation_error(scaled, sample * scale).rms == pytest.approx(
        approximation_error(phi, sample).rms, rel=1e-3
    )


def test_a_single_sample_has_no_error(sample):
    with pytest.raises(fe.FincEvalError, match="at least 2 samples, got 1"):
        approximation_error(maps()(10), sample[:1])


def choose_from(monkeypatch, candidates, bound):
    monkeypatch.setattr(approximation, "AUTO_FEATURES", candidates)
    monkeypatch.setattr(approximation, "AUTO_BOUND", bound)


def test_enough_features_are_the_first_number_whose_error_is_within_the_bound(sample, monkeypatch):
    candidates = (25, 100, 400)
    rms = [approximation_error(maps()(features), sample).rms for features in candidates]
    assert rms == sorted(rms, reverse=True)
    for chosen, error in zip(candidates, rms, strict=True):
        for bound in (error, error * 1.01):
            choose_from(monkeypatch, candidates, bound)
            assert enough_features(maps(), sample).features == chosen


def test_where_no_number_is_enough_the_largest_is_taken(sample, monkeypatch):
    tried = []

    def make(features):
        tried.append(features)
        return maps()(min(features, 10))

    assert enough_features(make, sample).features == 10
    choose_from(monkeypatch, (5, 7), 0.0)
    assert enough_features(make, sample).features == 7
    assert tried == [*AUTO_FEATURES, 5, 7]


@pytest.mark.one_of_each(by=lambda case: case.endswith("320"))
@pytest.mark.parametrize(("bound", "chosen"), [(1.0, 20), (0.08, 80), (1e-6, 320)])
def test_a_comparison_can_choose_the_number_of_features_itself(digits, monkeypatch, bound, chosen):
    x = digits[0][:300, ::8]
    choose_from(monkeypatch, (20, 80, 320), bound)
    found = fe.compare(gen=x[:100], ref=x[100:], features="auto", modes=1)
    assert found.settings.features == found.feature_map.features == chosen
    assert f"r:{chosen}" in str(found.signature).split("|")
    assert found.signature == fe.compare(gen=x[:100], ref=x[100:], features=chosen, modes=1).signature
    assert (found.kernel_error.rms < 1.1 * bound) or chosen == 320


def test_what_auto_promises_holds_on_digits(digits):
    phi = fe.Sketch.reference(digits[0][:1000, ::4], features="auto").feature_map
    assert phi.features in AUTO_FEATURES
    assert approximation_error(phi, torch.from_numpy(digits[0][1000:1500, ::4])).rms <= 1.1 * AUTO_BOUND


@pytest.mark.parametrize("features", ["all", 0, -5])
def test_another_number_of_features_is_refused(digits, features):
    x = digits[0]
    with pytest.raises(fe.FincEvalError, match=f"features must be a .* number.*got '?{features}'?"):
        fe.compare(gen=x[:100], ref=x[100:200], features=features)


def test_theorem_1_allows_as_much_as_it_says():
    bound = theorem_1_bound(50_000, 50_000, 2000, rho=1.0, delta=0.05)
    assert bound == pytest.approx(8 * (np.log(2e6) / 2000) ** 0.25)
    assert bound == pytest.approx(2.33, abs=0.01)


def test_the_bound_of_theorem_1_halves_with_sixteen_times_the_frequencies():
    assert theorem_1_bound(700, 900, 1600, 2.0) == pytest.approx(theorem_1_bound(700, 900, 100, 2.0) / 2)
    assert theorem_1_bound(700, 900, 100, 3.0) == pytest.approx(theorem_1_bound(700, 900, 100, 0.0) * 8)
    assert theorem_1_bound(700, 900, 100) == theorem_1_bound(900, 700, 100)
    assert theorem_1_bound(700, 900, 100, delta=0.01) > theorem_1_bound(700, 900, 100, delta=0.1)


def test_theorem_1_is_kept_with_room_to_spare(digits):
    x = digits[0]
    phi = fe.Sketch.reference(x[200:400], features=400).feature_map
    found = fe.compare(gen=x[:200], ref=fe.Sketch.of(x[200:400], phi), method=fe.Finc(rotation=None, clusters=False))
    kernel = phi.exact(*2 * [torch.from_numpy(x[:400]).double()])
    weights = torch.full((400,), 1 / 200, dtype=torch.double)
    weights[200:] *= -1
    exact = torch.linalg.eigvals(weights[:, None] * kernel).real.sort(descending=True).values
    error = np.abs(np.array(found.spectrum.over) - exact[: len(found.spectrum.over)].numpy()).max()
    assert 0 < error < 0.01 < theorem_1_bound(200, 200, 400)


@pytest.mark.parametrize(
    "arguments", [{"n": 0}, {"m": 0}, {"features": 0}, {"rho": -1.0}, {"delta": 0.0}, {"delta": 1.0}, {"rho": np.nan}]
)
def test_the_bound_of_theorem_1_refuses_what_it_does_not_hold_for(arguments):
    (name,) = arguments
    with pytest.raises(UsageError, match=f"{name} must "):
        theorem_1_bound(**{"n": 10, "m": 10, "features": 10, **arguments})


def test_theorem_1_eigenvectors_keep_the_bound_and_come_nearer_with_more_features(digits):
    """Frequencies are drawn as in the paper; the first ten of 200 + 200 digits."""
    x, y = (torch.from_numpy(digits[0][start : start + 200]) for start in (0, 200))
    found = []
    for features in (200, 2000):
        phi = fe.RandomFourierFeatures(784, features, sigma=5.0, orthogonal=False)
        found.append(float(eigenvector_residuals(phi, x, y).max()))
        assert found[-1] < 2 * (1 + 1) * theorem_1_bound(200, 200, features)
    assert 0 < found[1] < 0.5 * found[0]


@pytest.mark.long  # what holds instead: the test above
def test_theorem_1_eigenvectors_fail_as_printed_with_weights_1_and_a_plus_on_the_reference():
    """‖Λv − λv‖ ≤ 2(1 + ρ) ε is violated, and relative to ‖v‖ the residual does not fall with more features."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 300, 2, generator=generator)
    x += 1
    rows, weights = torch.cat([x, y]).double(), torch.full((600, 1), 1 / 300, dtype=torch.double)
    weights[300:] *= -1
    relative, repaired = [], []
    for features in (80, 800):
        phi = fe.RandomFourierFeatures(2, features, sigma=2.0, orthogonal=False)
        kernel, phis = phi.exact(rows, rows), phi(rows).double()
        eigenvalues, vectors = torch.linalg.eigh(phis.T @ (weights * phis))
        v = phis @ vectors[:, -1]  # coefficients of k(·, x) and of k(·, y), all with a plus
        residual = weights[:, 0] * (kernel @ v) - eigenvalues[-1] * v
        size, norm = (float((one @ kernel @ one).sqrt()) for one in (residual, v))
        assert size > 3 * 2 * (1 + 1) * theorem_1_bound(300, 300, features)
        relative.append(size / norm)
        repaired.append(float(eigenvector_residuals(phi, x, y, count=1)))
    assert relative[1] > 0.9 * relative[0] > 0.2
    assert repaired[1] < 0.7 * repaired[0] < 0.01


def test_features_that_are_the_kernel_have_its_eigenvectors():
    x, y = torch.randn(2, 40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    phi = TotalDegree(2, 20, length_scale=2.0)
    assert float(eigenvector_residuals(phi, x, y + 1, rho=0.5, count=4).max()) < 1e-5
    assert float(eigenvector_residuals(TotalDegree(2, 2, length_scale=2.0), x, y + 1, rho=0.5, count=4).max()) > 1e-3
