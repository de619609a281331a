"""The Gaussian mechanism: a statistic of known sensitivity, plus noise that nobody can predict.

The guarantee is one of real numbers. Of their representation on a computer two gaps are closed here, and one is not:
the noise comes from the operating system's source of random bytes alone, from no generator with a state that could be
guessed; and what is released is rounded to a grid far coarser than the numbers between which floating point cannot
choose freely, so that the last bits say nothing (Mironov 2012). What remains is that 63 random bits decide each
number, which bounds it at 9.1 deviations and makes tails a little uneven: probabilities below 1e-18, which no δ in
use is near. Time and memory taken do not depend on the data.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy.special import ndtri

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.privacy.dp.accounting import Ceilings, ceilings, epsilon_of, mu_of

Adjacency = Literal["replace", "zero-out"]
"""Which data sets are neighbors: those of one size that differ in one record, or where one counts as nothing."""

GRID_BITS = 20
"""A release is rounded to multiples of about 2⁻²⁰ of its noise: 10⁻⁶ of what is uncertain anyway."""


@dataclass(frozen=True)
class Guarantee:
    """What is promised to each record of a data set about everything released with this budget.

    Attributes:
        epsilon, delta: (ε, δ)-differential privacy.
        mu: the same as Gaussian differential privacy, of which (ε, δ) is one point.
        adjacency: which data sets are neighbors; their size is public.
    """

    epsilon: float
    delta: float
    mu: float
    adjacency: Adjacency = "replace"

    @classmethod
    def of(cls, epsilon: float, delta: float, adjacency: Adjacency = "replace") -> Guarantee:
        """The guarantee with this ε and δ.

        Raises:
            FincEvalError: one of them is out of range.
        """
        check_adjacency(adjacency)
        return cls(epsilon, delta, mu_of(epsilon, delta), adjacency)

    @classmethod
    def of_mu(cls, mu: float, delta: float, adjacency: Adjacency = "replace") -> Guarantee:
        """That of a composition: μ and the ε it comes to at this δ."""
        check_adjacency(adjacency)
        return cls(epsilon_of(mu, delta), delta, mu, adjacency)

    @property
    def ceilings(self) -> Ceilings:
        """What the best attacker can do."""
        return ceilings(self.mu)

    def noise(self, sensitivity: float) -> float:
        """The standard deviation s = Δ/μ of the noise for a statistic of this sensitivity Δ, spending all of μ.

        Raises:
            FincEvalError: the sensitivity is not a positive number.
        """
        if not 0 < sensitivity < math.inf:
            raise FincEvalError(f"sensitivity must be a positive number, got {sensitivity}")
        return sensitivity / self.mu

    def check_delta(self, records: int) -> None:
        """Raise FincEvalError where δ allows to publish one of so many records whole."""
        if self.delta * records >= 1:
            raise FincEvalError(
                f"delta {self.delta:g} is not below one over the {records} records, and would allow to publish one of "
                "them whole: choose a smaller one, such as 1e-5"
            )

    def to_dict(self) -> dict[str, Any]:
        """The guarantee and its ceilings as plain JSON types."""
        most = self.ceilings
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mu": self.mu,
            "adjacency": self.adjacency,
            "ceilings": {
                "auc": most.auc,
                "advantage": most.advantage,
                "tpr_at_1_percent": most.tpr_at_1_percent,
                "tpr_at_01_percent": most.tpr_at_01_percent,
            },
        }

    def __str__(self) -> str:
        most = self.ceilings
        return (
            f"({self.epsilon:g}, {self.delta:g})-DP, {self.adjacency} adjacency (mu = {self.mu:.4g}): any attacker's "
            f"AUC ≤ {most.auc:.3f}, advantage ≤ {most.advantage:.3f}, true positives ≤ {most.tpr_at_1_percent:.2%} at "
            f"1 % and ≤ {most.tpr_at_01_percent:.3%} at 0.1 % false ones"
        )


def check_adjacency(adjacency: str) -> None:
    """Raise FincEvalError unless this is the name of an adjacency."""
    if adjacency not in get_args(Adjacency):
        names = get_args(Adjacency)
        raise FincEvalError(
            f"adjacency must be one of {', '.join(names)}, got {adjacency!r}{did_you_mean(adjacency, names)}"
        )


def released(statistic: torch.Tensor, scale: float) -> torch.Tensor:
    """The statistic plus N(0, s²) on every entry, on a grid: float64, of the same shape, on the CPU.

    Args:
        statistic: finite; its sensitivity is for the caller to know.
        scale: s > 0, the standard deviation of the noise.

    Raises:
        FincEvalError: an entry is not finite, as after a NaN in the data: there would be no protection.
    """
    exact = statistic.detach().double().cpu()
    if not bool(exact.isfinite().all()):
        raise FincEvalError("a statistic that is to be released holds NaN or infinity: map such records to a constant")
    grid = 2.0 ** (math.floor(math.log2(scale)) - GRID_BITS)
    return ((exact + scale * secure_normal(exact.shape)) / grid).round() * grid


def secure_normal(shape: torch.Size | tuple[int, ...]) -> torch.Tensor:
    """Independent standard normal numbers, float64, from the operating system's random bytes by inversion."""
    bits = np.frombuffer(os.urandom(8 * math.prod(shape)), np.uint64)
    half = ((bits >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64  # uniform in (0, 1/2]
    numbers = np.where(bits & np.uint64(1), 1.0, -1.0) * -ndtri(half)
    return torch.from_numpy(numbers).reshape(shape)


def secure_uniform(shape: torch.Size | tuple[int, ...]) -> torch.Tensor:
    """Independent uniform numbers in (0, 1), neither end among them, float64, from the system's random bytes."""
    bits = np.frombuffer(os.urandom(8 * math.prod(shape)), np.uint64)
    return torch.from_numpy(((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)
