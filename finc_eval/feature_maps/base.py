"""The interface of feature maps φ: R^d → R^q whose inner products are, or approximate, a kernel."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.numerics.names import Kernel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class FeatureMap(ABC):
    """φ, as sketches and comparisons use it.

    Attributes:
        kernel: the name of the kernel, "gaussian" or "cosine".
        center: μ, shape (d,), subtracted before anything else where the kernel allows it, else zero.
        sigma: σ, the bandwidth; None for a kernel without one.
        seed: of the frequencies; 0 for a map without any.
    """

    kernel: Kernel
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
