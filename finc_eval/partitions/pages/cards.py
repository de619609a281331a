"""Cards and rows of kinds: the same on every page that shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from markupsafe import Markup

from finc_eval.core.words import join_words, percent, plural, points
from finc_eval.gallery.counts import LEAD_SAMPLES
from finc_eval.naming.evidence import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind, choose_sets, top_level
from finc_eval.partitions.pages.groups import below, difference_of, groups_of, more_in, not_differing, set_apart
from finc_eval.partitions.settings import REFERENCE
from finc_eval.report.cards import (
    DRAWN,
    NOT_SIGNIFICANT,
    TYPICAL,
    CardRow,
    CardRows,
    Cards,
    CardView,
    Grid,
    Link,
    PageCard,
    anchor,
)
from finc_eval.report.colors import MODELS, Ink, inks_of
from finc_eval.report.drawings import Axis, Drawn, forest, forest_axis, forest_scale
from finc_eval.report.exports.outline import NOT_MANY, Cell, several
from finc_eval.report.formats import p_value, points_interval, points_range, share_interval

NO_KIND = "No kind of samples is significantly more or less frequent in one set."

MAX_SET_COLUMNS = 5  # sets whose shares have a column each


@dataclass(frozen=True)
class Common:
    """Settings that the cards and rows of a page share."""

    titles: Mapping[str, str]
    names: UniqueNames
    scale: Axis
    shown: int
    tag: Callable[[Kind], str]

    @property
    def are_two(self) -> bool:
        """True for two sets, whose difference is first minus second."""
        return len(self.titles) == 2

    @property
    def has_colors(self) -> bool:
        """True where each set has a color of its own."""
        return len({*self.titles} - {REFERENCE}) <= MODELS

    def inks(self, most: str = "") -> dict[str, Ink]:
        """Return the colors of the sets; where they are too many for that, of the reference and the set with most."""
        if self.has_colors:
            return inks_of(self.titles, REFERENCE)
        return {label: "ref" if label == REFERENCE else "gen" if label == most else "other" for label in self.titles}

    def draw(self, kind: Kind) -> Markup:
        """Draw the shares of a kind, on the scale of the page."""
        ink, shares = self.inks(kind.set_with_most), kind.shares
        drawn = [
            Drawn(ink[label], title, shares[label].share, shares[label].interval)
            for label, title in self.titles.items()
        ]
        return forest(kind.title, drawn, self.scale)


def kinds_on_page(
    kinds: Sequence[Kind],
    headings: Sequence[Kind],
    titles: Mapping[str, str],
    shown: int,
    tag: Callable[[Kind], str] | None = None,
    more: Callable[[Axis], Sequence[CardRow]] | None = None,
    also: Sequence[float] = (),
    **words: str,
) -> tuple[CardRows | None, Cards]:
    """Return the first table of a page with kinds, and their cards.

    `tag` returns the role of a kind in a word or two; default: the set that it sets apart. `more` returns rows that
    follow the kinds, from the scale of the drawings, on which the shares `also` have a place. `words` are words of the
    cards.
    """
    every, known = (*headings, *kinds), {kind.id: kind for kind in kinds}
    scale = forest_scale([*(part.interval[1] for kind in every for part in kind.shares.values()), *also])
    tag = tag or (partial(more_in, titles) if len(titles) == 2 else lambda kind: kind.side)
    common = Common(titles, UniqueNames(every), scale, shown, tag)
    first = top_level(kinds, headings)
    ordered = [shown for kind in first for shown in (kind, *below(kind, known))]
    others = [kind for kind in kinds if kind.p_value > ALPHA]
    rows = []
    for said, inside, top in groups_of(kinds, headings, titles, tag):
        rows += [_sum(said, inside, common, is_group=True)] if said else []
        rows += [_row(kind, common, [_row(below_kind, common) for below_kind in below(kind, known)]) for kind in top]
    if others:
        rest = _sum(not_differing(len(others)), others, common)
        folded = [_row(kind, common) for kind in others]
        rows.append(replace(rest, is_muted=True, below=folded, summary="Show"))
    rows += more(scale) if more else []
    sets = dict(zip(("first", "second"), titles.values(), strict=True)) if common.are_two else {}
    sorts = {key: f"share of {title}" for key, title in sets.items()} or {"share": "largest share"}
    return _table(rows, common) if kinds else None, Cards(
        shown=[
            replace(
                _card(kind, common, known),
                inside=tuple(_card(below_kind, common, known) for below_kind in below(kind, known)),
            )
            for kind in first
        ],
        folded=[_card(kind, common, known) for kind in others],
        roles={tag: tag for tag in dict.fromkeys(map(tag, ordered))},
        sorts={"": "difference", **sorts, "p": "p", "name": "name"},
        **{"nothing": NO_KIND, "things": "kinds", **words},
    )


def _sum(words: str, kinds: Sequence[Kind], common: Common, *, is_group: bool = False) -> CardRow:
    sums = [sum(kind.shares[label].share for kind in kinds) for label in common.titles]
    cells = [Cell(percent(value, 1)) for value in sums]
    if common.are_two:
        cells.append(Cell(points(sums[0] - sums[1])))
    else:
        cells = [Cell("–"), *(cells if len(cells) <= MAX_SET_COLUMNS else [Cell("–")] * 2), Cell("–")]
    return CardRow(words=words, cells=cells, is_group=is_group)


def _row(kind: Kind, common: Common, inside: Sequence[CardRow] = ()) -> CardRow:
    most, muted = kind.set_with_most, NOT_SIGNIFICANT if kind.p_value > ALPHA else ""
    value, ends = difference_of(kind, [*common.titles])
    shares = {
        label: Cell(percent(share.share, 1), share_interval(share.interval)) for label, share in kind.shares.items()
    }
    cells = [shares[label] for label in common.titles]
    if len(cells) > MAX_SET_COLUMNS:
        others = [part.share for label, part in kind.shares.items() if label != set_apart(kind)]
        between = dict.fromkeys(percent(end, 1) for end in (min(others), max(others)))
        cells = [shares[set_apart(kind)], Cell(" to ".join(between))]
    words = [f"{row.words} {row.id}".strip() for row in inside]
    names = join_words(words) if len(words) <= NOT_MANY else several(words)
    return CardRow(
        words=common.names.words(kind),
        cells=[*([] if common.are_two else [Cell(kind.side)]), *cells, Cell(points(value), points_interval(ends))],
        anchor=anchor(kind.id),
        title=kind.title,
        id=kind.id if common.names.is_shared(kind) else "",
        remark=muted or _part_of(kind, common, short=True),
        is_muted=bool(muted),
        samples=[(most, ids[:LEAD_SAMPLES]) for ids in (kind.shares[most].top_ids, kind.shares[most].drawn_ids)],
        drawing=common.draw(kind),
        below=inside,
        summary=f"{plural(len(inside), 'kind')}: {names}" if inside else "",
    )


def _table(rows: Sequence[CardRow], common: Common) -> CardRows:
    titles, inks = common.titles, common.inks()
    if common.are_two:
        columns = [*titles.values(), "Difference, points"]
    else:
        shares = [*titles.values()] if len(titles) <= MAX_SET_COLUMNS else ["Share there", "In others"]
        columns = ["Set apart", *shares, "Apart by, points"]
    most, legend = "", {titles[label]: ink for label, ink in inks.items()}
    if not common.has_colors:
        most, legend = ", the set with most in color", {titles[label]: "ref" for label in titles if label == REFERENCE}
        legend["other sets"] = "other"
    return CardRows(
        id="forest",
        caption=f"Shares with joint 95 % intervals{most}.",
        legend=legend,
        thing="Kind",
        samples="Typical · random",
        axis=forest_axis(common.scale),
        columns=columns,
        rows=rows,
    )


def _card(kind: Kind, common: Common, known: Mapping[str, Kind]) -> PageCard:
    most, titles, is_muted = kind.set_with_most, common.titles, kind.p_value > ALPHA
    ink, (value, ends) = common.inks(most), difference_of(kind, [*titles])
    inside = [Link(anchor(below_kind.id), common.names.title(below_kind)) for below_kind in below(kind, known)]
    facts = {"Adj. p": p_value(kind.p_value), "Difference": f"{points(value)} {points_interval(ends)}"}
    shares = [
        [title, f"{percent(part.share, 1)} {share_interval(part.interval)}", f"{part.count:,}"]
        for label, title in titles.items()
        for part in [kind.shares[label]]
    ]
    sizes = {label: f"{kind.shares[label].share:.6f}" for label in titles}
    return PageCard(
        id=kind.id,
        title=kind.title,
        ink=ink[most],
        tag=NOT_SIGNIFICANT if is_muted else common.tag(kind),
        is_muted=is_muted,
        says=_says(kind, common),
        drawing=common.draw(kind),
        views=tuple(_view(kind, label, ink[label], common) for label in choose_sets(kind)),
        facts=facts if common.are_two else {"Set apart": kind.side, **facts},
        evidence=kind.evidence,
        links=(("The kinds under this heading:", inside),) if inside else (),
        table=(("Set", "Share", "Samples"), shares),
        named=((f"{TYPICAL}, {titles[most]}", kind.shares[most].top_ids[: common.shown]),),
        keys={
            "role": common.tag(kind),
            **(
                dict(zip(("first", "second"), sizes.values(), strict=True))
                if common.are_two
                else {"share": sizes[most]}
            ),
            "p": f"{kind.p_value:.3e}",
        },
    )


def _view(kind: Kind, label: str, ink: Ink, common: Common) -> CardView:
    """Return the pictures of a kind in a set: typical samples, and samples that were drawn."""
    side = kind.side.partition(" in ")[0] if not common.are_two and label == set_apart(kind) else ""
    part = kind.shares[label]
    grids = (Grid(TYPICAL, label, part.top_ids[: common.shown]), Grid(DRAWN, label, part.drawn_ids[: common.shown]))
    return CardView(ink, common.titles[label], side, grids)


def _says(kind: Kind, common: Common) -> str:
    value, ends = difference_of(kind, [*common.titles])
    most, titles = kind.set_with_most, common.titles
    whole = _part_of(kind, common)
    if common.are_two:
        (first, part), (second, other) = ((title, kind.shares[label]) for label, title in titles.items())
        size = points(abs(value)).removeprefix("+")
        return (
            f"{percent(part.share, 1)} of the samples of {first} belong to this kind, and {percent(other.share, 1)} of "
            f"the samples of {second}: {size} points {'more' if value > 0 else 'less'} (interval {points_range(ends)})."
            f"{whole}"
        )
    rest = [f"{percent(part.share, 1)} of {titles[label]}" for label, part in kind.shares.items() if label != most]
    of_least = f"{titles[kind.set_with_least]} has the least: " if kind.set_with_least else ""
    return (
        f"{percent(kind.shares[most].share, 1)} of the samples of {titles[most]} belong to this kind, and "
        f"{join_words(rest)}. {of_least}{points(value)} points against all others together (interval "
        f"{points_range(ends)}).{whole}"
    )


def _part_of(kind: Kind, common: Common, *, short: bool = False) -> str:
    """Say what a kind is a part of, with the size of the whole, in a few words or in a sentence; "" if of nothing."""
    if (whole := kind.part_of) is None:
        return ""
    known = [f"{percent(whole.shares[label], 1)} of {title}" for label, title in common.titles.items()]
    if not common.are_two:
        known = [f"{percent(whole.shares[set_apart(kind)], 1)} of {common.titles[set_apart(kind)]}"]
    # The kinds of a heading may have a few samples more than what they have in common.
    is_part = kind.shares[set_apart(kind)].share < whole.shares[set_apart(kind)]
    if short:
        against = " against ".join(id_of_known.partition(" of ")[0] for id_of_known in known)
        return f"{'part of' if is_part else 'in all'}: {whole.name} {against}"
    value, ends = whole.seen_from(next(iter(common.titles))) if common.are_two else (whole.difference, whole.interval)
    what = "It is a part of" if is_part else "In all"
    return f" {what}: {whole.name}, {join_words(known)}, {points(value)} points ({points_range(ends)})."
