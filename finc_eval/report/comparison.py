"""The page, the notebook view and the terminal table of a comparison.

Every number comes from the comparison; only the few samples that are shown are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import PurePath
from typing import Any

from finc_eval.comparison.direction import SETS_OF, Direction, Role, SetLabel, significant
from finc_eval.comparison.headline import drifts
from finc_eval.comparison.result import SET_NAMES, SHOWN_COPIES, Comparison
from finc_eval.core.words import counted, listed, percent, points
from finc_eval.gallery.gallery import Gallery
from finc_eval.naming.unique_names import UniqueNames, with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind
from finc_eval.report.cards.card import Card, anchor
from finc_eval.report.cards.groups import below, groups_of, not_differing
from finc_eval.report.cards.modes import (
    OPEN,
    SHOWN_BY_NONE,
    TOO,
    difference,
    is_share_open,
    mode_card,
    mode_row,
    remark,
    scale_of,
    sorts_of,
)
from finc_eval.report.cards.rows import Cell, Link, Row, Rows
from finc_eval.report.cards.sets import kinds_on_page
from finc_eval.report.cards.texts import UNDER, kind_columns, kind_texts
from finc_eval.report.drawings.forest import forest_axis
from finc_eval.report.drawings.plots import spectrum_svg
from finc_eval.report.drawings.svg import Axis
from finc_eval.report.exports.made import call, source
from finc_eval.report.exports.outline import Outline, Table, texts_of, unreadable
from finc_eval.report.formats import bare_percent, p_value, points_interval
from finc_eval.report.pages import METHOD_NAMES, NO_SAMPLES, notebook_view, render
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.report.verdict import lead, verdict
from finc_eval.samples import Samples

SHOWN_IN_FRAGMENT = 6
"""Samples of each set and kind in the notebook view."""

ROLES: tuple[tuple[Role, str, str], ...] = (
    ("over", "Over-represented", "more in the generated set"),
    ("under", "Under-represented", "less in the generated set"),
)
"""The roles of directions, each with a heading and its meaning."""

LABELS = {"gen": "Gen", "ref": "Ref"}
"""Short titles of the sets in tables of text."""

UNEXPLAINED = "Not explained by kinds"

COLUMNS: dict[str, Callable[[Kind | Direction], str]] = {
    "Share, gen": lambda one: percent(one.share_gen, 1),
    "Share, ref": lambda one: percent(one.share_ref, 1),
    "Difference": lambda one: points(one.share_difference),
    "Interval": lambda one: points_interval(one.share_difference_interval),
}
"""The columns of a table of kinds or directions in a notebook."""

DIRECTION_COLUMNS: dict[str, Callable[[Direction], str]] = {
    "Direction": with_id,
    "Gen, %": lambda mode: bare_percent(mode.share_gen),
    "Ref, %": lambda mode: bare_percent(mode.share_ref),
    "Difference, points": lambda mode: difference(mode),
    "Adj. p": lambda mode: p_value(mode.p_value),
}
"""The columns of a table of directions as text, after the rank; kinds follow them."""


def page(comparison: Comparison, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    spectrum, names = comparison.spectrum, titles(comparison)
    directions = _directions_on_page(comparison, names)
    shown: dict[str, str] = dict(zip(SET_NAMES, names, strict=True))
    alone = drifts(comparison.directions)
    kinds = kinds_on_page(
        comparison.kinds,
        comparison.headings,
        shown,
        comparison.shown,
        _too,
        lambda scale: _after_kinds(comparison, alone, names, scale),
        [end for mode in alone for end in (mode.share_gen_interval[1], mode.share_ref_interval[1])],
    )
    return render(
        "comparison.html",
        comparison,
        outline(comparison),
        **_shared(comparison, comparison.gallery_of(samples)),
        **kinds,
        **directions,
        verdict=verdict(comparison, names),
        lead=lead(comparison),
        tests=tests_in_words(comparison),
        method_names=METHOD_NAMES,
        spectrum=spectrum_svg(spectrum.over, spectrum.under) if spectrum.over or spectrum.under else None,
        eigenvalues=list(zip_longest(spectrum.over, spectrum.under)),
        shown_copies=SHOWN_COPIES,
        set_names=SET_NAMES,
    )


def _too(kind: Kind) -> str:
    return TOO["over" if kind.share_difference > 0 else "under"]


def _directions_on_page(comparison: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    """Return what the page needs to show directions: their table, their cards, and how to sort them."""
    found = _in_order(significant(comparison.directions, ALPHA))
    unique, scale = UniqueNames(comparison.directions), scale_of(comparison.directions)
    alike = {mode.id: mode for mode in found}

    def card(mode: Direction) -> Card:
        links = [*_links_to_kinds(comparison, mode)]
        if (other := alike.get(mode.looks_different or "")) is not None and mode.id in alike:
            links.append(
                (
                    "The other set has this instead, which looks different:",
                    [Link(anchor(other.id), unique.title(other))],
                )
            )
        nearest = comparison.nearest(mode)
        return mode_card(mode, names, scale, comparison.shown, links=tuple(links), nearest=nearest)

    rows = [
        mode_row(mode, names, unique, scale, kind_links(comparison, mode), _said(comparison, mode)) for mode in found
    ]
    return {
        "direction_table": Rows(
            id="direction-table",
            caption="Share of each set that are members of each direction, in percent. One sample can be a member of "
            "several directions: do not add them.",
            legend={names[0]: "gen", names[1]: "ref"},
            thing="Direction",
            samples="Most typical, and at the other end",
            axis=forest_axis(scale),
            columns=[*names, "Difference, points"],
            rows=rows,
            linked="Kinds of its best samples" if comparison.kinds else "",
        )
        if rows
        else None,
        "direction_cards": [card(mode) for mode in found],
        "direction_cards_folded": [card(mode) for mode in comparison.directions if mode.p_value > ALPHA],
        "direction_roles": {words: words for words in TOO.values()},
        "direction_sorts": sorts_of(names),
    }


def _in_order(modes: Sequence[Direction]) -> list[Direction]:
    """Return directions: first what refits find again, then by the difference of shares."""
    return sorted(modes, key=lambda mode: (not mode.firm, -abs(mode.share_difference)))


def _after_kinds(comparison: Comparison, alone: Sequence[Direction], names: tuple[str, str], scale: Axis) -> list[Row]:
    """Return the rows that follow the kinds: what these do not explain, and the directions that none of them shows."""
    unique = UniqueNames(comparison.directions)
    rows = [mode_row(mode, names, unique, scale, said=f"a direction: {SHOWN_BY_NONE}") for mode in alone]
    if (rest := unexplained(comparison)) is None:
        return rows
    whole, part = (f"{100 * value:.1f}" for value in (comparison.difference or 0, comparison.explained or 0))
    said = f"of {whole} points between the sets, the kinds explain {part}"
    cells = [Cell("–"), Cell("–"), Cell(f"{100 * rest:.1f}", "", "difference, points")]
    return [Row(words=UNEXPLAINED, cells=cells, remark=said), *rows]


def unexplained(comparison: Comparison) -> float | None:
    """Return the part of the overall difference that the kinds do not explain; None without kinds that differ."""
    if comparison.difference is None or comparison.explained is None or not significant(comparison.kinds, ALPHA):
        return None
    return comparison.difference - comparison.explained


def kind_links(comparison: Comparison, mode: Direction) -> list[Link]:
    """Return links to the kinds that the best samples of a direction lie in."""
    names = UniqueNames((*comparison.headings, *comparison.kinds))
    known = {kind.id: kind for kind in comparison.kinds}
    return [Link(anchor(one), names.words(known[one])) for one in mode.kinds if one in known]


def _links_to_kinds(comparison: Comparison, mode: Direction) -> Iterator[tuple[str, Sequence[Link]]]:
    if links := kind_links(comparison, mode):
        yield f"{'No kind shows this direction. ' * bool(_said(comparison, mode))}Its best samples lie in:", links
    elif _said(comparison, mode):
        yield "No kind shows this direction: its best samples lie in many.", ()


def _said(comparison: Comparison, mode: Direction) -> str:
    """Return that no kind shows a direction; "" where one does, and for a comparison without kinds."""
    return SHOWN_BY_NONE if comparison.kinds and not mode.shown_by_kinds else ""


def outline(comparison: Comparison) -> Outline:
    """Return what the comparison says in all outputs."""
    gen, ref = titles(comparison)
    sets = {"gen": comparison.gen, "ref": comparison.ref}
    others = _others(comparison)
    return Outline(
        kind="comparison of two sets of samples",
        title=f"{gen} against {ref}",
        headline=verdict(comparison, (gen, ref)),
        sets={gen: comparison.gen.n, ref: comparison.ref.n},
        signatures=[comparison.signature],
        call=call("compare", *(source(*one) for one in sets.items()), settings=comparison.settings),
        tables=list(_tables(comparison, intervals=True)),
        details=[text for text in (lead(comparison), *([f"{not_significant(others)}."] if others else [])) if text],
        warnings=comparison.warnings,
        failures=unreadable(sets),
    )


def _tables(comparison: Comparison, *, intervals: bool) -> Iterator[Table]:
    """Yield the tables of text: the kinds, then the directions."""
    kinds = kind_texts(comparison.kinds, comparison.headings, LABELS, intervals=intervals, tag=_too)
    if kinds:
        if (rest := unexplained(comparison)) is not None:
            kinds.append([UNEXPLAINED, "–", "–", f"{100 * rest:.1f}", "–"])
        yield Table(f"Kinds that differ ({UNDER.strip()} under a heading)", kind_columns(LABELS), kinds)
    if rows := _direction_rows(comparison):
        yield Table(_directions_title(comparison), _direction_columns(comparison), rows)


def _directions_title(comparison: Comparison) -> str:
    return f"Directions of {METHOD_NAMES[comparison.settings.method.name]}"


def _direction_columns(comparison: Comparison) -> list[str]:
    return ["", *DIRECTION_COLUMNS, *(["Kinds"] if comparison.kinds else [])]


def _direction_rows(comparison: Comparison) -> list[list[str]]:
    rows = []
    for rank, mode in enumerate(_in_order(significant(comparison.directions, ALPHA)), start=1):
        kinds = [_said(comparison, mode) or " ".join(mode.kinds)] if comparison.kinds else []
        rows.append([str(rank) if mode.firm else "–", *texts_of(mode, DIRECTION_COLUMNS), *kinds])
    return rows


def fragment(comparison: Comparison, samples: Mapping[str, Samples] = NO_SAMPLES) -> str:
    """Return a table of kinds and directions with a few samples, for a notebook; it takes on the notebook's colors."""
    found = _in_order(significant(comparison.directions, ALPHA))
    names = UniqueNames(comparison.directions)
    return notebook_view(
        "comparison_fragment.html",
        comparison,
        **_shared(comparison, comparison.gallery_of(samples)),
        columns=COLUMNS,
        kinds=list(_kinds_in_notebook(comparison)),
        directions=[(names.title(mode), mode, texts_of(mode, COLUMNS)) for mode in found],
        typical=_typical,
        others=_others(comparison),
        open_shares=list(open_shares(comparison)),
    )


def _kinds_in_notebook(comparison: Comparison) -> Iterator[tuple[str, Kind | None, list[str]]]:
    """Yield the rows of kinds: the name, the kind whose samples are shown, if any, and the numbers."""
    names, known = UniqueNames((*comparison.headings, *comparison.kinds)), {one.id: one for one in comparison.kinds}

    def together(words: str, kinds: Sequence[Kind]) -> tuple[str, None, list[str]]:
        gen, ref = (sum(kind.shares[label].share for kind in kinds) for label in SET_NAMES)
        return words, None, [percent(gen, 1), percent(ref, 1), points(gen - ref), ""]

    for group in groups_of(comparison.kinds, comparison.headings, LABELS, _too):
        if group.words:
            yield together(group.words, group.kinds)
        for one in group.first:
            yield names.title(one), one, texts_of(one, COLUMNS)
            yield from ((UNDER + names.title(kind), kind, texts_of(kind, COLUMNS)) for kind in below(one, known))
    others = [kind for kind in comparison.kinds if kind.p_value > ALPHA]
    if others and len(others) < len(comparison.kinds):
        yield together(not_differing(len(others)), others)
    if (rest := unexplained(comparison)) is not None:
        yield UNEXPLAINED, None, ["–", "–", f"{100 * rest:.1f}", ""]


def _typical(one: Kind | Direction | None, label: SetLabel) -> Sequence[str]:
    if one is None:
        return ()
    ids = one.typical(label) if isinstance(one, Direction) else one.shares[label].top_ids
    return ids[:SHOWN_IN_FRAGMENT]


def show(comparison: Comparison) -> None:
    """Print the headline, the kinds that differ, the directions, and what qualifies them."""
    print(comparison.headline)
    for table in _tables(comparison, intervals=False):
        print_table(table.title, table.columns, table.rows, names=["Kind", "Direction"], prose=["Kinds"])
    print_unstable(significant(comparison.directions, ALPHA))
    for sentence in open_shares(comparison):
        print(sentence)
    if others := _others(comparison):
        print(not_significant(others))
    error, settings = comparison.kernel_error, comparison.settings
    tests = tests_in_words(comparison)
    print(f"{tests} tested, with family-wise α = {ALPHA:g} in all" if tests else "nothing was tested")
    if comparison.directions:
        print("shares of directions overlap: do not add them")
    if settings.sigma is None:
        print(f"{settings.kernel} kernel: exact, without a bandwidth")
    else:
        print(f"sigma {settings.sigma:.4g} ({comparison.sigma_rule}), {settings.features} frequencies")
        if error is not None:
            print(f"kernel error: rms {error.rms:.4f}, largest {error.max:.4f} of {error.pairs} pairs")
    print_notes(comparison.warnings)
    print(comparison.signature)


def titles(comparison: Comparison) -> tuple[str, str]:
    """Return the titles of the two sets: the ends of their paths, as long as needed to make them differ."""
    gen, ref = (PurePath(info.source or info.name) for info in (comparison.gen, comparison.ref))
    for length in range(1, max(len(gen.parts), len(ref.parts)) + 1):
        ends = [str(PurePath(*path.parts[-length:])) for path in (gen, ref)]
        if ends[0] != ends[1]:
            return ends[0], ends[1]
    return comparison.gen.name, comparison.ref.name


def modes_of(comparison: Comparison, role: Role) -> tuple[Direction, ...]:
    """Return the directions of a role."""
    return comparison.over if role == "over" else comparison.under


def own_ids(mode: Direction) -> Sequence[str]:
    """Return the ids of the samples that are most of a direction, from the set that has more of it."""
    return mode.typical(SETS_OF[mode.role][0])


def tests_in_words(comparison: Comparison) -> str:
    """Return "371 kinds and 26 directions", "" where nothing was tested."""
    tested = ((comparison.kinds_tested, "kind"), (comparison.tested, "direction"))
    return listed([counted(count, thing) for count, thing in tested if count])


def not_significant(count: int) -> str:
    """Return "1 direction is not significant: see the page or the JSON file"."""
    return (
        f"{counted(count, 'direction')} {'is' if count == 1 else 'are'} not significant: see the page or the JSON file"
    )


def print_unstable(modes: Sequence[Direction]) -> None:
    """Print what the mark of a significant direction that does not count means, where there is one."""
    if any(remark(mode) for mode in modes):
        print("– refits find less than half of it again: not counted")


def open_shares(comparison: Comparison) -> Iterator[str]:
    """Yield why intervals of significant directions hold 0, in a sentence."""
    if held := [mode.id for mode in comparison.directions if is_share_open(mode)]:
        yield f"{listed(held)}:{OPEN}"


def _others(comparison: Comparison) -> int:
    return len(comparison.directions) - len(significant(comparison.directions, ALPHA))


def _shared(comparison: Comparison, gallery: Gallery) -> dict[str, Any]:
    """Return what page and notebook view need."""
    return {
        "titles": titles(comparison),
        "pictures": gallery.pictures,
        "captions": comparison.captions,
        "notes": gallery.notes,
        "remark": remark,
        "directions_title": _directions_title(comparison),
    }
