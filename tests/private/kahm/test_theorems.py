"""Theorems 1 to 6 of the KAHM paper on digits: shown, or the printed inequality violated."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from finc_eval.private.kahm.element_noise import ElementNoise, noise_quantile
from finc_eval.private.kahm.fabrication import published_steps, smooth
from finc_eval.private.kahm.machine import fit_deep, fit_machine, kernel_matrix
from finc_eval.private.kahm.models import WideKahm, fit_wide
from finc_eval.private.kahm.settings import KahmSettings

X, Y = load_digits(return_X_y=True)
X = torch.from_numpy(X / 16)
ZEROS, OTHERS = X[Y == 0], X[Y != 0]
SETTINGS = KahmSettings(20)


def ratio(machine, points):
    """Γ(y) / ‖[y − y₁ … y − y_N]‖₂, which Theorem 3 bounds, and ‖h‖/|Σh|, which bounds it for sure."""
    samples = machine.samples()
    z = (points - machine.mean) @ machine.encoder
    kernel = torch.exp(-torch.cdist(z, machine.encoded).square() / (2 * machine.components))
    eye = torch.eye(machine.n, dtype=torch.double)
    weights = torch.linalg.solve(kernel_matrix(machine.encoded) + machine.lam * eye, kernel.T).T
    distances = torch.linalg.vector_norm(points - weights @ samples / weights.sum(1, keepdim=True), dim=1)
    spreads = torch.stack([torch.linalg.matrix_norm(point - samples, 2) for point in points])
    return distances / spreads, weights.norm(dim=1) / weights.sum(1).abs()


@pytest.fixture(scope="module")
def machine():
    return fit_machine(ZEROS, SETTINGS)


@pytest.fixture(scope="module")
def deep():
    """The paper's L = 5 layers, the first of which is `machine`."""
    return fit_deep(ZEROS, KahmSettings(20, depth=5))


@pytest.fixture(scope="module")
def beyond(machine):
    """Far points with a negative divisor: about a fiftieth of mean + 10 N(0, 1)."""
    far = machine.mean + 10 * torch.randn(500, 64, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    return far[machine.images(far).divisors < 0]


@pytest.fixture(scope="module")
def poles(machine, beyond):
    """Points between the mean and `beyond`, next to where the divisor passes 0, by bisection."""
    found = []
    for point in beyond[:5]:
        near = machine.mean.clone()
        for _ in range(60):
            middle = (near + point) / 2
            near, point = (middle, point) if float(machine.images(middle[None]).divisors) > 0 else (near, middle)
        found.append(near)
    return torch.stack(found)


def test_theorem_1_lambda_is_the_fixed_point_from_any_start(machine):
    kernel, p, n = kernel_matrix(machine.encoded), ZEROS.shape[1], len(ZEROS)
    mean_square, eye = float(ZEROS.square().mean()), torch.eye(len(ZEROS), dtype=torch.double)
    for start in (0.0, mean_square / 2, mean_square):
        error = start
        for _ in range(30):
            left = torch.linalg.solve(eye + kernel / (error + 2 * mean_square), ZEROS)
            error = float(left.square().sum()) / (p * n)
        assert error + 2 * mean_square == pytest.approx(machine.lam, rel=1e-10)
    assert 2 * mean_square < machine.lam < 3 * mean_square


def test_theorem_3_holds_with_weights_in_place_of_its_constant_and_says_little_near_the_data(machine):
    """Γ(y) ≤ ‖[y − yᵢ]‖₂ ‖h‖/|Σh| always. On real digits the ratio stays below a tenth; the paper's constant is 398."""
    found, bound = ratio(machine, torch.cat([ZEROS[:40], OTHERS[:60]]))
    assert (found <= bound * (1 + 1e-9)).all()
    assert float(found.max()) < 0.1


def test_theorem_2_is_false_at_a_pole_which_is_marked(machine, poles):
    """The paper bounds ‖A(y)‖ by a constant of the samples, 7573 on these digits."""
    images, _, marked = machine.images(poles)
    assert float(images.norm(dim=1).min()) > 7573 * 1e6 and marked.all()
    found = WideKahm(((machine,),)).distances(torch.cat([poles, ZEROS]))
    assert found.poles == len(poles) and found.undefined == 0 and found.values[: len(poles)].min() > 1e9


def test_theorem_3_is_false_at_a_pole(machine, poles):
    images = machine.images(poles).points
    for pole, image in zip(poles, images, strict=True):
        assert float((pole - image).norm() / torch.linalg.matrix_norm(pole - machine.samples(), 2)) > 398 * 1e3


def test_definition_4_goes_on_through_a_pole_so_that_theorem_4_is_false_for_one_layer_alone(machine, deep, poles):
    """Γ is the least distance over the layers. At poles of the first its ratio is ~.075, far below the bound of 398."""
    one, five = (WideKahm((layers,)).distances(poles).values for layers in (deep[:1], deep))
    for pole, alone, least in zip(poles, one, five, strict=True):
        spread = float(torch.linalg.matrix_norm(pole - machine.samples(), 2))
        assert alone / spread > 398 * 1e3 and 0.06 < least / spread < 0.09


def test_points_beyond_a_pole_have_the_distance_of_the_definition(machine, deep, beyond):
    """By division of the weighted samples, layer by layer."""
    image, distances = beyond, []
    for layer in deep:
        z = (image - layer.mean) @ layer.encoder
        squared = torch.cdist(z, layer.encoded).square() / (2 * layer.components)
        kernel = torch.exp(squared.amin(1, keepdim=True) - squared)
        h = torch.linalg.solve(kernel_matrix(layer.encoded) + layer.lam * torch.eye(layer.n).double(), kernel.T).T
        image = h @ ZEROS / h.sum(1, keepdim=True)
        distances.append((beyond - image).norm(dim=1))
    assert len(beyond) > 5 and bool((distances[0] > distances[1]).any())
    for depth in (1, 5):
        found = WideKahm((deep[:depth],)).distances(beyond)
        np.testing.assert_allclose(found.values, torch.stack(distances[:depth]).amin(0).numpy(), rtol=1e-9)
        assert found.poles == 0


def test_theorem_5_a_wide_model_is_as_near_as_its_nearest_branch():
    """Its bound is that of the branches: false for one layer, as Theorem 3 is."""
    wide = fit_wide(ZEROS, KahmSettings(5, branches=4))
    branches = np.stack([WideKahm((one,)).distances(OTHERS[:200]).values for one in wide.branches])
    np.testing.assert_array_equal(wide.distances(OTHERS[:200]).values, branches.min(0))
    assert len(branches) > 1


def test_theorem_6_smoothing_brings_the_error_of_models_to_0_but_not_geometrically():
    """The theorem says that the error falls to 0. It does, as a power of the number of steps: 137, 10.3 after a step,
    1.4 after 10, .071 after 100. Its proof has a constant factor a step."""
    rows = torch.randn(50, 20, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    errors, norms = [], []
    for _ in range(201):
        errors.append(fit_machine(rows, SETTINGS).modeling_error(rows))
        norms.append(float(rows.norm()))
        rows = smooth(rows, SETTINGS)
    slopes = [math.log(errors[2 * step] / errors[step]) / math.log(2) for step in (25, 50, 100)]
    assert max(slopes) < -1  # at least as 1/M
    factors = np.array(errors[1:]) / np.array(errors[:-1])
    assert factors[-1] > 0.98 > 0.1 > factors[0]
    assert norms[-1] / norms[-2] > norms[1] / norms[0]


def test_equation_88_is_the_sum_of_the_samples_own_distances_and_finds_m():
    noisy = ElementNoise(4.0).add(ZEROS, torch.Generator().manual_seed(0))
    machine = fit_machine(ZEROS, SETTINGS)
    by_hand = sum(float((one - machine.images(one[None]).points[0]).norm()) for one in ZEROS)
    assert machine.modeling_error(ZEROS) == pytest.approx(by_hand, rel=1e-10)
    rows, expected = noisy, 1
    while fit_machine(rows, SETTINGS).modeling_error(rows) > by_hand:
        rows, expected = smooth(rows, SETTINGS), expected + 1
    assert published_steps(ZEROS, noisy, SETTINGS) == expected


def test_the_noise_is_not_the_least_beyond_the_papers_conditions():
    """The staircase mechanism has E|v| = d e^{ε/2}/(e^ε − 1): much less than Laplace noise from ε = 2 on."""
    uniform = (torch.arange(200_000, dtype=torch.double) + 0.5) / 200_000
    for epsilon, factor in ((2.0, 1.18), (8.0, 6.8)):
        own = float(noise_quantile(uniform, epsilon, 0.0, 1.0).abs().mean())
        staircase = math.exp(epsilon / 2) / math.expm1(epsilon)
        assert own / staircase == pytest.approx(factor, rel=0.01)
