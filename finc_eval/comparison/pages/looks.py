"""Looks of whole sets as a page shows them first: pictures with the look next to pictures of the other set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from finc_eval.comparison.headline import size_of
from finc_eval.comparison.result import Comparison
from finc_eval.naming.looks import Look
from finc_eval.numerics.inference import ALPHA, significant
from finc_eval.report.cards import CardView, Grid
from finc_eval.report.drawings import Ink
from finc_eval.report.formats import p_value

INKS: Mapping[str, Ink] = {"gen": "gen", "ref": "ref"}


@dataclass(frozen=True)
class Seen:
    """Pictures of both sets under a heading; "" for none."""

    heading: str
    views: tuple[CardView, ...]
    ink: Ink = "other"
    legend: str = ""
    name: str = ""  # of the look


def seen_first(comparison: Comparison, titles: tuple[str, str]) -> list[Seen]:
    """Return the looks with their pictures, or both sets side by side where nothing was found."""
    known = dict(zip(INKS, titles, strict=True))
    if comparison.looks:
        in_order = sorted(comparison.looks, key=lambda look: -size_of(look))  # as the headline has them
        return [_look(one, known, comparison.shown) for one in in_order]
    differ = any(significant(comparison.kinds, ALPHA)) or any(significant(comparison.directions, ALPHA))
    return [] if differ else _both(comparison, known)


def _look(look: Look, titles: Mapping[str, str], shown: int) -> Seen:
    other = "ref" if look.more_in == "gen" else "gen"
    headings = {look.more_in: "The clearest", other: "Typical samples"}
    return Seen(
        look.sentence,
        tuple(
            CardView(INKS[label], titles[label], "", (Grid(headings[label], label, look.examples[label][:shown]),))
            for label in (look.more_in, other)
            if look.examples.get(label)
        ),
        INKS[look.more_in],
        f"p = {p_value(look.p_value)}, adjusted for all looks",
        look.name,
    )


def _both(comparison: Comparison, titles: Mapping[str, str]) -> list[Seen]:
    """Return samples of both sets drawn at random; none without kinds."""
    ids = {
        label: comparison.drawn_ids(label) or some_of_each(comparison, label)[: 12 * bool(comparison.shown)]
        for label in titles
    }
    if not all(ids.values()):
        return []
    views = (
        CardView(INKS[label], title, "", (Grid("Drawn at random", label, ids[label]),))
        for label, title in titles.items()
    )
    return [Seen("", tuple(views))]


def some_of_each(comparison: Comparison, label: str) -> Sequence[str]:
    """Return ids of drawn samples of all kinds in turn, the kinds with most samples of a set first."""
    drawn = sorted((one.shares[label] for one in comparison.kinds), key=lambda share: -share.share)
    turns = max((len(share.drawn_ids) for share in drawn), default=0)
    return [share.drawn_ids[turn] for turn in range(turns) for share in drawn if turn < len(share.drawn_ids)]
