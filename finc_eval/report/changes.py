"""The page, the notebook view and the terminal table of the changes between two releases of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from finc_eval.comparison.changes import ORDER, Change, Changes
from finc_eval.comparison.modes import Mode, Role
from finc_eval.core.words import counted, listed, percent, points
from finc_eval.naming.unique_names import with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.cards.card import Card
from finc_eval.report.cards.modes import TOO, view_of
from finc_eval.report.drawings.forest import Drawn, forest, forest_scale
from finc_eval.report.drawings.svg import Axis
from finc_eval.report.exports.made import call
from finc_eval.report.exports.outline import Outline, Table, sizes, unreadable
from finc_eval.report.formats import points_interval
from finc_eval.report.pages import interval_scale, render, table_fragment
from finc_eval.report.terminal import print_table
from finc_eval.samples import Samples


def _share(mode: Mode | None) -> str:
    return "–" if mode is None else percent(mode.share_gen, 1)


MEANING = (
    "The change is by how many points the new release has more of a mode than the reference (less, of a mode that is "
    "under), minus the same of the old release: a mode that is gone or shrunk has come nearer to the reference."
)
"""Meaning of the change of a mode."""

MORE: dict[Role, str] = {"over": "more", "under": "less"}

COLUMNS: dict[str, Callable[[Change], str]] = {
    "Mode": with_id,
    "Status": lambda change: change.status,
    "Role": lambda change: change.role,
    "Share, old": lambda change: _share(change.old),
    "Share, new": lambda change: _share(change.new),
    "Change, points": lambda change: points(change.change),
    "Interval": lambda change: points_interval(change.interval),
}
"""The columns of a table of changes, on the page and on the terminal."""


def page(changes: Changes, samples: Mapping[str, Samples]) -> str:
    """Return the page: one HTML file that loads nothing.

    Samples that cannot be read are shown by their ids, and the page says why.
    """
    gallery = changes.gallery_of(samples)
    scale = forest_scale(one.end for change in changes for one in _shares(change))
    cards = [_card(change, changes.shown, scale) for change in changes]
    return render(
        "changes.html",
        changes,
        outline(changes),
        meaning=MEANING,
        columns=COLUMNS,
        muted=lambda change: not change.told,
        scale=interval_scale((change.change, change.interval) for change in changes),
        cards_shown=[card for card, change in zip(cards, changes, strict=True) if change.told],
        cards_unchanged=[card for card, change in zip(cards, changes, strict=True) if not change.told],
        statuses={status: status for status in ORDER},
        sorts={"": "change", "new": "share of the new release", "name": "name"},
        pictures=gallery.pictures,
        notes=gallery.notes,
    )


def outline(changes: Changes) -> Outline:
    """Return what the changes say in all outputs."""
    return Outline(
        kind="two releases of a model, each compared with the same reference",
        title="Changes between two releases",
        headline=summary(changes),
        sets=sizes(changes.sets),
        signatures=[changes.old, changes.new],
        call=call("compare_releases", "old", "new", *([f"alpha={changes.alpha!r}"] if changes.alpha != ALPHA else [])),
        tables=[Table("Modes of the two releases", [*COLUMNS], _rows(changes))] if len(changes) else [],
        details=[MEANING] if len(changes) else [],
        failures=unreadable(changes.sets),
    )


def _card(change: Change, shown: int, scale: Axis) -> Card:
    """Return the card of a mode in two releases."""
    latest, shares = change.latest, _shares(change)
    views = [
        view_of(mode, "gen", f"the {name} release", shown, name)
        for name, mode in (("new", change.new), ("old", change.old))
        if mode is not None
    ]
    facts = {heading: text(change) for heading, text in COLUMNS.items()}
    return Card(
        id=change.id,
        title=change.title,
        ink="gen" if change.role == "over" else "ref",
        tag=change.status,
        is_muted=not change.told,
        says=f"{TOO[change.role].capitalize()}, {change.status}: "
        + listed([f"{percent(one.value, 1)} of {one.name}" for one in shares])
        + f" are of this kind. What it has {MORE[change.role]} than the reference changed by {points(change.change)} "
        f"points (interval {points_interval(change.interval)}).",
        drawing=forest(change.title, shares, scale),
        views=(*views, view_of(latest, "ref", "the reference", shown)),
        facts=facts,
        evidence=latest.evidence,
        keys={"role": change.status, "new": f"{change.new.share_gen if change.new else 0:.6f}"},
    )


def _shares(change: Change) -> list[Drawn]:
    """Return the shares of a mode in both releases and in the reference."""
    found = []
    if change.old is not None:
        found.append(Drawn("other", "the old release", change.old.share_gen, change.old.share_gen_interval))
    if change.new is not None:
        found.append(Drawn("gen", "the new release", change.new.share_gen, change.new.share_gen_interval))
    latest = change.latest
    return [*found, Drawn("ref", "the reference", latest.share_ref, latest.share_ref_interval)]


def fragment(changes: Changes) -> str:
    """Return the changes as a table, for a notebook."""
    return table_fragment(summary(changes), list(COLUMNS), _rows(changes))


def show(changes: Changes) -> None:
    """Print the changes."""
    if len(changes):
        print_table("Modes of the old and the new release", list(COLUMNS), _rows(changes), names=["Mode"])
        print(MEANING)
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
