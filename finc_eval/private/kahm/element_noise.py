"""Noise on every entry of every sample (Kumar, Moser, Fischer, JAIR 79, 2024, Result 1), and its guarantee.

The guarantee of the paper is about one entry: data sets are neighbors if they differ in one pixel. For a record of p
entries it is p times as much, and this is always printed. With ε = 1 per entry, an attacker who knows a row can say
with near certainty whether it was used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic import computed_field

from finc_eval.core.errors import DataError, UsageError, check_choice, check_fraction, check_positive
from finc_eval.core.record import Record, about

if TYPE_CHECKING:
    import torch

Adjacency = Literal["element", "record"]
"""Unit in which neighboring data sets differ: one entry of one sample, or one sample."""


@dataclass(frozen=True)
class ElementGuarantee(Record):
    """Guarantee for each entry and for each record.

    Attributes:
        adjacency: unit that ε and δ were asked for.
        epsilon, delta: guarantee for one entry.
        dim: p, number of entries of a record.
        private: whether the noise came from the operating system; noise of a seeded generator guarantees nothing.
    """

    adjacency: Adjacency
    epsilon: float
    delta: float
    dim: int
    private: bool = True

    @computed_field  # type: ignore[prop-decorator]
    @property
    def record_epsilon(self) -> float:
        """ε of a whole record: the entries compose."""
        return self.dim * self.epsilon

    @computed_field  # type: ignore[prop-decorator]
    @property
    def record_delta(self) -> float:
        """δ of a whole record."""
        return min(self.dim * self.delta, 1.0)

    def __str__(self) -> str:
        text = (
            f"({self.epsilon:g}, {self.delta:g})-DP per element, which is ({self.record_epsilon:g}, "
            f"{self.record_delta:g})-DP per record of {self.dim} entries; classes and their sizes are public"
        )
        return text if self.private else f"{text}; NOT PRIVATE: the noise came from a seeded generator"


@dataclass(frozen=True)
class ElementNoise(Record):
    """Noise that is 0 with probability δ, else Laplace of scale d/ε: (ε, δ)-DP for entries that differ by at most d.

    The atom at 0 leaves a share δ of all entries as they are, for everyone to see: choose δ far below 1/(Np). Laplace
    noise is the best under the paper's conditions only; above ε = 2 the staircase mechanism needs much less.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> noise = fe.kahm.ElementNoise(epsilon=8, delta=1e-7)
        >>> print(noise.guarantee(784))
        (8, 1e-07)-DP per element, which is (6272, 7.84e-05)-DP per record of 784 entries; ...
    """

    epsilon: Annotated[float, about("ε of the unit")]
    delta: Annotated[float, about("δ of the unit")] = 1e-5
    bounds: Annotated[
        tuple[float, float],
        about(
            "lowest and highest value of an entry, known without a look at the data; other values are clipped, and d "
            "is the difference"
        ),
    ] = (0.0, 1.0)
    adjacency: Annotated[
        Adjacency, about("unit: element as in the paper, or record, which gives every entry ε/p and δ/p")
    ] = "element"

    def __post_init__(self) -> None:
        self._store(
            epsilon=check_positive("epsilon", self.epsilon), delta=check_fraction("delta", self.delta, zero=True)
        )
        if len(self.bounds) != 2 or not -math.inf < self.bounds[0] < self.bounds[1] < math.inf:
            raise UsageError(f"bounds must be two finite numbers, the lower first, got {self.bounds}")
        check_choice("adjacency", self.adjacency, get_args(Adjacency))

    def guarantee(self, dim: int, *, private: bool = True) -> ElementGuarantee:
        """Return the guarantee for samples of `dim` entries."""
        parts = dim if self.adjacency == "record" else 1
        return ElementGuarantee(self.adjacency, self.epsilon / parts, self.delta / parts, dim, private)

    def add(self, samples: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """Return the samples plus noise on every entry, on a grid, in float64: (N, p) → (N, p).

        The step of the grid is a millionth of the noise, far coarser than floating point, whose last bits would give
        the sample away.

        Args:
            samples: finite samples, shape (N, p).
            generator: seeded generator for experiments that must repeat. Never use one for private data: its state can
                be guessed.

        Raises:
            DataError: an entry is not finite, so that noise cannot protect it.
        """
        import torch  # settings are read before the second that this takes

        from finc_eval.private.dp.gaussian_mechanism import GRID_BITS, secure_uniform

        if not bool(samples.isfinite().all()):
            raise DataError("samples that are to be protected hold NaN or infinity: map them to a constant")
        exact = samples.double().clamp(*self.bounds)
        guarantee, diameter = self.guarantee(samples.shape[1]), self.bounds[1] - self.bounds[0]
        if generator is None:
            uniform = secure_uniform(exact.shape).to(exact.device)
        else:
            uniform = torch.rand(exact.shape, dtype=torch.double, generator=generator, device=generator.device)
            uniform = uniform.clamp_min_(2.0**-54).to(exact.device)
        noise = noise_quantile(uniform, guarantee.epsilon, guarantee.delta, diameter)
        grid = 2.0 ** (math.floor(math.log2(diameter / guarantee.epsilon)) - GRID_BITS)
        return ((exact + noise) / grid).round_() * grid


def noise_quantile(t: torch.Tensor, epsilon: float, delta: float, diameter: float) -> torch.Tensor:
    """Return the quantile function of the noise (eq. 76) at t in (0, 1), any shape; the middle share δ of t gives 0.

    Args:
        t: probabilities.
        epsilon: ε of one entry.
        delta: δ of one entry.
        diameter: d, largest difference of an entry.

    Example:
        >>> import torch
        >>> import finc_eval as fe
        >>> fe.kahm.noise_quantile(torch.tensor([0.1, 0.9]), epsilon=1.0, delta=0.0, diameter=1.0).round(decimals=2)
        tensor([-1.6100,  1.6100])
    """
    import torch  # as in `ElementNoise.add`

    tail = torch.minimum(t, 1 - t)
    size = (-torch.log(2 * tail / (1 - delta))).clamp_min(0) * (diameter / epsilon)
    return torch.where(t < 0.5, -size, size)
