"""The page, the notebook view and the terminal table of several methods on the same two sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from finc_eval.comparison.direction import SETS_OF, Direction, Role
from finc_eval.comparison.methods import SAME_GROUP_CORRELATION, DirectionGroup, MethodComparison
from finc_eval.comparison.pages.comparison import ROLES, titles
from finc_eval.comparison.pages.directions import TOO, card_of, difference, scale_of, sorts_of
from finc_eval.comparison.pages.facts import METHOD_NAMES, kernel_facts, stability
from finc_eval.comparison.pages.side_by_side import outline_of
from finc_eval.comparison.settings import METHODS, Settings
from finc_eval.core.words import SET_NAMES, join_words, percent, plural, points
from finc_eval.numerics.inference import ALPHA
from finc_eval.report import Page
from finc_eval.report.cards import Cards, PageCard, anchor
from finc_eval.report.drawings import Axis
from finc_eval.report.exports.outline import Cell, Outline, TextTable
from finc_eval.report.formats import optional_percent, p_value
from finc_eval.report.pages import Section, render
from finc_eval.samples.source import Samples

DIFFERENCE = "difference of shares in points"

LEGEND = (
    "Directions of one letter show the same samples. A cell has the rank of each of them in the list of its method, "
    f"and its difference of shares; in parentheses are directions that are not significant (adjusted p > {ALPHA:g})."
)
"""Meaning of a table of groups without colors."""

HOW = (
    "The methods differ in nothing but in how they find the directions in which the two sets differ; sets, features, "
    "halves and tests are the same, so that shares, intervals and p of two methods compare. Directions of one "
    "letter are one group, as they show the same samples: what single samples add to their masses correlates by "
    f"{SAME_GROUP_CORRELATION} or more with the direction that was found first, in the order of the columns."
)

STABILITY = (
    "Stability: {} The halves of the frequencies change nothing of what KEN, Rarity and FLD find, only its features, "
    "so that it is higher for these. Drawings share one scale; p is adjusted for all directions of a method and both "
    "roles."
)


def page(result: MethodComparison, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    names, first, said = titles(result.first), result.first, outline(result)
    scale = scale_of([direction for _, direction in result.directions])
    found = significant_groups(result)
    cards = Cards(
        [_card(group, result, names, scale) for group in found],
        [_card(group, result, names, scale) for group in result.groups if group not in found],
        "No method finds a kind of sample that is significantly more or less frequent in one of the sets.",
        {words: words for words in TOO.values()},
        sorts_of(names),
    )
    tables = [Section(f"groups-{place}", table.title, table=table) for place, table in enumerate(said.tables)]
    ideas = [(METHOD_NAMES[name], METHODS[name].idea) for name in result.comparisons]
    sets = [(name.capitalize(), info) for name, info in zip(SET_NAMES.values(), (first.gen, first.ref), strict=True)]
    sections = [
        *([replace(tables[0], texts=[LEGEND]), *tables[1:]] if tables else []),
        Section("modes", "", cards=cards),
        Section("methods", "The methods", STABILITY.format(stability(first.settings)), facts=ideas),
        Section("settings", "Settings and data", facts=[*sets, *kernel_facts(first)]),
    ]
    return render(result, said, result.gallery_of(samples), sections=sections)


def outline(result: MethodComparison) -> Outline:
    """Return what the methods say in all outputs."""
    columns = ["Group", *(METHOD_NAMES[method] for method in result.comparisons)]
    methods = plural(len(result.comparisons), "method")
    tables = [
        TextTable(f"{heading}: {meaning}; {DIFFERENCE}", columns, rows, words=columns[1:])
        for role, heading, meaning in ROLES
        if (rows := _rows(result, role))
    ]
    return outline_of(
        result,
        f", by {methods}",
        ("compare_methods", repr([*result.comparisons])),
        replace(result.first.settings, method=Settings().method),
        kind=f"two sets of samples compared by {methods}",
        says=says(result),
        tables=tables,
        details=[LEGEND] if tables else [],
        warnings=result.warnings,
        how=HOW,
    )


def says(result: MethodComparison) -> dict[str, str]:
    """Return what was found in a few plain sentences."""
    found = significant_groups(result)
    if not found:
        methods = join_words([METHOD_NAMES[method] for method in result.comparisons])
        find = "find" if len(result.comparisons) > 1 else "finds"
        return {
            "nothing": f"{methods} {find} no direction along which the generated set has significantly more or less."
        }
    sentences = {}
    words = {"over": "more", "under": "less"}
    for role, _, _ in ROLES:
        counts = {
            method: sum(direction.role == role for direction in directions)
            for method, directions in result.significant.items()
        }
        finds = ", ".join(f"{METHOD_NAMES[method]} finds {count}" for method, count in counts.items())
        sentences[role] = f"Directions along which the generated set has significantly {words[role]}: {finds}."
    everywhere = sum(all(_is_significant(result, method, group) for method in result.comparisons) for group in found)
    if everywhere == len(found):
        share = "All methods find them" if len(found) > 1 else "All methods find it"
    else:
        share = f"All methods find {everywhere} of them" if everywhere else "No group is found by all methods"
    groups = f"They show {plural(len(found), 'group')} of samples. {share}."
    return sentences | {"groups": groups}


def cells(result: MethodComparison, method: str, group: DirectionGroup) -> list[tuple[int, Direction]]:
    """Return the directions of a group that a method finds, with their ranks."""
    directions = [direction for direction in result.comparisons[method].directions if direction.role == group.role]
    return [
        (rank, direction)
        for rank, direction in enumerate(directions, start=1)
        if direction.id in group.modes.get(method, ())
    ]


def significant_groups(result: MethodComparison) -> list[DirectionGroup]:
    """Return the groups in which some method finds a significant direction, first those with more."""
    found = [group for group in result.groups if result.shown_direction(group).p_value <= ALPHA]
    return [group for role, _, _ in ROLES for group in found if group.role == role]


def _rows(result: MethodComparison, role: Role) -> list[list[Cell | str]]:
    rows: list[list[Cell | str]] = []
    for group in (each for each in significant_groups(result) if each.role == role):
        shown = result.shown_direction(group)
        set_with_more, _ = SETS_OF[role]
        # 4: samples of a group in the table of groups.
        samples = [(set_with_more, shown.typical(set_with_more)[:4])]
        name = Cell(_title_of(result, group), samples=samples, anchor=anchor(shown.id, f"-{group.name}"))
        row: list[Cell | str] = [name]
        for method in result.comparisons:
            found = [
                (f"{rank}. {points(direction.share_difference)}", direction)
                for rank, direction in cells(result, method, group)
            ]
            texts = [text if direction.p_value <= ALPHA else f"({text})" for text, direction in found]
            row.append("; ".join(texts) or "–")
        rows.append(row)
    return rows


def _title_of(result: MethodComparison, group: DirectionGroup) -> str:
    """Return the letter of a group, with the name of the direction that is shown of it, or its id."""
    return f"{group.name}. {result.shown_direction(group).title}"


def _is_significant(result: MethodComparison, method: str, group: DirectionGroup) -> bool:
    return any(direction.p_value <= ALPHA for _, direction in cells(result, method, group))


def _card(group: DirectionGroup, result: MethodComparison, names: tuple[str, str], scale: Axis) -> PageCard:
    """Return the card of a group: its shown direction, with the shares by every method."""
    direction = result.shown_direction(group)
    rows = [
        [
            f"{METHOD_NAMES[method]}, {rank}.",
            percent(each.share_gen, 1),
            percent(each.share_ref, 1),
            difference(each),
            p_value(each.p_value),
            optional_percent(each.stability),
        ]
        for method in result.comparisons
        for rank, each in cells(result, method, group)
    ]
    card = card_of(direction, names, scale, result.shown, place=f"-{group.name}")
    headings = ("Method, rank", "Share, gen", "Share, ref", "Difference", "Adj. p", "Stability")
    return replace(card, title=_title_of(result, group), table=(headings, rows))


PAGE = Page(says, outline, draw=page)
