"""Gaussian differential privacy (GDP): conversion to (ε, δ), composition, and the limits of any attacker.

To release x + N(0, s²I), where x has the sensitivity Δ, is μ-GDP with μ = Δ/s. Several releases compose exactly to
μ = √(Σ μᵢ²) (Dong, Roth, Su 2022, arXiv 1905.02383, corollary 2.13 and section 3.2). No other accountant is needed as
long as records are not subsampled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import expm1, inf, log, sqrt

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from finc_eval.core.checks import check_fraction, check_positive
from finc_eval.core.errors import UsageError
from finc_eval.core.record import Record

MIN_MU, MAX_MU = 1e-9, 1e4
"""Range in which μ is searched: below it nothing useful is left, above it nothing is protected."""

LOG_OF_ZERO = -1e6
"""Finite stand-in for log 0, so that a root can be bracketed."""


@dataclass(frozen=True)
class Ceilings(Record):
    """Upper limits of any attack that must decide which of two data sets, one record apart, was used.

    Attributes:
        auc: area under the attack's ROC curve: Φ(μ/√2).
        advantage: largest difference between true and false positive rate: 2Φ(μ/2) − 1.
        tpr_at_1_percent: true positive rate at a false positive rate α of 1 %: Φ(Φ⁻¹(α) + μ).
        tpr_at_01_percent: true positive rate at a false positive rate of 0.1 %.
    """

    auc: float
    advantage: float
    tpr_at_1_percent: float
    tpr_at_01_percent: float


def log_delta(mu: float, epsilon: float) -> float:
    """Return log δ of the smallest δ for which μ-GDP is (ε, δ)-DP: δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)."""
    first = float(log_ndtr(-epsilon / mu + mu / 2))
    second = epsilon + float(log_ndtr(-epsilon / mu - mu / 2))
    return first + log(-expm1(second - first)) if second < first else -inf


def epsilon_of(mu: float, delta: float) -> float:
    """Return the smallest ε ≥ 0 for which μ-GDP is (ε, δ)-DP."""
    check_positive("mu", mu)
    check_fraction("delta", delta)
    if log_delta(mu, 0.0) <= log(delta):
        return 0.0
    most = 1.0
    while log_delta(mu, most) > log(delta):
        most *= 2
    return float(brentq(lambda epsilon: max(log_delta(mu, epsilon), LOG_OF_ZERO) - log(delta), 0, most, xtol=1e-13))


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest μ for which μ-GDP is (ε, δ)-DP. A release of sensitivity Δ then needs noise Δ/μ."""
    check_positive("epsilon", epsilon)
    check_fraction("delta", delta)
    target = log(delta)
    if log_delta(MAX_MU, epsilon) < target:
        raise UsageError(f"epsilon {epsilon:g} protects nothing: choose one below 1000")
    return float(brentq(lambda mu: max(log_delta(mu, epsilon), LOG_OF_ZERO) - target, MIN_MU, MAX_MU, xtol=1e-14))


def compose(mus: Iterable[float]) -> float:
    """Return the μ of several releases about the same records: √(Σ μᵢ²)."""
    return sqrt(sum(mu**2 for mu in mus))


def remaining(budget: float, spent: float) -> float:
    """Return the part of a budget that may still be spent, all as μ; 0 when the budget is used up."""
    return sqrt(max(budget**2 - spent**2, 0.0))


def ceilings(mu: float) -> Ceilings:
    """Return the limits of any attack on a μ-GDP release."""
    check_positive("mu", mu)
    return Ceilings(
        auc=float(ndtr(mu / sqrt(2))),
        advantage=float(2 * ndtr(mu / 2) - 1),
        tpr_at_1_percent=float(ndtr(ndtri(0.01) + mu)),
        tpr_at_01_percent=float(ndtr(ndtri(0.001) + mu)),
    )
