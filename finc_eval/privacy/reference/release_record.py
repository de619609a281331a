"""`ReleaseRecord`: what a private sketch states about the release of each owner."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose, isfinite, sqrt

from finc_eval.core.record import Record
from finc_eval.privacy.dp.guarantee import Guarantee

SQUARE_WEIGHT = 0.1
"""Weight of the coordinate that releases the mean of ‖φ‖². It enters the estimate divided by the number of records, so
it may be ten times as noisy as the others; at weight 1 it would make all noise √(3/2) times as large."""

MAX_DEVIATIONS = 10
"""Standard deviations of noise that no release exceeds."""


@dataclass(frozen=True)
class ReleaseRecord(Record):
    """One owner's contribution to a private sketch.

    Attributes:
        m: number of records.
        guarantee: guarantee to each record.
        sensitivity: largest distance by which one record moves the statistic before noise.
        noise: s, standard deviation of the noise on every entry.
        square: released mean of ‖φ‖², or 1 if that is known without the data.
        sampling: estimate of tr(S_P)/m from what was released.
        digest: SHA-256 of the released mean.

    Raises:
        ValueError: the numbers contradict each other, which happens only in a damaged or forged file.
    """

    m: int
    guarantee: Guarantee
    sensitivity: float
    noise: float
    square: float
    sampling: float
    digest: str

    def __post_init__(self) -> None:
        stated = self.guarantee
        least = (1 if stated.adjacency == "zero-out" else sqrt(2)) / self.m if self.m >= 2 else 0.0
        slack = MAX_DEVIATIONS * self.noise / SQUARE_WEIGHT
        if not (
            0 < least <= self.sensitivity * (1 + 1e-9)
            and isclose(self.noise, stated.noise(self.sensitivity), rel_tol=1e-6)
            and isclose(stated.mu, Guarantee.of(stated.epsilon, stated.delta, stated.adjacency).mu, rel_tol=1e-6)
            and -slack <= self.square <= 1 + slack
            and isfinite(self.sampling)
        ):
            raise ValueError(f"the release of {self.m} records contradicts itself")
