"""`Score`: the value of one metric with everything that is needed to trust and compare it. `Scores`: several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from math import isfinite
from typing import Any, ClassVar

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.record import Record, plain
from finc_eval.core.serialize import Document, Shown
from finc_eval.core.signature import SignatureText
from finc_eval.core.words import join_words, plural
from finc_eval.numerics.inference import normal_quantile


@dataclass(frozen=True)
class Score(Record, Shown):
    """Value of one metric.

    Attributes:
        key: name of the number, such as "fid".
        value: the number.
        signature: everything that changes the value, except the generated set.
        unbiased: value without the bias that finite sets give it; None if it has none, or none that is known. The
            interval is around this number.
        interval: 95 % interval over other samples of the same sets; None if no method is known. Samples of a group,
            such as windows of a video, count as one as far as they are alike.
        of: class, if the value covers the samples of a class alone; None for whole sets.
        floor: value that the reference itself gets instead of the generated set; None if it was not computed.
        higher_is_better: whether a better generator has a larger value; None if neither direction is better.
        notes: what to know before trusting the value.
    """

    key: str
    value: float
    signature: SignatureText
    _: KW_ONLY
    of: str | None = None
    unbiased: float | None = None
    interval: tuple[float, float] | None = None
    floor: float | None = None
    higher_is_better: bool | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.interval is None:
            return
        low, high = self.interval
        if isfinite(self.center) and not (isfinite(low) and isfinite(high)):
            object.__setattr__(self, "interval", None)
            object.__setattr__(self, "notes", (*self.notes, "no interval: all samples of a set are of one group"))
            return
        # Computed in another order, the number can lie a rounding error outside.
        object.__setattr__(self, "interval", (min(low, self.center), max(high, self.center)))

    @property
    def center(self) -> float:
        """Number that the interval is around: the unbiased value, or else the value."""
        return self.value if self.unbiased is None else self.unbiased

    @property
    def standard_error(self) -> float | None:
        """Standard error behind the longer side of the interval; None without an interval."""
        if self.interval is None:
            return None
        return max(self.interval[1] - self.center, self.center - self.interval[0]) / normal_quantile()

    def _summary(self) -> str:
        interval = "" if self.interval is None else " [{:.4g}, {:.4g}]".format(*self.interval)
        return f"{self.name} {self.value:.4g}{interval}"

    @property
    def name(self) -> str:
        """Key of the number, with its class."""
        return self.key if self.of is None else f"{self.key} of {self.of}"


@dataclass(frozen=True, eq=False)
class Scores(Document):
    """Scores of a generated set, as `metrics` returns them: `scores["fd"]`, or `for score in scores`.

    By classes, `scores["fd", "cat"]` is the score of a class.

    Attributes:
        gen: name of the generated set.
        ref: name of the reference set.
        scores: the scores, in the order in which the metrics were asked for.
        failures: reason for each metric that could not be computed, by its name.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> scores = fe.metrics(*example_sets(300), ["vendi", "fid"])
        >>> f"{scores['vendi'].value:.1f}", scores["vendi"].notes[0]
        ('18.4', 'the floor is the score of the reference')
        >>> scores
        Scores(gen against ref; not computed: fid)
          vendi 18.41 [16.84, 20.13]
        >>> scores.failures["fid"]
        'fid is defined on inception-fid, and the embeddings of gen do not say which extractor made them: ...'
    """

    type_name: ClassVar[str] = "scores"
    page: ClassVar[str] = "finc_eval.measures.pages.scores"

    gen: str
    ref: str
    scores: tuple[Score, ...]
    failures: dict[str, str]

    def __getitem__(self, key: int | str | tuple[str, str]) -> Score:
        if isinstance(key, int):
            if not -len(self) <= key < len(self):
                raise IndexError(f"there are {plural(len(self), 'score')}, and {key} is not a place among them")
            return self.scores[key]
        key, of = (key, None) if isinstance(key, str) else key
        for score in self.scores:
            if (score.key, score.of) == (key, of):
                return score
        if of is not None:
            classes = [score.of for score in self.scores if score.of is not None]
            hint = did_you_mean(str(of), classes)
            raise UsageError(f"{key} was not computed for a class {of!r}{hint}: see the notes of {key}")
        if key in self.failures:
            raise DataError(f"{key} could not be computed: {self.failures[key]}")
        keys = [score.key for score in self.scores]
        raise UsageError(f"no score is called {key!r}{did_you_mean(str(key), keys)}: the scores are {join_words(keys)}")

    @property
    def value(self) -> float:
        """Value of the first score; most metrics have a single score."""
        if not self.scores:
            raise DataError("no metric could be computed: " + "; ".join(self.failures.values()))
        return self.scores[0].value

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def __contains__(self, key: object) -> bool:
        return any(key in (score, score.key) for score in self.scores)

    def _frame_rows(self) -> list[dict[str, Any]]:
        return [{"name": score.name, **plain(score)} for score in self.scores]

    def _lines(self) -> Iterator[str]:
        return (score._summary() for score in self.scores)

    def _summary(self) -> str:
        missing = f"; not computed: {', '.join(self.failures)}" if self.failures else ""
        return f"{self.gen} against {self.ref}{missing}"
