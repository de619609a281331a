"""Pairs: samples of a release and of its baseline that were drawn for the same prompt and with the same seed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.partitions.blocks import ID

Names = NDArray[np.str_]


def partners(gen: Embeddings, old: Embeddings, by: str, label: str) -> NDArray[np.int64]:
    """Return the row of `old` that belongs to each row of `gen`, shape (n,), by "id" or a metadata column.

    Raises:
        UsageError: a set does not have the column.
        DataError: a name occurs twice, or a sample has no partner. To leave these out would hide what a release has
            lost.
    """
    new_names, old_names = _names(gen, by, "gen"), _names(old, by, label)
    order = np.argsort(old_names, kind="stable")
    place = np.searchsorted(old_names, new_names, sorter=order).clip(max=old.n - 1)
    found = order[place]
    alone = np.flatnonzero(old_names[found] != new_names)
    if len(alone) or gen.n != old.n:
        strange = str(new_names[alone[0]]) if len(alone) else str(np.setdiff1d(old_names, new_names)[0])
        without = len(alone) or old.n - gen.n
        where = ("gen", label) if len(alone) else (label, "gen")
        raise DataError(
            f"{plural(without, 'sample')} of {where[0]} have no partner in {where[1]} by {by}, such as "
            f"{strange!r:.60}: draw the same prompts and seeds for both, or take pairs out of the policy"
        )
    return np.asarray(found, np.int64)


def repeats(sets: Iterable[Embeddings], by: str) -> bool:
    """Return whether samples of all sets share values of this column: it names blocks of samples, such as prompts."""
    return by != ID and all(by in one.columns and len(set(one.column(by))) < one.n for one in sets)


def _names(one: Embeddings, by: str, label: str) -> Names:
    """Return the name of each sample, after a check that no two are equal."""
    names: Names = np.array(one.ids_between(0, one.n) if by == ID else one.column(by))
    sorted_names = np.sort(names)
    twice = np.flatnonzero(sorted_names[1:] == sorted_names[:-1])
    if len(twice):
        raise DataError(
            f"{label} has several samples with the {by} {str(sorted_names[twice[0]])!r:.60}: pairs need a column that "
            "is different for all samples, such as prompt and seed together"
        )
    return names
