"""The page, the notebook view and the terminal table of a verdict."""

from __future__ import annotations

from collections.abc import Mapping

from finc_eval.gallery.gallery import read_gallery
from finc_eval.gates.verdict import Limit, Verdict
from finc_eval.report.exports.made import call, source
from finc_eval.report.exports.outline import Outline, Table, sizes, unreadable
from finc_eval.report.pages import LEAD_SAMPLES, render, table_fragment
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.samples import Samples

COLUMNS = ["Limit", "Verdict", "Value", "Interval", "Allowed", "Seen from", "Samples to decide"]
"""Columns of a table of limits."""

WITH_PICTURES = 30
"""Limits that a page shows samples of, the most urgent ones."""


def page(result: Verdict, samples: Mapping[str, Samples]) -> str:
    """Return the page: one HTML file that loads nothing, with the limits first that did not hold, and their samples."""
    pictured = [limit for limit in result.by_urgency if limit.examples][:WITH_PICTURES]
    shown = {
        label: [id for limit in pictured for id in limit.examples.get(label, ())[:LEAD_SAMPLES]]
        for label in result.sets
    }
    gallery = read_gallery(result.sets, shown, samples)
    return render(
        "gate.html",
        result,
        outline(result),
        pictures=gallery.pictures,
        pictured=[limit.name for limit in pictured],
        notes=gallery.notes,
        columns=COLUMNS,
        cells=_cells,
        lead=LEAD_SAMPLES,
    )


def outline(result: Verdict) -> Outline:
    """Return what the verdict says in all outputs: those limits first that need a person."""
    baselines = [label for label in result.sets if label.startswith("baseline")]
    baseline = ", ".join(source(label, result.sets[label]) for label in baselines)
    gen, ref = (source(label, result.sets[label]) if label in result.sets else label for label in ("gen", "ref"))
    return Outline(
        kind="a new release against the one before it",
        title=f"Release gate: {result.overall}",
        headline=result.summary,
        sets=sizes(result.sets),
        signatures=[result.signature],
        call=call("gate", gen, f"[{baseline}]" if len(baselines) > 1 else baseline or "baseline", ref, "policy"),
        tables=[Table("The limits", [*COLUMNS, "Note"], [[*_cells(one), _note(one)] for one in result.by_urgency])],
        details=[result.family],
        warnings=result.warnings,
        failures=unreadable(result.sets),
    )


def fragment(result: Verdict) -> str:
    """Return the limits as a table, for a notebook."""
    return table_fragment(result.summary, COLUMNS, map(_cells, result.by_urgency))


def show(result: Verdict) -> None:
    """Print the limits, those that need a person first, and the verdict."""
    print_table("Limits", COLUMNS, map(_cells, result.by_urgency), names=["Limit"])
    print(result.summary)
    print_notes([*(f"{limit.name}: {limit.note}" for limit in result.by_urgency if _tells(limit)), *result.warnings])
    print(result.family)
    print(result.signature)


def _note(limit: Limit) -> str:
    return limit.note if _tells(limit) else ""


def _tells(limit: Limit) -> bool:
    return bool(limit.note) and limit.verdict not in ("held", "improved")


def _cells(limit: Limit) -> list[str]:
    ends = "–" if limit.interval is None else " to ".join(map(limit.number, limit.interval))
    allowed = f"{'≤' if limit.harm == 'high' else '≥'} {limit.number(limit.margin)}"
    needed = f"{limit.needed:,}" if limit.needed else "–"
    seen = limit.number(limit.detectable)
    return [limit.name, limit.verdict, limit.number(limit.value), ends, allowed, seen, needed]
