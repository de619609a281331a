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
    "Share, gen": lambda direction: f"{percent(direction.share_gen, 1)} {share_interval(direction.share_gen_interval)}",
    "Share, ref": lambda direction: f"{percent(direction.share_ref, 1)} {share_interval(direction.share_ref_interval)}",
    "Difference": lambda direction: difference(direction),
    "Adj. p": lambda direction: p_value(direction.p_value),
    "Differs in": lambda direction: CAUSES[direction.cause],
    "Stability": lambda direction: optional_percent(direction.stability),
    "Mass, gen": lambda direction: number(direction.mass_gen),
    "Mass, ref": lambda direction: number(direction.mass_ref),
    "Ratio": lambda direction: f"× {ratio(direction.ratio)}",
    "Excess": lambda direction: f"{number(direction.excess)} {interval(direction.interval)}",
}
"""All that is known of a direction, with intervals."""

SORTS = {"": "difference", "gen": "share of {0}", "ref": "share of {1}", "p": "p", "name": "name"}
"""Values to sort directions of two sets by, with a place for the titles of the sets."""


def card_of(
    direction: Direction,
    names: tuple[str, str],
    scale: Axis,
    shown: int,
    *,
    links: tuple[tuple[str, Sequence[Link]], ...] = (),
    nearest: Sequence[str] = (),
    place: str = "",
) -> PageCard:
    """Return the card of a direction of two sets."""
    set_with_more, _ = SETS_OF[direction.role]
    title = dict(zip(SET_NAMES, names, strict=True))
    notes, folded = [], []
    if nearest:
        heading = f"Nearest to the most typical samples of {names[0]}, in the same order"
        folded.append(CardView("ref", names[1], "nearest samples", (Grid(heading, "ref", nearest, None, True),)))
    if direction.has_opposite:
        notes.append(
            f"The opposite tail of this direction carries {100 * direction.tails[1].share:.0f} % of the excess."
        )
        folded += (_opposite(direction, label, title[label], shown) for label in SETS_OF[direction.role])
    return PageCard(
        id=direction.id,
        title=direction.title,
        ink=set_with_more,
        tag=remark(direction) or TOO[direction.role],
        is_muted=remark(direction) is not None,
        says=sentence(direction, names),
        drawing=_draw(direction, names, scale),
        views=tuple(view_of(direction, label, title[label], shown) for label in SETS_OF[direction.role]),
        facts={heading: text(direction) for heading, text in FACTS.items()},
        evidence=direction.evidence,
        links=links,
        named=tuple(
            (f"Most typical of the {SET_NAMES[label]}", direction.typical(label)[:shown])
            for label in SETS_OF[direction.role]
        ),
        folded=tuple(folded),
        notes=tuple(notes),
        keys={
            "role": TOO[direction.role],
            "gen": f"{direction.share_gen:.6f}",
            "ref": f"{direction.share_ref:.6f}",
            "p": f"{direction.p_value:.3e}",
        },
        place=place,
    )


def row_of(
    direction: Direction,
    titles: tuple[str, str],
    names: UniqueNames,
    scale: Axis,
    links: Sequence[Link] = (),
    said: str = "",
) -> CardRow:
    """Return the row of a direction: the samples that are most of it at either end, and the shares of its members."""
    set_with_more, _ = SETS_OF[direction.role]
    shares = ((direction.share_gen, direction.share_gen_interval), (direction.share_ref, direction.share_ref_interval))
    return CardRow(
        words=names.words(direction),
        cells=[
            *(Cell(percent(value, 1), share_interval(ends)) for value, ends in shares),
            Cell(points(direction.share_difference), points_interval(direction.share_difference_interval)),
        ],
        anchor=anchor(direction.id),
        title=direction.title,
        id=direction.id if names.is_shared(direction) else "",
        remark=remark(direction) or said,
        is_muted=remark(direction) is not None,
        samples=[
            (set_with_more, direction.typical(set_with_more)[:LEAD_SAMPLES]),
            (set_with_more, direction.opposite(set_with_more)[:LEAD_SAMPLES]),
        ],
        drawing=_draw(direction, titles, scale),
        links=links,
    )


def view_of(direction: Direction, label: SetLabel, title: str, shown: int) -> CardView:
    """Return what a direction looks like in one of its sets: the most typical samples, and members drawn at random."""
    scores = _scores(direction.tails[0], label)
    heading = TYPICAL if (scores[:shown] >= direction.threshold).all() else "Most alike, members or not"
    most = Grid(heading, label, direction.typical(label)[:shown], scores.tolist())
    return CardView(label, title, SET_NAMES[label], (most, Grid(DRAWN, label, direction.drawn(label)[:shown])))


def _draw(direction: Direction, names: tuple[str, str], scale: Axis) -> Markup:
    gen = Drawn("gen", names[0], direction.share_gen, direction.share_gen_interval)
    ref = Drawn("ref", names[1], direction.share_ref, direction.share_ref_interval)
    return forest(direction.title, [gen, ref], scale)


def scale_of(directions: Sequence[Direction]) -> Axis:
    """Return the scale on which the shares of directions of both sets are drawn."""
    return forest_scale(
        end for direction in directions for end in (direction.share_gen_interval[1], direction.share_ref_interval[1])
    )


def sorts_of(names: tuple[str, str]) -> dict[str, str]:
    """Return what directions of two sets are sorted by."""
    return {key: text.format(*names) for key, text in SORTS.items()}


def remark(direction: Direction) -> str | None:
    """Return why a direction is muted; None for one that counts."""
    if direction.p_value > ALPHA:
        return NOT_SIGNIFICANT
    return None if direction.stability is None or direction.stability >= FIRM_STABILITY else UNSTABLE


def difference(direction: Direction) -> str:
    """Write the difference of the shares of a direction in points, with its interval."""
    return f"{points(direction.share_difference)} {points_interval(direction.share_difference_interval)}"


def is_share_open(direction: Direction) -> bool:
    """Return whether a direction is significant though the interval of its shares' difference holds 0."""
    low, high = direction.share_difference_interval
    return direction.p_value <= ALPHA and low <= 0 <= high


def sentence(direction: Direction, titles: tuple[str, str]) -> str:
    """Return both shares of a direction and the interval of their difference, and why it may hold 0."""
    ends = points_range(direction.share_difference_interval)
    more = "more" if direction.share_difference > 0 else "fewer"
    said = (
        f"{percent(direction.share_gen, 1)} of the samples of {titles[0]} are members, and "
        f"{percent(direction.share_ref, 1)} of the samples of {titles[1]}: "
        f"{abs(100 * direction.share_difference):.1f} points {more} (interval {ends})."
    )
    return said + OPEN * is_share_open(direction)


def _opposite(direction: Direction, label: SetLabel, title: str, shown: int) -> CardView:
    farthest = Grid("Farthest", label, direction.opposite(label)[:shown], _scores(direction.tails[1], label).tolist())
    return CardView(label, title, "opposite tail", (farthest,))


def _scores(tail: Tail, label: SetLabel) -> NDArray[np.float32]:
    return tail.gen_scores if label == "gen" else tail.ref_scores
