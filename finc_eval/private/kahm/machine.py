"""Kernel affine hull machines: the image of a point in a smooth hull of samples, and its distance to it.

A KAHM A maps a point to an affine combination of samples, weighted by a kernel on their leading principal components.
‖x − A(x)‖ says how far the point is from the samples (Kumar, Moser, Fischer, JAIR 79, 2024, arXiv 2304.01300,
Definition 1). Theorem 2 of the paper, that A is bounded, does not hold: the weights of a combination sum to 1, but they
are divided by a number that can be negative, and A has poles where that number passes zero. Images beyond a pole are
as defined. An image next to a pole, where rounding decides the divisor, is marked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import torch
from numpy.typing import ArrayLike

from finc_eval.core.errors import DataError
from finc_eval.numerics.eigen import whitening
from finc_eval.private.kahm.settings import KahmSettings, Lambda


class Images(NamedTuple):
    """Images of points under a machine."""

    points: torch.Tensor  # A(x), shape (b, p)
    # Σ h_i(x), up to a positive factor of the point, relative to the sum of the sizes of its terms: between −1 and 1,
    # shape (b,)
    divisors: torch.Tensor
    # whether the divisor is so small that rounding decides it, shape (b,). Such an image is far away, and nothing else
    # about it is known.
    poles: torch.Tensor


@dataclass(frozen=True, eq=False)
class Kahm:
    """One kernel affine hull machine A_{Y,n} (Definition 1), made by `fit_machine`.

    All tensors are float64 and on one device. A machine holds its samples: Y = (K + λI) U, and K is known from Z, see
    `samples`. Whoever gets a machine gets them.

    Attributes:
        encoder: map from a centered point to whitened principal components, shape (p, n).
        mean: mean of the samples, shape (p,).
        encoded: Z, components of the samples, shape (N, n). The kernel on them is exp(−‖z − z'‖²/(2n)).
        solved: U = (K + λI)⁻¹ Y, shape (N, p).
        weights: w = (K + λI)⁻¹ 1, shape (N,).
        lam: λ.

    Example:
        >>> import finc_eval as fe
        >>> machine = fe.kahm.fit_machine([[1.0, 1.0], [2.0, 1.0], [1.0, 3.0], [2.0, 4.0]])
        >>> machine.n, machine.dim, machine.components
        (4, 2, 2)
        >>> machine.samples().round(decimals=6).tolist()
        [[1.0, 1.0], [2.0, 1.0], [1.0, 3.0], [2.0, 4.0]]
    """

    encoder: torch.Tensor
    mean: torch.Tensor
    encoded: torch.Tensor
    solved: torch.Tensor
    weights: torch.Tensor
    lam: float

    @property
    def n(self) -> int:
        """N, number of samples."""
        return len(self.encoded)

    @property
    def dim(self) -> int:
        """p, number of entries of a sample."""
        return len(self.mean)

    @property
    def components(self) -> int:
        """Number of principal components that the kernel sees: 0 if all samples are equal."""
        return self.encoded.shape[1]

    def images(self, points: ArrayLike | torch.Tensor) -> Images:
        """Return A(x) = Σ h_i(x) y_i / Σ h_i(x) for every point, with h(x) = (K + λI)⁻¹ k(x).

        Kernel values are taken relative to the largest value of a point, which cancels in the ratio: far from all
        samples they would all be 0 otherwise. It takes the memory of b rows of p + N numbers: pass batches.

        Args:
            points: points, shape (b, p).
        """
        z = (torch.as_tensor(points).double() - self.mean) @ self.encoder
        width = max(self.components, 1)
        # log k up to what depends on the point alone; ‖z‖² never enters, so nothing cancels far away.
        exponents = torch.addmm(-self.encoded.square().sum(1) / (2 * width), z, self.encoded.T, alpha=1 / width)
        kernel = exponents.sub_(exponents.amax(1, keepdim=True)).exp_()
        divisors = kernel @ self.weights
        sizes = kernel @ self.weights.abs()
        relative = divisors / sizes
        # 1e-12: smallest divisor that rounding does not decide, relative to the sum of the sizes of its terms.
        poles = ~(relative.abs() >= 1e-12)
        divisors = torch.where(divisors == 0, torch.finfo(torch.double).eps * sizes, divisors)  # 0 but for rounding
        return Images((kernel @ self.solved).div_(divisors[:, None]), relative, poles)

    def samples(self) -> torch.Tensor:
        """Return the samples that the machine was made of, from its own tensors: Y = (K + λI) U, shape (N, p)."""
        return kernel_matrix(self.encoded) @ self.solved + self.lam * self.solved

    def modeling_error(self, samples: torch.Tensor) -> float:
        """Return Σ ‖yᵢ − A(yᵢ)‖ over the machine's own samples, shape (N, p) (eq. 88).

        If any sample has no image, the sum is infinite.
        """
        distances = torch.linalg.vector_norm(samples - self.images(samples).points, dim=1)
        return float(distances.nan_to_num(nan=inf).sum())


def fit_machine(samples: ArrayLike | torch.Tensor, settings: KahmSettings | None = None) -> Kahm:
    """Make one machine of all samples (Definition 1).

    Args:
        samples: samples, shape (N, p), finite. The cost is N³: `fit_wide` divides large sets into branches.
        settings: settings of the model; depth, branches and seed play no part here.

    Returns:
        The machine, in float64 on the device of the samples.

    Raises:
        DataError: the samples are not finite numbers of shape (N, p).

    Example:
        >>> import finc_eval as fe
        >>> machine = fe.kahm.fit_machine([[1.0, 1.0], [2.0, 1.0], [1.0, 3.0], [2.0, 4.0]])
        >>> machine.images([[1.5, 2.0]]).points.round(decimals=2)
        tensor([[1.4700, 2.1300]], dtype=torch.float64)
    """
    (machine,) = fit_deep(samples, replace(settings or KahmSettings(), depth=1))
    return machine


def fit_deep(samples: ArrayLike | torch.Tensor, settings: KahmSettings | None = None) -> tuple[Kahm, ...]:
    """Make the machines of a conditionally deep model, of n, n − 1, … components.

    A point passes through one layer after the other, and the nearest of its images counts (`WideKahm.distances`).

    Args:
        samples: samples, shape (N, p), finite.
        settings: settings of the model; `depth` is the number of layers, as far as the samples have as many components.

    Returns:
        The layers, in float64 on the device of the samples.

    Raises:
        DataError: the samples are not finite numbers of shape (N, p).

    Example:
        >>> import finc_eval as fe
        >>> settings = fe.kahm.KahmSettings(components=2, depth=2)
        >>> layers = fe.kahm.fit_deep([[1.0, 1.0], [2.0, 1.0], [1.0, 3.0], [2.0, 4.0]], settings)
        >>> [machine.components for machine in layers]
        [2, 1]
    """
    settings = settings or KahmSettings()
    rows = check_rows(samples)
    mean = rows.mean(0)
    unit = 16 * torch.finfo(torch.double).eps  # below this part of the samples, variance is rounding
    basis = whitening(rows - mean, settings.components, floor=unit**2 * float(rows.square().sum(1).mean()))
    available = basis.shape[1]
    layers = range(available, max(available - settings.depth, 0), -1) if available else (0,)
    return tuple(_fit(rows, mean, basis[:, :count], settings) for count in layers)


def check_rows(samples: ArrayLike | torch.Tensor) -> torch.Tensor:
    """Return samples in float64, shape (N, p)."""
    try:
        rows = torch.as_tensor(samples).double()
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"samples must be finite numbers of shape (N, p), got {type(samples).__name__}") from error
    if rows.ndim != 2 or 0 in rows.shape:
        raise DataError(f"samples must be finite numbers of shape (N, p), got shape {tuple(rows.shape)}")
    if not bool(rows.isfinite().all()):
        raise DataError("samples must be finite numbers, and hold NaN or infinity: leave these rows out")
    return rows


def _fit(rows: torch.Tensor, mean: torch.Tensor, encoder: torch.Tensor, settings: KahmSettings) -> Kahm:
    """Fit a machine to rows (N, p), with their mean (p,) and the encoder (p, n)."""
    encoded = (rows - mean) @ encoder
    values, vectors = torch.linalg.eigh(kernel_matrix(encoded))
    values.clamp_(min=0)
    turned = vectors.T @ rows
    mean_square = float(rows.square().mean())
    lam = regularization(values, turned.square().sum(1) / rows.numel(), mean_square, settings.lam)
    inverse = vectors / (values + lam)
    return Kahm(encoder, mean, encoded, inverse @ turned, inverse @ vectors.sum(0), lam)


def kernel_matrix(encoded: torch.Tensor) -> torch.Tensor:
    """Return K of whitened components, exp(−‖z − z'‖²/(2n)): (N, n) → (N, N). With n = 0 it is all ones."""
    squares = encoded.square().sum(1)
    squared = (squares[:, None] + squares - 2 * encoded @ encoded.T).clamp_(min=0)
    squared.fill_diagonal_(0)
    kernel: torch.Tensor = (-squared / (2 * max(encoded.shape[1], 1))).exp_()
    return kernel


def regularization(eigenvalues: torch.Tensor, energies: torch.Tensor, mean_square: float, lam: Lambda) -> float:
    """Return λ by its rule.

    λ* = e + 2M with e the fixed point of R(e) = Σ_k (L/(L + κ_k))² c_k, L = e + 2M. That is the paper's (1/pN) Σ_j ‖(I
    + K/(e + 2M))⁻¹ Y_j‖², on the eigenvectors of K. κ are the eigenvalues of
    K, (N,), and c_k = ‖q_kᵀ Y‖²/(pN), (N,), sum to M, the mean square of the samples; `lam` is the rule.
    """
    if isinstance(lam, int | float):
        return float(lam)
    if mean_square == 0:
        return 1.0  # all samples are 0, and so is their image, whatever λ
    if isinstance(lam, tuple):
        return lam[1] * mean_square
    error = mean_square / 2
    # 1000: maximum number of fixed-point iterations for λ*.
    for _ in range(1000):
        size = error + 2 * mean_square
        before, error = error, float(((size / (size + eigenvalues)).square() * energies).sum())
        if abs(error - before) <= 1e-14 * mean_square:
            break
    return error + 2 * mean_square
