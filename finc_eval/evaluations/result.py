"""`Evaluation`: the parts of an evaluation of one generator, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from finc_eval.comparison.methods import MethodComparison
from finc_eval.comparison.result import Comparison
from finc_eval.core.record import plain
from finc_eval.core.serialize import Document
from finc_eval.measures.score import Scores
from finc_eval.memorization.result import Audit

PartName = Literal["scores", "methods", "audit"]
PARTS: tuple[PartName, ...] = get_args(PartName)
"""Parts besides the comparison; an evaluation may lack any of them."""


@dataclass(frozen=True, eq=False)
class Evaluation(Document):
    """Result of `evaluate`: each part is a result of its own, with its own page and its own error.

    No number joins them: a set can be close to its reference and copied, or far from it and honest.

    Attributes:
        comparison: kinds, whose shares add to 1, and directions on which the two sets differ.
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

    comparison: Comparison
    scores: Scores | None
    methods: MethodComparison | None
    audit: Audit | None
    encodings: str
    missing: dict[str, str]

    @property
    def parts(self) -> dict[str, Document]:
        """The parts that were computed, by name."""
        found: dict[str, Document | None] = {"comparison": self.comparison} | {
            name: getattr(self, name) for name in PARTS
        }
        return {name: one for name, one in found.items() if one is not None}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of all parts, each once."""
        return tuple(dict.fromkeys(warning for one in self.parts.values() for warning in getattr(one, "warnings", ())))

    def _frame_rows(self) -> list[dict[str, object]]:
        kinds = [{"part": "comparison", **plain(kind)} for kind in self.comparison.kinds]
        return kinds + [{"part": "scores", **plain(score)} for score in self.scores or ()]

    def _summary(self) -> str:
        return f"{self.comparison._summary()}; parts: {', '.join(self.parts)}"
