"""Columns of sets from several machines: one spelling for each value, as the matcher of forms finds it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.forms import SameNames, join_names
from finc_eval.core.words import join_words
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.columns import MISSING
from finc_eval.embeddings.needs import Known

ID = "id"  # name of a column whose values are the ids of the samples

SUFFIX = re.compile(r"\.[A-Za-z]\w{1,4}$")  # end of the name of a file, such as .png or .mp4

MAX_JOINED_VALUES = 200_000
"""Different values of a column that are looked at: matching takes 10 µs for each. Columns of more are compared as they
are written; they name samples rather than kinds."""


def join_columns(
    sets: Mapping[str, Embeddings], columns: Iterable[str] | None = None
) -> tuple[dict[str, Embeddings], list[str]]:
    """Return sets with one spelling for each value of the columns that they share, and sentences on what was joined.

    `columns` are the columns to look at; default: all.
    """
    known = dict.fromkeys(name for embeddings in sets.values() for name in embeddings.columns)
    spellings: dict[str, Mapping[str, str]] = {}
    notes: list[str] = []
    for name in known if columns is None else [name for name in columns if name in known]:
        values = {
            label: set(embeddings.column(name)) for label, embeddings in sets.items() if name in embeddings.columns
        }
        same = _same(values, name)
        notes += [*same.notes, *_unlike_missing(values, name)]
        if same.spelling:
            spellings[name] = same.spelling
    if not spellings:
        return dict(sets), notes
    return {label: embeddings.with_spellings(spellings) for label, embeddings in sets.items()}, notes


def names_of(sets: Mapping[str, Known], by: str) -> tuple[dict[str, NDArray[np.str_]], list[str]]:
    """Return the name of each sample by a column, or else by its id, with one spelling for each name of all sets.

    Ids are the names of files: where no set has an id of another, and all have ids without suffixes in common, such as
    of pictures that were saved in another format, their names are these.
    """
    values = {
        label: embeddings.column(by) if by in embeddings.columns else embeddings.ids_between(0, embeddings.n)
        for label, embeddings in sets.items()
    }
    are_ids = not any(by in embeddings.columns for embeddings in sets.values())
    values, suffixes = without_suffixes(values) if are_ids else (values, [])
    same = _same({label: set(names) for label, names in values.items()}, by)
    return {label: np.array(same.of(names)) for label, names in values.items()}, [*suffixes, *same.notes]


def without_suffixes(ids: dict[str, list[str]]) -> tuple[dict[str, list[str]], list[str]]:
    """Return ids without the suffixes of files if these alone tell sets apart, with a sentence; else as they are."""
    bare = {label: [SUFFIX.sub("", name) for name in names] for label, names in ids.items()}
    if set.intersection(*map(set, ids.values())) or any(len(set(names)) < len(names) for names in bare.values()):
        return ids, []
    shared = set.intersection(*map(set, bare.values()))
    if not shared:
        return ids, []
    name = min(shared)
    as_written = [f"{ids[label][names.index(name)]!r} of {label}" for label, names in bare.items()]
    return bare, [f"ids differ in their suffix, as {join_words(as_written)}: they are compared without it"]


def rows_of(samples: Embeddings, names: Sequence[str]) -> dict[str, int]:
    """Return the row of each of these ids that a set has, or, if it has none, of each without its suffix.

    The ids of the set are read in portions: none of its size is held.
    """
    wanted, bare = set(names), {SUFFIX.sub("", name): name for name in names}
    as_written, without = {}, {}
    for start, stop in samples.portions():
        for row, name in enumerate(samples.ids_between(start, stop), start):
            if name in wanted:
                as_written[name] = row
            elif not as_written and (full_name := bare.get(SUFFIX.sub("", name))):
                without[full_name] = row
    return as_written or without


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
