"""Random Fourier features of the Gaussian kernel: k(x, y) ≈ φ(x)·φ(y), ‖φ(x)‖ = 1."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from numpy.typing import ArrayLike

from finc_eval.core.errors import UsageError, check_positive
from finc_eval.feature_maps.base import FeatureMap, as_center
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.names import Kernel
from finc_eval.numerics.precision import arithmetic, round_mantissa

FREQUENCY_BITS = 12
"""Bits of mantissa that are rounded away from orthogonal frequencies. Libraries of linear algebra differ in the last
bits; without them, a seed gives the same frequencies, and so comparable sketches, on every machine."""

LEAST_ROWS = 16
"""Rows that are multiplied at least. Of 8 to 1 280 entries and 60 to 2 000 frequencies, products of 1 to 3 rows had
other last bits than products of many; products of 7 to 600 rows had the same. So φ of a row is that of any batch."""


class RandomFourierFeatures(FeatureMap):
    """Random Fourier features of the Gaussian kernel exp(−‖x−y‖²/(2σ²)).

    φ(x) = (1/√r) [cos ω₁·(x−μ), …, cos ω_r·(x−μ), sin ω₁·(x−μ), …, sin ω_r·(x−μ)],  ω_i ~ N(0, σ⁻²I)

    (Rahimi and Recht 2007; eq. 4 of the FINC paper, arXiv 2405.02700, with the cosines before the sines.)
    Every φ(x) has norm 1. The kernel does not change when both arguments are shifted by μ, so centering is
    exact; it keeps the phases small, and with them the rounding error of low precision.

    Orthogonal frequencies (Yu et al. 2016, arXiv 1610.09072) are N(0, σ⁻²I) one by one, and at right angles in groups
    of d: the kernel stays unbiased, and its error is smaller at the same r (docs/directions.md has the measurement).

    Args:
        dim: number of entries of an embedding, d.
        features: number of frequencies r; φ has 2r entries.
        sigma: bandwidth σ > 0, in the units of the embedding.
        seed: random seed of the frequencies, which are drawn on the CPU and do not depend on the device.
        orthogonal: whether the frequencies are orthogonal, or independent as in the papers.
        center: center μ, shape (d,); default: zero.
        device: device on which φ is computed.
        frequencies: stored frequencies, shape (d, r), to use instead of drawing them from the seed.

    Raises:
        UsageError: `dim`, `features` or `sigma` is not positive, or the center or the frequencies have another shape.

    Example:
        >>> import finc_eval as fe
        >>> phi = fe.RandomFourierFeatures(dim=2, features=4000, sigma=1.0)
        >>> x, y = phi([[0.0, 0.0], [1.0, 0.0]])
        >>> round(float(x @ y), 1)  # k(x, y) = exp(−1/2) ≈ 0.607
        0.6
    """

    kernel: Kernel = "gaussian"
    sigma: float

    def __init__(
        self,
        dim: int,
        features: int = 2000,
        *,
        sigma: float,
        seed: int = 0,
        orthogonal: bool = True,
        center: ArrayLike | torch.Tensor | None = None,
        device: str | torch.device = "cpu",
        frequencies: torch.Tensor | None = None,
    ) -> None:
        for name, value in (("dim", dim), ("features", features), ("sigma", sigma)):
            check_positive(name, value)
        if frequencies is None and orthogonal:
            frequencies = round_mantissa((_orthogonal(dim, features, seed) / sigma).float(), FREQUENCY_BITS)
        elif frequencies is None:
            frequencies = torch.randn(dim, features, generator=torch.Generator().manual_seed(seed)) / sigma
        if frequencies.shape != (dim, features):
            raise UsageError(f"the frequencies must have shape {(dim, features)}, got {tuple(frequencies.shape)}")
        self.sigma = float(sigma)
        self.seed = int(seed)
        self.orthogonal = bool(orthogonal)
        self.frequencies = frequencies.to(device=device, dtype=torch.float32)
        self.center = as_center(center, dim).to(device)

    @property
    def features(self) -> int:
        return self.frequencies.shape[1]

    @property
    def size(self) -> int:
        return 2 * self.features

    def halves(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        if self.features < 2:
            return None
        first, second = torch.arange(self.features, device=self.device).tensor_split(2)
        return torch.cat([first, first + self.features]), torch.cat([second, second + self.features])

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Compute the Gaussian kernel; centering keeps rounding small and changes nothing else."""
        x, y = (rows.to(self.device) - self.center for rows in (x, y))
        return gaussian_kernel(x, y, self.sigma)

    def to(self, device: str | torch.device) -> RandomFourierFeatures:
        state: dict[str, Any] = self.parameters | self.tensors
        return RandomFourierFeatures(self.dim, self.features, device=device, **state)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"sigma": self.sigma, "seed": self.seed, "orthogonal": self.orthogonal}

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The frequencies, so that a stored map does not depend on a generator's version, and the center."""
        return {"frequencies": self.frequencies, "center": self.center}

    def signature(self) -> tuple[tuple[str, str], ...]:
        return (
            ("kernel", self.kernel),
            ("sigma", f"{self.sigma:.6g}"),
            ("r", str(self.features)),
            ("omega", "orthogonal" if self.orthogonal else "iid"),
            ("phi", self.digest[:12]),
        )

    def apply(self, rows: torch.Tensor) -> torch.Tensor:
        if len(rows) < LEAST_ROWS:
            filled = torch.cat([rows, rows.new_zeros(LEAST_ROWS - len(rows), self.dim)])
            return self.apply(filled)[: len(rows)].clone()
        with arithmetic():
            phases = (rows - self.center) @ self.frequencies
        if phases.requires_grad:  # what is written into place has no gradient
            differentiable: torch.Tensor = torch.cat([phases.cos(), phases.sin()], 1) * self.features**-0.5
            return differentiable
        phi = torch.empty(len(rows), self.size, device=self.device)
        torch.cos(phases, out=phi[:, : self.features])
        torch.sin(phases, out=phi[:, self.features :])
        return phi.mul_(self.features**-0.5)

    def _defining(self) -> tuple[torch.Tensor, ...]:
        return self.frequencies, self.center

    def __repr__(self) -> str:
        return (
            f"RandomFourierFeatures(dim={self.dim}, features={self.features}, sigma={self.sigma:.6g}, "
            f"seed={self.seed}, orthogonal={self.orthogonal})"
        )


@lru_cache(maxsize=1)
def _orthogonal(dim: int, count: int, seed: int) -> torch.Tensor:
    """Draw Haar-distributed orthonormal groups with the lengths of Gaussian vectors, (dim, count), float64.

    Cached: the next map often differs in its bandwidth alone, and drawing costs a tenth of comparing 1000 with 1000
    samples.
    """
    generator, groups = torch.Generator().manual_seed(seed), []
    for width in [dim] * (count // dim) + [count % dim] * (count % dim > 0):
        gaussian = torch.randn(dim, width, generator=generator, dtype=torch.float64)
        basis, upper = torch.linalg.qr(gaussian)
        groups.append(basis * upper.diagonal().sign())
    lengths = torch.randn(dim, count, generator=generator, dtype=torch.float64).norm(dim=0)
    return torch.cat(groups, 1).mul_(lengths)
