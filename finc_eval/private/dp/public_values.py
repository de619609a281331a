"""Private values read by public rules: one value at a time, so that no record decides whether there is a release.

What is refused here is the form of an array, such as its type or its shape. A single value is never refused. A value
that is not in a public list, or is not a number, is a value that counts as missing; `check_fit` counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.forms import KnownNames
from finc_eval.core.words import join_words
from finc_eval.embeddings.columns import text, to_text

NUMBERS, TEXTS = "biuf", "USO"
"""Kinds of numpy types: booleans, whole and floating-point numbers; texts, bytes, and values of any type."""

TRUTHS = {"True": 1.0, "False": 0.0}  # truth values as numbers


def column_array(values: Any, name: str) -> NDArray[Any]:
    """Return a column or a list of labels as an array (n,); a masked entry becomes None."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(object), None)
    try:
        array: NDArray[Any] = np.asarray(values.cpu() if hasattr(values, "cpu") else values)
    except ValueError:  # rows of several lengths
        raise DataError(f"{name} must have one value per record, got lists of several lengths") from None
    if array.ndim != 1:
        raise DataError(f"{name} must have one value per record, shape (n,), got shape {array.shape}")
    if array.dtype.kind not in NUMBERS + TEXTS:
        raise DataError(f"{name} must have numbers or texts, got values of the type {array.dtype}")
    return array


def column_arrays(columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the columns of a table by name, each an array (n,), from a mapping or a data frame."""
    arrays = {str(name): column_array(columns[name], f"column {name}") for name in columns}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise DataError(f"a table must have columns of one length, with at least one record, got {lengths}")
    return arrays


def places_of(values: NDArray[Any], known: Sequence[str], name: str, missing: str | None = None) -> NDArray[np.int64]:
    """Return the place of each value in a public list, shape (n,); −1 for a value that is not in the list.

    A value is in the list if it is written as there, or if one value of the list alone is it in another form
    (`finc_eval.core.forms`), or if it is the same number: 1, 1.0, True and "1.0" are all "1". What is missing has the
    place of the value `missing`. Messages call the values by `name`.
    """
    numbers = [number_of(value) for value in known]
    if values.dtype.kind in NUMBERS and all(number is None for number in numbers):
        raise DataError(
            f"{name}: the values are numbers ({values.dtype}), and the public list has none, only "
            f"{join_words([*map(repr, known)])}: pass the values as they are written there"
        )
    by_number = {number: row for row, number in enumerate(numbers) if number is not None}
    if len(by_number) < sum(number is not None for number in numbers):  # "1" and "1.0" are two values of the list
        by_number = {}
    names, of_missing = KnownNames(known), -1 if missing is None else known.index(missing)

    def place(written: str) -> int:
        listed = names.place(written)
        if listed is None and not to_text(written):
            return of_missing
        return by_number.get(number_of(written), -1) if listed is None else listed  # type: ignore[arg-type]  # None has none

    written, inverse = distinct(values, to_text=str)
    return np.array([place(text) for text in written], np.int64)[inverse]


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for each value (n,) if it is missing: empty, None, NaN, or a text that stands for it."""
    if values.dtype.kind in NUMBERS:
        return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    written, inverse = distinct(values)
    return np.array([not text for text in written])[inverse]


def count_texts(values: NDArray[Any], chosen: NDArray[np.bool_]) -> Counter[str]:
    """Return the texts of the chosen values, both of shape (n,), with the number of each."""
    if not chosen.any():
        return Counter()
    written, inverse = distinct(values[chosen], to_text=str)
    return Counter(dict(zip(written, np.bincount(inverse).tolist(), strict=True)))


def numbers_of(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return each value as a number, shape (n,); NaN for a value that is not one. Infinities stay."""
    if values.dtype.kind in NUMBERS:
        return values.astype(np.float64)
    written, inverse = distinct(values)
    numbers = [_parse(text) for text in written]
    return np.array(numbers, np.float64)[inverse]


def number_of(written: str) -> float | None:
    """Return the finite number that a text writes, or None."""
    number = _parse(written)
    return number if isfinite(number) else None


def distinct(values: NDArray[Any], to_text: Callable[[str], str] = to_text) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different values (n,) as texts, in order, and the place of each value among them, shape (n,).

    `to_text` maps what is written: texts that stand for a missing value to "", unless it is `str`.
    """
    if values.dtype.kind == "O":
        values = np.array([_text(value, to_text) for value in values.tolist()], dtype=np.str_)
    different, inverse = np.unique(values, return_inverse=True)
    # float32 is written with the digits that it has: as float64, 0.1 would be 0.10000000149.
    short = different.dtype.kind == "f" and different.dtype.itemsize < np.dtype(np.float64).itemsize
    values_in_order = [float(str(value)) for value in different] if short else different.tolist()
    return [_text(value, to_text) for value in values_in_order], inverse.astype(np.int64)


def _text(value: object, to_text: Callable[[str], str]) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    return (to_text(value) if isinstance(value, str) else text(value)).strip()


def _parse(written: str) -> float:
    try:
        return TRUTHS[written] if written in TRUTHS else float(written)
    except ValueError:
        return float("nan")
