"""Exact features of the cosine kernel."""

from __future__ import annotations

from typing import Any

import torch

from finc_eval.core.errors import DataError, UsageError
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.numerics.kernels import cosine_kernel, unit_rows
from finc_eval.numerics.names import Kernel

MAX_COSINE_ENTRIES = 16_384
"""Entries of an embedding up to which the cosine kernel is computed: the covariance has their square."""


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
        """Number of entries of φ(x), d."""
        return self.dim

    def exact(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Compute the cosine of every pair."""
        return cosine_kernel(x, y)

    def to(self, device: str | torch.device) -> CosineFeatures:
        """Return the same map on another device."""
        return CosineFeatures(self.dim, device)

    @property
    def parameters(self) -> dict[str, Any]:
        """Number of entries of an embedding."""
        return {"dim": self.dim}

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Empty: the map does not have tensors."""
        return {}

    def signature(self) -> tuple[tuple[str, str], ...]:
        """Return the kernel, which does not have parameters."""
        return (("kernel", self.kernel),)

    def _check(self, rows: torch.Tensor) -> None:
        if not rows.any(dim=1).all():
            raise DataError("an embedding is zero, which has no cosine with others: leave it out")

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        return unit_rows(rows)

    def _defining(self) -> tuple[torch.Tensor, ...]:
        return (self.center,)

    def __repr__(self) -> str:
        return f"CosineFeatures(dim={self.dim})"
