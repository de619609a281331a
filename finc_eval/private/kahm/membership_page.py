"""The page, the notebook view and the terminal table of a membership score."""

from __future__ import annotations

from finc_eval.core.words import percent
from finc_eval.memorization.membership import SCORE_COLUMNS, score_cells, score_sentence
from finc_eval.private.kahm.membership import MembershipScore
from finc_eval.report import Page
from finc_eval.report.exports.outline import Outline, TextTable, call

COLUMNS = ("Figure", "Value")

HOW = (
    "The score is the squared L2 distance between the densities of two sets of distances to a model, in 1/distance; "
    "the standardized score is this number times the deviation of the distances. It is above 0 for "
    "equal densities, so compare it with the value that 95 % of equal densities stay below. The attack takes samples "
    "for members the nearer they are to the model. A finding is a fact about these distances; without a finding, other "
    "attacks may still find members."
)


def figures(result: MembershipScore) -> list[tuple[str, str]]:
    """Return the names and values of the numbers of a score."""
    difference, attack = result.difference, result.attack
    low, high = attack.auc_interval
    return [
        *zip(SCORE_COLUMNS, score_cells(difference), strict=True),
        (
            f"AUC of the attack by distance, and interval at {percent(attack.confidence)}",
            f"{attack.auc:.3f} [{low:.3f}, {high:.3f}]",
        ),
        ("Advantage", f"{attack.advantage:.3f}"),
        ("True positives at 1 %", percent(attack.at_1_percent.tpr, 1)),
        ("True positives at 0.1 %", percent(attack.at_01_percent.tpr, 1)),
        ("Members and non-members", f"{attack.members:,} and {attack.non_members:,}"),
        ("Samples without a distance", f"{result.undefined_members:,} and {result.undefined_non_members:,}"),
    ]


def outline(result: MembershipScore) -> Outline:
    """Return what the score says in all outputs."""
    attack = result.attack
    return Outline(
        kind="membership score of a model's distances",
        title="Membership-inference score: members against non-members",
        says=says(result),
        sets={"members": attack.members, "non-members": attack.non_members},
        signatures=[result.settings or "settings of the model unknown"],
        call=call(
            "kahm.membership_score",
            "members",
            "non_members",
            *([f"settings={result.settings!r}"] if result.settings else []),
        ),
        tables=[TextTable("Figures", COLUMNS, figures(result), words=COLUMNS[:1])],
        how=HOW,
    )


def says(result: MembershipScore) -> dict[str, str]:
    """Return the score with its null, and what the attack by distance achieves."""
    achieved = (
        f"The attack by distance distinguishes members from non-members: {result.direction}."
        if result.direction != "neither"
        else "The attack by distance does not distinguish members from non-members."
    )
    return {"score": score_sentence(result.difference), "attack": achieved}


PAGE = Page(says, outline)
