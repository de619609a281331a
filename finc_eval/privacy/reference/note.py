"""What a private sketch says of each owner's release: its size, its noise, and what its records are promised."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isclose, isfinite, sqrt
from typing import Any

import torch

from finc_eval.privacy.dp.gaussian_mechanism import Guarantee


@dataclass(frozen=True)
class Release:
    """What one owner has put into a sketch.

    Attributes:
        m: how many records.
        guarantee: what each of them is promised.
        sensitivity: how far one record moves what was released before noise.
        noise: s, the standard deviation of the noise on every entry.
        square: the released mean of ‖φ‖², or 1 where that is known without looking.
        sampling: an estimate of tr(S_P)/m, from what was released.
        digest: of the released mean.

    Raises:
        ValueError: the numbers contradict each other, as only those of a damaged or a forged file do.
    """

    m: int
    guarantee: Guarantee
    sensitivity: float
    noise: float
    square: float
    sampling: float
    digest: str

    def __post_init__(self) -> None:
        promised = self.guarantee
        least = (1 if promised.adjacency == "zero-out" else sqrt(2)) / self.m if self.m >= 2 else 0.0
        if not (
            0 < least <= self.sensitivity * (1 + 1e-9)
            and isclose(self.noise, promised.noise(self.sensitivity), rel_tol=1e-6)
            and isclose(
                promised.mu, Guarantee.of(promised.epsilon, promised.delta, promised.adjacency).mu, rel_tol=1e-6
            )
            and isfinite(self.square)
            and isfinite(self.sampling)
        ):
            raise ValueError(f"the release of {self.m} records contradicts itself")

    def to_dict(self) -> dict[str, Any]:
        """The release as plain JSON types."""
        return asdict(self) | {"guarantee": self.guarantee.to_dict(), "promise": str(self.guarantee)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Release:
        """What `to_dict` gave."""
        numbers = dict(content)
        numbers.pop("promise")
        said = numbers.pop("guarantee")
        said = {name: said[name] for name in ("epsilon", "delta", "mu", "adjacency")}
        return cls(guarantee=Guarantee(**said), **numbers)


def digest_of(mean: torch.Tensor) -> str:
    """SHA-256 of a released mean, float64."""
    return hashlib.sha256(mean.contiguous().numpy().tobytes()).hexdigest()
