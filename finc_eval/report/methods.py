"""The page, the notebook view and the terminal table of several methods on the same two sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from finc_eval.comparison.direction import SETS_OF, Direction, Role, significant
from finc_eval.comparison.methods import SAME_GROUP_CORRELATION, DirectionGroup, MethodComparison
from finc_eval.comparison.result import SET_NAMES
from finc_eval.comparison.settings import METHODS, Settings
from finc_eval.core.words import counted, listed, percent, points
from finc_eval.gallery.gallery import Gallery
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.cards.card import Card, anchor
from finc_eval.report.cards.modes import TOO, difference, mode_card, scale_of, sorts_of
from finc_eval.report.comparison import ROLES, modes_of, own_ids, titles
from finc_eval.report.drawings.svg import Axis
from finc_eval.report.exports.made import call, source
from finc_eval.report.exports.outline import Outline, Table, unreadable
from finc_eval.report.formats import optional_percent, p_value
from finc_eval.report.pages import METHOD_NAMES, NO_SAMPLES, notebook_view, render
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.samples import Samples

LEAD_OF_GROUP = 4
"""Samples of a group in the table of groups."""

DIFFERENCE = "difference of shares in points"

LEGEND = (
    "Directions of one letter show the same samples. A cell has the rank of each of them in the list of its method, "
    f"and its difference of shares; in parentheses are directions that are not significant (adjusted p > {ALPHA:g})."
)
"""Meaning of a table of groups without colors."""

SHOWN_IN_NOTEBOOK = 3
"""Samples of a group in the notebook view."""


def page(result: MethodComparison, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    names = titles(result.first)
    scale = scale_of([mode for found in result.comparisons.values() for mode in found.directions])
    found = [group for role, _, _ in ROLES for group in significant_groups(result, role)]
    return render(
        "methods.html",
        result,
        outline(result),
        **_shared(result, result.gallery_of(samples)),
        cards_shown=[_card(group, result, names, scale) for group in found],
        cards_folded=[_card(group, result, names, scale) for group in result.groups if group not in found],
        card_of=lambda group: anchor(result.shown_direction(group).id, _place(group)),
        roles_by_words=TOO,
        sorts=sorts_of(names),
        explained={name: method.idea for name, method in METHODS.items()},
        lead=LEAD_OF_GROUP,
        same=SAME_GROUP_CORRELATION,
    )


def outline(result: MethodComparison) -> Outline:
    """Return what the methods say in all outputs."""
    first, columns = result.first, _columns(result)
    gen, ref = titles(first)
    sets = {"gen": first.gen, "ref": first.ref}
    settings = replace(first.settings, method=Settings().method)
    methods = repr([*result.comparisons])
    tables = [
        Table(f"{heading}: {meaning}; {DIFFERENCE}", columns, rows)
        for role, heading, meaning in ROLES
        if (rows := _rows(result, role))
    ]
    return Outline(
        kind=f"two sets of samples compared by {counted(len(result.comparisons), 'method')}",
        title=f"{gen} against {ref}, by {counted(len(result.comparisons), 'method')}",
        headline=summary(result),
        sets={gen: first.gen.n, ref: first.ref.n},
        signatures=[one.signature for one in result.comparisons.values()],
        call=call("compare_methods", *(source(*one) for one in sets.items()), methods, settings=settings),
        tables=tables,
        details=[LEGEND] if tables else [],
        warnings=result.warnings,
        failures=unreadable(sets),
    )


def fragment(result: MethodComparison, samples: Mapping[str, Samples] = NO_SAMPLES) -> str:
    """Return the groups of modes against the methods, for a notebook; the table takes on the notebook's colors."""
    shared = _shared(result, result.gallery_of(samples))
    return notebook_view("methods_fragment.html", result, shown=SHOWN_IN_NOTEBOOK, **shared)


def show(result: MethodComparison) -> None:
    """Print the groups against the methods, and what a cell has."""
    columns = _columns(result)
    found = {role: _rows(result, role) for role, _, _ in ROLES}
    for role, heading, meaning in ROLES:
        if found[role]:
            title = f"{heading}: {meaning}; {DIFFERENCE}"
            print_table(title, columns, found[role], names=columns[:1], prose=columns[1:])
        else:
            print(f"{heading}, {meaning}: nothing significant")
    if any(found.values()):
        print(LEGEND)
    print_notes(result.warnings)
    for one in result.comparisons.values():
        print(one.signature)


def summary(result: MethodComparison) -> str:
    """Return what was found in a few plain sentences."""
    found = [group for role, _, _ in ROLES for group in significant_groups(result, role)]
    if not found:
        methods = listed([METHOD_NAMES[method] for method in result.comparisons])
        find = "find" if len(result.comparisons) > 1 else "finds"
        return f"{methods} {find} no direction along which the generated set has significantly more or less."
    sentences = []
    words = {"over": "more", "under": "less"}
    for role, _, _ in ROLES:
        counts = {
            method: sum(mode.role == role for mode in significant(found.directions, ALPHA))
            for method, found in result.comparisons.items()
        }
        finds = ", ".join(f"{METHOD_NAMES[method]} finds {count}" for method, count in counts.items())
        sentences.append(f"Directions along which the generated set has significantly {words[role]}: {finds}.")
    everywhere = sum(all(_is_significant(result, method, group) for method in result.comparisons) for group in found)
    sentences.append(f"They show {counted(len(found), 'group')} of samples. Every method finds {everywhere} of them.")
    return " ".join(sentences)


def cells(result: MethodComparison, method: str, group: DirectionGroup) -> list[tuple[int, Direction]]:
    """Return the modes of a group that a method finds, with their ranks."""
    ranked = enumerate(modes_of(result.comparisons[method], group.role), start=1)
    return [(rank, mode) for rank, mode in ranked if mode.id in group.modes.get(method, ())]


def significant_groups(result: MethodComparison, role: Role) -> list[DirectionGroup]:
    """Return the groups of a role in which some method finds a significant mode."""
    of_role = [group for group in result.groups if group.role == role]
    return [group for group in of_role if any(_is_significant(result, method, group) for method in group.modes)]


def _columns(result: MethodComparison) -> list[str]:
    return ["Group", *(METHOD_NAMES[method] for method in result.comparisons)]


def _rows(result: MethodComparison, role: Role) -> list[list[str]]:
    return [
        [_title_of(result, group), *(_cell(result, name, group) for name in result.comparisons)]
        for group in significant_groups(result, role)
    ]


def _cell(result: MethodComparison, method: str, group: DirectionGroup) -> str:
    return "; ".join(_text(*one) for one in cells(result, method, group))


def _title_of(result: MethodComparison, group: DirectionGroup) -> str:
    """Return the letter of a group, with the name of the mode that is shown of it, or its id."""
    return f"{group.name}. {result.shown_direction(group).title}"


def _text(rank: int, mode: Direction) -> str:
    text = f"{rank}. {points(mode.share_difference)}"
    return text if mode.p_value <= ALPHA else f"({text})"


def _is_significant(result: MethodComparison, method: str, group: DirectionGroup) -> bool:
    return any(mode.p_value <= ALPHA for _, mode in cells(result, method, group))


def _card(group: DirectionGroup, result: MethodComparison, names: tuple[str, str], scale: Axis) -> Card:
    """Return the card of a group: its shown mode, with the shares by every method."""
    mode = result.shown_direction(group)
    rows = [
        [
            f"{METHOD_NAMES[method]}, {rank}.",
            percent(one.share_gen, 1),
            percent(one.share_ref, 1),
            difference(one),
            p_value(one.p_value),
            optional_percent(one.stability),
        ]
        for method in result.comparisons
        for rank, one in cells(result, method, group)
    ]
    card = mode_card(mode, names, scale, result.shown, place=_place(group))
    headings = ("Method, rank", "Share, gen", "Share, ref", "Difference", "Adj. p", "Stability")
    return replace(card, title=_title_of(result, group), table=(headings, rows))


def _place(group: DirectionGroup) -> str:
    return f"-{group.name}"


def _shared(result: MethodComparison, gallery: Gallery) -> dict[str, Any]:
    """Return what page and notebook view need."""
    first = result.first
    return {
        "comparison": first,
        "titles": titles(first),
        "roles": [(*one, significant_groups(result, one[0])) for one in ROLES],
        "shown_direction": result.shown_direction,
        "titled": partial(_title_of, result),
        "cells": lambda method, group: cells(result, method, group),
        "own_ids": own_ids,
        "sets_of": SETS_OF,
        "set_names": SET_NAMES,
        "names": METHOD_NAMES,
        "pictures": gallery.pictures,
        "notes": gallery.notes,
    }
