"""Feature maps φ: R^d → R^q whose inner products are, or approximate, a kernel: k(x, y) ≈ φ(x)·φ(y), ‖φ(x)‖ = 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.names import Kernel
from finc_eval.numerics.precision import arithmetic, rounded

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


FREQUENCY_BITS = 12
"""Bits of mantissa that orthogonal frequencies lose. Libraries of linear algebra differ in the last bits; without
those, the same seed gives the same frequencies, and so comparable sketches, on every machine."""


class RandomFourierFeatures(FeatureMap):
    """Random Fourier features of the Gaussian kernel exp(−‖x−y‖²/(2σ²)).

    φ(x) = (1/√r) [cos ω₁·(x−μ), …, cos ω_r·(x−μ), sin ω₁·(x−μ), …, sin ω_r·(x−μ)],  ω_i ~ N(0, σ⁻²I)

    (Rahimi and Recht 2007; eq. 4 of the FINC paper, arXiv 2405.02700, with the cosines before the sines.)
    Every φ(x) has norm 1. The kernel does not change when both arguments are shifted by μ, so centering is
    exact; it keeps the phases small, and with them the rounding error of low precision.

    Orthogonal frequencies (Yu et al. 2016, arXiv 1610.09072) are each N(0, σ⁻²I) too, but at right angles in groups
    of d: the kernel stays unbiased, and its error is smaller at the same r (docs/method.md has the measurement).

    Args:
        dim: d, the number of entries of an embedding.
        features: r, the number of frequencies; φ has 2r entries.
        sigma: σ > 0, the bandwidth, in the units of the embedding.
        seed: of the frequencies; they are drawn on the CPU, so they do not depend on the device.
        orthogonal: whether the frequencies are orthogonal, or independent as in the papers.
        center: μ, shape (d,); zero when left out.
        device: where φ is computed and returned.

    Raises:
        FincEvalError: when dim, features or sigma is not positive, or the center has another shape.
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
    ) -> None:
        for name, value in (("dim", dim), ("features", features), ("sigma", sigma)):
            if not (value > 0 and value < float("inf")):
                raise FincEvalError(f"{name} must be a positive number, got {value}")
        generator = torch.Generator().manual_seed(seed)
        if orthogonal:
            frequencies = _orthogonal(dim, features, generator) / sigma
            frequencies = rounded(frequencies.float(), FREQUENCY_BITS)
        else:
            frequencies = torch.randn(dim, features, generator=generator) / sigma
        self._build(frequencies, sigma, seed, orthogonal, center, device)

    @classmethod
    def from_frequencies(
        cls,
        frequencies: torch.Tensor,
        sigma: float,
        seed: int,
        orthogonal: bool,
        center: ArrayLike | torch.Tensor | None,
        device: str | torch.device = "cpu",
    ) -> RandomFourierFeatures:
        """The map with these stored frequencies, shape (d, r), rather than fresh ones from the seed."""
        phi = cls.__new__(cls)
        phi._build(frequencies, sigma, seed, orthogonal, center, device)
        return phi

    def _build(
        self,
        frequencies: torch.Tensor,
        sigma: float,
        seed: int,
        orthogonal: bool,
        center: ArrayLike | torch.Tensor | None,
        device: str | torch.device,
    ) -> None:
        dim = frequencies.shape[0]
        mu = torch.zeros(dim) if center is None else torch.as_tensor(center, dtype=torch.float32).cpu()
        if mu.shape != (dim,):
            raise FincEvalError(f"the center must have shape ({dim},), got {tuple(mu.shape)}")
        self.sigma = float(sigma)
        self.seed = int(seed)
        self.orthogonal = bool(orthogonal)
        self.frequencies = frequencies.to(device=device, dtype=torch.float32)
        self.center = mu.to(device)

    @property
    def features(self) -> int:
        """r, the number of frequencies."""
        return self.frequencies.shape[1]

    @property
    def size(self) -> int:
        """2r, the number of entries of φ(x)."""
        return 2 * self.features

    def halves(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The entries, cosine and sine, of the first and of the second half of the frequencies."""
        if self.features < 2:
            return None
        first, second = torch.arange(self.features, device=self.device).tensor_split(2)
        return torch.cat([first, first + self.features]), torch.cat([second, second + self.features])

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The Gaussian kernel; centering keeps its rounding small and changes nothing else."""
        return gaussian_kernel(x - self.center, y - self.center, self.sigma)

    def to(self, device: str | torch.device) -> RandomFourierFeatures:
        """The same map on another device."""
        return self.from_frequencies(self.frequencies, self.sigma, self.seed, self.orthogonal, self.center, device)

    @property
    def parameters(self) -> dict[str, Any]:
        """Bandwidth, seed and kind of the frequencies."""
        return {"sigma": self.sigma, "seed": self.seed, "orthogonal": self.orthogonal}

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The frequencies, so that a stored map never depends on a generator's version, and the center."""
        return {"frequencies": self.frequencies, "center": self.center}

    def signature(self) -> tuple[tuple[str, str], ...]:
        """Kernel, bandwidth, number, kind and digest of the frequencies."""
        return (
            ("kernel", self.kernel),
            ("sigma", f"{self.sigma:.6g}"),
            ("r", str(self.features)),
            ("omega", "orthogonal" if self.orthogonal else "iid"),
            ("phi", self.digest[:12]),
        )

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        with arithmetic("float32"):
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


def _orthogonal(dim: int, count: int, generator: torch.Generator) -> torch.Tensor:
    """Directions (dim, count), float64: Haar-distributed orthonormal groups, with the lengths of Gaussian vectors."""
    groups = []
    for width in [dim] * (count // dim) + [count % dim] * (count % dim > 0):
        gaussian = torch.randn(dim, width, generator=generator, dtype=torch.float64)
        basis, upper = torch.linalg.qr(gaussian)
        groups.append(basis * upper.diagonal().sign())
    lengths = torch.randn(dim, count, generator=generator, dtype=torch.float64).norm(dim=0)
    return torch.cat(groups, 1).mul_(lengths)
