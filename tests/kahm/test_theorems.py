"""Theorems 1 and 3 to 6 of the KAHM paper, each on digits: shown or refuted. Theorem 2 is in `test_machine`."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from finc_eval.kahm.element_noise import ElementNoise, noise_quantile
from finc_eval.kahm.fabrication import published_steps, smooth
from finc_eval.kahm.machine import fit_deep, fit_machine, kernel_matrix
from finc_eval.kahm.models import WideKahm, fit_wide
from finc_eval.kahm.settings import KahmSettings

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


def test_theorem_3_is_false_at_a_pole(machine):
    """Between digits and a far point with a negative divisor the ratio passes any constant, such as 398."""
    far = machine.mean + 10 * torch.randn(500, 64, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    beyond, near = far[machine.images(far).denominators < 0][0], machine.mean.clone()
    for _ in range(60):
        middle = (near + beyond) / 2
        positive = float(machine.images(middle[None]).denominators) > 0
        near, beyond = (middle, beyond) if positive else (near, middle)
    image = machine.images(near[None], guard=0.0).points
    spread = torch.linalg.matrix_norm(near - machine.samples(), 2)
    assert float((near - image).norm() / spread) > 398 * 1e3


def test_theorem_4_layers_only_bring_points_nearer():
    """A bound of the first layer is a bound of a deep model, whose distance is the least over its layers."""
    shallow, deep = (WideKahm((fit_deep(ZEROS, KahmSettings(5, depth=depth)),)) for depth in (1, 5))
    before, after = shallow.distances(X).values, deep.distances(X).values
    assert (after <= before).all() and (after < before).any()


def test_theorem_5_a_wide_model_is_as_near_as_its_nearest_branch():
    wide = fit_wide(ZEROS, KahmSettings(5, branches=4))
    branches = np.stack([WideKahm((one,)).distances(OTHERS[:200]).values for one in wide.branches])
    np.testing.assert_array_equal(wide.distances(OTHERS[:200]).values, branches.min(0))
    assert len(branches) > 1


def test_theorem_6_smoothing_lowers_the_error_of_models_and_not_geometrically():
    """The error falls, as the theorem says. Its proof wants a geometric fall; the samples' norm falls ever slower."""
    rows, errors, norms = ElementNoise(4.0).add(ZEROS, torch.Generator().manual_seed(0)), [], []
    for _ in range(12):
        errors.append(fit_machine(rows, SETTINGS).modeling_error(rows))
        norms.append(float(rows.norm()))
        rows = smooth(rows, SETTINGS)
    assert (np.diff(errors) < 0).all() and errors[-1] < errors[0] / 3
    falls = np.array(norms[1:]) / np.array(norms[:-1])
    assert falls[-1] > falls[0] and falls[-1] > 0.97


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
