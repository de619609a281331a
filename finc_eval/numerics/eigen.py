"""Eigenpairs of symmetric matrices, the leading pairs iteratively; principal axes, and the varimax rotation."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from math import floor, log2, sqrt
from typing import Self

import torch

from finc_eval.core.device import send
from finc_eval.numerics.precision import single_threaded

LANCZOS_BLOCK = 32
"""Minimum number of vectors in a product of the iteration; it is at least twice the number of pairs. A product with 32
vectors takes less than three times as long as one with a single vector."""

LANCZOS_STEPS = 12
"""Products before the iteration restarts. Up to 2 · block · steps rows, a full decomposition costs no more."""

EARLY_STEPS = 6
"""Products after which convergence is looked for, at every second from then on: two sets with differences take 9 to 11
for `RESIDUAL_TOLERANCE`, and 7 for a hundredth, which is enough for a refit."""

MAX_RESTARTS = 20
"""Restarts after which a full decomposition takes over; two sets without any difference take one to five."""

RESIDUAL_TOLERANCE = 1e-4
"""Default residual tolerance relative to the eigenvalue, whose own error is of the order of its square."""

RESIDUAL_FLOOR = 5e-6  # residual tolerance relative to the largest eigenvalue: float32 does not reach less

MAX_SERIAL_ROWS = 1024
"""Rows up to which a decomposition runs on one thread: `eigh` takes 0.6 s, and with two threads next to two busy
processes 2 s."""


@dataclass(frozen=True, eq=False)
class LowRank:
    """Symmetric matrix Φᵀ diag(w) Φ of low rank, given by its factors.

    A product with it takes 4mq operations for each column. Its eigenvectors with nonzero eigenvalues lie in the span of
    the m rows, so a problem of size m gives them all: with Φᵀ = QR, they are Q times the eigenvectors of R diag(w) Rᵀ.
    """

    rows: torch.Tensor  # Φ, shape (m, q), m < q
    weights: torch.Tensor  # w, shape (m,), positive or negative

    def __len__(self) -> int:
        return self.rows.shape[1]

    def __matmul__(self, columns: torch.Tensor) -> torch.Tensor:
        """Multiply the matrix with columns: (q, t) → (q, t)."""
        return self.rows.T @ (self.weights[:, None] * (self.rows @ columns))


Eigenpairs = tuple[torch.Tensor, torch.Tensor]
"""Eigenvalues, descending, and unit eigenvectors of the first of them as columns."""


def top_eigenpairs(
    matrix: torch.Tensor | LowRank, count: int, spectrum: int = 0, tolerance: float = RESIDUAL_TOLERANCE
) -> Eigenpairs:
    """Compute the algebraically largest eigenvalues, descending, and unit eigenvectors of the first `count` as columns.

    By thick-restarted block Lanczos (Wu and Simon 2000) from a fixed start, on the matrix's device, so that the same
    matrix always gives the same answer. A full decomposition takes over for small matrices, for many eigenvalues, and
    if the iteration does not converge. Each vector's largest entry is positive. A `LowRank` matrix of m rows has at
    most m pairs: its other eigenvalues are zero. With `spectrum`, further eigenvalues are as the iteration leaves them,
    good enough to plot (too small by less than 1 % in the cases measured). The iteration ends at a length of Av − λv of
    `tolerance`, relative to λ.
    """
    return extreme_eigenpairs(matrix, count, spectrum, tolerance, both=False)[0]


def extreme_eigenpairs(
    matrix: torch.Tensor | LowRank,
    count: int,
    spectrum: int = 0,
    tolerance: float = RESIDUAL_TOLERANCE,
    *,
    both: bool = True,
) -> list[Eigenpairs]:
    """Compute what `top_eigenpairs` does of a matrix and, if `both`, of its negative: one iteration finds both."""
    rows = matrix.rows if isinstance(matrix, LowRank) else matrix
    rank = min(rows.shape)
    count, spectrum = min(count, rank), max(count, spectrum)
    block, pairs = max(LANCZOS_BLOCK, 2 * count, spectrum), None
    if rank > 2 * block * LANCZOS_STEPS:
        # Where a GPU's solver fails, another solver is tried.
        with suppress(RuntimeError) if rows.is_cuda else nullcontext():
            pairs = _block_lanczos(matrix, count, block, tolerance, both)
    if pairs is None:
        if isinstance(matrix, LowRank):
            with single_threaded(len(rows) <= MAX_SERIAL_ROWS):
                basis, upper = torch.linalg.qr(rows.T)
                core = (upper * matrix.weights) @ upper.T
            values, vectors = all_eigenpairs(core)
            pairs = values, basis @ _first_and_last(vectors, count, count * both)
        else:
            pairs = all_eigenpairs(matrix)
    values, vectors = pairs
    eigenpairs = []
    for some, columns in ((values, vectors), (-values.flip(0), vectors.flip(1)))[: 1 + both]:
        columns = columns[:, :count]
        largest = columns.gather(0, columns.abs().argmax(0, keepdim=True))
        eigenpairs.append((some[:spectrum], columns * largest.sign()))
    return eigenpairs


def all_eigenpairs(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute all eigenvalues, descending, and their unit eigenvectors as columns.

    A matrix on a GPU is decomposed there in its own precision. On a CPU, or if the GPU's solver fails or returns
    numbers that are not finite (it has on large matrices of low rank), it is decomposed on the CPU in float64.
    """
    if matrix.is_cuda:
        with suppress(RuntimeError):
            values, vectors = torch.linalg.eigh(matrix)
            if values.isfinite().all() and vectors.isfinite().all():
                return values.flip(0), vectors.flip(1)
    with single_threaded(len(matrix) <= MAX_SERIAL_ROWS):
        values, vectors = torch.linalg.eigh(matrix.double().cpu())
    return values.flip(0).to(matrix), vectors.flip(1).to(matrix)


def _block_lanczos(
    matrix: torch.Tensor | LowRank, count: int, block: int, tolerance: float, both: bool
) -> Eigenpairs | None:
    """Return `2 * block` Ritz values and vectors once the first `count` have converged, or None.

    They are the leading pairs; for both ends, half are the last pairs, and as many of these have converged.
    """
    new = torch.randn(len(matrix), block, generator=torch.Generator().manual_seed(0))
    new = new.to(matrix.rows if isinstance(matrix, LowRank) else matrix)
    most = LANCZOS_STEPS * block
    # An orthonormal basis v and its images Av, both as the first `size` rows; vᵀAv on and below the diagonal, which is
    # what `eigh` reads.
    size, (basis, products) = 0, (new.new_empty(most, len(matrix)) for _ in range(2))
    lower = new.new_zeros(most, most)
    ends, wanted = ((block, block), (count, count)) if both else ((2 * block, 0), (count, 0))
    for _ in range(MAX_RESTARTS):
        for steps in range(EARLY_STEPS, LANCZOS_STEPS + 1, 2):
            while size < steps * block:
                start, size = size, size + new.shape[1]
                with single_threaded():
                    for _ in range(2):  # once leaves rounding errors that grow
                        new = torch.linalg.qr(new - basis[:start].T @ (basis[:start] @ new)).Q
                basis[start:size] = new.T
                new = matrix @ new
                products[start:size] = new.T
                lower[start:size, :size] = basis[start:size] @ products[:size].T
            values, rotation = all_eigenpairs(lower[:size, :size])
            values, rotation = _first_and_last(values, *ends), _first_and_last(rotation, *ends)
            kept, images = basis[:size].T @ rotation, products[:size].T @ rotation
            residuals = images - kept * values
            allowed = (tolerance * values.abs()).clamp_min(RESIDUAL_FLOOR * float(values.abs().max()))
            if _first_and_last(torch.linalg.vector_norm(residuals, dim=0) <= allowed, *wanted).all():
                return values, kept
        size = kept.shape[1]
        basis[:size], products[:size], lower[:size, :size] = kept.T, images.T, torch.diag(values)
        # All residuals are in the span of the last block; at an end that has converged, they are rounding errors.
        new = residuals[:, :block] + residuals[:, block:] if both else residuals[:, :block]
    return None


def _first_and_last(columns: torch.Tensor, first: int, last: int) -> torch.Tensor:
    """Return the first and the last columns of a matrix, (…, first + last)."""
    return torch.cat([columns[..., :first], columns[..., columns.shape[-1] - last :]], -1)


MAX_AXES = 64
"""Principal axes that are kept. Without the noise in all other directions k-means finds small kinds more often, and
neighbors are faster to find."""


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """Axes of largest variance of some rows; what is beyond them is mostly noise."""

    origin: torch.Tensor  # mean of the rows, shape (d,)
    axes: torch.Tensor  # orthonormal axes as columns, shape (d, k)
    unit: float  # length that coordinates are in

    @classmethod
    def of(cls, rows: torch.Tensor) -> Self:
        """Fit the axes, at most `MAX_AXES`, to rows of shape (m, d)."""
        origin = rows.double().mean(0).float()
        centered = (rows - origin).cpu()
        unit = unit_of(centered)
        return cls(origin, leading_axes(centered / unit), unit)

    def to(self, device: torch.device) -> Self:
        """Return the same axes on a device."""
        return type(self)(send(self.origin, device), send(self.axes, device), self.unit)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the coordinates of rows, (n, d) → (n, k), on the device of the axes."""
        return (rows - self.origin) / self.unit @ self.axes

    def points(self, coordinates: torch.Tensor) -> torch.Tensor:
        """Return the points that have these coordinates, relative to the origin: (n, k) → (n, d)."""
        return coordinates @ self.axes.T * self.unit


def unit_of(rows: torch.Tensor) -> float:
    """Return a power of two near the largest entry: squares of rows over it neither overflow nor vanish."""
    largest = float(rows.abs().max())
    return 2.0 ** floor(log2(largest)) if largest > 0 else 1.0


def leading_axes(centered: torch.Tensor) -> torch.Tensor:
    """Return the axes of largest variance of rows of mean 0, (m, d) → (d, k), or all where they are few."""
    m, dim = centered.shape
    if dim <= MAX_AXES:
        return torch.eye(dim)
    covariance = LowRank(centered, centered.new_full((m,), 1 / m)) if m < dim else centered.T @ centered / m
    _, axes = top_eigenpairs(covariance, MAX_AXES)
    return axes.float()


MAX_SERIAL_LOADINGS = 1 << 20
"""Number of loadings up to which varimax runs on one thread: 40 000 × 20 take 14 ms a step, and with two threads
next to two busy processes 150 ms."""

MAX_STEPS, GAIN = 500, 1e-8
"""Steps at most, and the relative gain at which they end. Digits and Gaussian clusters take 10 to 60 steps, noise up to
160. At a gain of 1e-6 directions that are hardly determined would end up to 3° from where they are at 1e-8."""

SETTLED_ROTATION = 1e-3
"""Relative gain of a step from which on steps are extrapolated. Which of several maxima the iteration ends in is then
mostly decided: of 30 eigenspaces of digits all end where plain steps do, in 20 to 60 steps instead of 36 to 232."""


def varimax(loadings: torch.Tensor) -> torch.Tensor:
    """Find the orthogonal R, shape (t, t), that maximizes Σ_j Var_i[((S R)_ij)²] for loadings S, shape (n, t).

    Eigenvectors with near-equal eigenvalues are only defined up to a rotation, so that one eigenvector shows a mixture
    of clusters; after varimax a direction scores high on few samples and near zero on the rest (Kaiser 1958; iterated
    by singular value decompositions, in float64). Steps are extrapolated with a momentum that starts again whenever a
    step gains nothing (Nesterov 1983; O'Donoghue and Candès 2015).

    The loadings of a GPU are copied to the host once: on a GPU a decomposition of a matrix so small takes longer.
    """
    with single_threaded(loadings.numel() <= MAX_SERIAL_LOADINGS):
        scores = loadings.cpu().double()
        rotation = last = torch.eye(scores.shape[1], dtype=scores.dtype)
        reached, age = 0.0, 0.0
        for _ in range(MAX_STEPS):
            momentum = max(age - 1, 0.0) / max(age, 1.0)
            start = _polar(rotation + momentum * (rotation - last))[0] if momentum else rotation
            rotated = scores @ start
            step, total = _polar(scores.T @ (rotated**3 - rotated * rotated.square().mean(0)))
            if momentum and total < reached:
                last, age = rotation, 1.0
                continue
            last, rotation = rotation, step
            if total <= reached * (1 + GAIN):
                break
            if age or total <= reached * (1 + SETTLED_ROTATION):
                age = (1 + sqrt(1 + 4 * max(age, 1.0) ** 2)) / 2
            reached = total
    return send(rotation.to(loadings.dtype), loadings.device)


def _polar(matrix: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return the orthogonal matrix nearest to a matrix (p, p), and the sum of its singular values."""
    left, singular, right = torch.linalg.svd(matrix)
    return left @ right, float(singular.sum())


def whitening(centered: torch.Tensor, components: int, floor: float = 0.0) -> torch.Tensor:
    """Return the map to principal components of variance 1: centered samples (N, p) → (p, n).

    There are at most `components`; directions without variance, up to `floor`, are left out, so n ≤ N − 1.
    """
    n, p = centered.shape
    of_entries = p <= n
    gram = centered.T @ centered if of_entries else centered @ centered.T
    values, vectors = torch.linalg.eigh(gram / max(n - 1, 1))
    values, vectors = values.flip(0)[:components], vectors.flip(1)[:, :components]
    # 1e-10: smallest principal variance relative to the largest; directions below it come from rounding.
    kept = (values > max(1e-10 * float(values[0]), floor)).nonzero().squeeze(1)[: n - 1]
    values, vectors = values[kept], vectors[:, kept]
    if not of_entries:
        vectors = centered.T @ vectors / (values * (n - 1)).sqrt()
    whitened: torch.Tensor = vectors / values.sqrt()
    return whitened
