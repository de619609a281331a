"""Cards and rows of the directions of two sets, on the pages of comparisons, methods, sweeps and changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from finc_eval.comparison.direction import FIRM_STABILITY, SETS_OF, Direction, Role, SetLabel, Tail
from finc_eval.core.words import SET_NAMES, percent, points
from finc_eval.gallery.counts import LEAD_SAMPLES
from finc_eval.naming.causes import CauseKind
from finc_eval.naming.evidence import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.cards import DRAWN, NOT_SIGNIFICANT, TYPICAL, CardRow, CardView, Grid, Link, PageCard, anchor
from finc_eval.report.drawings import Axis, Drawn, forest, forest_scale
from finc_eval.report.exports.outline import Cell
from finc_eval.report.formats import (
    interval,
    number,
    optional_percent,
    p_value,
    points_interval,
    points_range,
    ratio,
    share_interval,
)

UNSTABLE = "unstable, not counted"

SHOWN_BY_NONE = "no kind shows it"

TOO: dict[Role, str] = {"over": "too many", "under": "too few"}  # words for the roles, as the reference is the norm

OPEN = (
    " The interval holds 0, though the direction is significant: p tests the excess, to which every sample adds by its "
    "score, and the interval counts members alone. So there is a difference, but its size is still unknown."
)
"""Why a significant direction may have an interval that holds 0."""

CAUSES: dict[CauseKind | None, str] = {
    "frequency": "frequency",
    "appearance": "appearance",
    "both": "frequency and appearance",
    None: "–",
}

FACTS: dict[str, Callable[[Direction], str]] = {
    "Share, gen": lambda mode: f"{percent(mode.share_gen, 1)} {share_interval(mode.share_gen_interval)}",
    "Share, ref": lambda mode: f"{percent(mode.share_ref, 1)} {share_interval(mode.share_ref_interval)}",
    "Difference": lambda mode: difference(mode),
    "Adj. p": lambda mode: p_value(mode.p_value),
    "Differs in": lambda mode: CAUSES[mode.cause],
    "Stability": lambda mode: optional_percent(mode.stability),
    "Mass, gen": lambda mode: number(mode.mass_gen),
    "Mass, ref": lambda mode: number(mode.mass_ref),
    "Ratio": lambda mode: f"× {ratio(mode.ratio)}",
    "Excess": lambda mode: f"{number(mode.excess)} {interval(mode.interval)}",
}
"""All that is known of a direction, with intervals."""

SORTS = {"": "difference", "gen": "share of {0}", "ref": "share of {1}", "p": "p", "name": "name"}
"""Values to sort directions of two sets by, with a place for the titles of the sets."""


def mode_card(
    mode: Direction,
    names: tuple[str, str],
    scale: Axis,
    shown: int,
    *,
    links: tuple[tuple[str, Sequence[Link]], ...] = (),
    nearest: Sequence[str] = (),
    place: str = "",
) -> PageCard:
    """Return the card of a direction of two sets."""
    own, _ = SETS_OF[mode.role]
    title = dict(zip(SET_NAMES, names, strict=True))
    notes, folded = [], []
    if nearest:
        heading = f"Nearest to the most typical samples of {names[0]}, in the same order"
        folded.append(CardView("ref", names[1], "nearest samples", (Grid(heading, "ref", nearest, None, True),)))
    if mode.has_opposite:
        notes.append(f"The opposite tail of this direction carries {100 * mode.tails[1].share:.0f} % of the excess.")
        folded += (_opposite(mode, label, title[label], shown) for label in SETS_OF[mode.role])
    return PageCard(
        id=mode.id,
        title=mode.title,
        ink=own,
        tag=remark(mode) or TOO[mode.role],
        is_muted=remark(mode) is not None,
        says=sentence(mode, names),
        drawing=_draw(mode, names, scale),
        views=tuple(view_of(mode, label, title[label], shown) for label in SETS_OF[mode.role]),
        facts={heading: text(mode) for heading, text in FACTS.items()},
        evidence=mode.evidence,
        links=links,
        named=tuple(
            (f"Most typical of the {SET_NAMES[label]}", mode.typical(label)[:shown]) for label in SETS_OF[mode.role]
        ),
        folded=tuple(folded),
        notes=tuple(notes),
        keys={
            "role": TOO[mode.role],
            "gen": f"{mode.share_gen:.6f}",
            "ref": f"{mode.share_ref:.6f}",
            "p": f"{mode.p_value:.3e}",
        },
        place=place,
    )


def mode_row(
    mode: Direction,
    titles: tuple[str, str],
    names: UniqueNames,
    scale: Axis,
    links: Sequence[Link] = (),
    said: str = "",
) -> CardRow:
    """Return the row of a direction: the samples that are most of it at either end, and the shares of its members."""
    own, _ = SETS_OF[mode.role]
    shares = ((mode.share_gen, mode.share_gen_interval), (mode.share_ref, mode.share_ref_interval))
    return CardRow(
        words=names.words(mode),
        cells=[
            *(Cell(percent(value, 1), share_interval(ends)) for value, ends in shares),
            Cell(points(mode.share_difference), points_interval(mode.share_difference_interval)),
        ],
        anchor=anchor(mode.id),
        title=mode.title,
        id=mode.id if names.is_shared(mode) else "",
        remark=remark(mode) or said,
        is_muted=remark(mode) is not None,
        samples=[(own, mode.typical(own)[:LEAD_SAMPLES]), (own, mode.opposite(own)[:LEAD_SAMPLES])],
        drawing=_draw(mode, titles, scale),
        links=links,
    )


def view_of(mode: Direction, label: SetLabel, title: str, shown: int) -> CardView:
    """Return what a direction looks like in one of its sets: the most typical samples, and members drawn at random."""
    scores = _scores(mode.tails[0], label)
    heading = TYPICAL if (scores[:shown] >= mode.threshold).all() else "Most alike, members or not"
    most = Grid(heading, label, mode.typical(label)[:shown], scores.tolist())
    return CardView(label, title, SET_NAMES[label], (most, Grid(DRAWN, label, mode.drawn(label)[:shown])))


def _draw(mode: Direction, names: tuple[str, str], scale: Axis) -> Markup:
    gen = Drawn("gen", names[0], mode.share_gen, mode.share_gen_interval)
    ref = Drawn("ref", names[1], mode.share_ref, mode.share_ref_interval)
    return forest(mode.title, [gen, ref], scale)


def scale_of(modes: Sequence[Direction]) -> Axis:
    """Return the scale on which the shares of directions of both sets are drawn."""
    return forest_scale(end for mode in modes for end in (mode.share_gen_interval[1], mode.share_ref_interval[1]))


def sorts_of(names: tuple[str, str]) -> dict[str, str]:
    """Return what directions of two sets are sorted by."""
    return {key: text.format(*names) for key, text in SORTS.items()}


def remark(mode: Direction) -> str | None:
    """Return why a direction is muted; None for one that counts."""
    if mode.p_value > ALPHA:
        return NOT_SIGNIFICANT
    return None if mode.stability is None or mode.stability >= FIRM_STABILITY else UNSTABLE


def difference(mode: Direction) -> str:
    """Write the difference of the shares of a direction in points, with its interval."""
    return f"{points(mode.share_difference)} {points_interval(mode.share_difference_interval)}"


def is_share_open(mode: Direction) -> bool:
    """Return whether a direction is significant though the interval of its shares' difference holds 0."""
    low, high = mode.share_difference_interval
    return mode.p_value <= ALPHA and low <= 0 <= high


def sentence(mode: Direction, titles: tuple[str, str]) -> str:
    """Return both shares of a direction and the interval of their difference, and why it may hold 0."""
    ends = points_range(mode.share_difference_interval)
    more = "more" if mode.share_difference > 0 else "fewer"
    return (
        f"{percent(mode.share_gen, 1)} of the samples of {titles[0]} are members, and "
        f"{percent(mode.share_ref, 1)} of the samples of {titles[1]}: {abs(100 * mode.share_difference):.1f} points "
        f"{more} (interval {ends})." + OPEN * is_share_open(mode)
    )


def _opposite(mode: Direction, label: SetLabel, title: str, shown: int) -> CardView:
    farthest = Grid("Farthest", label, mode.opposite(label)[:shown], _scores(mode.tails[1], label).tolist())
    return CardView(label, title, "opposite tail", (farthest,))


def _scores(tail: Tail, label: SetLabel) -> NDArray[np.float32]:
    return tail.gen_scores if label == "gen" else tail.ref_scores
