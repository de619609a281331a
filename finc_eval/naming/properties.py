"""Properties that a sample has or lacks: values of metadata columns and words of prompts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from finc_eval.naming.panel import Panel

MAX_VALUES = 1000
"""Distinct values of a column above which its values are not properties."""

TEXT_COLUMNS = ("prompt", "caption", "text")
"""Columns that are read word by word."""

WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


@dataclass(frozen=True)
class Properties:
    """Properties of the samples of a panel.

    Attributes:
        values: the properties, w of them.
        has: which sample has which, shape (samples, w), entries 0 and 1.
        known: samples about which the source says something, shape (samples,).
        weights: probability of each property in each sample, shape (samples, w); None where samples have it or not.
    """

    source: str
    values: tuple[str, ...]
    has: csr_matrix
    known: NDArray[np.bool_]
    weights: NDArray[np.float32] | None = None


def properties_of(source: str, per_sample: Sequence[Sequence[str]]) -> Properties:
    """Gather the properties of each sample; a sample without any is unknown."""
    values = sorted({value for mine in per_sample for value in mine})
    number = {value: index for index, value in enumerate(values)}
    owned = [sorted({number[value] for value in mine}) for mine in per_sample]
    ends = np.cumsum([0, *map(len, owned)])
    columns = np.array([index for mine in owned for index in mine], np.int64)
    has = csr_matrix((np.ones(len(columns), np.int64), columns, ends), shape=(len(owned), len(values)))
    return Properties(source, tuple(values), has, np.diff(ends) > 0)


def metadata_properties(panel: Panel) -> Iterator[Properties]:
    """Yield the values of each column of the metadata, the labels first, and then the words of texts.

    Columns that hardly repeat a value, or that only distinguish the sets, are left out. Columns that name groups never
    become significant, since a group counts once.
    """
    columns = dict.fromkeys(name for one in panel.sets.values() for name in one.columns)
    for name in sorted(columns, key=lambda name: (name in TEXT_COLUMNS, name != "label")):
        per_set = [
            _values(one.column(name), rows) if name in one.columns else [""] * len(rows)
            for one, rows, _ in panel.by_set()
        ]
        values = [value for mine in per_set for value in mine]
        if name in TEXT_COLUMNS:
            yield properties_of(name, [WORD.findall(value.lower()) for value in values])
        elif _are_kinds(per_set):
            yield properties_of(name, [[value] if value else [] for value in values])


def _values(column: list[str], rows: NDArray[np.int64]) -> list[str]:
    return [column[index] for index in rows.tolist()]


def _are_kinds(per_set: Sequence[Sequence[str]]) -> bool:
    """Return whether values repeat, as kinds do and ids do not, and differ within a set."""
    distinct = [set(mine) - {""} for mine in per_set]
    given = sum(value != "" for mine in per_set for value in mine)
    return max(map(len, distinct)) > 1 and len(set().union(*distinct)) <= min(MAX_VALUES, given / 2)
