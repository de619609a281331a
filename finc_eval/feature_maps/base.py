"""Feature maps φ with φ(x)·φ(y) ≈ k(x, y): what all have in common, and the exact one of the cosine kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import torch
from numpy.typing import ArrayLike

from finc_eval.core.device import send
from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.numerics.kernels import cosine_kernel, unit_rows
from finc_eval.numerics.names import Kernel

MAX_COSINE_ENTRIES = 16_384
"""Entries of an embedding up to which the cosine kernel is computed: the covariance has their square."""


class FeatureMap(ABC):
    """A feature map φ, as sketches and comparisons use it."""

    kernel: Kernel  # name of the kernel, "gaussian" or "cosine"
    center: torch.Tensor  # μ, shape (d,), subtracted from every embedding; zero if the kernel does not allow a shift
    sigma: float | None = None  # bandwidth σ of the kernel; None for a kernel without one
    seed: int = 0  # random seed of the frequencies; 0 for a map without frequencies
    orthogonal: bool = True  # whether the frequencies are orthogonal in groups; True for a map without frequencies

    @property
    def dim(self) -> int:
        """Number of entries of an embedding, d."""
        return len(self.center)

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of entries of φ(x), q."""

    @property
    def features(self) -> int:
        """Number of random frequencies, r; for a map without frequencies, the number of entries."""
        return self.size

    @property
    def width(self) -> int:
        """Numbers that a row takes while features are summed."""
        return self.size

    @property
    def device(self) -> torch.device:
        """Device on which φ is computed."""
        return self.center.device

    @property
    def digest(self) -> str:
        """SHA-256 of everything that defines the map: sketches can be added or compared only if it is the same."""
        return sha256_of(*self._defining())

    def halves(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return the entries of φ that make two maps with half of the frequencies each, up to scale, or None."""
        return None

    def __call__(self, x: ArrayLike | torch.Tensor) -> torch.Tensor:
        """Compute φ of every row: (n, d) → (n, q) float32, on the map's device."""
        return self.apply(self.prepared(x))

    def prepared(self, x: ArrayLike | torch.Tensor) -> torch.Tensor:
        """Check embeddings, (n, d), where they lie, and copy them to the map's device."""
        rows = torch.as_tensor(x).float()
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise IncompatibleError(
                f"embeddings must have shape (n, {self.dim}) for this feature map, got {tuple(rows.shape)}"
            )
        self._check(rows)
        return send(rows, self.device)

    @abstractmethod
    def apply(self, rows: torch.Tensor) -> torch.Tensor:
        """Compute φ of embeddings that are `prepared`: (n, d) → (n, q)."""

    def class_sums(
        self, rows: torch.Tensor, labels: torch.Tensor, classes: int, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """Sum φ over the rows of each class: (n, d), (n,) → (classes, q) (eq. 14 of arXiv 2106.05042, undivided).

        Divided by the number of all rows, not of the rows of the class, the sums are the mean of φ(x) ⊗ onehot(y). It
        contains the shares of the classes, and images of two classes are √(‖φ‖² + ‖φ'‖²) apart.
        """
        onehot = torch.nn.functional.one_hot(labels, classes).to(dtype)
        sums: torch.Tensor = onehot.T @ self(rows).to(dtype)
        return sums

    def _check(self, rows: torch.Tensor) -> None:  # noqa: B027  # most maps take every row
        """Raise DataError if φ of a row does not exist."""

    @abstractmethod
    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Compute the exact kernel of rows that may lie anywhere, on the map's device: (n, d), (m, d) → (n, m)."""

    @abstractmethod
    def to(self, device: str | torch.device) -> Self:
        """Return the same map on another device."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Numbers from which, with `tensors`, the same map can be made again."""

    @property
    @abstractmethod
    def tensors(self) -> dict[str, torch.Tensor]:
        """Tensors from which, with `parameters`, the same map can be made again."""

    @abstractmethod
    def signature(self) -> tuple[tuple[str, str], ...]:
        """Return the fields that name this map in a result's signature."""

    @abstractmethod
    def _defining(self) -> tuple[torch.Tensor, ...]: ...


def as_center(center: ArrayLike | torch.Tensor | None, dim: int) -> torch.Tensor:
    """Return the center of a map as a float32 tensor, shape (d,); None is zero."""
    mu = torch.zeros(dim) if center is None else torch.as_tensor(center, dtype=torch.float32).cpu()
    if mu.shape != (dim,):
        raise UsageError(f"the center must have shape ({dim},), got {tuple(mu.shape)}")
    return mu


class CosineFeatures(FeatureMap):
    """Exact features φ(x) = x/‖x‖ of the cosine kernel x·y/(‖x‖‖y‖), with as many entries as the embedding.

    Args:
        dim: number of entries of an embedding, d.
        device: device on which φ is computed.

    Raises:
        UsageError: `dim` is not positive, or so large that its square would not fit into memory.
        DataError: on use, an embedding is zero.

    Example:
        >>> import finc_eval as fe
        >>> phi = fe.CosineFeatures(2)
        >>> phi([[3.0, 4.0]])
        tensor([[0.6000, 0.8000]])
    """

    kernel: Kernel = "cosine"

    def __init__(self, dim: int, device: str | torch.device = "cpu") -> None:
        if not 0 < dim <= MAX_COSINE_ENTRIES:
            raise UsageError(
                f"the cosine kernel takes embeddings of 1 to {MAX_COSINE_ENTRIES} entries, got {dim}: use the Gaussian "
                "kernel"
            )
        self.center = torch.zeros(dim, device=device)

    @property
    def size(self) -> int:
        return self.dim

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return cosine_kernel(x.to(self.device), y.to(self.device))

    def to(self, device: str | torch.device) -> CosineFeatures:
        return CosineFeatures(self.dim, device)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"dim": self.dim}

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return {}

    def signature(self) -> tuple[tuple[str, str], ...]:
        return (("kernel", self.kernel),)

    def _check(self, rows: torch.Tensor) -> None:
        if not rows.any(dim=1).all():
            raise DataError("an embedding is zero, which has no cosine with others: leave it out")

    def apply(self, rows: torch.Tensor) -> torch.Tensor:
        return unit_rows(rows)

    def _defining(self) -> tuple[torch.Tensor, ...]:
        return (self.center,)

    def __repr__(self) -> str:
        return f"CosineFeatures(dim={self.dim})"
