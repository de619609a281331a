"""Kernel affine hull machines: the image of a point in a smooth hull of samples, and its distance to it.

A KAHM A maps a point to an affine combination of samples, weighted by a kernel on their leading principal components,
and ‖x − A(x)‖ says how far the point is from them (Kumar, Moser, Fischer, JAIR 79, 2024, arXiv 2304.01300,
Definition 1). The paper's Theorem 2, that A is bounded, does not hold: the weights of a combination sum to 1, but they
are divided by a number that can be negative, and A has poles where it passes zero. Such points get no image here, an
infinite distance, and are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

import torch

from finc_eval.core.errors import FincEvalError, did_you_mean

Lambda = float | Literal["fixed_point"] | tuple[Literal["relative"], float]
"""How λ is chosen: the paper's λ*, a number, or a multiple of the samples' mean square."""

Scale = float | Literal["as_is", "unit_ms"]
"""What the samples count as multiplied by where λ is chosen from their mean square."""

GUARD = 1e-3
"""Denominators below it, relative to that of a lone sample at distance 0, give no image."""

VANISHING = 1e-10
"""Principal variances below it, relative to the largest, are none: their directions are those of rounding."""

MOST_ITERATIONS = 1000


@dataclass(frozen=True)
class Settings:
    """What a model of one class is made with; every result depends on all of it.

    Attributes:
        components: n, principal components that the kernel sees; of fewer directions, all.
        depth: L ≤ n, layers of a conditionally deep model, with n, n − 1, … components. Layers rarely matter.
        lam: λ: "fixed_point" for the paper's λ*, a positive number, or ("relative", c) for c times the mean square of
            the samples. λ* itself lies between 2 and 3 times that.
        scale: the kernel does not change with the unit of the samples, λ* does: it is the bandwidth of the model, and
            the unit decides on it. "as_is" takes the samples' unit, "unit_ms" that in which their mean square is 1,
            and a number multiplies them first. Distances stay in the samples' unit. A number as λ is taken as it is.
        branches: S of a wide model; one for every thousand samples, rounded up, when left out.
        seed: of the k-means that assigns samples to branches.

    Raises:
        FincEvalError: one of them is out of range.
    """

    components: int = 20
    depth: int = 1
    lam: Lambda = "fixed_point"
    scale: Scale = "as_is"
    branches: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.components < 1:
            raise FincEvalError(f"components must be at least 1, got {self.components}")
        if not 1 <= self.depth <= self.components:
            raise FincEvalError(
                f"depth must be between 1 and the {self.components} components, as each layer has one less, "
                f"got {self.depth}"
            )
        if self.branches is not None and self.branches < 1:
            raise FincEvalError(f"branches must be at least 1, got {self.branches}")
        _check_lambda(self.lam)
        _check_scale(self.scale)

    def __str__(self) -> str:
        lam = f"{self.lam[1]:g}*ms" if isinstance(self.lam, tuple) else self.lam
        branches = "auto" if self.branches is None else self.branches
        return f"n={self.components},L={self.depth},lambda={lam},scale={self.scale},S={branches},seed={self.seed}"


class Images(NamedTuple):
    """What a machine makes of points.

    Attributes:
        points: A(x), shape (b, p); NaN where there is none.
        denominators: what was divided by, relative to that of a lone sample at distance 0, shape (b,).
    """

    points: torch.Tensor
    denominators: torch.Tensor


@dataclass(frozen=True, eq=False)
class Kahm:
    """One machine A_{Y,n}. All tensors are float64 and on one device.

    It holds the samples: Y = (K + λI) U, and K is known from Z (`samples`). Whoever gets a machine gets them.

    Attributes:
        encoder: maps a centered point to whitened principal components, shape (p, n).
        mean: of the samples, shape (p,).
        encoded: Z, the samples' components, shape (N, n). A kernel on them is exp(−‖z − z'‖²/(2n)).
        solved: U = (K + λI)⁻¹ Y, shape (N, p).
        weights: w = (K + λI)⁻¹ 1, shape (N,).
        lam: λ.
    """

    encoder: torch.Tensor
    mean: torch.Tensor
    encoded: torch.Tensor
    solved: torch.Tensor
    weights: torch.Tensor
    lam: float

    @property
    def n(self) -> int:
        """How many samples."""
        return len(self.encoded)

    @property
    def dim(self) -> int:
        """p, entries of a sample."""
        return len(self.mean)

    @property
    def components(self) -> int:
        """Principal components of the samples that the kernel sees: 0 if they are all equal."""
        return self.encoded.shape[1]

    def images(self, points: torch.Tensor, guard: float = GUARD) -> Images:
        """A(x) = Σ h_i(x) y_i / Σ h_i(x) of every point: (b, p) → (b, p).

        Kernel values are taken relative to the largest of a point, which cancels in the ratio: far from all samples
        they would all be 0 otherwise. Memory is that of b rows of p + N numbers: pass batches.
        """
        z = (points.double() - self.mean) @ self.encoder
        width = max(self.components, 1)
        # log k up to what depends on the point alone; ‖z‖² never enters, so nothing cancels far away.
        exponents = torch.addmm(-self.encoded.square().sum(1) / (2 * width), z, self.encoded.T, alpha=1 / width)
        kernel = exponents.sub_(exponents.amax(1, keepdim=True)).exp_()
        divisors = kernel @ self.weights
        denominators = divisors * (1 + self.lam)
        sound = denominators >= guard
        divisors = torch.where(sound, divisors, torch.nan)
        return Images((kernel @ self.solved).div_(divisors[:, None]), denominators)

    def samples(self) -> torch.Tensor:
        """The samples it was made of, from what it holds: Y = (K + λI) U, shape (N, p)."""
        return kernel_matrix(self.encoded) @ self.solved + self.lam * self.solved

    def modeling_error(self) -> float:
        """‖Y − K (K + λI)⁻¹ Y‖ = λ‖U‖, Frobenius: what the regularized regression leaves of the samples."""
        return self.lam * float(torch.linalg.matrix_norm(self.solved))


def fit_layers(samples: torch.Tensor, settings: Settings) -> tuple[Kahm, ...]:
    """The machines of one branch: with n components, n − 1, … as many as its depth says and its samples allow.

    Args:
        samples: shape (N, p), floating point, finite; the solution is float64 on their device.
        settings: of the model.
    """
    rows = samples.double()
    mean = rows.mean(0)
    basis = whitening(rows - mean, settings.components, floor=_rounding(rows))
    available = basis.shape[1]
    layers = range(available, max(available - settings.depth, 0), -1) if available else (0,)
    return tuple(_fit(rows, mean, basis[:, :count], settings) for count in layers)


def fit(samples: torch.Tensor, settings: Settings) -> Kahm:
    """One machine (Definition 1), of the first layer."""
    (machine,) = fit_layers(samples, Settings(settings.components, 1, settings.lam, settings.scale))
    return machine


def _fit(rows: torch.Tensor, mean: torch.Tensor, encoder: torch.Tensor, settings: Settings) -> Kahm:
    encoded = (rows - mean) @ encoder
    values, vectors = torch.linalg.eigh(kernel_matrix(encoded))
    values.clamp_(min=0)
    turned = vectors.T @ rows
    mean_square = float(rows.square().mean())
    lam = regularization(values, turned.square().sum(1) / rows.numel(), mean_square, settings.lam, settings.scale)
    inverse = vectors / (values + lam)
    return Kahm(encoder, mean, encoded, inverse @ turned, inverse @ vectors.sum(0), lam)


def kernel_matrix(encoded: torch.Tensor) -> torch.Tensor:
    """K of whitened components: (N, n) → (N, N), exp(−‖z − z'‖²/(2n)); all ones for n = 0, where all are equal."""
    squares = encoded.square().sum(1)
    squared = (squares[:, None] + squares - 2 * encoded @ encoded.T).clamp_(min=0)
    squared.fill_diagonal_(0)
    kernel: torch.Tensor = (-squared / (2 * max(encoded.shape[1], 1))).exp_()
    return kernel


def whitening(centered: torch.Tensor, components: int, floor: float = 0.0) -> torch.Tensor:
    """The map to principal components of variance 1: centered samples (N, p) → (p, n).

    Args:
        centered: shape (N, p), of mean 0.
        components: n at most; directions without variance are left out, so n ≤ N − 1.
        floor: variances at or below it are rounding.
    """
    n, p = centered.shape
    of_entries = p <= n
    gram = centered.T @ centered if of_entries else centered @ centered.T
    values, vectors = torch.linalg.eigh(gram / max(n - 1, 1))
    values, vectors = values.flip(0)[:components], vectors.flip(1)[:, :components]
    kept = (values > max(VANISHING * float(values[0]), floor)).nonzero().squeeze(1)[: n - 1]
    values, vectors = values[kept], vectors[:, kept]
    if not of_entries:
        vectors = centered.T @ vectors / (values * (n - 1)).sqrt()
    whitened: torch.Tensor = vectors / values.sqrt()
    return whitened


def regularization(
    eigenvalues: torch.Tensor, energies: torch.Tensor, mean_square: float, lam: Lambda, scale: Scale
) -> float:
    """Λ by its rule.

    λ* = e + 2M with e the fixed point of R(e) = Σ_k (L/(L + κ_k))² c_k, L = e + 2M: the paper's
    (1/pN) Σ_j ‖(I + K/(e + 2M))⁻¹ Y_j‖², on the eigenvectors of K. Samples multiplied by s have s²c and s²M.

    Args:
        eigenvalues: κ of K, shape (N,), not negative.
        energies: c_k = ‖q_kᵀ Y‖²/(pN), shape (N,), which sum to M.
        mean_square: M.
        lam: the rule.
        scale: what the samples count as multiplied by.
    """
    if isinstance(lam, int | float):
        return float(lam)
    if mean_square == 0:
        return 1.0  # all samples are 0, and so is their image, whatever λ
    factor = 1 / mean_square if scale == "unit_ms" else 1.0 if scale == "as_is" else float(scale) ** 2
    energies, mean_square = energies * factor, mean_square * factor
    if isinstance(lam, tuple):
        return lam[1] * mean_square
    error = mean_square / 2
    for _ in range(MOST_ITERATIONS):
        size = error + 2 * mean_square
        following = float(((size / (size + eigenvalues)).square() * energies).sum())
        converged = abs(following - error) <= 1e-14 * mean_square
        error = following
        if converged:
            break
    return error + 2 * mean_square


def _rounding(rows: torch.Tensor) -> float:
    """Variance that rounding alone gives equal samples."""
    unit = 16 * torch.finfo(torch.double).eps
    return unit**2 * float(rows.square().sum(1).mean())


def _check_lambda(lam: Lambda) -> None:
    value: object = lam
    if isinstance(lam, tuple) and len(lam) == 2 and lam[0] == "relative":
        value = lam[1]
    elif lam == "fixed_point":
        return
    if not isinstance(value, int | float) or not 0 < value < inf:
        hint = did_you_mean(value, ["fixed_point"]) if isinstance(value, str) else ""
        raise FincEvalError(
            f'lam must be "fixed_point", a positive number or ("relative", positive number), got {lam!r}{hint}'
        )


def _check_scale(scale: Scale) -> None:
    value: object = scale
    if value in ("as_is", "unit_ms"):
        return
    if not isinstance(value, int | float) or not 0 < value < inf:
        hint = did_you_mean(value, ["as_is", "unit_ms"]) if isinstance(value, str) else ""
        raise FincEvalError(f'scale must be "as_is", "unit_ms" or a positive number, got {scale!r}{hint}')
