"""Results of scoring generators against a private sketch: scores, their parts, and paired differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from finc_eval.core.record import Record, plain
from finc_eval.core.serialize import Document
from finc_eval.core.signature import SignatureText
from finc_eval.privacy.dp.guarantee import Guarantee


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
        degrees: parts of the score by degree of the features.
        classes: parts of the score by class; empty without classes.
        guarantees: guarantee to the records of each owner.
        signature: everything that changes the value, except for the generated set.
        notes: reasons to doubt the value.
    """

    type_name: ClassVar[str] = "private-score"

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
        scores: score of each generator, the nearest first.
        pairs: differences of all pairs, the nearer generator first.
        confidence: confidence of all intervals.
        guarantees: guarantee to the records of each owner.
        signature: signature of every score.
    """

    type_name: ClassVar[str] = "private-comparison"

    scores: tuple[PrivateScore, ...]
    pairs: tuple[PairedDifference, ...]
    confidence: float
    guarantees: tuple[Guarantee, ...]
    signature: SignatureText

    def _frame_rows(self) -> list[dict[str, object]]:
        columns = ("name", "n", "value", "standard_error", "interval", "noise_interval")
        return [{name: getattr(one, name) for name in columns} for one in self.scores]

    def _summary(self) -> str:
        return "nearest first: " + ", ".join(f"{one.name} {one.value:.3g}" for one in self.scores)
