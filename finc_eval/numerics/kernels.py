"""Exact kernels of pairs of embeddings."""

from __future__ import annotations

from collections.abc import Callable

import torch

PairKernel = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""A kernel of every pair of rows: (n, d), (m, d) → (n, m)."""


def gaussian_kernel(x: torch.Tensor, y: torch.Tensor, sigma: float) -> torch.Tensor:
    """Compute exp(−‖x−y‖²/(2σ²)) of every pair of rows: (n, d), (m, d) → (n, m).

    The FINC, KEN and RKE papers have the same factor 2 in the exponent.
    """
    return torch.exp(-torch.cdist(x, y).square_() / (2 * sigma**2))


def cosine_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compute x·y/(‖x‖‖y‖) of every pair of rows: (n, d), (m, d) → (n, m)."""
    return unit_rows(x) @ unit_rows(y).T


def unit_rows(rows: torch.Tensor) -> torch.Tensor:
    """Divide every row by its norm, computed in float64 because it can overflow in float32."""
    norms: torch.Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.double)
    return (rows / norms).to(rows.dtype)
