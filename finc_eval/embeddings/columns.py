"""Columns of metadata: one text a sample, checked and in one form, from a mapping or a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from finc_eval.core.errors import UsageError, did_you_mean
from finc_eval.core.words import counted

Columns = dict[str, list[str]]


def columns_of(metadata: object, n: int, name: str) -> Columns:
    """Return the columns of a mapping or a pandas data frame as texts; a missing value is "".

    Args:
        metadata: values of each column, one a sample.
        n: number of samples.
        name: name of the set in messages.

    Raises:
        UsageError: it is neither, or a column has another number of values.
    """
    columns = {str(column): texts(values, str(column)) for column, values in columns_in(metadata, name).items()}
    for column, values in columns.items():
        if len(values) != n:
            raise UsageError(
                f"the column {column!r} of {name} has {counted(len(values), 'value')} for {counted(n, 'sample')}: "
                "give one a sample"
            )
    return columns


def columns_in(metadata: object, name: str) -> dict[Any, Any]:
    """Return the columns of a mapping or a pandas data frame, by name."""
    if isinstance(metadata, Mapping):
        return dict(metadata)
    if hasattr(metadata, "columns") and hasattr(metadata, "iloc"):
        return {column: metadata[column] for column in metadata.columns}  # type: ignore[index]  # a data frame
    raise UsageError(
        f"the metadata of {name} must be a mapping of columns or a pandas data frame, got {type(metadata).__name__}"
    )


def texts(values: Any, column: str) -> list[str]:
    """Return the values of a column as texts."""
    values = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(f"the column {column!r} must be a list of values, one a sample, got {values!r:.40}")
    return [text(value) for value in values]


def text(value: object) -> str:
    """Return a value as text: "" for None and NaN, "3" for 3.0."""
    # NaN and pandas' NaT differ from themselves; pandas turns whole numbers with a gap into fractional ones.
    if value is None or type(value).__name__ == "NAType" or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def unknown_column(column: str, columns: Sequence[str], name: str) -> UsageError:
    """Return the error for a column that a set does not have."""
    has = f"it has {', '.join(columns)}" if columns else "it has no metadata"
    return UsageError(f"{name} has no column {column!r}{did_you_mean(column, columns)}: {has}")
