"""Membership score of a model's distances as page, notebook view and terminal table."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from finc_eval.kahm.membership import MembershipScore
from finc_eval.report.formats import p_value, percent
from finc_eval.report.pages import environment
from finc_eval.report.tables import print_table


def page(result: MembershipScore, samples: Mapping[str, Any]) -> str:
    """Return the page of a membership score as one HTML file that loads nothing."""
    template = environment().get_template("membership.html")
    return template.render(
        rows=rows(result), summary=summary(result), settings=result.settings, version=version("finc-eval")
    )


def fragment(result: MembershipScore) -> str:
    """Return the table of a membership score for a notebook."""
    template = environment().get_template("membership_fragment.html")
    return template.render(rows=rows(result), summary=summary(result))


def show(result: MembershipScore) -> None:
    """Print the table of a membership score."""
    print_table("Distances of members and of non-members", ["figure", "value"], [list(row) for row in rows(result)])
    print(summary(result))


def rows(result: MembershipScore) -> list[tuple[str, str]]:
    """Return the figures of a membership score with their names."""
    difference, attack = result.difference, result.attack
    low, high = attack.auc_interval
    found = [
        ("squared L2 difference of the densities, standardized", f"{difference.standardized:.3g}"),
        ("the same in 1/distance", f"{difference.value:.3g}"),
    ]
    if difference.p_value is not None:
        found += [
            ("95 % of equal densities stay below", f"{result.threshold_95:.3g}"),
            ("p-value", p_value(difference.p_value)),
        ]
    return [
        *found,
        (f"AUC of the attack [{percent(attack.confidence)}]", f"{attack.auc:.3f} [{low:.3f}, {high:.3f}]"),
        ("advantage", f"{attack.advantage:.3f}"),
        ("true positives at 1 % false ones", percent(attack.at_1_percent.tpr, 1)),
        ("true positives at 0.1 % false ones", percent(attack.at_01_percent.tpr, 1)),
        ("members and non-members", f"{attack.members:,} and {attack.non_members:,}"),
        ("of them without a distance", f"{result.undefined_members:,} and {result.undefined_non_members:,}"),
    ]


def summary(result: MembershipScore) -> str:
    """Return the direction of the difference as a sentence."""
    match result.direction:
        case "neither":
            return "The attack by distance does not tell members from non-members."
        case direction:
            return f"The attack by distance tells members from non-members: {direction}."
