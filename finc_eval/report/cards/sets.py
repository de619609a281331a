"""Cards of the modes and kinds of several sets, on the pages of models, kinds and leaderboards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from finc_eval.comparison.models import ModeShare, SharedMode
from finc_eval.comparison.settings import REFERENCE
from finc_eval.core.words import listed, percent, points
from finc_eval.gallery.counts import told_sets
from finc_eval.naming.unique_names import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.modes import Kind, KindShare
from finc_eval.report.cards.card import Card, Grid, View
from finc_eval.report.cards.modes import NOT_SIGNIFICANT, remark
from finc_eval.report.drawings.forest import Drawn, forest, forest_axis, forest_scale
from finc_eval.report.drawings.svg import Axis, Ink
from finc_eval.report.formats import interval, number, p_value, points_interval, share_interval
from finc_eval.report.pages import LEAD_SAMPLES

MODE_FACTS: dict[str, Callable[[SharedMode], str]] = {
    "Set apart": lambda mode: mode.side,
    "Adj. p": lambda mode: p_value(mode.p_value),
    "Stability": lambda mode: percent(mode.stability),
    "Excess": lambda mode: f"{number(mode.excess)} {interval(mode.interval)}",
}
"""All that is known of a mode besides its shares."""

KIND_FACTS: dict[str, Callable[[Kind], str]] = {
    "Set apart": lambda kind: kind.side,
    "Adj. p": lambda kind: p_value(kind.p_value),
    "Difference": lambda kind: f"{points(kind.difference)} {points_interval(kind.interval)}",
    "Kinds of this level": lambda kind: str(kind.level),
}
"""All that is known of a kind besides its shares."""

SORTS = {"share": "largest share", "p": "p", "name": "name"}
"""Values to sort by, after the one that the page is in the order of."""

HOLDS_ZERO = (
    " The interval holds 0, though the kind is significant: p is of a test of one side, and the interval is wider, "
    "because all of them hold together."
)
"""Why a significant kind may have an interval that holds 0."""

AnyMode = TypeVar("AnyMode", SharedMode, Kind)


def cards_of_sets(
    modes: Sequence[AnyMode], sets: Sequence[str], order: str, card: Callable[[AnyMode, Axis], Card]
) -> dict[str, Any]:
    """Return what a page needs to show modes or kinds of several sets: a forest, the cards, and how to sort them.

    Args:
        modes: all of them, in the order of the page.
        sets: labels of the sets.
        order: what they are in the order of.
        card: `mode_of_sets` or `kind_of_sets`, of one of them and the scale of all drawings.
    """
    scale = forest_scale(part.interval[1] for mode in modes for part in mode.shares.values())
    found = [mode for mode in modes if mode.p_value <= ALPHA]
    return {
        "reference": REFERENCE,
        "significant": found,
        "cards_shown": [card(mode, scale) for mode in found],
        "cards_folded": [card(mode, scale) for mode in modes if mode.p_value > ALPHA],
        "axis": forest_axis(scale),
        "set_apart": set_apart,
        "in_others": in_others,
        "names": UniqueNames(modes),
        "legend": _legend(sets),
        "lead": LEAD_SAMPLES,
        "roles": {mode.side: mode.side for mode in modes},
        "sorts": {"": order, **{key: words for key, words in SORTS.items() if words != order}},
    }


def mode_of_sets(mode: SharedMode, scale: Axis, shown: int) -> Card:
    """Return the card of a mode of several models, with as many typical samples as members drawn at random."""

    def grids(label: str) -> tuple[Grid, ...]:
        heading = "Most typical" if label == mode.set_with_most else "Most alike, members or not"
        return _grids(mode.shares[label], heading, label, shown)

    return replace(
        _card(mode, scale, remark(mode), grids),
        facts={heading: text(mode) for heading, text in MODE_FACTS.items()},
        table=_table(mode, "Mass", [number(part.mass) for part in mode.shares.values()]),
    )


def kind_of_sets(kind: Kind, scale: Axis, shown: int) -> Card:
    """Return the card of a kind, with the samples nearest to its center and as many drawn at random."""

    def grids(label: str) -> tuple[Grid, ...]:
        return _grids(kind.shares[label], "Nearest to the center of the kind", label, shown)

    card = _card(kind, scale, NOT_SIGNIFICANT if kind.p_value > ALPHA else None, grids)
    low, high = map(points, kind.interval)
    others = "the other set" if len(kind.shares) == 2 else "all others together"
    of_least = f"{kind.set_with_least} has the least: " if kind.set_with_least else ""
    is_open = kind.p_value <= ALPHA and kind.interval[0] <= 0 <= kind.interval[1]
    return replace(
        card,
        says=f"{card.says} {of_least}{points(kind.difference)} points against {others} (interval {low} to {high})."
        + HOLDS_ZERO * is_open,
        facts={heading: text(kind) for heading, text in KIND_FACTS.items()},
        table=_table(kind, "Samples", [f"{part.count:,}" for part in kind.shares.values()]),
    )


def _grids(part: ModeShare | KindShare, heading: str, label: str, shown: int) -> tuple[Grid, ...]:
    """Return the typical samples of a set, under a heading, and as many members drawn at random."""
    drawn = Grid("Members drawn at random", label, part.drawn_ids[:shown])
    return Grid(heading, label, part.top_ids[:shown]), drawn


def _card(mode: SharedMode | Kind, scale: Axis, muted: str | None, grids: Callable[[str], tuple[Grid, ...]]) -> Card:
    """Return what the cards of modes and kinds have in common.

    Args:
        mode: the mode or kind.
        scale: scale of its drawing.
        muted: why it does not count; None if it does.
        grids: function from the label of a set to the samples to show.
    """
    own, shares = mode.set_with_most, mode.shares
    rest = [f"{percent(part.share, 1)} of {label}" for label, part in shares.items() if label != own]
    ink = _inks([*shares], own)
    drawn = [Drawn(ink[label], label, part.share, part.interval) for label, part in shares.items()]
    typical, *_ = grids(own)
    return Card(
        id=mode.id,
        title=mode.title,
        ink=ink[own],
        tag=muted or mode.side,
        is_muted=muted is not None,
        says=f"{percent(shares[own].share, 1)} of the samples of {own} are of this kind, and {listed(rest)}.",
        drawing=forest(mode.title, drawn, scale),
        views=tuple(
            View(ink[label], label, mode.side.partition(" in ")[0] if label == set_apart(mode) else "", grids(label))
            for label in told_sets(shares, own)
        ),
        facts={},
        evidence=mode.evidence,
        named=((f"{typical.heading}, {own}", typical.ids),),
        keys={"role": mode.side, "share": f"{shares[own].share:.6f}", "p": f"{mode.p_value:.3e}"},
    )


def _table(mode: SharedMode | Kind, heading: str, numbers: Sequence[str]) -> tuple[Sequence[str], Sequence[list[str]]]:
    """Return the table of a card: the shares of all sets, and another number of each."""
    rows = []
    for label, more in zip(mode.shares, numbers, strict=True):
        part = mode.shares[label]
        rows.append([label, f"{percent(part.share, 1)} {share_interval(part.interval)}", more])
    return ("Set", "Share", heading), rows


def _legend(sets: Sequence[str]) -> dict[str, Ink]:
    """Return what the colors of a forest mean."""
    if len(sets) == 2:
        return _inks(sets, "")
    return {**({REFERENCE: "ref"} if REFERENCE in sets else {}), "other sets": "other"}


def set_apart(mode: SharedMode | Kind) -> str:
    """Return the label of the set that was tested against all others together."""
    return (mode.set_with_least if isinstance(mode, Kind) else None) or mode.set_with_most


def in_others(mode: SharedMode | Kind) -> str:
    """Return the smallest and the largest share of the sets that are not set apart."""
    others = [part.share for label, part in mode.shares.items() if label != set_apart(mode)]
    ends = dict.fromkeys(percent(end, 1) for end in (min(others), max(others)))
    return " to ".join(ends)


def _inks(labels: Sequence[str], own: str) -> dict[str, Ink]:
    """Return the colors of sets: the reference has its own, and so has the one with most, and any single other one."""
    alone = len(labels) == 2 and REFERENCE in labels
    return {label: "ref" if label == REFERENCE else "gen" if alone or label == own else "other" for label in labels}
