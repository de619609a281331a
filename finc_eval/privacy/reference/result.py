"""What scoring against a private sketch gives: scores, their parts, paired differences, as documents and pages."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from finc_eval.core.serialize import Document
from finc_eval.core.signature import Signature
from finc_eval.core.storage import write_text
from finc_eval.metrics.score import Score
from finc_eval.privacy.dp.gaussian_mechanism import Guarantee


@dataclass(frozen=True)
class Part:
    """The part of a score that some of the features make.

    Attributes:
        name: such as "degree 2" or "class cat".
        features: how many there are.
        value: what they add to the score.
        standard_error: of it.
        interval: of `mean_distance.interval`.
    """

    name: str
    features: int
    value: float
    standard_error: float
    interval: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """The part as plain JSON types."""
        return {
            "name": self.name,
            "features": self.features,
            "value": self.value,
            "standard_error": self.standard_error,
            "interval": list(self.interval),
        }


@dataclass(frozen=True)
class PrivateScore(Document):
    """MMD² between a generator and the private records behind a sketch.

    Attributes:
        name: of the generator.
        n: how many generated samples.
        value: the estimate for the two populations, unbiased, and so below zero at times.
        standard_error: of it, over noise, private records and generated samples.
        interval: of the value, as of `mean_distance.interval`; it holds more above the value than below.
        noise_interval: the same for the sets at hand, where the noise alone is uncertain.
        level: of all intervals.
        smallest_detected: the MMD² below which the noise alone hides any difference.
        degrees: its parts by the degree of the features.
        classes: its parts by class; empty without classes.
        guarantees: what the records of each owner are promised, owner by owner.
        signature: pins everything that changes the value save the generated set.
        notes: what to know before trusting it.
    """

    name: str
    n: int
    value: float
    standard_error: float
    interval: tuple[float, float]
    noise_interval: tuple[float, float]
    level: float
    smallest_detected: float
    degrees: tuple[Part, ...]
    classes: tuple[Part, ...]
    guarantees: tuple[Guarantee, ...]
    signature: Signature
    notes: tuple[str, ...] = ()

    @property
    def metric(self) -> Score:
        """The score beside other metrics, with its guarantee as a note."""
        hidden = f"the noise of the reference hides differences below {self.smallest_detected:.3g}"
        notes = (*map(str, self.guarantees), hidden, *self.notes)
        return Score(
            "private_mmd", self.value, self.signature, interval=self.interval, higher_is_better=False, notes=notes
        )

    def to_dict(self) -> dict[str, Any]:
        """The score as plain JSON types."""
        return {
            "program": "finc-eval",
            "version": version("finc-eval"),
            "schema": 1,
            "key": "private_mmd",
            "name": self.name,
            "n": self.n,
            "value": self.value,
            "standard_error": self.standard_error,
            "interval": list(self.interval),
            "noise_interval": list(self.noise_interval),
            "level": self.level,
            "smallest_detected": self.smallest_detected,
            "degrees": [part.to_dict() for part in self.degrees],
            "classes": [part.to_dict() for part in self.classes],
            "guarantees": [promised.to_dict() | {"promise": str(promised)} for promised in self.guarantees],
            "signature": str(self.signature),
            "notes": list(self.notes),
        }

    def to_html(self, path: str | Path) -> Path:
        """Write the page of this score: one self-contained HTML file."""
        from finc_eval.report.private import render_private

        return write_text(path, render_private((self,), (), self.level, self.guarantees, self.signature))

    def _repr_html_(self) -> str:
        from finc_eval.report.private import render_private_fragment

        return render_private_fragment((self,), (), self.level, self.guarantees)


@dataclass(frozen=True)
class PairedDifference:
    """MMD² of one generator less that of another, against one sketch.

    Attributes:
        first, second: the generators.
        value: below zero where the first is nearer to the private records.
        standard_error: of it.
        interval: value ∓ the normal quantile times the standard error.
        p_value: of no difference, two-sided, adjusted by Holm over all pairs.
    """

    first: str
    second: str
    value: float
    standard_error: float
    interval: tuple[float, float]
    p_value: float

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain JSON types."""
        return {
            "first": self.first,
            "second": self.second,
            "value": self.value,
            "standard_error": self.standard_error,
            "interval": list(self.interval),
            "p_value": self.p_value,
        }


@dataclass(frozen=True)
class PrivateComparison(Document):
    """Generators ranked by one private sketch.

    Attributes:
        scores: the nearest first.
        pairs: the differences of all pairs, the nearer first in each.
        level: of all intervals.
        guarantees: what the records of each owner are promised, owner by owner.
        signature: of every score.
    """

    scores: tuple[PrivateScore, ...]
    pairs: tuple[PairedDifference, ...]
    level: float
    guarantees: tuple[Guarantee, ...]
    signature: Signature

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain JSON types."""
        return {
            "program": "finc-eval",
            "version": version("finc-eval"),
            "schema": 1,
            "scores": [score.to_dict() for score in self.scores],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "level": self.level,
            "guarantees": [promised.to_dict() | {"promise": str(promised)} for promised in self.guarantees],
            "signature": str(self.signature),
        }

    def to_html(self, path: str | Path) -> Path:
        """Write the page of this comparison: one self-contained HTML file."""
        from finc_eval.report.private import render_private

        return write_text(path, render_private(self.scores, self.pairs, self.level, self.guarantees, self.signature))

    def _repr_html_(self) -> str:
        from finc_eval.report.private import render_private_fragment

        return render_private_fragment(self.scores, self.pairs, self.level, self.guarantees)
