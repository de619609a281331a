"""The page, the notebook view and the terminal table of a comparison.

Every number comes from the comparison; only the few samples that are shown are read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from finc_eval.comparison.direction import SETS_OF, Direction, Role, Spectrum
from finc_eval.comparison.headline import counted, details, drifts, is_shown, says
from finc_eval.comparison.pages.directions import (
    OPEN,
    SHOWN_BY_NONE,
    TOO,
    card_of,
    difference,
    is_share_open,
    remark,
    row_of,
    scale_of,
    sorts_of,
)
from finc_eval.comparison.pages.facts import METHOD_NAMES, kernel_facts, stability
from finc_eval.comparison.pages.figures import course_svg, spectrum_svg
from finc_eval.comparison.pages.looks import seen_first
from finc_eval.comparison.pages.said import as_said as as_said
from finc_eval.comparison.pages.said import course_tables, findings_table
from finc_eval.comparison.result import SHOWN_COPIES, Comparison
from finc_eval.core.words import SET_NAMES, join_words, one_line, percent, plural
from finc_eval.embeddings.set_info import titles_of
from finc_eval.gallery.pictured import Gallery
from finc_eval.naming.evidence import UniqueNames, with_id
from finc_eval.numerics.inference import ALPHA, significant
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.pages.cards import kinds_on_page
from finc_eval.partitions.pages.map import map_on_page
from finc_eval.partitions.pages.members import write_gallery
from finc_eval.partitions.pages.tables import TEXT_SAMPLES, UNDER, kind_tables, mix_tables, value_tables
from finc_eval.prompts.page import prompt_tables
from finc_eval.report import Page
from finc_eval.report.cards import CardRow, CardRows, Cards, Link, PageCard, anchor
from finc_eval.report.colors import PAIR
from finc_eval.report.drawings import Axis, forest_axis
from finc_eval.report.exports.outline import Cell, Outline, TextTable, call, source, unreadable
from finc_eval.report.formats import bare_percent, number, p_value
from finc_eval.report.pages import Section, render
from finc_eval.report.terminal import print_notes, print_one
from finc_eval.same_ids.page import id_tables
from finc_eval.samples.source import Samples

ROLES: tuple[tuple[Role, str, str], ...] = (
    ("over", "Over-represented", "more in the generated set"),
    ("under", "Under-represented", "less in the generated set"),
)
"""The roles of directions, each with a heading and its meaning."""

KINDS_TITLE = f"Kinds that differ ({UNDER.strip()} under a heading)"

LABELS = {"gen": "Gen", "ref": "Ref"}  # short titles of the sets in tables of text


def page(comparison: Comparison, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    comparison = as_said(comparison)
    spectrum, names = comparison.spectrum, titles(comparison)
    shown: dict[str, str] = dict(zip(SET_NAMES, names, strict=True))
    values, gallery = value_tables(comparison.by, shown), comparison.gallery_of(samples)
    return render(
        comparison,
        outline(comparison),
        gallery,
        "comparison/pages/comparison.html",
        **first_screen(comparison, gallery),
        of_pairs=_sections("pairs", id_tables(comparison.by_id, shown)),
        sections=[*_said(comparison), *_sections("values", values)],
        **_directions_on_page(comparison, names),
        titles=names,
        lead="" if comparison.by_id else " ".join(details(comparison).values()),
        captions=comparison.captions,
        prompt_tables=[*mix_tables(comparison.kinds, shown), *prompt_tables(comparison.prompts, shown)],
        tests=tests_in_words(comparison),
        method_name=METHOD_NAMES[comparison.settings.method.name],
        stability=stability(comparison.settings),
        spectrum=spectrum_svg(spectrum.over, spectrum.under) if spectrum.over or spectrum.under else None,
        eigenvalues=_eigenvalues(spectrum),
        facts_of_settings=_facts(comparison),
        shown_copies=SHOWN_COPIES,
        set_names=SET_NAMES,
    )


def first_screen(comparison: Comparison, gallery: Gallery) -> dict[str, Any]:
    """Return what a page shows first of a comparison, by name: the list of kinds, their cards, the map and looks."""
    names = titles(comparison)
    shown: dict[str, str] = dict(zip(SET_NAMES, names, strict=True))
    alone = drifts(comparison)
    table, cards = kinds_on_page(
        comparison.kinds,
        comparison.headings,
        shown,
        comparison.shown,
        _too,
        lambda scale: _after_kinds(comparison, alone, names, scale),
        [end for direction in alone for end in (direction.share_gen_interval[1], direction.share_ref_interval[1])],
        nothing="No kind of samples is significantly more or less frequent in one of the sets.",
    )
    return {
        "table": table,
        "cards_of_kinds": cards,
        "map": map_on_page(comparison.map, comparison.kinds, shown, PAIR, gallery.pictures),
        "seen": seen_first(comparison, names),
    }


def _sections(name: str, tables: Sequence[TextTable]) -> list[Section]:
    """Return a section for each table, with anchors that are numbered after the first."""
    anchors = [name, *(f"{name}-{place}" for place in range(2, len(tables) + 1))]
    return [Section(each, table.title, table.legend, table=table) for each, table in zip(anchors, tables, strict=False)]


def _said(comparison: Comparison) -> list[Section]:
    """Return a section for all findings, and one for each drift of clips, with its course in both sets."""
    drawn = [course_svg(finding) for finding in comparison.findings if finding.course]
    courses = zip(_sections("over-time", course_tables(comparison)), drawn, strict=True)
    findings = _sections("findings", findings_table(comparison))
    return [*findings, *(replace(section, figure=svg) for section, svg in courses)]


def _eigenvalues(spectrum: Spectrum) -> TextTable:
    """Return the eigenvalues of both roles, side by side."""
    rows = [
        [str(rank), *("–" if value is None else number(value) for value in pair)]
        for rank, pair in enumerate(zip_longest(spectrum.over, spectrum.under), 1)
    ]
    return TextTable(
        "The eigenvalues of the figure", ["Rank", *(f"More in the {name}" for name in SET_NAMES.values())], rows
    )


def _facts(comparison: Comparison) -> list[tuple[str, object]]:
    """Return the settings of a comparison, for the end of its page."""
    settings, error, facts = comparison.settings, comparison.kernel_error, kernel_facts(comparison)
    if error is not None:
        over = f"{error.rms:.2g} rms, {error.max:.2g} at most, over {error.pairs:,} pairs"
        facts.append(("Kernel approximation error", over))
    words = METHOD_NAMES[settings.method.name]
    if (novel := getattr(settings.method, "novel", None)) is not None:
        words += f", the {percent(novel)} of the samples that are most novel, in {settings.modes} clusters"
    if (neighbors := getattr(settings.method, "neighbors", None)) is not None:
        words += f", balls to neighbor {neighbors}"
    facts.append(("Method", words))
    if hasattr(settings.method, "rotation"):
        facts.append(("Rotation", settings.method.rotation or "none"))
    tested = tests_in_words(comparison) or "nothing"
    facts.append(("Directions per role", f"{settings.modes:,} at most; {tested} tested"))
    sketched = comparison.gen.from_sketch or comparison.ref.from_sketch
    how = "conservative, as a set came as a sketch" if sketched else "from the embeddings of both sets"
    return [*facts, ("Intervals", how)]


def _too(kind: Kind) -> str:
    return TOO["over" if kind.share_difference > 0 else "under"]


def _directions_on_page(comparison: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    """Return what the page needs to show directions: their table, their cards, and how to sort them."""
    found = _in_order(significant(comparison.directions, ALPHA))
    others = [direction for direction in comparison.directions if direction.p_value > ALPHA]
    return {
        "directions_title": _directions_title(comparison),
        "direction_table": _direction_table(comparison, found, names) if found else None,
        "direction_cards": Cards(
            [_direction_card(comparison, direction, names) for direction in found],
            [_direction_card(comparison, direction, names) for direction in others],
            "No direction differs significantly.",
            {words: words for words in TOO.values()},
            sorts_of(names),
            "directions",
        ),
    }


def _direction_table(comparison: Comparison, directions: Sequence[Direction], names: tuple[str, str]) -> CardRows:
    """Return the table of the significant directions."""
    unique, scale = UniqueNames(comparison.directions), scale_of(comparison.directions)
    return CardRows(
        id="direction-table",
        caption="Share of each set that are members of each direction, in percent. One sample can be a member of "
        "several directions: do not add them.",
        legend={names[0]: "gen", names[1]: "ref"},
        thing="Direction",
        samples="Most typical, and at the other end",
        axis=forest_axis(scale),
        columns=[*names, "Difference, points"],
        rows=[
            row_of(
                direction, names, unique, scale, kind_links(comparison, direction), _say_unshown(comparison, direction)
            )
            for direction in directions
        ],
        linked="Kinds of its best samples" if comparison.kinds else "",
    )


def _direction_card(comparison: Comparison, direction: Direction, names: tuple[str, str]) -> PageCard:
    """Return the card of a direction, with links to the kinds of its best samples and to what stands in its place."""
    links: list[tuple[str, Sequence[Link]]] = []
    unshown = _say_unshown(comparison, direction)
    if lie_in := kind_links(comparison, direction):
        links = [(f"{'No kind shows this direction. ' * bool(unshown)}Its best samples lie in:", lie_in)]
    elif unshown:
        links = [("No kind shows this direction: its best samples lie in many.", ())]
    alike = {each.id: each for each in significant(comparison.directions, ALPHA)}
    if (other := alike.get(direction.looks_different or "")) is not None and direction.id in alike:
        other_card = Link(anchor(other.id), UniqueNames(comparison.directions).title(other))
        links.append(("The other set has this instead, which looks different:", [other_card]))
    scale, nearest = scale_of(comparison.directions), comparison.nearest(direction)
    return card_of(direction, names, scale, comparison.shown, links=tuple(links), nearest=nearest)


def _in_order(directions: Sequence[Direction]) -> list[Direction]:
    """Return directions: first what refits find again, then by the difference of shares."""
    return sorted(directions, key=lambda direction: (not direction.firm, -abs(direction.share_difference)))


def _after_kinds(
    comparison: Comparison, alone: Sequence[Direction], names: tuple[str, str], scale: Axis
) -> list[CardRow]:
    """Return the rows that follow the kinds: the directions that none of them shows."""
    unique = UniqueNames(comparison.directions)
    return [row_of(direction, names, unique, scale, said=f"a direction: {SHOWN_BY_NONE}") for direction in alone]


def kind_links(comparison: Comparison, direction: Direction) -> list[Link]:
    """Return links to the kinds that the best samples of a direction lie in."""
    names = UniqueNames((*comparison.headings, *comparison.kinds))
    known = {kind.id: kind for kind in comparison.kinds}
    return [Link(anchor(id), names.words(known[id])) for id in direction.kinds if id in known]


def _say_unshown(comparison: Comparison, direction: Direction) -> str:
    """Return that no kind shows a direction; "" if one does, and for a comparison without kinds."""
    return SHOWN_BY_NONE if comparison.kinds and not is_shown(comparison, direction) else ""


def outline(comparison: Comparison) -> Outline:
    """Return what the comparison says in all outputs."""
    comparison = as_said(comparison)
    gen, ref = titles(comparison)
    sets = {"gen": comparison.gen, "ref": comparison.ref}
    return Outline(
        kind="comparison",
        title=f"{gen} against {ref}",
        says=says(comparison),
        counted=counted(comparison),
        sets={gen: comparison.gen.n, ref: comparison.ref.n},
        signatures=[comparison.signature],
        call=call("compare", *(source(*item) for item in sets.items()), settings=comparison.settings),
        tables=[
            *findings_table(comparison),
            *course_tables(comparison),
            *id_tables(comparison.by_id, LABELS),
            *_tables(comparison),
            *value_tables(comparison.by, LABELS),
        ],
        details=[text for text in (*details(comparison).values(), not_significant(comparison, ".")) if text],
        warnings=comparison.warnings,
        failures=unreadable(sets),
    )


def _tables(comparison: Comparison) -> list[TextTable]:
    found = kind_tables(KINDS_TITLE, comparison.kinds, comparison.headings, LABELS, _too)
    directions = _in_order(significant(comparison.directions, ALPHA))
    if not directions:
        return found
    rows: list[list[Cell | str]] = []
    for rank, direction in enumerate(directions, start=1):
        samples = [(label, direction.typical(label)[:TEXT_SAMPLES]) for label in SETS_OF["over"]]
        shares = [bare_percent(share) for share in (direction.share_gen, direction.share_ref)]
        kinds = [_say_unshown(comparison, direction) or " ".join(direction.kinds)] if comparison.kinds else []
        name, place = Cell(with_id(direction), samples=samples), str(rank) if direction.firm else "–"
        rows.append([place, name, *shares, difference(direction), p_value(direction.p_value), *kinds])
    columns = ["", "Direction", "Gen, %", "Ref, %", "Difference, points", "Adj. p"] + ["Kinds"] * bool(comparison.kinds)
    muted = [remark(direction) is not None for direction in directions]
    title = _directions_title(comparison)
    return [*found, TextTable(title, columns, rows, names=["Direction"], words=["Kinds"], muted=muted)]


def _directions_title(comparison: Comparison) -> str:
    return f"Directions of {METHOD_NAMES[comparison.settings.method.name]}"


def notebook(comparison: Comparison) -> Outline:
    """Return what a notebook shows: findings, kinds and directions with samples, and why intervals hold 0."""
    comparison = as_said(comparison)
    found = significant(comparison.kinds or comparison.directions, ALPHA)
    thing = "kind" if comparison.kinds else "direction"
    lacking = [] if found else [f"No {thing} is significantly more or less frequent in the generated set."]
    said, others = outline(comparison), not_significant(comparison, ".")
    found_too = {"not significant": others} if others else {}
    drawn = map_on_page(comparison.map, comparison.kinds, LABELS, PAIR, comparison.gallery.pictures)
    found_table = findings_table(comparison, TEXT_SAMPLES)
    return replace(
        said,
        says={**said.says, **found_too},
        tables=[*found_table, *said.tables[len(found_table) :]],
        warnings=[*lacking, *open_shares(comparison)],
        figure="" if drawn is None else drawn.figure,
    )


def show(comparison: Comparison) -> None:
    """Print the headline, the kinds that differ, the directions, and what qualifies them."""
    comparison, said = as_said(comparison), outline(comparison)
    print(one_line(comparison.headline))
    for table in (*said.tables, *prompt_tables(comparison.prompts, LABELS)):
        print_one(table)
    if any(remark(direction) for direction in significant(comparison.directions, ALPHA)):
        print("– refits find less than half of it again: not counted")
    for sentence in (*open_shares(comparison), *said.details):
        print(one_line(sentence))
    tests = tests_in_words(comparison)
    print(f"{tests} tested, with family-wise α = {ALPHA:g} in all" if tests else "nothing was tested")
    if comparison.directions:
        print("shares of directions overlap: do not add them")
    print_notes(comparison.warnings)


def titles(comparison: Comparison) -> tuple[str, str]:
    """Return the titles of the two sets: the ends of their paths, as long as needed to make them differ."""
    return titles_of(comparison.gen, comparison.ref)


def tests_in_words(comparison: Comparison) -> str:
    """Return "371 kinds and 26 directions", "" if nothing was tested."""
    tested = ((comparison.kinds_tested, "kind"), (comparison.tested, "direction"))
    return join_words([plural(count, thing) for count, thing in tested if count])


def not_significant(comparison: Comparison, end: str = "") -> str:
    """Return "1 direction is not significant: see the page or the JSON file"; "" if all are."""
    count = len(comparison.directions) - len(significant(comparison.directions, ALPHA))
    are = "is" if count == 1 else "are"
    return f"{plural(count, 'direction')} {are} not significant: see the page or the JSON file{end}" if count else ""


def open_shares(comparison: Comparison) -> Iterator[str]:
    """Yield why intervals of significant directions hold 0, in a sentence."""
    if held := [direction.id for direction in comparison.directions if is_share_open(direction)]:
        yield f"{join_words(held)}:{OPEN}"


PAGE = Page(says, outline, draw=page, notebook=notebook, write_gallery=write_gallery, print=show)
