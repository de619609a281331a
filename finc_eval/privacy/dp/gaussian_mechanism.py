"""The Gaussian mechanism: a statistic of known sensitivity plus unpredictable noise.

The guarantee is proved for real numbers. Computers represent them with two gaps that are closed here, and one that is
not. Noise comes from the operating system's random bytes alone, so there is no generator whose state could be guessed.
The released numbers are rounded to a grid far coarser than floating point, so their last bits reveal nothing (Mironov
2012). What remains: 63 random bits decide each number, which bounds the noise at 9.1 standard deviations and makes its
tails slightly uneven. That concerns probabilities below 1e-18, far below any δ in use. Time and memory do not depend on
the data.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from pydantic import computed_field
from scipy.special import ndtri

from finc_eval.core.checks import check_choice, check_positive
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.record import Record
from finc_eval.privacy.dp.accounting import Ceilings, ceilings, epsilon_of, mu_of

Adjacency = Literal["replace", "zero-out"]
"""Which data sets count as neighbors: those that differ in one record, or those where one record counts as nothing."""

Bound = Literal["tight", "paper"]
"""Bound on how far one replaced record moves a sum of features: √2, proved in docs/private_reference.md, or the paper's
2."""

GRID_BITS = 20
"""Releases are rounded to multiples of about 2⁻²⁰ of their noise, a millionth of what is uncertain anyway."""


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
        return cls(epsilon, delta, mu_of(epsilon, delta), adjacency)

    @classmethod
    def of_mu(cls, mu: float, delta: float, adjacency: Adjacency = "replace") -> Guarantee:
        """Return the guarantee with this μ, such as the one of composed releases, and its ε at this δ.

        Raises:
            UsageError: an argument is out of range.
        """
        check_choice("adjacency", adjacency, get_args(Adjacency))
        return cls(epsilon_of(mu, delta), delta, mu, adjacency)

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


def add_gaussian_noise(statistic: torch.Tensor, scale: float) -> torch.Tensor:
    """Return the statistic plus N(0, s²) on every entry, rounded to a grid: float64, same shape, on the CPU.

    Args:
        statistic: finite numbers, whose sensitivity the caller knows.
        scale: s > 0, standard deviation of the noise.

    Raises:
        DataError: an entry is not finite, for example because of a NaN in the data. It would not be protected.
    """
    exact = statistic.detach().double().cpu()
    if not bool(exact.isfinite().all()):
        raise DataError("a statistic that is to be released holds NaN or infinity: map such records to a constant")
    grid = 2.0 ** (math.floor(math.log2(scale)) - GRID_BITS)
    return ((exact + scale * secure_normal(exact.shape)) / grid).round() * grid


def secure_normal(shape: torch.Size | tuple[int, ...]) -> torch.Tensor:
    """Draw independent standard normal numbers, float64, by inversion from the operating system's random bytes."""
    bits = np.frombuffer(os.urandom(8 * math.prod(shape)), np.uint64)
    half = ((bits >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64  # uniform in (0, 1/2]
    numbers = np.where(bits & np.uint64(1), 1.0, -1.0) * -ndtri(half)
    return torch.from_numpy(numbers).reshape(shape)


def secure_uniform(shape: torch.Size | tuple[int, ...]) -> torch.Tensor:
    """Draw independent uniform numbers, float64, in the open interval (0, 1) from the system's random bytes."""
    bits = np.frombuffer(os.urandom(8 * math.prod(shape)), np.uint64)
    return torch.from_numpy(((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)
