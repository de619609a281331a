"""Kernels of pairs of embeddings, exactly."""

from __future__ import annotations

import torch


def gaussian_kernel(x: torch.Tensor, y: torch.Tensor, sigma: float) -> torch.Tensor:
    """exp(−‖x−y‖²/(2σ²)) of every pair of rows: (n, d), (m, d) → (n, m).

    The convention with the 2, as in the FINC, KEN and RKE papers.
    """
    return torch.exp(-torch.cdist(x, y).square_() / (2 * sigma**2))


def cosine_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x·y/(‖x‖‖y‖) of every pair of rows: (n, d), (m, d) → (n, m)."""
    return unit_rows(x) @ unit_rows(y).T


def unit_rows(rows: torch.Tensor) -> torch.Tensor:
    """Every row divided by its norm, which float32 could not always hold."""
    norms: torch.Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.double)
    return (rows / norms).to(rows.dtype)
