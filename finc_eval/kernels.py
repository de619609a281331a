"""The Gaussian kernel, the rule that chooses its bandwidth, and how well features approximate it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from finc_eval.errors import FincEvalError
from finc_eval.feature_maps import RandomFourierFeatures

BANDWIDTH_FACTOR = 0.5
"""σ over the reference's median pairwise distance; docs/method.md has the measurement behind it."""


def gaussian_kernel(x: torch.Tensor, y: torch.Tensor, sigma: float) -> torch.Tensor:
    """exp(−‖x−y‖²/(2σ²)) of every pair of rows: (n, d), (m, d) → (n, m).

    The convention with the 2, as in the FINC, KEN and RKE papers.
    """
    return torch.exp(-torch.cdist(x, y).square_() / (2 * sigma**2))


def median_bandwidth(sample: torch.Tensor) -> float:
    """σ = 0.5 × the median distance between two different rows of `sample`, shape (m, d).

    Raises:
        FincEvalError: when the median distance is zero, so that no bandwidth follows from the sample.
    """
    median = float(torch.pdist(sample).median()) if len(sample) > 1 else 0.0
    if median == 0:
        raise FincEvalError(
            "more than half of the pairs of reference embeddings are identical, so no bandwidth follows from "
            "their distances: pass sigma (--sigma), in the units of the embedding"
        )
    return BANDWIDTH_FACTOR * median


@dataclass(frozen=True)
class KernelError:
    """How far φ(x)·φ(y) is from k(x, y), over all pairs of different rows of a subsample."""

    rms: float
    max: float
    pairs: int


def approximation_error(phi: RandomFourierFeatures, sample: torch.Tensor) -> KernelError:
    """The error of the feature map's kernel on `sample`, shape (m, d), m ≥ 2, against the exact kernel."""
    rows = sample.to(phi.device, torch.float32)
    features = phi(rows)
    # Centred rows: the same distances, with less rounding.
    exact = gaussian_kernel(rows - phi.center, rows - phi.center, phi.sigma)
    first, second = torch.triu_indices(len(rows), len(rows), offset=1, device=phi.device)
    error = (features @ features.T - exact)[first, second]
    return KernelError(rms=float(error.square().mean().sqrt()), max=float(error.abs().max()), pairs=error.numel())
