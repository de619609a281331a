"""The page, the notebook view and the terminal table of a verdict."""

from __future__ import annotations

from collections.abc import Mapping

from finc_eval.gallery.gallery import read_gallery
from finc_eval.gates.verdict import Limit, Verdict
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
        pictures=gallery.pictures,
        pictured=[limit.name for limit in pictured],
        summary=result.summary,
        warnings=result.warnings,
        notes=gallery.notes,
        columns=COLUMNS,
        cells=_cells,
        lead=LEAD_SAMPLES,
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


def _tells(limit: Limit) -> bool:
    return bool(limit.note) and limit.verdict not in ("held", "improved")


def _cells(limit: Limit) -> list[str]:
    ends = "–" if limit.interval is None else " to ".join(map(limit.number, limit.interval))
    allowed = f"{'≤' if limit.harm == 'high' else '≥'} {limit.number(limit.margin)}"
    needed = f"{limit.needed:,}" if limit.needed else "–"
    seen = limit.number(limit.detectable)
    return [limit.name, limit.verdict, limit.number(limit.value), ends, allowed, seen, needed]
