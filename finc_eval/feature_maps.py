"""Feature maps φ: R^d → R^q whose inner products approximate a kernel, k(x, y) ≈ φ(x)·φ(y)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import torch

from finc_eval.errors import FincEvalError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class RandomFourierFeatures:
    """Random Fourier features of the Gaussian kernel exp(−‖x−y‖²/(2σ²)).

    φ(x) = (1/√r) [cos ω₁·(x−μ), …, cos ω_r·(x−μ), sin ω₁·(x−μ), …, sin ω_r·(x−μ)],  ω_i ~ N(0, σ⁻²I)

    (Rahimi and Recht 2007; eq. 4 of the FINC paper, arXiv 2405.02700, with the cosines before the sines.)
    Every φ(x) has norm 1. The kernel does not change when both arguments are shifted by μ, so centring is
    exact; it keeps the phases small, and with them the rounding error of low precision.

    Args:
        dim: d, the number of entries of an embedding.
        features: r, the number of frequencies; φ has 2r entries.
        sigma: σ > 0, the bandwidth, in the units of the embedding.
        seed: of the frequencies; they are drawn on the CPU, so they do not depend on the device.
        center: μ, shape (d,); zero when left out.
        device: where φ is computed and returned.

    Raises:
        FincEvalError: when dim, features or sigma is not positive, or the centre has another shape.
    """

    def __init__(
        self,
        dim: int,
        features: int = 2000,
        *,
        sigma: float,
        seed: int = 0,
        center: ArrayLike | torch.Tensor | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        for name, value in (("dim", dim), ("features", features), ("sigma", sigma)):
            if not (value > 0 and value < float("inf")):
                raise FincEvalError(f"{name} must be a positive number, got {value}")
        generator = torch.Generator().manual_seed(seed)
        directions = torch.randn(dim, features, generator=generator)
        self._build(directions / sigma, sigma, seed, center, device)

    @classmethod
    def from_frequencies(
        cls,
        frequencies: torch.Tensor,
        sigma: float,
        seed: int,
        center: ArrayLike | torch.Tensor | None,
        device: str | torch.device = "cpu",
    ) -> RandomFourierFeatures:
        """The map with these stored frequencies, shape (d, r), rather than fresh ones from the seed."""
        phi = cls.__new__(cls)
        phi._build(frequencies, sigma, seed, center, device)
        return phi

    def _build(
        self,
        frequencies: torch.Tensor,
        sigma: float,
        seed: int,
        center: ArrayLike | torch.Tensor | None,
        device: str | torch.device,
    ) -> None:
        dim = frequencies.shape[0]
        mu = torch.zeros(dim) if center is None else torch.as_tensor(center, dtype=torch.float32).cpu()
        if mu.shape != (dim,):
            raise FincEvalError(f"the centre must have shape ({dim},), got {tuple(mu.shape)}")
        self.sigma = float(sigma)
        self.seed = int(seed)
        self.frequencies = frequencies.to(device=device, dtype=torch.float32)
        self.center = mu.to(device)

    @property
    def dim(self) -> int:
        """d, the number of entries of an embedding."""
        return self.frequencies.shape[0]

    @property
    def features(self) -> int:
        """r, the number of frequencies."""
        return self.frequencies.shape[1]

    @property
    def size(self) -> int:
        """2r, the number of entries of φ(x)."""
        return 2 * self.features

    @property
    def device(self) -> torch.device:
        """Where φ is computed."""
        return self.frequencies.device

    @property
    def digest(self) -> str:
        """SHA-256 of frequencies and centre: two sketches can be added or compared only when it agrees."""
        sha = hashlib.sha256()
        for part in (self.frequencies, self.center):
            sha.update(part.cpu().contiguous().numpy().tobytes())
        return sha.hexdigest()

    def to(self, device: str | torch.device) -> RandomFourierFeatures:
        """The same map on another device."""
        return self.from_frequencies(self.frequencies, self.sigma, self.seed, self.center, device)

    def __call__(self, x: ArrayLike | torch.Tensor) -> torch.Tensor:
        """φ of every row: (n, d) → (n, 2r) float32, on the map's device."""
        rows = torch.as_tensor(x).to(device=self.device, dtype=torch.float32)
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise FincEvalError(
                f"embeddings must have shape (n, {self.dim}) for this feature map, got {tuple(rows.shape)}"
            )
        phases = (rows - self.center) @ self.frequencies
        phi = torch.empty(len(rows), self.size, device=self.device)
        torch.cos(phases, out=phi[:, : self.features])
        torch.sin(phases, out=phi[:, self.features :])
        return phi.mul_(self.features**-0.5)

    def __repr__(self) -> str:
        return (
            f"RandomFourierFeatures(dim={self.dim}, features={self.features}, sigma={self.sigma:.6g}, seed={self.seed})"
        )
