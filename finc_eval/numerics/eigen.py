"""Eigenpairs of symmetric matrices: the leading ones iteratively, all of them on request."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property

import torch

from finc_eval.numerics.threads import single_threaded

LANCZOS_BLOCK = 32
"""Minimum number of vectors in a product of the iteration; it is at least twice the number of pairs. A product with 32
vectors takes less than three times as long as one with a single vector."""

LANCZOS_STEPS = 12
"""Products before the iteration restarts. Up to 2 · block · steps rows, a full decomposition costs no more."""

MAX_RESTARTS = 20
"""Restarts after which a full decomposition takes over; two sets without any difference take one to five."""

RESIDUAL_TOLERANCE = 1e-4
"""Residual tolerance relative to the eigenvalue, whose own error is of the order of its square."""

RESIDUAL_FLOOR = 5e-6
"""Residual tolerance relative to the largest eigenvalue: float32 does not reach less."""

MAX_SERIAL_ROWS = 1024
"""Rows up to which a decomposition runs on one thread: `eigh` takes 0.6 s, and with two threads beside two busy
processes 2 s."""


@dataclass(frozen=True, eq=False)
class LowRank:
    """Symmetric matrix Φᵀ diag(w) Φ of low rank, given by its factors.

    Its eigenvectors with nonzero eigenvalues lie in the span of the m rows, so a problem of size m gives them: with
    Φᵀ = QR, they are Q times the eigenvectors of R diag(w) Rᵀ.

    Attributes:
        rows: Φ, shape (m, q), m < q.
        weights: w, shape (m,), positive or negative.
    """

    rows: torch.Tensor
    weights: torch.Tensor

    def __len__(self) -> int:
        return self.rows.shape[1]

    def apply(self, columns: torch.Tensor) -> torch.Tensor:
        """Multiply the matrix with columns: (q, t) → (q, t)."""
        return self.rows.T @ (self.weights[:, None] * (self.rows @ columns))

    @cached_property
    def reduced(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Q, shape (q, m), and R diag(w) Rᵀ, shape (m, m)."""
        with single_threaded(len(self.rows) <= MAX_SERIAL_ROWS):
            basis, upper = torch.linalg.qr(self.rows.T)
            return basis, (upper * self.weights) @ upper.T


def top_eigenpairs(matrix: torch.Tensor | LowRank, count: int, spectrum: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the algebraically largest eigenvalues, descending, and unit eigenvectors of the first `count` as columns.

    By thick-restarted block Lanczos (Wu and Simon 2000) from a fixed start, on the matrix's device, so that the same
    matrix always gives the same answer. A full decomposition takes over for small matrices, for many eigenvalues, and
    if the iteration does not converge. Each vector's largest entry is positive.

    Args:
        matrix: symmetric matrix, shape (q, q), or its factors. A `LowRank` matrix of m rows has at most m pairs: its
            other eigenvalues are zero.
        count: number of pairs, between 1 and q.
        spectrum: number of eigenvalues, if larger. Those beyond `count` are as the iteration leaves them, good enough
            to plot (too small by less than 1 % in the cases measured).
    """
    if isinstance(matrix, LowRank):
        basis, core = matrix.reduced
        values, vectors = _top(core, min(count, len(core)), spectrum)
        vectors = basis @ vectors
    else:
        values, vectors = _top(matrix, count, spectrum)
    largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return values[: max(count, spectrum)], vectors * largest.sign()


def all_eigenpairs(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute all eigenvalues, descending, and their unit eigenvectors as columns.

    A matrix on a GPU is decomposed there in its own precision. On a CPU, or if the GPU's solver fails or returns
    numbers that are not finite (it has on large matrices of low rank), it is decomposed on the CPU in float64.
    """
    if matrix.is_cuda:
        with _tolerant(matrix):
            values, vectors = torch.linalg.eigh(matrix)
            if values.isfinite().all() and vectors.isfinite().all():
                return values.flip(0), vectors.flip(1)
    with single_threaded(len(matrix) <= MAX_SERIAL_ROWS):
        values, vectors = torch.linalg.eigh(matrix.double().cpu())
    return values.flip(0).to(matrix), vectors.flip(1).to(matrix)


def _top(matrix: torch.Tensor, count: int, spectrum: int) -> tuple[torch.Tensor, torch.Tensor]:
    block, found = max(LANCZOS_BLOCK, 2 * count, spectrum), None
    if len(matrix) > 2 * block * LANCZOS_STEPS:
        with _tolerant(matrix):
            found = _block_lanczos(matrix, count, block)
    values, vectors = found or all_eigenpairs(matrix)
    return values, vectors[:, :count]


def _block_lanczos(matrix: torch.Tensor, count: int, block: int) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the leading `block` Ritz values and vectors once the first `count` have converged, or None."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(len(matrix), block, generator=generator).to(matrix)
    kept = images = start[:, :0]
    for _ in range(MAX_RESTARTS):
        basis, images = _extended(matrix, kept, images, start)
        values, rotation = all_eigenpairs(basis.T @ images)
        values, rotation = values[: 2 * block], rotation[:, : 2 * block]
        kept, images = basis @ rotation, images @ rotation
        residuals = images[:, :block] - kept[:, :block] * values[:block]
        allowed = (RESIDUAL_TOLERANCE * values[:count].abs()).clamp_min(RESIDUAL_FLOOR * float(values.abs().max()))
        if (torch.linalg.vector_norm(residuals[:, :count], dim=0) <= allowed).all():
            return values[:block], kept[:, :block]
        start = residuals
    return None


def _extended(
    matrix: torch.Tensor, basis: torch.Tensor, images: torch.Tensor, start: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Grow an orthonormal basis to LANCZOS_STEPS blocks by powers of the matrix; return it and its images."""
    block, width = start, start.shape[1]
    while basis.shape[1] < LANCZOS_STEPS * width:
        with single_threaded():
            for _ in range(2):  # once leaves rounding errors that grow
                block = torch.linalg.qr(block - basis @ (basis.T @ block)).Q
            basis = torch.cat([basis, block], 1)
        block = matrix @ block
        images = torch.cat([images, block], 1)
    return basis, images


def _tolerant(matrix: torch.Tensor) -> AbstractContextManager[None]:
    """Suppress the failures of a GPU's solvers, after which another solver is tried."""
    return suppress(RuntimeError) if matrix.is_cuda else nullcontext()
