"""Header of the file of a private sketch: everything that it says besides its numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from math import isclose, isfinite, sqrt
from typing import Any

from pydantic import computed_field

from finc_eval.core.record import Record
from finc_eval.core.signature import SignatureText
from finc_eval.privacy.dp.accounting import epsilon_of
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
        windows: largest number of records of one video; the guarantee is to a window, and to a video `of_video`.

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
    windows: int = 1

    @computed_field  # type: ignore[prop-decorator]
    @property
    def of_video(self) -> Guarantee | None:
        """Guarantee to a whole video, whose k windows spend k·μ (Dong et al. 2022, Theorem 4); None if k is 1."""
        one = self.guarantee
        if self.windows == 1:
            return None
        return Guarantee.of(epsilon_of(self.windows * one.mu, one.delta), one.delta, one.adjacency)

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


PRIVATE_SKETCH = "private sketch"
PRIVATE_SKETCH_LAYOUT = 2

PROMISE = (
    "Everything here that depends on the private records had Gaussian noise added before it was written. The releases "
    "state the guarantee to each record of a data set whose number of records is public. The noise comes from the "
    "operating system's random bytes, by inversion in float64, and is rounded to a grid of about 2^-20 of its size."
)


@dataclass(frozen=True)
class TransformHeader(Record):
    """Public transform without its arrays; `PublicTransform` says what the fields are."""

    digest: str
    origin: str
    dims: int
    radius: float
    length_scale: float
    space: str
    fitted_on: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SketchHeader(Record):
    """Header of a private sketch, for readers of the file and `finc-eval private sketch inspect`.

    Attributes:
        mean: SHA-256 of the released mean.
    """

    version: str = field(default_factory=lambda: version("finc-eval"))
    promise: str = PROMISE
    space: str
    transform: TransformHeader
    feature_map: dict[str, Any]
    classes: tuple[str, ...] | None
    features: int
    m: int
    noise: float
    mean: str
    releases: tuple[ReleaseRecord, ...]
    signature: SignatureText
