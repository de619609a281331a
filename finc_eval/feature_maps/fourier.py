"""Feature maps φ: R^d → R^q whose inner products are, or approximate, a kernel: k(x, y) ≈ φ(x)·φ(y), ‖φ(x)‖ = 1."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.numerics.kernels import cosine_kernel, gaussian_kernel, unit_rows
from finc_eval.numerics.precision import arithmetic, rounded

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LARGEST_COSINE = 16_384
"""Entries of an embedding up to which the identity serves as features: the covariance has their square."""

FREQUENCY_BITS = 12
"""Bits of mantissa that orthogonal frequencies lose. Libraries of linear algebra differ in the last bits; without
those, the same seed gives the same frequencies, and so comparable sketches, on every machine."""


class FeatureMap(ABC):
    """φ, as sketches and comparisons use it.

    Attributes:
        kernel: the name of the kernel, "gaussian" or "cosine".
        center: μ, shape (d,), subtracted before anything else where the kernel allows it, else zero.
        sigma: σ, the bandwidth; None for a kernel without one.
        seed: of the frequencies; 0 for a map without any.
    """

    kernel: str
    center: torch.Tensor
    sigma: float | None = None
    seed: int = 0

    @property
    def dim(self) -> int:
        """d, the number of entries of an embedding."""
        return len(self.center)

    @property
    @abstractmethod
    def size(self) -> int:
        """q, the number of entries of φ(x)."""

    @property
    def features(self) -> int:
        """r, the number of random frequencies; for a map without any, the number of entries."""
        return self.size

    @property
    def device(self) -> torch.device:
        """Where φ is computed."""
        return self.center.device

    @property
    def digest(self) -> str:
        """SHA-256 of what defines the map: two sketches can be added or compared only when it agrees."""
        sha = hashlib.sha256()
        for part in self._defining():
            sha.update(part.cpu().contiguous().numpy().tobytes())
        return sha.hexdigest()

    def halves(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The entries of φ that two maps with half of the frequencies each consist of, up to scale; None if none."""
        return None

    def __call__(self, x: ArrayLike | torch.Tensor) -> torch.Tensor:
        """φ of every row: (n, d) → (n, q) float32, on the map's device."""
        rows = torch.as_tensor(x).to(device=self.device, dtype=torch.float32)
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise FincEvalError(
                f"embeddings must have shape (n, {self.dim}) for this feature map, got {tuple(rows.shape)}"
            )
        return self._features(rows)

    @abstractmethod
    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The kernel itself: (n, d), (m, d) → (n, m)."""

    @abstractmethod
    def to(self, device: str | torch.device) -> Self:
        """The same map on another device."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The numbers that, with `tensors`, make the same map again."""

    @property
    @abstractmethod
    def tensors(self) -> dict[str, torch.Tensor]:
        """What is too large, or too many, to be a number."""

    @abstractmethod
    def signature(self) -> tuple[tuple[str, str], ...]:
        """The fields of a result's signature that name this map."""

    @abstractmethod
    def _features(self, rows: torch.Tensor) -> torch.Tensor: ...

    @abstractmethod
    def _defining(self) -> tuple[torch.Tensor, ...]: ...


class RandomFourierFeatures(FeatureMap):
    """Random Fourier features of the Gaussian kernel exp(−‖x−y‖²/(2σ²)).

    φ(x) = (1/√r) [cos ω₁·(x−μ), …, cos ω_r·(x−μ), sin ω₁·(x−μ), …, sin ω_r·(x−μ)],  ω_i ~ N(0, σ⁻²I)

    (Rahimi and Recht 2007; eq. 4 of the FINC paper, arXiv 2405.02700, with the cosines before the sines.)
    Every φ(x) has norm 1. The kernel does not change when both arguments are shifted by μ, so centring is
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
        FincEvalError: when dim, features or sigma is not positive, or the centre has another shape.
    """

    kernel = "gaussian"
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
            raise FincEvalError(f"the centre must have shape ({dim},), got {tuple(mu.shape)}")
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
        """The Gaussian kernel; centring keeps its rounding small and changes nothing else."""
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
        """The frequencies, so that a stored map never depends on a generator's version, and the centre."""
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


class CosineFeatures(FeatureMap):
    """The exact features of the cosine kernel x·y/(‖x‖‖y‖): φ(x) = x/‖x‖, with as many entries as the embedding.

    Args:
        dim: d, the number of entries of an embedding.
        device: where φ is computed and returned.

    Raises:
        FincEvalError: when dim is not positive, or so large that its square would not fit into memory; on use, when
            an embedding is zero.
    """

    kernel = "cosine"

    def __init__(self, dim: int, device: str | torch.device = "cpu") -> None:
        if not 0 < dim <= LARGEST_COSINE:
            raise FincEvalError(
                f"the cosine kernel takes embeddings of 1 to {LARGEST_COSINE} entries, got {dim}: use the Gaussian one"
            )
        self.center = torch.zeros(dim, device=device)

    @property
    def size(self) -> int:
        """d, the number of entries of φ(x)."""
        return self.dim

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The cosine of every pair."""
        return cosine_kernel(x, y)

    def to(self, device: str | torch.device) -> CosineFeatures:
        """The same map on another device."""
        return CosineFeatures(self.dim, device)

    @property
    def parameters(self) -> dict[str, Any]:
        """The number of entries."""
        return {"dim": self.dim}

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """None."""
        return {}

    def signature(self) -> tuple[tuple[str, str], ...]:
        """The kernel: it has no parameters."""
        return (("kernel", self.kernel),)

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        if not rows.any(dim=1).all():
            raise FincEvalError("an embedding is zero, which has no cosine with others: leave it out")
        return unit_rows(rows)

    def _defining(self) -> tuple[torch.Tensor, ...]:
        return (self.center,)

    def __repr__(self) -> str:
        return f"CosineFeatures(dim={self.dim})"


def _orthogonal(dim: int, count: int, generator: torch.Generator) -> torch.Tensor:
    """Directions (dim, count), float64: Haar-distributed orthonormal groups, with the lengths of Gaussian vectors."""
    groups = []
    for width in [dim] * (count // dim) + [count % dim] * (count % dim > 0):
        gaussian = torch.randn(dim, width, generator=generator, dtype=torch.float64)
        basis, upper = torch.linalg.qr(gaussian)
        groups.append(basis * upper.diagonal().sign())
    lengths = torch.randn(dim, count, generator=generator, dtype=torch.float64).norm(dim=0)
    return torch.cat(groups, 1).mul_(lengths)


def feature_map_state(phi: FeatureMap) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The numbers and the tensors from which `restored_feature_map` makes the same map again."""
    return {"kernel": phi.kernel, **phi.parameters}, phi.tensors


def restored_feature_map(
    numbers: dict[str, Any], tensors: dict[str, torch.Tensor], device: str | torch.device = "cpu"
) -> FeatureMap:
    """The feature map of a `feature_map_state`."""
    parameters = {name: value for name, value in numbers.items() if name != "kernel"}
    if "kind" in parameters:
        # Hermite features lie one layer up, with the rest of what privacy needs.
        from finc_eval.feature_maps.hermite import MAPS

        return MAPS[parameters.pop("kind")](**parameters, center=tensors["center"], device=device)
    if numbers["kernel"] == CosineFeatures.kernel:
        return CosineFeatures(int(numbers["dim"]), device)
    return RandomFourierFeatures.from_frequencies(
        tensors["frequencies"],
        float(numbers["sigma"]),
        int(numbers["seed"]),
        bool(numbers["orthogonal"]),
        tensors["center"],
        device,
    )
