"""Cards and rows of kinds: the same on every page that shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from finc_eval.comparison.headline import top_level
from finc_eval.comparison.settings import REFERENCE
from finc_eval.core.words import join_words, percent, plural, points
from finc_eval.gallery.counts import choose_sets
from finc_eval.naming.unique_names import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind, KindShare
from finc_eval.report.cards.card import (
    DRAWN,
    LEAD_SAMPLES,
    TYPICAL,
    Card,
    Cards,
    Grid,
    Link,
    Row,
    Rows,
    View,
    anchor,
    below,
    difference_of,
    groups_of,
    more_in,
    not_differing,
    set_apart,
)
from finc_eval.report.cards.modes import NOT_SIGNIFICANT
from finc_eval.report.drawings import Axis, Drawn, Ink, forest, forest_axis, forest_scale
from finc_eval.report.exports.outline import Cell
from finc_eval.report.formats import p_value, points_interval, points_range, share_interval

NO_KIND = "No kind of samples is significantly more or less frequent in one set."

MAX_COLUMNS = 5
"""Sets whose shares have a column each."""


@dataclass(frozen=True)
class Common:
    """Settings that the cards and rows of a page share."""

    titles: Mapping[str, str]
    names: UniqueNames
    scale: Axis
    shown: int
    tag: Callable[[Kind], str]

    @classmethod
    def of(
        cls,
        kinds: Sequence[Kind],
        titles: Mapping[str, str],
        shown: int,
        tag: Callable[[Kind], str] | None = None,
        also: Sequence[float] = (),
    ) -> Common:
        """Return what cards and rows of these kinds have in common; `tag` is by default the set apart."""
        ends: list[float] = [part.interval[1] for kind in kinds for part in kind.shares.values()]
        scale = forest_scale([*ends, *also])
        if tag is None and len(titles) == 2:
            tag = partial(more_in, titles)
        return cls(titles, UniqueNames(kinds), scale, shown, tag or (lambda kind: kind.side))

    @property
    def are_two(self) -> bool:
        """True for two sets, whose difference is first minus second."""
        return len(self.titles) == 2

    def inks(self, own: str = "") -> dict[str, Ink]:
        """Return the colors of the sets: two sets have a color each; of more, the reference and the set with most."""
        if self.are_two:
            ref = REFERENCE if REFERENCE in self.titles else [*self.titles][1]
            return {label: "ref" if label == ref else "gen" for label in self.titles}
        return {label: "ref" if label == REFERENCE else "gen" if label == own else "other" for label in self.titles}


def kinds_on_page(
    kinds: Sequence[Kind],
    headings: Sequence[Kind],
    titles: Mapping[str, str],
    shown: int,
    tag: Callable[[Kind], str] | None = None,
    more: Callable[[Axis], Sequence[Row]] | None = None,
    also: Sequence[float] = (),
    **words: str,
) -> tuple[Rows | None, Cards]:
    """Return the first table of a page with kinds, and their cards.

    `tag` returns the role of a kind in a word or two; default: the set that it sets apart. `more` returns rows that
    follow the kinds, from the scale of the drawings, on which the shares `also` have a place. `words` are words of the
    cards.
    """
    common = Common.of((*headings, *kinds), titles, shown, tag, also)
    known = {kind.id: kind for kind in kinds}
    ordered = [one for kind in top_level(kinds, headings) for one in (kind, *below(kind, known))]
    others = [kind for kind in kinds if kind.p_value > ALPHA]
    rows = []
    for group in groups_of(kinds, headings, common.titles, common.tag):
        rows += [_sum(group.words, group.kinds, common, is_group=True)] if group.words else []
        rows += [
            _kind_row(kind, common, [_kind_row(one, common) for one in below(kind, known)]) for kind in group.first
        ]
    rows += [_rest(others, common)] if others else []
    rows += more(common.scale) if more else []
    sets = {"first": 0, "second": 1} if common.are_two else {}
    sorts = {key: f"share of {[*titles.values()][place]}" for key, place in sets.items()} or {"share": "largest share"}
    return _table(rows, common) if kinds else None, Cards(
        shown=[_kind_card(kind, common, known) for kind in ordered],
        folded=[_kind_card(kind, common, known) for kind in others],
        roles={tag: tag for tag in dict.fromkeys(map(common.tag, ordered))},
        sorts={"": "difference", **sorts, "p": "p", "name": "name"},
        **{"nothing": NO_KIND, "things": "kinds", **words},
    )


def _kind_card(kind: Kind, common: Common, known: Mapping[str, Kind]) -> Card:
    inside = [Link(anchor(one.id), common.names.title(one)) for one in below(kind, known)]
    value, ends = difference_of(kind, [*common.titles])
    facts = {
        **({} if common.are_two else {"Set apart": kind.side}),
        "Adj. p": p_value(kind.p_value),
        "Difference": f"{points(value)} {points_interval(ends)}",
    }
    return replace(
        _card(kind, common),
        says=_says(kind, common),
        links=(("The kinds under this heading:", inside),) if inside else (),
        facts=facts,
        table=_shares_table(kind, common),
    )


def _kind_row(kind: Kind, common: Common, inside: Sequence[Row] = ()) -> Row:
    value, ends = difference_of(kind, [*common.titles])
    apart = Cell(points(value), points_interval(ends))
    shares = [
        Cell(percent(kind.shares[label].share, 1), share_interval(kind.shares[label].interval))
        for label in common.titles
    ]
    cells = [*shares, apart] if common.are_two else [*_cells_apart(kind, shares), apart]
    return replace(
        _row(kind, common, cells),
        below=inside,
        summary=f"{plural(len(inside), 'kind')}: {join_words([f'{row.words} {row.id}'.strip() for row in inside])}"
        if inside
        else "",
    )


def _rest(kinds: Sequence[Kind], common: Common) -> Row:
    """Return the row of all kinds that do not differ, below which they are folded."""
    return replace(
        _sum(not_differing(len(kinds)), kinds, common),
        is_muted=True,
        below=[_kind_row(kind, common) for kind in kinds],
        summary="Show " + ("it" if len(kinds) == 1 else "them"),
    )


def _sum(words: str, kinds: Sequence[Kind], common: Common, *, is_group: bool = False) -> Row:
    sums = [sum(kind.shares[label].share for kind in kinds) for label in common.titles]
    cells = [Cell(percent(value, 1)) for value in sums]
    if common.are_two:
        cells.append(Cell(points(sums[0] - sums[1])))
    else:
        cells = [Cell("–"), *(cells if len(cells) <= MAX_COLUMNS else [Cell("–")] * 2), Cell("–")]
    return Row(words=words, cells=cells, is_group=is_group)


def _row(kind: Kind, common: Common, cells: Sequence[Cell]) -> Row:
    own, muted = kind.set_with_most, _why_muted(kind)
    part = kind.shares[own]
    return Row(
        words=common.names.words(kind),
        cells=cells,
        anchor=anchor(kind.id),
        title=kind.title,
        id=kind.id if common.names.is_shared(kind) else "",
        remark=muted,
        is_muted=bool(muted),
        samples=[(own, part.top_ids[:LEAD_SAMPLES]), (own, part.drawn_ids[:LEAD_SAMPLES])],
        drawing=_drawing(kind, common),
    )


def _why_muted(kind: Kind) -> str:
    """Return why a kind does not count; "" if it does."""
    return NOT_SIGNIFICANT if kind.p_value > ALPHA else ""


def _cells_apart(kind: Kind, shares: list[Cell]) -> list[Cell]:
    """Return which set is apart, and all shares; of many sets, its own, and the range of the others."""
    apart = Cell(kind.side)
    if len(shares) <= MAX_COLUMNS:
        return [apart, *shares]
    own = kind.shares[set_apart(kind)]
    others = [part.share for label, part in kind.shares.items() if label != set_apart(kind)]
    ends = dict.fromkeys(percent(end, 1) for end in (min(others), max(others)))
    return [apart, Cell(percent(own.share, 1), share_interval(own.interval)), Cell(" to ".join(ends))]


def _table(rows: Sequence[Row], common: Common) -> Rows:
    most = "" if common.are_two else ", the set with most in color"
    return Rows(
        id="forest",
        caption=f"Share of each kind in each set, in percent{most}. All intervals hold together with probability 0.95.",
        legend=_legend(common),
        thing="Kind",
        samples="Typical, and at random",
        axis=forest_axis(common.scale),
        columns=_columns(common),
        rows=rows,
    )


def _columns(common: Common) -> list[str]:
    if common.are_two:
        return [*common.titles.values(), "Difference, points"]
    shares = [*common.titles.values()] if len(common.titles) <= MAX_COLUMNS else ["Share there", "In others"]
    return ["Set apart", *shares, "Apart by, points"]


def _card(kind: Kind, common: Common) -> Card:
    own, titles, muted = kind.set_with_most, common.titles, _why_muted(kind)
    ink = common.inks(own)
    sizes = _size_keys(kind, common)
    return Card(
        id=kind.id,
        title=kind.title,
        ink=ink[own],
        tag=muted or common.tag(kind),
        is_muted=bool(muted),
        says="",
        drawing=_drawing(kind, common),
        views=tuple(
            View(
                ink[label],
                titles[label],
                kind.side.partition(" in ")[0] if not common.are_two and label == set_apart(kind) else "",
                _grids(kind.shares[label], label, common.shown),
            )
            for label in choose_sets(kind.shares, own)
        ),
        facts={},
        evidence=kind.evidence,
        named=((f"{TYPICAL}, {titles[own]}", kind.shares[own].top_ids[: common.shown]),),
        keys={"role": common.tag(kind), **sizes, "p": f"{kind.p_value:.3e}"},
    )


def _size_keys(kind: Kind, common: Common) -> dict[str, str]:
    """Return the shares by which cards are sorted: of two sets both, else the largest."""
    shares = [f"{kind.shares[label].share:.6f}" for label in common.titles]
    own = f"{kind.shares[kind.set_with_most].share:.6f}"
    return dict(zip(("first", "second"), shares, strict=True)) if common.are_two else {"share": own}


def _says(kind: Kind, common: Common) -> str:
    value, ends = difference_of(kind, [*common.titles])
    if common.are_two:
        (first, own), (second, other) = ((title, kind.shares[label]) for label, title in common.titles.items())
        size = points(abs(value)).removeprefix("+")
        return (
            f"{percent(own.share, 1)} of the samples of {first} belong to this kind, and {percent(other.share, 1)} of "
            f"the samples of {second}: {size} points {'more' if value > 0 else 'less'} (interval {points_range(ends)})."
        )
    of_least = f"{common.titles[kind.set_with_least]} has the least: " if kind.set_with_least else ""
    return (
        f"{_shares_of(kind, common)} {of_least}{points(value)} points against all others together (interval "
        f"{points_range(ends)})."
    )


def _shares_of(kind: Kind, common: Common) -> str:
    own, titles = kind.set_with_most, common.titles
    rest = [f"{percent(part.share, 1)} of {titles[label]}" for label, part in kind.shares.items() if label != own]
    part = percent(kind.shares[own].share, 1)
    return f"{part} of the samples of {titles[own]} belong to this kind, and {join_words(rest)}."


def _drawing(kind: Kind, common: Common) -> Any:
    ink = common.inks(kind.set_with_most)
    drawn = [
        Drawn(ink[label], title, kind.shares[label].share, kind.shares[label].interval)
        for label, title in common.titles.items()
    ]
    return forest(kind.title, drawn, common.scale)


def _grids(part: KindShare, label: str, shown: int) -> tuple[Grid, ...]:
    return Grid(TYPICAL, label, part.top_ids[:shown]), Grid(DRAWN, label, part.drawn_ids[:shown])


def _shares_table(kind: Kind, common: Common) -> tuple[Sequence[str], Sequence[list[str]]]:
    """Return the table of a card: the shares of all sets, and their numbers of samples."""
    rows = []
    for label, title in common.titles.items():
        part = kind.shares[label]
        rows.append([title, f"{percent(part.share, 1)} {share_interval(part.interval)}", f"{part.count:,}"])
    return ("Set", "Share", "Samples"), rows


def _legend(common: Common) -> dict[str, Ink]:
    """Return what the colors of a drawing mean, by the name of the set."""
    if common.are_two:
        return {common.titles[label]: ink for label, ink in common.inks().items()}
    return {**({common.titles[REFERENCE]: "ref"} if REFERENCE in common.titles else {}), "other sets": "other"}
