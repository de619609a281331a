"""Every type of result by its name; a class loads on first use."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from finc_eval.core.serialize import Document

RESULTS: dict[str, str] = {
    "comparison": "finc_eval.comparison.result:Comparison",
    "kinds": "finc_eval.partitions.kinds:Kinds",
    "leaderboard": "finc_eval.leaderboards.result:Leaderboard",
    "methods": "finc_eval.comparison.methods:MethodComparison",
    "spaces": "finc_eval.comparison.spaces:Spaces",
    "sweep": "finc_eval.comparison.sweep:Sweep",
    "course": "finc_eval.monitoring.course:Course",
    "trainings": "finc_eval.monitoring.trainings.result:Trainings",
    "changes": "finc_eval.comparison.changes:Changes",
    "scores": "finc_eval.measures.score:Scores",
    "evaluation": "finc_eval.evaluations.evaluation:Evaluation",
    "verdict": "finc_eval.gates.verdict:Verdict",
    "night": "finc_eval.golden.result:Night",
    "audit": "finc_eval.memorization.result:Audit",
    "membership-score": "finc_eval.private.kahm.membership:MembershipScore",
    "models-fit": "finc_eval.private.kahm.models_fit:ModelsFit",
    "classification": "finc_eval.private.kahm.classification:Classification",
    "fabrication": "finc_eval.private.kahm.fabrication_result:Fabrication",
    "private-score": "finc_eval.private.reference.result:PrivateScore",
    "synthesis": "finc_eval.private.synthesis.result:Synthesis",
    "utility": "finc_eval.private.synthesis.utility:Utility",
    "private-leaderboard": "finc_eval.private.reference.board:PrivateBoard",
    "private-comparison": "finc_eval.private.reference.result:PrivateComparison",
}
"""Every type of result, and its class."""


def result_class(type_name: str) -> type[Document]:
    """Return the class of a type of result."""
    return cast("type[Document]", resolve_name(RESULTS[type_name]))
