import numpy as np
import pytest
import torch

from finc_eval.embeddings.opening import as_embeddings
from finc_eval.measures import mmd as module
from finc_eval.measures.kid import polynomial_kernel
from finc_eval.measures.mmd import cmmd, kernel_sums, mmd
from finc_eval.numerics.kernels import gaussian_kernel

SIGMA = 2.0


def drawn(n, shift=0.0, seed=0, dim=12):
    return shift + torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


def off_diagonal_mean(matrix):
    n = len(matrix)
    return float(matrix.clone().fill_diagonal_(0).sum() / (n * (n - 1)))


def unbiased(kxx, kyy, kxy):
    return off_diagonal_mean(kxx) + off_diagonal_mean(kyy) - 2 * float(kxy.mean())


@pytest.mark.parametrize("block", [7, 2048])
def test_it_is_the_u_statistic_of_the_gaussian_kernel(block, monkeypatch):
    monkeypatch.setattr(module, "KERNEL_BLOCK", block)
    x, y = drawn(50, 0.2), drawn(33, seed=1)
    kernels = [gaussian_kernel(a.double(), b.double(), SIGMA) for a, b in ((x, x), (y, y), (x, y))]
    assert mmd(x, y, SIGMA).value == pytest.approx(unbiased(*kernels), rel=1e-9)


def test_of_gaussian_laws_it_has_the_closed_form_within_its_error():
    # E k(x, y) of N(a, I) and N(b, I) is (σ²/(σ²+2))^(d/2) · exp(−‖a−b‖²/(2(σ²+2))).
    found = mmd(drawn(3000, 0.2), drawn(3000, seed=1), SIGMA)
    same = (SIGMA**2 / (SIGMA**2 + 2)) ** 6
    truth = 2 * same * (1 - np.exp(-12 * 0.2**2 / (2 * (SIGMA**2 + 2))))
    assert found.standard_error < 0.1 * truth
    assert abs(found.value - truth) < 3 * found.standard_error


def test_cmmd_is_the_biased_estimate_of_unit_embeddings_times_a_thousand():
    x, y = drawn(50, 0.2), 7 * drawn(33, seed=1)
    u, v = (torch.nn.functional.normalize(rows.double()) for rows in (x, y))
    expected = sum(
        sign * float(gaussian_kernel(a, b, 10.0).mean()) for sign, a, b in ((1, u, u), (1, v, v), (-2, u, v))
    )
    assert cmmd(x, y) == pytest.approx(1000 * expected, rel=1e-9)
    assert cmmd(x, y) == pytest.approx(10 * float((u.mean(0) - v.mean(0)).square().sum()), rel=0.02)
    assert cmmd(x, x) == pytest.approx(0, abs=1e-9)


def test_the_biased_estimate_counts_the_pairs_of_a_sample_with_itself():
    x, y = drawn(50, 0.2), drawn(33, seed=1)
    a, b = x.double(), y.double()
    expected = polynomial_kernel(a, a).mean() + polynomial_kernel(b, b).mean() - 2 * polynomial_kernel(a, b).mean()
    sums = kernel_sums(as_embeddings(x), as_embeddings(y), polynomial_kernel)
    assert sums.biased() == pytest.approx(float(expected), rel=1e-9)
