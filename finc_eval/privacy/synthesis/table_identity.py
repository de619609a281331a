"""Identity of a private table in a ledger: its raw columns, whatever a release makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.digest import sha256_of
from finc_eval.embeddings.keys import byte_hashes
from finc_eval.privacy.dp.population import Hashes, Identity, mix
from finc_eval.privacy.dp.public_values import distinct, number_of

MIN_DISTINCT = 20
"""Fewest different values by which a column is known whatever the order of its records. Fewer, such as a yes and no,
are in other tables as often as in this one."""

MAX_GAPS = 2
"""Whole numbers that a column of row numbers spans at most, for each of them: some rows may have been removed."""


def table_identity(columns: Mapping[str, NDArray[Any]]) -> Identity:
    """Return what identifies a table in a ledger: digests, and views that small changes leave as they are.

    The first digest is of all columns and records, in any order. The others are of single columns, without their
    names: of the values in any order, if at least `MIN_DISTINCT` differ, and of the values in the order of the records.
    So a release that has a column in common with an earlier one adds to what that one has spent. Row numbers, and an
    order in which equal values lie together or take turns, identify nothing.

    The first view is of the records, whatever the names and the order of the columns; the others are of the columns
    that have a digest of their own in any order. Numbers have three digits in them.

    A number is the same number in every type and file: 18, 18.0 and "18".
    """
    coded = {name: _code(columns[name]) for name in sorted(columns)}
    found = [_whole_digest(coded)]
    views = [_round(values)[codes] for values, codes in coded.values()]
    telling = [sum(views[1:], views[0])]
    for (values, codes), view in zip(coded.values(), views, strict=True):
        counts = np.bincount(codes, minlength=len(values))
        if len(values) >= MIN_DISTINCT and not _are_row_numbers(values, counts):
            telling.append(view)
            found.append(sha256_of("values", *_lines(values), counts.astype("<i8")))
        if len(values) > 1 and not _is_regular(codes, len(values)):
            found.append(sha256_of("order", *_lines(values), codes.astype("<i8")))
    return Identity(tuple(found), tuple(telling))


def _round(values: list[str]) -> Hashes:
    """Return a number for each value, the same for numbers that agree in three digits."""
    numbers = [number_of(value) for value in values]
    texts = [value if number is None else f"{number + 0.0:.3g}" for value, number in zip(values, numbers, strict=True)]
    return mix(byte_hashes([text.encode("utf-8", "replace") for text in texts]))


def _code(column: NDArray[Any]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different values of a column, in order, and the place of each record's value among them."""
    written, places = distinct(column)
    canonical = [one if (number := number_of(one)) is None else repr(number) for one in written]
    values = sorted(set(canonical))
    rank = {value: place for place, value in enumerate(values)}
    return values, np.array([rank[value] for value in canonical], np.int64)[places]


def _whole_digest(coded: Mapping[str, tuple[list[str], NDArray[np.int64]]]) -> str:
    codes = np.stack([places for _, places in coded.values()], 1)
    records = codes[np.lexsort(codes.T[::-1])]
    values = [line for name, (known, _) in coded.items() for line in _lines([name, *known])]
    return sha256_of("table", *values, records.astype("<i8"))


def _lines(values: list[str]) -> list[str]:
    return [f"{len(value)}:{value}" for value in [str(len(values)), *values]]


def _are_row_numbers(values: list[str], counts: NDArray[np.int64]) -> bool:
    """Return whether the values are whole numbers, each once, in any order, and few are left out between them."""
    numbers = [number_of(value) for value in values]
    if counts.max() > 1 or None in numbers:
        return False
    places = np.array(numbers, dtype=np.float64)
    return bool((places % 1 == 0).all() and np.ptp(places) < MAX_GAPS * len(places))


def _is_regular(codes: NDArray[np.int64], count: int) -> bool:
    """Return whether equal values lie together, or all values take turns."""
    in_blocks = 1 + int((np.diff(codes) != 0).sum()) == count
    return in_blocks or bool((codes[count:] == codes[:-count]).all())
