"""Exact KEN, kernel-based entropic novelty (Zhang, Li, Farnia, ICML 2024, arXiv 2402.17287).

It needs the kernel matrix K of all n + m samples: quadratic memory, cubic time. K = L Lᵀ is factorized either by
Cholesky, or by a symmetric eigendecomposition, which is twice as slow and needs no jitter where K is singular.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from finc_eval.core.errors import DataError, check_positive
from finc_eval.core.signature import Signature
from finc_eval.embeddings.opening import open_pair
from finc_eval.numerics.eigen import MAX_SERIAL_ROWS
from finc_eval.numerics.kernels import PairKernel, gaussian_kernel, median_bandwidth
from finc_eval.numerics.precision import single_threaded

Factorization = Literal["cholesky", "eigen"]

MIN_LANCZOS_SIZE = 500
"""Size below which a full decomposition is cheaper than Lanczos, as it is for more than a tenth of the eigenvalues."""


@dataclass(frozen=True, eq=False)
class KenModes:
    """Leading eigenpairs with positive eigenvalue of C_X − ρ·C_Y in the kernel's feature space."""

    eigenvalues: torch.Tensor  # λ, shape (k,), descending; λ = mean of scores_x² − ρ · mean of scores_y²
    # unit-norm eigenfunctions at every sample of x, shape (n, k); the sign of a column is arbitrary
    scores_x: torch.Tensor
    scores_y: torch.Tensor  # unit-norm eigenfunctions at every sample of y, shape (m, k)
    samples: torch.Tensor  # distinct samples, which carry the eigenfunctions Σ_i coefficients[i] · k(·, samples[i])
    coefficients: torch.Tensor  # coefficients of these eigenfunctions


def ken(x: torch.Tensor, y: torch.Tensor, kernel: PairKernel, *, rho: float = 1.0, count: int = 10) -> KenModes:
    """Find at most `count` directions with more than ρ times as much in x, shape (n, d), as in y, shape (m, d).

    With K = L Lᵀ and the weights w = (1/n, …, −ρ/m, …), the eigenvalues of M = Lᵀ diag(w) L are the eigenvalues of C_X
    − ρ·C_Y, and L u are the scores of the samples. `kernel` maps (a, d) and (b, d) to (a, b) and is positive
    semi-definite.
    """
    rows, of_sample, weights, factor, jitter = _factor(x, y, kernel, rho, "cholesky")
    values, vectors = _leading(factor, weights, min(count, len(rows)))
    values, vectors = values[values > jitter], vectors[:, values > jitter]
    scores = factor @ vectors
    # L⁻ᵀ u = diag(w) L u / λ, from M u = λ u: no triangular system, which near-copies among the rows would spoil.
    coefficients = weights[:, None] * scores / values
    scores = scores[of_sample]
    return KenModes(values, scores[: len(x)], scores[len(x) :], rows, coefficients)


def ken_spectrum(
    x: torch.Tensor, y: torch.Tensor, kernel: PairKernel, *, rho: float = 1.0, form: Factorization = "cholesky"
) -> torch.Tensor:
    """Return all positive eigenvalues of C_X − ρ·C_Y, descending; see `ken` for the arguments."""
    with single_threaded(len(x) + len(y) <= MAX_SERIAL_ROWS):
        _, _, weights, factor, jitter = _factor(x, y, kernel, rho, form)
        values: torch.Tensor = torch.linalg.eigvalsh(factor.T @ (weights[:, None] * factor))
    return values[values > jitter].flip(0)


def ken_score(positive: torch.Tensor) -> float:
    """Return KEN from the positive eigenvalues, in nats: Σλ₊ · H(λ₊ / Σλ₊) = Σ λ₊ log(Σλ₊ / λ₊); 0 without any."""
    return float((positive * torch.log(positive.sum() / positive)).sum())


def _factor(
    x: torch.Tensor, y: torch.Tensor, kernel: PairKernel, rho: float, form: Factorization
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, float]:
    """Return the distinct rows of [x; y], the row of each sample, the rows' weights, L, and what counts as zero.

    Copies become one row with the sum of their weights. The operator stays the same, and copies do not make the matrix
    singular. For Cholesky, eps^(2/3) of its mean (4e-11 in float64) is added to K's diagonal against rounding; for
    both factorizations, eigenvalues below that count as zero.
    """
    rows, of_sample = torch.unique(torch.cat([x, y]).double(), dim=0, return_inverse=True)
    share = torch.cat([rows.new_full((len(x),), 1 / len(x)), rows.new_full((len(y),), -rho / len(y))])
    weights = rows.new_zeros(len(rows)).index_add_(0, of_sample, share)
    matrix = kernel(rows, rows)
    jitter = torch.finfo(matrix.dtype).eps ** (2 / 3) * float(matrix.diagonal().mean())
    if form == "eigen":
        values, vectors = torch.linalg.eigh(matrix)
        return rows, of_sample, weights, vectors * values.clamp(min=0).sqrt(), jitter
    matrix.diagonal().add_(jitter)
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if failed:
        raise DataError(
            f"the kernel matrix of {len(rows)} samples is not positive definite: use a positive semi-definite kernel"
        )
    return rows, of_sample, weights, factor, jitter


def _leading(factor: torch.Tensor, weights: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the `count` largest eigenvalues of M = Lᵀ diag(w) L, descending, and unit eigenvectors as columns."""
    size = len(factor)

    def product(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = factor @ torch.from_numpy(vector.ravel()).to(factor)
        result: NDArray[np.float64] = (factor.T @ (weights * scores)).double().cpu().numpy()
        return result

    if size >= MIN_LANCZOS_SIZE and count <= size // 10:
        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(size)
        tolerance = torch.finfo(factor.dtype).eps ** 0.5
        # ARPACK refuses M = 0, two sets with the same samples.
        with suppress(ArpackError):
            values, vectors = eigsh(operator, k=count, which="LA", v0=start, ncv=max(4 * count, 60), tol=tolerance)
            return torch.from_numpy(values).to(factor).flip(0), torch.from_numpy(vectors).to(factor).flip(1)
    values, vectors = torch.linalg.eigh(factor.T @ (weights[:, None] * factor))
    return values.flip(0)[:count], vectors.flip(1)[:, :count]


MAX_EXACT_KEN_SAMPLES = 20_000  # samples of both sets together up to which the kernel matrix is made
KEN_BYTES = 20  # memory at the peak per pair of samples, in float64: 7.9 GB were measured at 20 000 samples


@dataclass(frozen=True, eq=False)
class Novelty:
    """The KEN score of a generated set."""

    score: float  # Σ λ₊ log(Σλ₊ / λ₊) over the positive eigenvalues λ₊ of C_X − C_Y, in nats
    eigenvalues: torch.Tensor  # λ₊, descending
    warning: str | None  # reason to distrust the score, or None
    signature: Signature  # everything that changes the score, except the generated set


def check_few_enough(count: int, instead: str) -> None:
    """Raise DataError for more samples than exact KEN takes."""
    if count > MAX_EXACT_KEN_SAMPLES:
        gigabytes = KEN_BYTES * count**2 / 1e9
        raise DataError(
            f"exact KEN needs the kernel matrix of all {count:,} samples, at its peak {gigabytes:,.0f} GB: {instead}, "
            f"or pass subsets of at most {MAX_EXACT_KEN_SAMPLES:,} in all"
        )


def novelty(gen: object, ref: object, *, sigma: float | None = None) -> Novelty:
    """Compute KEN (arXiv 2402.17287, eq. 8), the amount of novelty in the generated set times its diversity.

    Sets are embeddings (n, d) or their file; σ is by default half the reference's median distance. The paper's η is 1.
    """
    x, y = open_pair(gen, ref, names=("gen", "ref"))
    check_few_enough(x.n + y.n, "compare by FINC")
    rows, others = (torch.cat([batch.rows for batch in embeddings.batches()]).double() for embeddings in (x, y))
    width = median_bandwidth(others) if sigma is None else sigma
    check_positive("sigma", width)
    values = ken_spectrum(rows, others, partial(gaussian_kernel, sigma=width))
    score = ken_score(values)
    # 0.95: share of log n above which a KEN score only says that every sample is alone under the kernel.
    alone = score > 0.95 * log(x.n)
    warning = (
        f"the score is near log n = {log(x.n):.2f}, its largest possible value: under this bandwidth every sample "
        "is alone, which looks like novelty; take a larger sigma"
        if alone
        else None
    )
    fields = (("kernel", "gaussian"), ("sigma", f"{width:g}"), ("rho", "1"), ("form", "cholesky"))
    return Novelty(score, values, warning, Signature.of("ken", (x.n, y.n), x.space, *fields))
