"""The page, the notebook view and the terminal table of the changes between two releases of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from finc_eval.comparison.changes import ORDER, Change, Changes
from finc_eval.comparison.modes import Mode
from finc_eval.report.formats import interval, number
from finc_eval.report.pages import interval_scale, refuse_samples, render, table_fragment
from finc_eval.report.terminal import print_table
from finc_eval.samples import Samples


def _excess(mode: Mode | None) -> str:
    return "–" if mode is None else number(mode.excess)


COLUMNS: dict[str, Callable[[Change], str]] = {
    "Mode": lambda change: change.id,
    "Status": lambda change: change.status,
    "Role": lambda change: change.role,
    "Old excess": lambda change: _excess(change.old),
    "New excess": lambda change: _excess(change.new),
    "Change": lambda change: number(change.change),
    "Interval": lambda change: interval(change.interval),
}
"""The columns of a table of changes, on the page and on the terminal."""


def page(changes: Changes, samples: Mapping[str, Samples]) -> str:
    """Return the page: one HTML file that loads nothing. It shows no samples."""
    refuse_samples(changes, samples)
    return render(
        "changes.html",
        changes,
        columns=COLUMNS,
        muted=lambda change: change.status == "unchanged",
        summary=summary(changes),
        scale=interval_scale((change.change, change.interval) for change in changes),
    )


def fragment(changes: Changes) -> str:
    """Return the changes as a table, for a notebook."""
    return table_fragment(summary(changes), list(COLUMNS), _rows(changes))


def show(changes: Changes) -> None:
    """Print the changes."""
    if len(changes):
        print_table("Modes of the old and the new release", list(COLUMNS), _rows(changes), names=["Mode"])
    print(summary(changes))


def summary(changes: Changes) -> str:
    """Return what changed in one or two plain sentences."""
    if not len(changes):
        return f"Nothing changed: no mode is significant in either comparison (adjusted p ≤ {changes.alpha:g})."
    if all(change.status == "unchanged" for change in changes):
        return "Nothing changed: the interval of every change holds zero."
    counts = {status: sum(change.status == status for change in changes) for status in ORDER}
    listed = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return f"{len(changes)} {'mode was' if len(changes) == 1 else 'modes were'} followed: {listed}."


def _rows(changes: Changes) -> list[list[str]]:
    return [[text(change) for text in COLUMNS.values()] for change in changes]
