"""`Score`: the value of one metric with everything that is needed to trust and compare it. `Scores`: several."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from finc_eval.core.errors import did_you_mean
from finc_eval.core.record import Record
from finc_eval.core.serialize import Document
from finc_eval.core.signature import SignatureText


@dataclass(frozen=True)
class Score(Record):
    """Value of one metric.

    Attributes:
        key: name of the number, such as "fid".
        value: the number.
        signature: everything that changes the value, except the generated set.
        interval: 95 % interval over other samples of the same sets; None if no method is known.
        floor: value that the reference itself gets in place of the generated set; None if it was not computed.
        higher_is_better: whether a better generator has a larger value; None if neither direction is better.
        notes: what to know before trusting the value.
    """

    key: str
    value: float
    signature: SignatureText
    _: KW_ONLY
    interval: tuple[float, float] | None = None
    floor: float | None = None
    higher_is_better: bool | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Scores(Document):
    """Scores of a generated set, as `evaluate` returns them.

    Attributes:
        gen: name of the generated set.
        ref: name of the reference set.
        scores: the scores, in the order in which the metrics were asked for.
        failures: reason for each metric that could not be computed, by its name.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> scores = fe.evaluate(*example_sets(300), ["vendi", "kid"])
        >>> f"{scores['vendi'].value:.1f}", scores["vendi"].notes[0]
        ('18.4', 'the floor is the score of the reference')
        >>> scores.failures["kid"]
        "gen has 300 samples, fewer than KID's subsets of 1000: ..."
    """

    type_name: ClassVar[str] = "scores"

    gen: str
    ref: str
    scores: tuple[Score, ...]
    failures: dict[str, str]

    def __getitem__(self, key: str) -> Score:
        for score in self.scores:
            if score.key == key:
                return score
        raise KeyError(f"{key}{did_you_mean(key, [score.key for score in self.scores])}")
