"""Contents of all outputs of a comparison: its findings, and the kinds, looks, words and directions that they name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from finc_eval.comparison.direction import Direction
from finc_eval.comparison.headline import thing_of
from finc_eval.comparison.result import Comparison
from finc_eval.findings.finding import OF_TRAITS, Finding
from finc_eval.naming.evidence import SLIGHT, read_alike, starts_with_trait
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.pages.tables import UNDER
from finc_eval.report.exports.outline import Cell, TextTable
from finc_eval.report.formats import p_value


def as_said(comparison: Comparison) -> Comparison:
    """Return the comparison as outputs show it: what differs and is not said has no name, and counts as no difference.

    Kinds are said as parts of a finding, or as what follows from it. A kind that follows from a look, and is named by
    looks alone, has no other name than that look: no output calls one cause by two names.
    """
    found = comparison.findings
    known = {name for each in found for name in (each.name, *each.parts, *each.explains)}
    kinds = [kind for kind in comparison.kinds if kind.p_value <= ALPHA and kind.id not in known]
    if comparison.by_id is not None:
        kinds = []  # the table of kinds in both runs has all of them
    unsaid = {kind.id for kind in kinds}
    of_looks = {id for each in found if each.kind in (*OF_TRAITS, "drift") for id in each.explains}
    looks = tuple(look for look in comparison.looks if look.name in known)
    prompts = comparison.prompts
    if prompts is not None:
        words = [word for word in prompts.words if word not in prompts.clear or (word.text or "all prompts") in known]
        prompts = replace(prompts, words=tuple(words))
    shown = replace(
        comparison,
        kinds=tuple(_muted(kind) if kind.id in unsaid else _named_once(kind, of_looks) for kind in comparison.kinds),
        headings=tuple(heading for heading in comparison.headings if unsaid.isdisjoint(heading.children)),
        looks=looks,
        parts=tuple(part for part in comparison.parts if (SLIGHT if part.at_least is None else part.words) in known),
        prompts=prompts,
    )
    over, under = (
        tuple(direction for direction in each if not _is_unsaid(direction, kinds, known, thing_of(comparison)))
        for each in (comparison.over, comparison.under)
    )
    return replace(shown, over=over, under=under)


def _is_unsaid(direction: Direction, kinds: Sequence[Kind], known: Collection[str], thing: str) -> bool:
    """Return whether a direction shows a kind that is not said, or is itself what differs and is not said."""
    if thing == "direction":
        return direction.p_value <= ALPHA and direction.firm and direction.id not in known
    return any(kind.id in direction.kinds or read_alike(direction, kind) for kind in kinds)


def _named_once(kind: Kind, of_looks: Collection[str]) -> Kind:
    """Return a kind without a name that says in other words what its cause is called."""
    is_twice = kind.id in of_looks and starts_with_trait(kind.name, kind.evidence)
    return replace(kind, name=None, evidence=()) if is_twice else kind


def _muted(kind: Kind) -> Kind:
    """Return a kind as outputs show what does not differ."""
    return replace(kind, p_value=1.0, name=None, evidence=(), part_of=None)


def findings_table(comparison: Comparison, samples: int = 0) -> list[TextTable]:
    """Return the table of what is said, each finding with what follows from it below; none without any.

    Kinds and directions have tables of their own; they stand here only if looks follow from them. `samples` is how many
    samples show each finding.
    """
    ids = {kind.id for kind in comparison.kinds} | {direction.id for direction in comparison.directions}
    rows: list[list[Cell | str]] = []
    muted: list[bool] = []
    for finding in comparison.findings:
        below = [name for name in finding.explains if name not in ids]
        if below or not (finding.parts and ids.issuperset(finding.parts)):
            rows.append(_row(finding, samples))
            rows += [[f"{UNDER}{name}", "–", "–", "–"] for name in below]
            muted += [False, *(True for _ in below)]
    legend = "What stands below a finding follows from it."
    title, columns = "What differs", ["Finding", "Gen, %", "Ref, %", "Adj. p"]
    return [TextTable(title, columns, rows, muted=muted, legend=legend * any(muted))] if rows else []


def course_tables(comparison: Comparison) -> list[TextTable]:
    """Return a table of each drift of clips: what it drifts, in each part of the time, in both sets."""
    return [
        TextTable(
            f"Over time: clips {finding.name}",
            ["Seconds", "Gen", "Ref"],
            [[f"{seconds:.2f}", f"{gen:.3g}", f"{ref:.3g}"] for seconds, gen, ref in finding.course],
            legend="Means of all clips; of freezes and loops, the share of clips in which they go on.",
        )
        for finding in comparison.findings
        if finding.course
    ]


def _row(finding: Finding, samples: int) -> list[Cell | str]:
    shown = [("gen" if finding.is_more else "ref", finding.ids[:samples])] if samples and finding.ids else []
    return [
        Cell(finding.in_tables, samples=shown),
        *finding.share_cells,
        "–" if finding.p_value is None else p_value(finding.p_value),
    ]
