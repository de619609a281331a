"""The page, the notebook view and the terminal table of the changes between two releases of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from finc_eval.comparison.changes import ORDER, Change, Changes
from finc_eval.comparison.direction import Role
from finc_eval.core.words import percent, plural, points
from finc_eval.naming.evidence import SLIGHT, with_id
from finc_eval.numerics.inference import ALPHA, BESIDE_ALPHA
from finc_eval.partitions.pages.cards import kinds_on_page
from finc_eval.report import Page
from finc_eval.report.exports.outline import Outline, TextTable, call, sizes, unreadable
from finc_eval.report.formats import bare_percent, p_value, points_interval
from finc_eval.report.pages import Section, render
from finc_eval.samples.source import Samples

MEANING = (
    "A kind is new or gone if hardly the old or the new release differs from the reference in it. It has grown or "
    "shrunk if its share moved away from the reference's share, or towards it. What the old release never made is "
    "counted with the kinds that it is nearest to: divide both releases and the reference together to see it (kinds)."
)
"""Meaning of the status of a kind, and what is not seen."""

SIDE: dict[Role, str] = {"over": "more than the reference", "under": "less than the reference"}

COLUMNS: dict[str, Callable[[Change], str]] = {
    "Kind": lambda change: with_id(change.kind),
    "Status": lambda change: change.status,
    "Old, %": lambda change: bare_percent(change.kind.shares["old"].share),
    "New, %": lambda change: bare_percent(change.kind.shares["new"].share),
    "Ref, %": lambda change: bare_percent(change.share_ref),
    "Change, points": lambda change: f"{points(change.change)} {points_interval(change.interval)}",
    "Adj. p": lambda change: p_value(change.kind.p_value),
}
"""The columns of a table of changes, on the terminal, in Markdown and in notebooks."""


def page(changes: Changes, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    tags = {change.id: f"{change.status}, {SIDE[change.role]}" for change in changes}
    table, cards = kinds_on_page(
        [change.kind for change in changes],
        (),
        {"new": "the new release", "old": "the old release"},
        changes.shown,
        lambda kind: tags[kind.id],
        heading="that changed",
        others="not shown to have changed",
        nothing="No kind is shown to have changed.",
    )
    facts: list[tuple[str, object]] = [(with_id(change.kind), percent(change.share_ref, 1)) for change in changes]
    sections = [Section("modes", "", cards=cards)]
    sections += [Section("reference", "Shares of the reference", facts=facts)] if facts else []
    return render(changes, outline(changes), changes.gallery_of(samples), forest=table, sections=sections)


def outline(changes: Changes) -> Outline:
    """Return what the changes say in all outputs."""
    return Outline(
        kind="two releases of a model, each compared with the same reference",
        title="Changes between two releases",
        says=says(changes),
        sets=sizes(changes.sets),
        signatures=[changes.old, changes.new],
        call=call("compare_releases", "old", "new", *([f"alpha={changes.alpha!r}"] if changes.alpha != ALPHA else [])),
        tables=[TextTable.of("Kinds of the two releases", COLUMNS, changes, words=["Status"])] if len(changes) else [],
        details=[MEANING] if len(changes) else [],
        failures=unreadable(changes.sets),
        how="Both releases were divided into the kinds of the comparison of the old one, in which every sample "
        f"belongs to exactly one kind. {MEANING} A change counts with p ≤ {changes.alpha:g}, adjusted for all kinds of "
        "the tree. All others are unchanged, or undecided if most of the difference from the reference seems to have "
        "come or gone.",
    )


def says(changes: Changes) -> dict[str, str]:
    """Return what changed, in a sentence."""
    p = changes.sets_p_value
    if p is not None and p <= BESIDE_ALPHA and not any(change.has_changed for change in changes):
        return {"sets": f"The releases differ (p = {p:.2g}), but no kind does: {SLIGHT}."}
    nothing = "Nothing changed" if p is None else "The releases do not differ significantly"
    if not len(changes):
        return {"nothing": f"{nothing}: no kind differs in either comparison (adjusted p ≤ {changes.alpha:g})."}
    if all(change.status == "unchanged" for change in changes):
        return {"nothing": f"{nothing}: no share of a kind is significantly larger or smaller than it was."}
    counts = {status: sum(change.status == status for change in changes) for status in ORDER}
    followed = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    were = "was" if len(changes) == 1 else "were"
    return {"kinds": f"{plural(len(changes), 'kind')} {were} followed: {followed}."}


PAGE = Page(says, outline, draw=page)
