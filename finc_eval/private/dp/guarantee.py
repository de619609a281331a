"""`Guarantee`: what (ε, δ)-differential privacy promises to each record, and what it follows from.

It follows from Gaussian differential privacy (GDP). To release x + N(0, s²I), where x has the sensitivity Δ, is μ-GDP
with μ = Δ/s. Several releases compose exactly to μ = √(Σ μᵢ²) (Dong, Roth, Su 2022, arXiv 1905.02383, corollary 2.13
and section 3.2). No other accountant is needed as long as records are not subsampled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import expm1, inf, log, sqrt
from typing import Literal, get_args

from pydantic import computed_field
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from finc_eval.core.errors import UsageError, check_choice, check_fraction, check_positive
from finc_eval.core.record import Record
from finc_eval.numerics.ceilings import Ceilings

MAX_MU = 1e4  # largest μ of a guarantee: above it nothing is protected

FOR_HOLDER = (
    "NOT PRIVATE, for the holder of the private records alone: these numbers are computed from them without noise, and "
    "no guarantee covers them."
)
"""First sentence of pages that measure a private output on the private records."""

LOG_OF_ZERO = -1e6  # finite stand-in for log 0, so that a root can be bracketed


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
    # 1e-9: μ below which nothing useful is left.
    return float(brentq(lambda mu: max(log_delta(mu, epsilon), LOG_OF_ZERO) - target, 1e-9, MAX_MU, xtol=1e-14))


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


Adjacency = Literal["replace", "zero-out"]
"""Kind of neighboring data sets: one record is replaced by another (replace), or counts as nothing (zero-out)."""

Bound = Literal["tight", "paper"]
"""Bound on how far one replaced record moves a sum of features: √2, proved in docs/private_reference.md, or the paper's
2."""


@dataclass(frozen=True)
class Guarantee(Record):
    """A differential privacy guarantee to each record of a data set. The number of records is public.

    Attributes:
        epsilon: ε of (ε, δ)-differential privacy.
        delta: δ of (ε, δ)-differential privacy.
        mu: μ of the Gaussian differential privacy that (ε, δ) follows from.
        adjacency: which data sets count as neighbors.

    Example:
        >>> import finc_eval as fe
        >>> guarantee = fe.privacy.Guarantee.of(epsilon=1, delta=1e-5)
        >>> round(guarantee.mu, 4), round(guarantee.ceilings.auc, 3)
        (0.2681, 0.575)
        >>> round(guarantee.noise(sensitivity=2**0.5 / 1000), 5)
        0.00528
    """

    epsilon: float
    delta: float
    mu: float
    adjacency: Adjacency = "replace"

    @classmethod
    def of(cls, epsilon: float, delta: float, adjacency: Adjacency = "replace") -> Guarantee:
        """Return the guarantee with this ε and δ.

        Raises:
            UsageError: an argument is out of range.
        """
        check_choice("adjacency", adjacency, get_args(Adjacency))
        epsilon, delta = check_positive("epsilon", epsilon), check_fraction("delta", delta)
        return cls(epsilon, delta, mu_of(epsilon, delta), adjacency)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ceilings(self) -> Ceilings:
        """Upper limits of any attack."""
        return ceilings(self.mu)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def promise(self) -> str:
        """The guarantee in words."""
        return str(self)

    def noise(self, sensitivity: float) -> float:
        """Return the standard deviation s = Δ/μ of the noise on a statistic of sensitivity Δ that spends all of μ.

        Raises:
            UsageError: the sensitivity is not a positive number.
        """
        check_positive("sensitivity", sensitivity)
        return sensitivity / self.mu

    def check_delta(self, records: int) -> None:
        """Raise UsageError if δ is so large that one of the records could be published whole."""
        if self.delta * records >= 1:
            raise UsageError(
                f"delta {self.delta:g} is not below one over the {records} records, so one of them could be published "
                "whole: choose a smaller delta, such as 1e-5"
            )

    def __str__(self) -> str:
        most = self.ceilings
        return (
            f"({self.epsilon:g}, {self.delta:g})-DP, {self.adjacency} adjacency (mu = {self.mu:.4g}): any attacker's "
            f"AUC ≤ {most.auc:.3f}, advantage ≤ {most.advantage:.3f}, true positives ≤ {most.tpr_at_1_percent:.2%} at "
            f"1 % and ≤ {most.tpr_at_01_percent:.3%} at 0.1 % false positives"
        )
