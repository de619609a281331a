"""Tables of others as rows of named values: files, frames, mappings of columns, and lists of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.csv_text import csv_table
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.parquet import parquet_table
from finc_eval.core.files.parsed import foreign_json, json_lines, read_text
from finc_eval.core.words import plural

Row = Mapping[str, Any]


@dataclass(frozen=True)
class RowTable:
    """Rows of named values."""

    name: str  # name of the table in messages
    rows: list[Row]
    first: int = 1  # number of the first row, as a person counts: 2 below the heading of a CSV file
    is_whole: bool = False  # whether the data was one JSON value and not rows: `value` has it
    value: Any = None
    tables: tuple[RowTable, ...] = ()  # tables whose rows these are, one below the other

    def place(self, row: int) -> str:
        """Return where a row is, by its index from 0."""
        for one in self.tables:
            if row < len(one.rows):
                return one.place(row)
            row -= len(one.rows)
        return f"row {row + self.first} of {self.name}"

    @classmethod
    def joined(cls, tables: Sequence[RowTable]) -> RowTable:
        """Put the rows of several tables below each other."""
        name = ", ".join(one.name for one in tables)
        return cls(name, [row for one in tables for row in one.rows], tables=tuple(tables))


def read_table(source: object, name: str) -> RowTable:
    """Read a table: a path of CSV, JSON, JSON lines or Parquet, a frame, columns by name, or rows.

    Raises:
        UsageError: the source is not a table.
        DataError: a file cannot be read.
    """
    if isinstance(source, str | Path):
        return _read_file(source)
    if hasattr(source, "to_dicts"):  # polars
        return RowTable(name, list(source.to_dicts()))
    if hasattr(source, "to_dict") and hasattr(source, "reset_index"):  # pandas, whose index may be the ids
        named = getattr(source, "index", None)
        whole = source if getattr(named, "name", None) is None else source.reset_index()
        return RowTable(name, list(whole.to_dict("records")))
    if isinstance(source, Mapping):
        return RowTable(name, rows_of_columns(source, name))
    if isinstance(source, np.ndarray):
        source = source.tolist()
    if isinstance(source, Sequence) and source:
        if all(isinstance(one, Mapping) for one in source):
            return RowTable(name, list(source))
        if all(isinstance(one, int | float) for one in source):
            return RowTable(name, [{"score": one} for one in source])
    if isinstance(source, Sequence) and not source:
        raise DataError(f"{name} have no row: give some, or leave them out")
    raise UsageError(f"{name} must be a path, a frame, columns by name or rows, got {type(source).__name__}")


def rows_of_columns(columns: Mapping[Any, Any], name: str) -> list[Row]:
    """Return rows from columns of equal lengths, or from numbers by id."""
    if columns and all(isinstance(one, int | float) and not isinstance(one, bool) for one in columns.values()):
        return [{"id": str(key), "score": value} for key, value in columns.items()]
    lists = {str(key): list(np.asarray(value).tolist()) for key, value in columns.items() if np.ndim(value) == 1}
    sizes = {len(one) for one in lists.values()}
    if len(lists) < len(columns) or len(sizes) != 1:
        raise UsageError(f"{name} must have columns of equal lengths, got {plural(len(sizes), 'length')}")
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _read_file(source: str | Path) -> RowTable:
    name, path = str(source), on_disk(source)
    if name.lower().endswith(".parquet"):
        return RowTable(name, parquet_table(path).to_pylist())
    text = read_text(source, "a table")
    start = text.lstrip("\ufeff \t\r\n")[:1]
    if start not in ("{", "["):
        columns, rows = csv_table(iter(text.lstrip("\ufeff").splitlines(keepends=True)), name)
        found: list[Row] = [*rows]
        if not found:
            raise DataError(f"{name} has no row below its heading ({', '.join(columns)}): give it some")
        return RowTable(name, found, first=2)
    lines = [line for line in text.splitlines() if line.strip()]
    if start == "{" and len(lines) > 1 and all(line.lstrip().startswith("{") for line in lines[:2]):
        return _checked(RowTable(name, list(json_lines(text, name))))
    value = foreign_json(text, name)
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        return RowTable(name, list(value), value=value)
    return RowTable(name, [value] if isinstance(value, Mapping) else [], is_whole=True, value=value)


def _checked(table: RowTable) -> RowTable:
    for number, row in enumerate(table.rows):
        if not isinstance(row, Mapping):
            raise DataError(f"{table.place(number)} is {row!r:.60}, not a row of named values: correct it")
    return table


def text_of(value: object) -> str:
    """Return a value as the text that names it: "" for a missing one, "3" for 3.0."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def number_of(value: object) -> float | None:
    """Return a value as a number, NaN if it is missing; None if it is neither."""
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "nan", "none", "null", "na")):
        return float("nan")
    if isinstance(value, str):
        if value.strip().lower() in ("true", "false"):
            return float(value.strip().lower() == "true")
        try:
            return float(value)
        except ValueError:
            return None
    if isinstance(value, int | float | np.number | np.bool_):
        return float(value)
    return None


def find_column(rows: Iterable[Row], *names: str) -> str | None:
    """Return the first of these columns that the first rows have, whatever their capitals; None without one."""
    columns: dict[str, str] = {}
    for row, _ in zip(rows, range(100), strict=False):
        for column in row:
            columns.setdefault(str(column).strip().lower().replace(" ", "_"), column)
    return next((columns[name] for name in names if name in columns), None)
