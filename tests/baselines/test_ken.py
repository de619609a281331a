from functools import partial
from math import log

import pytest
import torch

from finc_eval.baselines import ken as module
from finc_eval.baselines.ken import ken, ken_score, ken_spectrum
from finc_eval.core.errors import FincEvalError
from finc_eval.numerics.kernels import gaussian_kernel

KERNEL = partial(gaussian_kernel, sigma=2.0)


def linear(x, y):
    return x @ y.T


def two_sets(n=60, m=45, dim=5, seed=0):
    """Three clusters, the third in x only."""
    generator = torch.Generator().manual_seed(seed)
    centers = 4 * torch.randn(3, dim, generator=generator, dtype=torch.double)
    x = centers[torch.arange(n) % 3] + torch.randn(n, dim, generator=generator, dtype=torch.double)
    y = centers[torch.arange(m) % 2] + torch.randn(m, dim, generator=generator, dtype=torch.double)
    return x, y


def positive_by_definition(x, y, kernel, rho):
    """By the block matrix of the KEN paper.

    With D = |W|^½ it is sign(W) D K D, similar to W K = W Φ Φᵀ, whose eigenvalues save zeros are those of
    Φᵀ W Φ = C_X − ρ·C_Y.
    """
    n, m = len(x), len(y)
    cross = rho**0.5 * kernel(x, y) / (n * m) ** 0.5
    blocks = torch.cat([torch.cat([kernel(x, x) / n, cross], 1), torch.cat([-cross.T, -rho * kernel(y, y) / m], 1)])
    values = torch.linalg.eigvals(blocks)
    assert float(values.imag.abs().max()) < 1e-9
    return values.real[values.real > 1e-9].sort(descending=True).values


@pytest.mark.parametrize("rho", [0.5, 1.0, 3.0])
def test_the_spectrum_is_that_of_the_non_symmetric_block_matrix(rho):
    x, y = two_sets()
    expected = positive_by_definition(x, y, KERNEL, rho)
    found = ken_spectrum(x, y, KERNEL, rho=rho)
    torch.testing.assert_close(found[: len(expected)], expected, atol=1e-9, rtol=0)
    torch.testing.assert_close(ken(x, y, KERNEL, rho=rho, count=4).eigenvalues, expected[:4], atol=1e-9, rtol=0)


def test_with_a_linear_kernel_it_is_that_of_the_explicit_difference_of_covariances():
    x, y = (torch.nn.functional.normalize(rows) for rows in two_sets())
    difference = x.T @ x / len(x) - 2 * y.T @ y / len(y)
    values = torch.linalg.eigvalsh(difference).flip(0)
    expected = values[values > 0]
    torch.testing.assert_close(ken(x, y, linear, rho=2.0).eigenvalues, expected, atol=1e-8, rtol=0)


def test_iterations_find_what_the_full_decomposition_finds(monkeypatch):
    x, y = two_sets(n=400, m=300)
    iterated = ken(x, y, KERNEL, count=6)
    monkeypatch.setattr(module, "MIN_LANCZOS_SIZE", 10_000)
    dense = ken(x, y, KERNEL, count=6)
    torch.testing.assert_close(iterated.eigenvalues, dense.eigenvalues, atol=1e-10, rtol=0)
    torch.testing.assert_close(iterated.scores_x.abs(), dense.scores_x.abs(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("n", [60, 600])
def test_an_eigenvalue_is_the_difference_of_masses(n):
    x, y = two_sets(n=n)
    modes = ken(x, y, KERNEL, rho=1.5)
    excess = modes.scores_x.square().mean(0) - 1.5 * modes.scores_y.square().mean(0)
    torch.testing.assert_close(excess, modes.eigenvalues, atol=1e-9, rtol=0)
    assert float(modes.scores_x.abs().max()) <= 1 + 1e-9, "a unit-norm function is at most 1 where k(z, z) = 1"


def afresh(modes, x):
    return KERNEL(x, modes.samples) @ modes.coefficients


@pytest.mark.parametrize("n", [60, 600])
def test_samples_scored_afresh_keep_their_scores(n):
    x, y = two_sets(n=n)
    modes = ken(x, y, KERNEL)
    torch.testing.assert_close(afresh(modes, x), modes.scores_x, atol=1e-6, rtol=0)
    torch.testing.assert_close(afresh(modes, y[:7]), modes.scores_y[:7], atol=1e-6, rtol=0)


def test_the_first_mode_is_the_planted_cluster():
    x, y = two_sets()
    scores = ken(x, y, KERNEL).scores_x[:, 0].abs()
    assert (scores.topk(10).indices % 3 == 2).all()


def test_a_copy_counts_as_another_sample_and_breaks_nothing():
    x, y = two_sets()
    x, y = torch.cat([x, x[:5], y[:3]]), torch.cat([y, y[:9], x[:2]])
    modes = ken(x, y, KERNEL)
    expected = positive_by_definition(x, y, KERNEL, 1.0)
    torch.testing.assert_close(modes.eigenvalues, expected[:10], atol=1e-9, rtol=0)
    torch.testing.assert_close(modes.scores_x[60:65], modes.scores_x[:5], atol=0, rtol=0)
    torch.testing.assert_close(modes.scores_x[65:], modes.scores_y[:3], atol=0, rtol=0)
    torch.testing.assert_close(afresh(modes, x), modes.scores_x, atol=1e-6, rtol=0)


@pytest.mark.parametrize("n", [30, 600])
def test_a_set_has_no_mode_more_than_itself(n):
    x, _ = two_sets(n=n)
    modes = ken(x, x.flip(0), KERNEL)
    assert modes.eigenvalues.shape == (0,)
    assert afresh(modes, x).shape == (n, 0)
    assert ken_score(ken_spectrum(x, x.flip(0), KERNEL)) == 0


def test_one_sample_has_one_mode():
    x, y = two_sets()
    modes = ken(x[2:3], y, KERNEL)
    assert modes.eigenvalues.shape == (1,)
    expected = positive_by_definition(x[2:3], y, KERNEL, 1.0)
    torch.testing.assert_close(modes.eigenvalues, expected, atol=1e-9, rtol=0)


def test_the_score_is_mass_times_entropy():
    # Three novel kinds, tight and far apart, of shares 1/2, 1/4 and 1/4, and a reference far from all of them.
    x = 100 * torch.eye(3, dtype=torch.double)[[0, 0, 1, 2]]
    y = torch.full((5, 3), -100.0, dtype=torch.double)
    spectrum = ken_spectrum(x, y, KERNEL)
    torch.testing.assert_close(spectrum, torch.tensor([0.5, 0.25, 0.25], dtype=torch.double), atol=1e-9, rtol=0)
    assert ken_score(spectrum) == pytest.approx(1.5 * log(2), abs=1e-8)


def test_a_kernel_that_is_none_is_refused():
    x, y = two_sets()
    with pytest.raises(FincEvalError, match="the kernel matrix of 105 samples is not positive definite"):
        ken(x, y, lambda a, b: torch.cdist(a, b))
