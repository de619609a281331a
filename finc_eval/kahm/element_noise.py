"""Noise on every entry of every sample, as in Kumar, Moser and Fischer (JAIR 79, 2024, Result 1), and its promise.

The promise of the paper is about one entry: data sets are neighbors that differ in one pixel. What it comes to for
a record of p entries is p times as much, and is always said here. With ε = 1 an entry, an attacker who knows a row
tells with near certainty whether it was used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.privacy.dp.gaussian_mechanism import GRID_BITS, secure_uniform

Unit = Literal["element", "record"]
"""What neighboring data sets differ in: one entry of one sample, or one sample."""


@dataclass(frozen=True)
class ElementGuarantee:
    """What is promised about each entry, and about each record.

    Attributes:
        adjacency: the unit that ε and δ were asked for.
        epsilon, delta: of one entry.
        dim: p, entries of a record.
        private: whether the noise came from the operating system; that of a seeded generator promises nothing.
    """

    adjacency: Unit
    epsilon: float
    delta: float
    dim: int
    private: bool = True

    @property
    def record_epsilon(self) -> float:
        """ε of a whole record: that of p entries composes."""
        return self.dim * self.epsilon

    @property
    def record_delta(self) -> float:
        """δ of a whole record."""
        return min(self.dim * self.delta, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as plain JSON types."""
        return {
            "adjacency": self.adjacency,
            "element": {"epsilon": self.epsilon, "delta": self.delta},
            "record": {"epsilon": self.record_epsilon, "delta": self.record_delta},
            "dim": self.dim,
            "private": self.private,
        }

    def __str__(self) -> str:
        promise = (
            f"({self.epsilon:g}, {self.delta:g})-DP per element, which is ({self.record_epsilon:g}, "
            f"{self.record_delta:g})-DP per record of {self.dim} entries; classes and their sizes are public"
        )
        return promise if self.private else f"{promise}; NOT PRIVATE: the noise came from a seeded generator"


@dataclass(frozen=True)
class ElementNoise:
    """0 with probability δ, else Laplace noise of scale d/ε: (ε, δ)-DP for entries that differ by at most d.

    The atom leaves a share δ of all entries as they are, for everyone to see: choose δ far below 1/(Np). Laplace noise
    is the best under the paper's conditions only; above ε = 2 the staircase mechanism has much less.

    Attributes:
        epsilon, delta: of the unit.
        bounds: what all entries are known to lie between, whatever the data; others are clipped. d is their
            difference.
        adjacency: the unit: "element" as in the paper, or "record", where every entry gets ε/p and δ/p.

    Raises:
        FincEvalError: one of them is out of range.
    """

    epsilon: float
    delta: float = 1e-5
    bounds: tuple[float, float] = (0.0, 1.0)
    adjacency: Unit = "element"

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise FincEvalError(f"epsilon must be a positive number, got {self.epsilon}")
        if not 0 <= self.delta < 1:
            raise FincEvalError(f"delta must lie in [0, 1), got {self.delta}")
        low, high = self.bounds
        if not -math.inf < low < high < math.inf:
            raise FincEvalError(f"bounds must be two finite numbers, the lower first, got {self.bounds}")
        if self.adjacency not in get_args(Unit):
            hint = did_you_mean(self.adjacency, get_args(Unit))
            raise FincEvalError(f"adjacency must be one of element, record, got {self.adjacency!r}{hint}")

    def guarantee(self, dim: int, *, private: bool = True) -> ElementGuarantee:
        """The promise about samples of `dim` entries."""
        parts = dim if self.adjacency == "record" else 1
        return ElementGuarantee(self.adjacency, self.epsilon / parts, self.delta / parts, dim, private)

    def added(self, samples: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """The samples plus noise on every entry, on a grid, float64: (N, p) → (N, p).

        The grid is a millionth of the noise, far coarser than floating point, whose last bits would tell the sample.

        Args:
            samples: finite.
            generator: for experiments that must repeat, and never for private data: its state can be guessed.

        Raises:
            FincEvalError: an entry is not finite: there would be no protection.
        """
        if not bool(samples.isfinite().all()):
            raise FincEvalError("samples that are to be protected hold NaN or infinity: map them to a constant")
        exact = samples.double().clamp(*self.bounds)
        promise, diameter = self.guarantee(samples.shape[1]), self.bounds[1] - self.bounds[0]
        if generator is None:
            uniform = secure_uniform(exact.shape).to(exact.device)
        else:
            uniform = torch.rand(exact.shape, dtype=torch.double, generator=generator, device=generator.device)
            uniform = uniform.clamp_min_(2.0**-54).to(exact.device)
        noise = quantile(uniform, promise.epsilon, promise.delta, diameter)
        grid = 2.0 ** (math.floor(math.log2(diameter / promise.epsilon)) - GRID_BITS)
        return ((exact + noise) / grid).round_() * grid


def quantile(t: torch.Tensor, epsilon: float, delta: float, diameter: float) -> torch.Tensor:
    """The quantile function of the noise (eq. 76): t in (0, 1), any shape; 0 in the middle share δ of it."""
    tail = torch.minimum(t, 1 - t)
    size = (-torch.log(2 * tail / (1 - delta))).clamp_min(0) * (diameter / epsilon)
    return torch.where(t < 0.5, -size, size)
