"""`Evaluation`: the parts of an evaluation of one generator, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from finc_eval.comparison.methods import MethodComparison
from finc_eval.comparison.result import Comparison
from finc_eval.core.errors import DataError
from finc_eval.core.record import plain
from finc_eval.core.serialize import Document
from finc_eval.measures.score import Score, Scores
from finc_eval.memorization.result import Audit

PartName = Literal["comparison", "scores", "methods", "audit"]
PARTS: tuple[PartName, ...] = get_args(PartName)
"""Parts of an evaluation, which may lack any of them."""


@dataclass(frozen=True, eq=False)
class Evaluation(Document):
    """Result of `evaluate`: each part is a result of its own, with its own page and its own error.

    `evaluation["fd"]` is the score of a metric.

    No number joins them: a set can be close to its reference and copied, or far from it and honest.

    Attributes:
        comparison: kinds, whose shares add to 1, and directions on which the two sets differ; None of moments alone.
        scores: metrics of fidelity and diversity.
        methods: directions by FINC and by the baselines of its paper.
        audit: copies, attacks on membership, and the membership-inference score; None without training set and holdout.
        encodings: how the files of the two sets compare, in a sentence.
        missing: reason for each part that could not be computed, by its name.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> found = fe.evaluate(*example_sets(200), features=100)
        >>> found.audit is None, found.missing["audit"]
        (True, 'an audit needs a training set and a holdout')
    """

    type_name: ClassVar[str] = "evaluation"

    comparison: Comparison | None
    scores: Scores | None
    methods: MethodComparison | None
    audit: Audit | None
    encodings: str
    missing: dict[str, str]

    @property
    def parts(self) -> dict[str, Document]:
        """The parts that were computed, by name."""
        return {name: one for name in PARTS if (one := getattr(self, name)) is not None}

    def __getitem__(self, metric: str) -> Score:
        """Return the score of a metric, as `Scores` does."""
        if self.scores is None:
            raise DataError(f"no metric could be computed: {self.missing['scores']}")
        return self.scores[metric]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of all parts, each once."""
        return tuple(dict.fromkeys(warning for one in self.parts.values() for warning in getattr(one, "warnings", ())))

    def _frame_rows(self) -> list[dict[str, object]]:
        kinds = [{"part": "comparison", **plain(kind)} for kind in (self.comparison.kinds if self.comparison else ())]
        return kinds + [{"part": "scores", **plain(score)} for score in self.scores or ()]

    def _summary(self) -> str:
        whole = self.comparison or self.scores
        return f"{whole._summary() if whole else 'nothing computed'}; parts: {', '.join(self.parts)}"
