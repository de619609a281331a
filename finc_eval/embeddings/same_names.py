"""Columns of sets from several machines: one spelling for each value, as the matcher of forms finds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.forms import SameNames, join_names
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.columns import MISSING

ID = "id"  # name of a column whose values are the ids of the samples

MAX_JOINED_VALUES = 200_000
"""Different values of a column that are looked at: matching takes 10 µs for each. Columns of more are compared as they
are written; they name samples rather than kinds."""


def join_columns(
    sets: Mapping[str, Embeddings], columns: Iterable[str] | None = None
) -> tuple[dict[str, Embeddings], list[str]]:
    """Return sets with one spelling for each value of the columns that they share, and sentences on what was joined.

    `columns` are the columns to look at; default: all.
    """
    known = dict.fromkeys(name for one in sets.values() for name in one.columns)
    spellings: dict[str, Mapping[str, str]] = {}
    notes: list[str] = []
    for name in known if columns is None else [one for one in columns if one in known]:
        values = {label: set(one.column(name)) for label, one in sets.items() if name in one.columns}
        found = _same(values, name)
        notes += [*found.notes, *_unlike_missing(values, name)]
        if found.spelling:
            spellings[name] = found.spelling
    if not spellings:
        return dict(sets), notes
    return {label: one.with_spellings(spellings) for label, one in sets.items()}, notes


def names_of(sets: Mapping[str, Embeddings], by: str) -> tuple[dict[str, NDArray[np.str_]], list[str]]:
    """Return the name of each sample by a column, or else by its id, with one spelling for each name of all sets."""
    values = {label: one.column(by) if by in one.columns else one.ids_between(0, one.n) for label, one in sets.items()}
    found = _same({label: set(own) for label, own in values.items()}, by)
    return {label: np.array(found.of(own)) for label, own in values.items()}, list(found.notes)


def _unlike_missing(values: Mapping[str, set[str]], name: str) -> list[str]:
    """Say that a word such as NA is a class of a set, where another has samples without a value and no such word."""
    return [
        f"{word!r} of {name} is a class of {label}, and {other} has samples without a value: write both in one way if "
        "they are the same"
        for label, own in values.items()
        for word in sorted(own & MISSING)
        for other, theirs in values.items()
        if "" in theirs - own and word not in theirs
    ]


def _same(values: Mapping[str, set[str]], name: str) -> SameNames:
    if len(values) < 2 or sum(map(len, values.values())) > MAX_JOINED_VALUES:
        return SameNames()
    return join_names(values, name)
