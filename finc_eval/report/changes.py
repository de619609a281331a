"""The page, the notebook view and the terminal table of the changes between two releases of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from finc_eval.comparison.changes import ORDER, Change, Changes
from finc_eval.comparison.modes import Mode
from finc_eval.core.words import counted, listed
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.exports.made import call
from finc_eval.report.exports.outline import Outline, Table
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
        outline(changes),
        columns=COLUMNS,
        muted=lambda change: change.status == "unchanged",
        scale=interval_scale((change.change, change.interval) for change in changes),
    )


def outline(changes: Changes) -> Outline:
    """Return what the changes say in all outputs."""
    return Outline(
        kind="two releases of a model, each compared with the same reference",
        title="Changes between two releases",
        headline=summary(changes),
        sets=dict.fromkeys(("old release", "new release", "reference")),
        signatures=[changes.old, changes.new],
        call=call("compare_releases", "old", "new", *([f"alpha={changes.alpha!r}"] if changes.alpha != ALPHA else [])),
        tables=[Table("Modes of the two releases", [*COLUMNS], _rows(changes))] if len(changes) else [],
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
    """Return what changed, and which modes could not be followed, in a few plain sentences."""
    return " ".join([_followed(changes), *_unfollowed(changes)])


def _followed(changes: Changes) -> str:
    lost = bool(changes.unfollowed_old or changes.unfollowed_new)
    if not len(changes):
        if lost:
            return "No mode could be followed."
        return f"Nothing changed: no mode is significant in either comparison (adjusted p ≤ {changes.alpha:g})."
    if not lost and all(change.status == "unchanged" for change in changes):
        return "Nothing changed: the interval of every change holds zero."
    counts = {status: sum(change.status == status for change in changes) for status in ORDER}
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return f"{counted(len(changes), 'mode')} {'was' if len(changes) == 1 else 'were'} followed: {told}."


def _unfollowed(changes: Changes) -> list[str]:
    """Return which modes only one release has, as far as is known, in a sentence a release."""
    sentences = []
    for modes, one, other in ((changes.unfollowed_old, "old", "new"), (changes.unfollowed_new, "new", "old")):
        if modes:
            are, them = ("is", "it") if len(modes) == 1 else ("are", "them")
            sentences.append(
                f"{counted(len(modes), 'mode')} of the {one} release {are} significant and could not be followed, "
                f"since it cannot be told whether the {other} one lacks {them}: {listed([mode.id for mode in modes])}."
            )
    return sentences


def _rows(changes: Changes) -> list[list[str]]:
    return [[text(change) for text in COLUMNS.values()] for change in changes]
