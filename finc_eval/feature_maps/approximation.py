"""How well random features approximate their kernel: measured, bounded, and made good enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log

import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.feature_maps.base import FeatureMap

AUTO_FEATURES = (1000, 2000, 4000)
"""The numbers of frequencies that the paper tries, and "auto" chooses from."""

AUTO_BOUND = 0.01
"""Root mean square error of the kernel that "auto" asks for, of values between 0 and 1."""


@dataclass(frozen=True)
class KernelError:
    """How far φ(x)·φ(y) is from k(x, y), over all pairs of different rows of a subsample."""

    rms: float
    max: float
    pairs: int


def approximation_error(phi: FeatureMap, sample: torch.Tensor) -> KernelError:
    """The error of the feature map's kernel on `sample`, shape (m, d), m ≥ 2, against the exact kernel."""
    rows = sample.to(phi.device, torch.float32)
    if len(rows) < 2:
        raise FincEvalError(f"the error of a kernel needs at least 2 samples, got {len(rows)}")
    features = phi(rows)
    first, second = torch.triu_indices(len(rows), len(rows), offset=1, device=phi.device)
    # In float64 even the distances of enormous embeddings are finite.
    error = (features @ features.T - phi.exact(rows.double(), rows.double()))[first, second]
    return KernelError(rms=float(error.square().mean().sqrt()), max=float(error.abs().max()), pairs=error.numel())


def enough_features(
    make: Callable[[int], FeatureMap],
    sample: torch.Tensor,
    bound: float = AUTO_BOUND,
    candidates: Sequence[int] = AUTO_FEATURES,
) -> FeatureMap:
    """The map with the fewest frequencies whose measured error is within the bound, or else with the most.

    Args:
        make: the feature map with a number of frequencies.
        sample: embeddings to measure on, shape (m, d).
        bound: of the root mean square error over pairs of the sample.
        candidates: numbers of frequencies to try, ascending.
    """
    for features in candidates:
        phi = make(features)
        if approximation_error(phi, sample).rms <= bound:
            break
    return phi


def theorem_1_bound(n: int, m: int, features: int, rho: float = 1.0, delta: float = 0.05) -> float:
    """The error of the eigenvalues that the FINC paper's Theorem 1 allows, with probability 1 − δ.

    ε = (2(1 + ρ))^{3/2} · (ln((n + m)/δ) / r)^{1/4}

    It is far too loose to choose r by: eigenvalues lie between −ρ and 1, and at r = 2 000, n = m = 50 000, ρ = 1 the
    bound is 2.3; to bring it to 0.01 takes r 6 · 10¹² frequencies. Measure the error instead (`approximation_error`).

    Args:
        n: the size of one set.
        m: that of the other.
        features: r.
        rho: ρ ≥ 0.
        delta: δ, the probability that the bound fails, between 0 and 1.

    Raises:
        FincEvalError: when an argument is out of range.
    """
    if min(n, m, features) < 1 or not rho >= 0 or not 0 < delta < 1:
        raise FincEvalError(
            "the bound needs n, m and features of at least 1, rho of at least 0 and delta between 0 and 1, got "
            f"{n}, {m}, {features}, {rho} and {delta}"
        )
    bound: float = (2 * (1 + rho)) ** 1.5 * (log((n + m) / delta) / features) ** 0.25
    return bound
