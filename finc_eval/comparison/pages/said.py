"""Contents of all outputs of a comparison: its findings, and the kinds, looks, words and directions that they name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from finc_eval.comparison.direction import Direction
from finc_eval.comparison.headline import thing_of
from finc_eval.comparison.result import Comparison
from finc_eval.findings.finding import Finding
from finc_eval.naming.evidence import read_alike, starts_with_trait
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.pages.tables import UNDER
from finc_eval.report.exports.outline import Cell, TextTable
from finc_eval.report.formats import bare_percent, p_value


def as_said(comparison: Comparison) -> Comparison:
    """Return the comparison as outputs show it: what differs and is not said has no name, and counts as no difference.

    Kinds are said as parts of a finding, or as what follows from it. A kind that follows from a look, and is named by
    looks alone, has no other name than that look: no output calls one cause by two names.
    """
    found = comparison.findings
    known = {one for each in found for one in (each.name, *each.parts, *each.explains)}
    kinds = [one for one in comparison.kinds if one.p_value <= ALPHA and one.id not in known]
    if comparison.by_id is not None:
        kinds = []  # the table of kinds in both runs has all of them
    unsaid = {one.id for one in kinds}
    of_looks = {one for each in found if each.kind in ("look", "column") for one in each.explains}
    looks = tuple(one for one in comparison.looks if one.name in known)
    prompts = comparison.prompts
    if prompts is not None:
        words = [one for one in prompts.words if one not in prompts.clear or (one.text or "all prompts") in known]
        prompts = replace(prompts, words=tuple(words))
    shown = replace(
        comparison,
        kinds=tuple(_muted(one) if one.id in unsaid else _named_once(one, of_looks) for one in comparison.kinds),
        headings=tuple(one for one in comparison.headings if unsaid.isdisjoint(one.children)),
        looks=looks,
        prompts=prompts,
    )
    over, under = (
        tuple(one for one in each if not _is_unsaid(one, kinds, known, thing_of(comparison)))
        for each in (comparison.over, comparison.under)
    )
    return replace(shown, over=over, under=under)


def _is_unsaid(one: Direction, kinds: Sequence[Kind], known: Collection[str], thing: str) -> bool:
    """Return whether a direction shows a kind that is not said, or is itself what differs and is not said."""
    if thing == "direction":
        return one.p_value <= ALPHA and one.firm and one.id not in known
    return any(kind.id in one.kinds or read_alike(one, kind) for kind in kinds)


def _named_once(kind: Kind, of_looks: Collection[str]) -> Kind:
    """Return a kind without a name that says in other words what its cause is called."""
    is_twice = kind.id in of_looks and starts_with_trait(kind.name, kind.evidence)
    return replace(kind, name=None, evidence=()) if is_twice else kind


def _muted(kind: Kind) -> Kind:
    """Return a kind as outputs show what does not differ."""
    return replace(kind, p_value=1.0, name=None, evidence=(), part_of=None)


def findings_table(comparison: Comparison) -> list[TextTable]:
    """Return the table of what is said, each finding with what follows from it below; none without any.

    Kinds and directions have tables of their own; they stand here only if looks follow from them.
    """
    own = {kind.id for kind in comparison.kinds} | {one.id for one in comparison.directions}
    rows: list[list[Cell | str]] = []
    muted: list[bool] = []
    for one in comparison.findings:
        below = [name for name in one.explains if name not in own]
        if below or not (one.parts and own.issuperset(one.parts)):
            rows.append(_row(one))
            rows += [[f"{UNDER}{name}", "–", "–", "–"] for name in below]
            muted += [False, *(True for _ in below)]
    legend = "What stands below a finding follows from it."
    title, columns = "What differs", ["Finding", "Gen, %", "Ref, %", "Adj. p"]
    return [TextTable(title, columns, rows, muted=muted, legend=legend * any(muted))] if rows else []


def _row(one: Finding) -> list[Cell | str]:
    said = one.words if one.name in one.words else one.name
    shares = ["–", "–"] if one.shares is None else [bare_percent(share) for share in one.shares]
    return [said, *shares, "–" if one.p_value is None else p_value(one.p_value)]
