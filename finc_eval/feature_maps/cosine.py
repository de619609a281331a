"""Exact features of the cosine kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.numerics.kernels import cosine_kernel, unit_rows
from finc_eval.numerics.names import Kernel

if TYPE_CHECKING:
    pass


LARGEST_COSINE = 16_384
"""Entries of an embedding up to which the identity serves as features: the covariance has their square."""


class CosineFeatures(FeatureMap):
    """The exact features of the cosine kernel x·y/(‖x‖‖y‖): φ(x) = x/‖x‖, with as many entries as the embedding.

    Args:
        dim: d, the number of entries of an embedding.
        device: where φ is computed and returned.

    Raises:
        FincEvalError: when dim is not positive, or so large that its square would not fit into memory; on use, when
            an embedding is zero.
    """

    kernel: Kernel = "cosine"

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
