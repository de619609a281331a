"""A metric's value with everything that is needed to trust and to compare it."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.serialize import Document
from finc_eval.core.signature import Signature


@dataclass(frozen=True)
class Score(Document):
    """The value of one metric.

    Attributes:
        key: its name, "fid".
        value: the number.
        interval: what 95 % of repetitions with other samples would give; None where nobody knows how to say.
        floor: the value for the reference itself, in place of the generated set; None where it was not computed.
        higher_is_better: whether a better generator has a larger value; None where neither is better.
        signature: pins everything that changes the value save the generated set.
        notes: what to know before trusting it.
    """

    key: str
    value: float
    interval: tuple[float, float] | None
    floor: float | None
    higher_is_better: bool | None
    signature: Signature
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The score as plain JSON types."""
        return {
            "key": self.key,
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "floor": self.floor,
            "higher_is_better": self.higher_is_better,
            "signature": str(self.signature),
            "notes": list(self.notes),
        }


def wilson(share: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share of n independent samples."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(center - half, 0.0), min(center + half, 1.0)


def mean_interval(values: NDArray[np.floating[Any]], level: float = 0.95) -> tuple[float, float]:
    """The interval of the mean of numbers that are none below zero: the mean ± z standard errors."""
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else 0.0
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    return max(mean - half, 0.0), mean + half
