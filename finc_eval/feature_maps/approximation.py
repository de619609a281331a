"""The error with which random features approximate their kernel: measured, bounded, and kept small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import torch

from finc_eval.core.errors import DataError, check_count, check_fraction, check_positive
from finc_eval.core.record import Record
from finc_eval.feature_maps.base import FeatureMap

AUTO_FEATURES = (1000, 2000, 4000)  # numbers of frequencies that the paper tries, from which "auto" chooses
AUTO_BOUND = 0.01  # root mean square error of the kernel, whose values lie between 0 and 1, that "auto" allows


@dataclass(frozen=True)
class KernelError(Record):
    """Error of φ(x)·φ(y) against k(x, y), over all pairs of different rows of a subsample.

    Attributes:
        rms: root mean square error.
        max: largest absolute error.
        pairs: number of pairs.
    """

    rms: float
    max: float
    pairs: int


def approximation_error(phi: FeatureMap, sample: torch.Tensor) -> KernelError:
    """Measure the error of a feature map's kernel against the exact kernel.

    Args:
        phi: the feature map.
        sample: embeddings to measure on, shape (m, d), m ≥ 2.

    Raises:
        DataError: there are fewer than two samples.

    Example:
        >>> import finc_eval as fe, torch
        >>> from finc_eval.demo import example_sets
        >>> from finc_eval.feature_maps.approximation import approximation_error
        >>> sample = torch.from_numpy(example_sets(100)[0])
        >>> few, many = (fe.RandomFourierFeatures(784, r, sigma=5.0) for r in (100, 2000))
        >>> approximation_error(many, sample).rms < 0.3 * approximation_error(few, sample).rms
        True
    """
    rows = sample.to(phi.device, torch.float32)
    if len(rows) < 2:
        raise DataError(f"the error of a kernel needs at least 2 samples, got {len(rows)}")
    features = phi(rows)
    # In float64 even the distances of enormous embeddings are finite.
    error = (features @ features.T - phi.exact(rows.double(), rows.double())).fill_diagonal_(0)
    pairs = len(rows) * (len(rows) - 1) // 2
    return KernelError(
        rms=float((error.square().sum() / (2 * pairs)).sqrt()), max=float(error.abs().max()), pairs=pairs
    )


def enough_features(make: Callable[[int], FeatureMap], sample: torch.Tensor) -> FeatureMap:
    """Return the map with the fewest frequencies whose measured error is within the bound, or the largest map."""
    for features in AUTO_FEATURES:
        phi = make(features)
        if approximation_error(phi, sample).rms <= AUTO_BOUND:
            break
    return phi


def theorem_1_bound(n: int, m: int, features: int, rho: float = 1.0, delta: float = 0.05) -> float:
    """Compute the FINC paper's bound on the error of eigenvalues, which holds with probability 1 − δ (Theorem 1).

    ε = (2(1 + ρ))^{3/2} · (ln((n + m)/δ) / r)^{1/4}

    It is far too loose to choose r by. Eigenvalues lie between −ρ and 1, and at r = 2 000, n = m = 50 000, ρ = 1 the
    bound is 2.3; a bound of 0.01 takes 6 · 10¹² frequencies. Measure the error instead (`approximation_error`).

    Args:
        n: size of one set.
        m: size of the other set.
        features: number of frequencies r.
        rho: ρ ≥ 0.
        delta: probability δ that the bound fails, between 0 and 1.

    Raises:
        UsageError: an argument is out of range.

    Example:
        >>> from finc_eval.feature_maps.approximation import theorem_1_bound
        >>> round(theorem_1_bound(50_000, 50_000, features=2000), 2)
        2.33
    """
    for name, count in (("n", n), ("m", m), ("features", features)):
        check_count(name, count)
    check_fraction("delta", delta)
    if rho != 0:
        check_positive("rho", rho)
    bound: float = (2 * (1 + rho)) ** 1.5 * (log((n + m) / delta) / features) ** 0.25
    return bound


def eigenvector_residuals(
    phi: FeatureMap, x: torch.Tensor, y: torch.Tensor, rho: float = 1.0, count: int = 10
) -> torch.Tensor:
    """Measure how far eigenvectors of random features are from eigenvectors of the kernel (Theorem 1, second half).

    The leading eigenvectors u of C_X − ρ·C_Y, with eigenvalues λ, are lifted to the space of the kernel by way of the
    samples: v = Σ w_i (φ(z_i)·u) k(·, z_i), with w_i = 1/n on x and −ρ/m on y. An exact eigenvector v has Λv = λv. The
    theorem bounds ‖Λv − λv‖ by 2(1 + ρ) times `theorem_1_bound`. It prints v with weights of 1 on both sets, for which
    the bound fails; with the weights here, and for ‖v‖ = 1, it holds.

    Args:
        phi: feature map.
        x: embeddings of one set, shape (n, d). The kernel matrix of both sets together is held in memory.
        y: embeddings of the other set, shape (m, d).
        rho: ρ ≥ 0.
        count: number of eigenvectors, with the largest eigenvalues.

    Returns:
        ‖Λv − λv‖/‖v‖ of each eigenvector, shape (count,).

    Example:
        >>> import finc_eval as fe, torch
        >>> from finc_eval.demo import example_sets
        >>> from finc_eval.feature_maps.approximation import eigenvector_residuals, theorem_1_bound
        >>> x, y = map(torch.from_numpy, example_sets(100))
        >>> found = eigenvector_residuals(fe.RandomFourierFeatures(784, 1000, sigma=5.0), x, y, count=3)
        >>> bool((found < 2 * (1 + 1) * theorem_1_bound(100, 100, features=1000)).all())
        True
    """
    check_count("count", count, least=1)
    rows = torch.cat([x, y]).to(phi.device).double()
    weights = torch.cat([torch.full((len(x),), 1 / len(x)), torch.full((len(y),), -rho / len(y))]).to(rows)[:, None]
    # Features in an orthonormal basis of the features of the samples, which may be far fewer than the entries of φ.
    features, kernel = torch.linalg.qr(phi(rows).double().T, mode="r").R.T, phi.exact(rows, rows)
    eigenvalues, vectors = torch.linalg.eigh(features.T @ (weights * features))
    eigenvalues, vectors = eigenvalues[-count:].flip(0), vectors[:, -count:].flip(1)
    lifted = weights * (features @ vectors)
    residuals = weights * (kernel @ lifted) - eigenvalues * lifted

    def norm(coefficients: torch.Tensor) -> torch.Tensor:
        return (coefficients * (kernel @ coefficients)).sum(0).clamp_min(0).sqrt()

    return norm(residuals) / norm(lifted)
