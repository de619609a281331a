"""Cards of the modes of two sets, on the pages of comparisons, methods, sweeps and changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from finc_eval.comparison.models import SharedMode
from finc_eval.comparison.modes import FIRM_STABILITY, SETS_OF, FoundBy, Mode, SetLabel
from finc_eval.comparison.result import SET_NAMES
from finc_eval.core.words import percent, points
from finc_eval.naming.causes import CauseKind
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.cards.card import Card, Grid, View
from finc_eval.report.drawings.forest import Drawn, forest, forest_scale
from finc_eval.report.drawings.svg import Axis
from finc_eval.report.formats import (
    interval,
    number,
    optional_percent,
    p_value,
    points_interval,
    ratio,
    share_interval,
)
from finc_eval.report.verdict import TOO, sentence

UNSTABLE, NOT_SIGNIFICANT = "unstable, not counted", "not significant"

CAUSES: dict[CauseKind | None, str] = {
    "frequency": "frequency",
    "appearance": "appearance",
    "both": "frequency and appearance",
    None: "–",
}

SHORT: dict[FoundBy, str] = {"directions": "dir", "clusters": "clu", "both": "both"}

FACTS: dict[str, Callable[[Mode], str]] = {
    "Share, gen": lambda mode: f"{percent(mode.share_gen, 1)} {share_interval(mode.share_gen_interval)}",
    "Share, ref": lambda mode: f"{percent(mode.share_ref, 1)} {share_interval(mode.share_ref_interval)}",
    "Difference": lambda mode: difference(mode),
    "Adj. p": lambda mode: p_value(mode.p_value),
    "Found by": lambda mode: mode.found_by,
    "Differs in": lambda mode: CAUSES[mode.cause],
    "Stability": lambda mode: optional_percent(mode.stability),
}
"""All that is known of a mode, with intervals."""

EXCESS_FACTS: dict[str, Callable[[Mode], str]] = {
    "Mass, gen": lambda mode: number(mode.mass_gen),
    "Mass, ref": lambda mode: number(mode.mass_ref),
    "Ratio": lambda mode: f"× {ratio(mode.ratio)}",
    "Excess": lambda mode: f"{number(mode.excess)} {interval(mode.interval)}",
}
"""Further numbers of a mode that directions found."""

SORTS = {"": "difference", "gen": "share of {0}", "ref": "share of {1}", "p": "p", "name": "name"}
"""Values to sort modes of two sets by, with a place for the titles of the sets."""


def mode_card(
    mode: Mode,
    names: tuple[str, str],
    scale: Axis,
    shown: int,
    *,
    instead: tuple[str, str] | None = None,
    nearest: Sequence[str] = (),
    place: str = "",
) -> Card:
    """Return the card of a mode of two sets.

    Args:
        mode: the mode.
        names: titles of the generated and the reference set.
        scale: scale of the drawings of the page.
        shown: number of samples of each set and draw.
        instead: anchor and title of the mode that the other set has in its place.
        nearest: ids of the reference samples nearest to the most typical generated ones.
        place: what tells this card from others of the same mode on the page.
    """
    own, _ = SETS_OF[mode.role]
    title = dict(zip(SET_NAMES, names, strict=True))
    notes, folded = [], []
    if nearest:
        heading = f"Nearest to the most typical ones of {names[0]}, in the same order"
        folded.append(View("ref", names[1], "nearest samples", (Grid(heading, "ref", nearest, None, True),)))
    if mode.has_opposite:
        notes.append(f"The opposite tail of this mode carries {100 * mode.tails[1].share:.0f} % of the excess.")
        folded += (_opposite(mode, label, title[label], shown) for label in SETS_OF[mode.role])
    return Card(
        id=mode.id,
        title=mode.title,
        ink=own,
        tag=remark(mode) or ("looks different" if instead else TOO[mode.role]),
        is_muted=remark(mode) is not None,
        says=sentence(mode, names),
        drawing=forest(mode.title, drawn_shares(mode, names), scale),
        views=tuple(view_of(mode, label, title[label], shown) for label in SETS_OF[mode.role]),
        facts=_facts(mode),
        evidence=mode.evidence,
        instead=instead,
        named=tuple(
            (f"Most typical of the {SET_NAMES[label]}", mode.typical(label)[:shown]) for label in SETS_OF[mode.role]
        ),
        folded=tuple(folded),
        notes=tuple(notes),
        keys={
            "role": mode.role,
            "gen": f"{mode.share_gen:.6f}",
            "ref": f"{mode.share_ref:.6f}",
            "p": f"{mode.p_value:.3e}",
        },
        place=place,
    )


def view_of(mode: Mode, label: SetLabel, title: str, shown: int, source: str | None = None) -> View:
    """Return what a mode looks like in one of its sets: the most typical samples, and members drawn at random.

    Args:
        mode: the mode.
        label: label of the set in the mode.
        title: title of the set.
        shown: number of samples of each draw.
        source: label of the set among the pictures of the page; default: that in the mode.
    """
    tail, source = mode.tails[0], source or label
    heading = "Most typical" if _are_members(mode, label, shown) else "Most alike, members or not"
    scores = (tail.gen_scores if label == "gen" else tail.ref_scores).tolist()
    grids = (
        Grid(heading, source, mode.typical(label)[:shown], scores),
        Grid("Members drawn at random", source, mode.drawn(label)[:shown]),
    )
    return View(label, title, SET_NAMES[label], grids)


def drawn_shares(mode: Mode, names: tuple[str, str]) -> list[Drawn]:
    """Return the shares of both sets to draw, with the titles of the sets."""
    return [
        Drawn("gen", names[0], mode.share_gen, mode.share_gen_interval),
        Drawn("ref", names[1], mode.share_ref, mode.share_ref_interval),
    ]


def scale_of(modes: Sequence[Mode]) -> Axis:
    """Return the scale on which the shares of modes of both sets are drawn."""
    return forest_scale(end for mode in modes for end in (mode.share_gen_interval[1], mode.share_ref_interval[1]))


def sorts_of(names: tuple[str, str]) -> dict[str, str]:
    """Return what modes of two sets are sorted by."""
    return {key: text.format(*names) for key, text in SORTS.items()}


def remark(mode: Mode | SharedMode) -> str | None:
    """Return why a mode is muted; None for one that counts."""
    if mode.p_value > ALPHA:
        return NOT_SIGNIFICANT
    return None if mode.stability is None or mode.stability >= FIRM_STABILITY else UNSTABLE


def difference(mode: Mode) -> str:
    """Write the difference of the shares of a mode in points, with its interval."""
    return f"{points(mode.share_difference)} {points_interval(mode.share_difference_interval)}"


def _facts(mode: Mode) -> dict[str, str]:
    known = FACTS | EXCESS_FACTS if mode.has_excess else FACTS
    return {heading: text(mode) for heading, text in known.items()}


def _opposite(mode: Mode, label: SetLabel, title: str, shown: int) -> View:
    tail = mode.tails[1]
    scores = (tail.gen_scores if label == "gen" else tail.ref_scores).tolist()
    return View(label, title, "opposite tail", (Grid("Farthest", label, mode.opposite(label)[:shown], scores),))


def _are_members(mode: Mode, label: SetLabel, count: int) -> bool:
    """Return whether all of the most typical samples of a set are members of a mode."""
    tail = mode.tails[0]
    scores = (tail.gen_scores if label == "gen" else tail.ref_scores)[:count]
    return mode.threshold is None or bool((scores >= mode.threshold).all())
