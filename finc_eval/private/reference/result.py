"""Scores of generators against a private sketch, with their parts and paired differences, and its file's header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import combinations
from math import isclose, isfinite, sqrt
from typing import Any, ClassVar

import torch
from pydantic import computed_field

from finc_eval.core.record import Record, plain
from finc_eval.core.serialize import Document
from finc_eval.core.signature import SignatureText
from finc_eval.numerics.families import holm
from finc_eval.private.dp.guarantee import Guarantee, epsilon_of
from finc_eval.private.reference import mean_distance
from finc_eval.private.reference.mean_distance import NoisyMean, SampleMean

SQUARE_WEIGHT = 0.1
"""Weight of the coordinate that releases the mean of ‖φ‖². It enters the estimate divided by the number of records, so
it may be ten times as noisy as the others; at weight 1 it would make all noise √(3/2) times as large."""


PRIVATE_SKETCH = "private sketch"

DISTANCE = "Distance from the private records (DP-HP, MMD²)"
"""Name of the score against a private sketch, with the method and the unit."""

DISTANCE_KEY = "private.distance"
"""Key of that score on boards and in policies."""

PRIVATE_SKETCH_LAYOUT = 2

PROMISE = (
    "Everything here that depends on the private records had Gaussian noise added before it was written. The releases "
    "state the guarantee to each record of a data set whose number of records is public. The noise comes from the "
    "operating system's random bytes, by inversion in float64, and is rounded to a grid of about 2^-20 of its size."
)


@dataclass(frozen=True)
class Part(Record):
    """The part of a score that comes from some of the features.

    Attributes:
        name: name of the part, such as "degree 2" or "class cat".
        features: number of these features.
        value: their contribution to the score.
        standard_error: standard error of the value.
        interval: confidence interval of the value.
    """

    name: str
    features: int
    value: float
    standard_error: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class PrivateScore(Document):
    """MMD² between a generator and the private records behind a sketch.

    Attributes:
        name: name of the generator.
        n: number of generated samples.
        value: unbiased estimate for the two populations. It may be below zero.
        standard_error: standard error over noise, private records and generated samples.
        interval: confidence interval of the value. It reaches farther above the value than below.
        noise_interval: interval for the two sets at hand, where the noise alone is uncertain.
        confidence: confidence of all intervals.
        smallest_detected: MMD² below which the noise alone hides any difference.
        by_chance: MMD² that as many samples of the private records' own law get at most; 0 on average.
        degrees: parts of the score by degree of the features.
        classes: parts of the score by class; empty without classes.
        guarantees: guarantee to the records of each owner.
        signature: everything that changes the value, except for the generated set.
        notes: reasons to doubt the value.
    """

    type_name: ClassVar[str] = "private-score"
    page: ClassVar[str] = "finc_eval.private.reference.page"

    name: str
    n: int
    value: float
    standard_error: float
    interval: tuple[float, float]
    noise_interval: tuple[float, float]
    confidence: float
    smallest_detected: float
    degrees: tuple[Part, ...]
    classes: tuple[Part, ...]
    guarantees: tuple[Guarantee, ...]
    signature: SignatureText
    notes: tuple[str, ...] = ()
    by_chance: float | None = None

    def _frame_rows(self) -> list[dict[str, object]]:
        whole = {name: getattr(self, name) for name in ("value", "standard_error", "interval")}
        return [{"name": "all", **whole}, *(dict(plain(part)) for part in (*self.degrees, *self.classes))]

    def _summary(self) -> str:
        low, high = self.interval
        return f"{self.name}: MMD² {self.value:.3g} [{low:.3g}, {high:.3g}]"


@dataclass(frozen=True)
class PairedDifference(Record):
    """Difference of the MMD² of two generators against one sketch.

    Attributes:
        first: name of the first generator.
        second: name of the second generator.
        value: MMD² of the first minus MMD² of the second; negative if the first is nearer to the private records.
        standard_error: standard error of the difference.
        interval: normal confidence interval of the difference.
        p_value: two-sided p-value of no difference, adjusted for all pairs (Holm).
    """

    first: str
    second: str
    value: float
    standard_error: float
    interval: tuple[float, float]
    p_value: float


@dataclass(frozen=True)
class PrivateComparison(Document):
    """Generators ranked by one private sketch.

    Attributes:
        scores: score of each generator, the nearest first, and last the score of the yardstick, if there is one.
        pairs: differences of all pairs, the nearer generator first.
        confidence: confidence of all intervals.
        guarantees: guarantee to the records of each owner.
        signature: signature of every score.
        yardstick: name of the score of real samples, such as a holdout, which is not ranked; None without one.
    """

    type_name: ClassVar[str] = "private-comparison"
    page: ClassVar[str] = "finc_eval.private.reference.page"

    scores: tuple[PrivateScore, ...]
    pairs: tuple[PairedDifference, ...]
    confidence: float
    guarantees: tuple[Guarantee, ...]
    signature: SignatureText
    yardstick: str | None = None

    @property
    def generators(self) -> tuple[PrivateScore, ...]:
        """Scores of the generators, the nearest first."""
        return tuple(score for score in self.scores if score.name != self.yardstick)

    @property
    def real(self) -> PrivateScore | None:
        """Score of the yardstick; None without one."""
        return next((score for score in self.scores if score.name == self.yardstick), None)

    def _frame_rows(self) -> list[dict[str, object]]:
        columns = ("name", "n", "value", "standard_error", "interval", "noise_interval")
        return [{name: getattr(score, name) for name in columns} for score in self.scores]

    def _summary(self) -> str:
        ranked = "nearest first: " + ", ".join(f"{score.name} {score.value:.3g}" for score in self.generators)
        return ranked if self.real is None else f"{ranked}; real samples, {self.yardstick}: {self.real.value:.3g}"


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
        window = self.guarantee
        if self.windows == 1:
            return None
        return Guarantee.of(epsilon_of(self.windows * window.mu, window.delta), window.delta, window.adjacency)

    def __post_init__(self) -> None:
        stated = self.guarantee
        least = (1 if stated.adjacency == "zero-out" else sqrt(2)) / self.m if self.m >= 2 else 0.0
        # 10: standard deviations of noise that no release exceeds.
        slack = 10 * self.noise / SQUARE_WEIGHT
        if not (
            0 < least <= self.sensitivity * (1 + 1e-9)
            and isclose(self.noise, stated.noise(self.sensitivity), rel_tol=1e-6)
            and isclose(stated.mu, Guarantee.of(stated.epsilon, stated.delta, stated.adjacency).mu, rel_tol=1e-6)
            and -slack <= self.square <= 1 + slack
            and isfinite(self.sampling)
        ):
            raise ValueError(f"the release of {self.m} records contradicts itself")


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
class PrivateSketchHeader(Record):
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


def estimate_part(name: str, ref: NoisyMean, gen: SampleMean, confidence: float) -> Part:
    """Estimate the squared distance of a generator, or of some of its features."""
    value = mean_distance.squared_distance(ref, gen)
    error = sqrt(mean_distance.variance(ref, gen))
    return Part(name, len(ref.mean), value, error, mean_distance.interval(ref, gen, confidence))


def estimate_parts(
    ref: NoisyMean, gen: SampleMean, entries: Mapping[str, torch.Tensor], confidence: float
) -> tuple[Part, ...]:
    """Estimate the squared distance part by part; `entries` are the indices of φ in each part, by the part's name."""
    return tuple(
        estimate_part(name, *mean_distance.part(ref, gen, chosen), confidence) for name, chosen in entries.items()
    )


def paired_differences(
    ref: NoisyMean, gens: Mapping[str, SampleMean], confidence: float
) -> tuple[PairedDifference, ...]:
    """Estimate the differences of all pairs of generators, in their order, with p-values adjusted by Holm."""
    scores = dict(zip(gens, mean_distance.compared(ref, tuple(gens.values())), strict=True))
    estimates = {names: mean_distance.apart(*(scores[name] for name in names)) for names in combinations(gens, 2)}
    adjusted = holm([found.p_value for found in estimates.values()])
    return tuple(
        PairedDifference(*names, found.value, found.standard_error, found.interval_at(confidence), float(p))
        for (names, found), p in zip(estimates.items(), adjusted, strict=True)
    )
