"""Gaussian differential privacy: exact conversion, composition, and what a guarantee means to an attacker.

One release x + N(0, s²I) of a statistic of sensitivity Δ is μ-GDP with μ = Δ/s, and releases compose exactly to
μ = √(Σ μᵢ²) (Dong, Roth, Su 2022, arXiv 1905.02383, corollary 2.13 and section 3.2): no other accountant is needed
unless records are subsampled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, expm1, inf, log, sqrt

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from finc_eval.core.errors import FincEvalError

SMALLEST, LARGEST = 1e-9, 1e4
"""Bounds of μ: below, nothing useful is left; above, nothing is protected."""

NEVER = -1e6
"""Stands for the log of a δ of 0, where a root is looked for."""


@dataclass(frozen=True)
class Ceilings:
    """The best that any attacker can do who must tell, of two data sets that differ in one record, which was used.

    Attributes:
        auc: area under the curve of his true over his false positives: Φ(μ/√2).
        advantage: largest difference of the two rates: 2Φ(μ/2) − 1.
        tpr_at_1_percent, tpr_at_01_percent: true positives where 1 %, and 0.1 %, of his alarms about non-members are
            false: Φ(Φ⁻¹(α) + μ).
    """

    auc: float
    advantage: float
    tpr_at_1_percent: float
    tpr_at_01_percent: float


def log_delta(mu: float, epsilon: float) -> float:
    """Log of the smallest δ for which μ-GDP is (ε, δ)-DP: δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)."""
    first = float(log_ndtr(-epsilon / mu + mu / 2))
    second = epsilon + float(log_ndtr(-epsilon / mu - mu / 2))
    return first + log(-expm1(second - first)) if second < first else -inf


def delta_of(mu: float, epsilon: float) -> float:
    """The smallest δ for which μ-GDP is (ε, δ)-DP."""
    return exp(log_delta(mu, epsilon))


def epsilon_of(mu: float, delta: float) -> float:
    """The smallest ε ≥ 0 for which μ-GDP is (ε, δ)-DP.

    Raises:
        FincEvalError: μ or δ is out of range.
    """
    _check_mu(mu)
    _check_delta(delta)
    if log_delta(mu, 0.0) <= log(delta):
        return 0.0
    most = 1.0
    while log_delta(mu, most) > log(delta):
        most *= 2
    return float(brentq(lambda epsilon: max(log_delta(mu, epsilon), NEVER) - log(delta), 0, most, xtol=1e-13))


def mu_of(epsilon: float, delta: float) -> float:
    """The largest μ for which μ-GDP is (ε, δ)-DP; the noise of a release of sensitivity Δ is then Δ/μ.

    Raises:
        FincEvalError: ε or δ is out of range.
    """
    if not 0 < epsilon < inf:
        raise FincEvalError(f"epsilon must be a positive number, got {epsilon}")
    _check_delta(delta)
    target = log(delta)
    if log_delta(LARGEST, epsilon) < target:
        raise FincEvalError(f"epsilon {epsilon:g} protects nothing: choose one below 1000")
    return float(brentq(lambda mu: max(log_delta(mu, epsilon), NEVER) - target, SMALLEST, LARGEST, xtol=1e-14))


def composed(mus: Iterable[float]) -> float:
    """The μ of several releases about the same records: √(Σ μᵢ²)."""
    return sqrt(sum(mu**2 for mu in mus))


def remaining(budget: float, spent: float) -> float:
    """The μ that may still be spent of a budget, both as μ; 0 where nothing is left."""
    return sqrt(max(budget**2 - spent**2, 0.0))


def ceilings(mu: float) -> Ceilings:
    """What a μ-GDP release grants the best attacker."""
    _check_mu(mu)
    return Ceilings(
        auc=float(ndtr(mu / sqrt(2))),
        advantage=float(2 * ndtr(mu / 2) - 1),
        tpr_at_1_percent=float(ndtr(ndtri(0.01) + mu)),
        tpr_at_01_percent=float(ndtr(ndtri(0.001) + mu)),
    )


def _check_mu(mu: float) -> None:
    if not 0 < mu < inf:
        raise FincEvalError(f"mu must be a positive number, got {mu}")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise FincEvalError(f"delta must lie between 0 and 1, got {delta}")
