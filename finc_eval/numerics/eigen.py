"""Eigenpairs of symmetric matrices: the leading ones iteratively, all of them on request."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property

import torch

BLOCK = 32
"""Vectors that one product of the iteration works on, at least twice the pairs asked for. A product with 32 vectors
takes less than three times as long as one with a single vector."""

STEPS = 12
"""Products before the iteration restarts. Below 2·BLOCK·STEPS a full decomposition costs no more."""

RESTARTS = 20
"""After which a full decomposition takes over; two sets without any difference take one to five."""

TOLERANCE = 1e-4
"""Of the residual, relative to the eigenvalue; the eigenvalue's own error is of the order of its square."""

ROUNDING = 5e-6
"""Of the residual, relative to the largest eigenvalue: float32 reaches no less."""


@dataclass(frozen=True, eq=False)
class LowRank:
    """The symmetric matrix Φᵀ diag(w) Φ of few rows, known by its factors.

    Its eigenvectors with eigenvalues other than zero lie in the span of the rows, so an eigenproblem of the size of the
    number of rows gives them: with Φᵀ = QR, those of R diag(w) Rᵀ, turned back by Q.

    Attributes:
        rows: Φ, shape (m, q), m < q.
        weights: w, shape (m,), of either sign.
    """

    rows: torch.Tensor
    weights: torch.Tensor

    def __len__(self) -> int:
        return self.rows.shape[1]

    def apply(self, columns: torch.Tensor) -> torch.Tensor:
        """The matrix times columns: (q, t) → (q, t)."""
        return self.rows.T @ (self.weights[:, None] * (self.rows @ columns))

    @cached_property
    def reduced(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Q, shape (q, m), and R diag(w) Rᵀ, shape (m, m)."""
        basis, upper = torch.linalg.qr(self.rows.T)
        return basis, (upper * self.weights) @ upper.T


def top_eigenpairs(matrix: torch.Tensor | LowRank, count: int, spectrum: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """The algebraically largest eigenvalues, descending, and the unit eigenvectors of the first `count` as columns.

    Thick-restarted block Lanczos (Wu and Simon 2000) from a fixed start, on the matrix's device, so that the same
    matrix always gives the same answer; a full decomposition for small matrices, for many eigenvalues, and where
    the iteration does not converge. Each vector's largest entry is positive.

    Args:
        matrix: symmetric, shape (q, q), or its factors; of the latter, eigenvalues of zero are left out where more
            pairs are asked for than it has rows.
        count: how many pairs, between 1 and q.
        spectrum: how many eigenvalues, if more: those beyond `count` come as the iteration has them, good enough to
            plot (too small by less than 1 % in the cases measured).
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
    """All eigenvalues, descending, and their unit eigenvectors as columns.

    In the matrix's own precision on a GPU; in float64 on the CPU there, if the GPU's solver fails or returns anything
    that is not finite (it has on large matrices of low rank), and always in float64 on a CPU.
    """
    if matrix.is_cuda:
        with _tolerant(matrix):
            values, vectors = torch.linalg.eigh(matrix)
            if values.isfinite().all() and vectors.isfinite().all():
                return values.flip(0), vectors.flip(1)
    values, vectors = torch.linalg.eigh(matrix.double().cpu())
    return values.flip(0).to(matrix), vectors.flip(1).to(matrix)


def _top(matrix: torch.Tensor, count: int, spectrum: int) -> tuple[torch.Tensor, torch.Tensor]:
    block, found = max(BLOCK, 2 * count, spectrum), None
    if len(matrix) > 2 * block * STEPS:
        with _tolerant(matrix):
            found = _block_lanczos(matrix, count, block)
    values, vectors = found or all_eigenpairs(matrix)
    return values, vectors[:, :count]


def _block_lanczos(matrix: torch.Tensor, count: int, block: int) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The leading `block` Ritz values and vectors, of which `count` have converged; None if they do not."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(len(matrix), block, generator=generator).to(matrix)
    kept = images = start[:, :0]
    for _ in range(RESTARTS):
        basis, images = _extended(matrix, kept, images, start)
        values, rotation = all_eigenpairs(basis.T @ images)
        values, rotation = values[: 2 * block], rotation[:, : 2 * block]
        kept, images = basis @ rotation, images @ rotation
        residuals = images[:, :block] - kept[:, :block] * values[:block]
        allowed = (TOLERANCE * values[:count].abs()).clamp_min(ROUNDING * float(values.abs().max()))
        if (torch.linalg.vector_norm(residuals[:, :count], dim=0) <= allowed).all():
            return values[:block], kept[:, :block]
        start = residuals
    return None


def _extended(
    matrix: torch.Tensor, basis: torch.Tensor, images: torch.Tensor, start: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """An orthonormal basis, grown to STEPS blocks by powers of the matrix on `start`, and the matrix times it."""
    block, width = start, start.shape[1]
    while basis.shape[1] < STEPS * width:
        for _ in range(2):  # once leaves rounding errors that grow
            block = torch.linalg.qr(block - basis @ (basis.T @ block)).Q
        basis = torch.cat([basis, block], 1)
        block = matrix @ block
        images = torch.cat([images, block], 1)
    return basis, images


def _tolerant(matrix: torch.Tensor) -> AbstractContextManager[None]:
    """Passes over the failures of a GPU's solvers, which another way of solving follows."""
    return suppress(RuntimeError) if matrix.is_cuda else nullcontext()
