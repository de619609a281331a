"""Tables as CSV: written so that spreadsheets open them without surprises, and read in memory that is bounded."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from finc_eval.core.errors import DataError
from finc_eval.core.memory import check_decoded, max_decoded
from finc_eval.core.places import with_urls
from finc_eval.core.words import one_line, plural

FORMULA = tuple("=+-@\t＝＋－＠")  # beginnings of a text that a spreadsheet takes for a formula
MAX_COLUMNS = 10_000  # columns of a table that is read
MAX_ROW_LETTERS = 1 << 22  # letters of a row of CSV that is read: as texts of two letters each, they take 0.1 GB
BETWEEN = ",\t;|"  # letters between the values of a row, in the order in which they are tried
BYTES_PER_CELL = 64  # bytes that a value of a table takes: a text of up to 7 letters and its place in a list


def csv_text(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as CSV, with a column for every name in any of them.

    Numbers are written in full, and None as an empty cell. A text that a spreadsheet would take for a formula begins
    with an apostrophe. Control characters, direction marks and the ends of lines are spelled out.
    """
    found = [*rows]
    columns = dict.fromkeys(name for row in found for name in row)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(cell(name) for name in columns)
    lines.writerows([cell(row.get(name)) for name in columns] for row in found)
    return text.getvalue()


def csv_table(file: Iterable[str], name: str) -> tuple[list[str], Iterator[dict[str, str]]]:
    """Read the columns of a CSV file, given by its lines, and its rows by their names; empty lines are left out.

    For what separates values, see `separator_in`.
    """
    letters = 0

    def pieces() -> Iterator[str]:
        nonlocal letters
        for piece in file:
            letters += len(piece)
            if letters > MAX_ROW_LETTERS:
                raise DataError(
                    f"{name} has a row of more than {MAX_ROW_LETTERS:,} letters: close its quotes, or shorten it"
                )
            yield piece

    rest, first = pieces(), [""]
    while not first[-1].strip() and (piece := next(rest, None)) is not None:
        first.append(piece)
    between = separator_in(first[-1])
    lines = csv.reader(chain(first[1:], rest), delimiter=between, skipinitialspace=f"{between} " in first[-1])
    columns = [column.strip() for column in next((line for line in lines if any(map(str.strip, line))), [])]
    _check_columns(len(columns), name)
    if len(named := [column for column in columns if column]) > len({*named}):
        twice = Counter(named).most_common(1)[0][0]
        raise DataError(f"{name} has two columns {twice!r}: give each a name of its own")

    def rows() -> Iterator[dict[str, str]]:
        nonlocal letters
        for line in lines:
            letters = 0
            if line and len(line) != len(columns):
                raise DataError(
                    f"line {lines.line_num} of {name} has {plural(len(line), 'value')} for "
                    f"{plural(len(columns), 'column')}: give each column one, and quote a value with a comma"
                )
            if line:
                yield dict(zip(columns, line, strict=True))

    return columns, rows()


def separator_in(line: str) -> str:
    """Return what separates the values of a first row: a comma or, where it has none, the first of `BETWEEN` in it."""
    return next((one for one in BETWEEN if len(next(csv.reader([line], delimiter=one), ())) > 1), ",")


def gather_columns(rows: Iterable[Mapping[str, Any]], name: str) -> dict[str, list[Any]]:
    """Return rows of named values as columns, with None if a row lacks a value; DataError for too many."""
    columns: dict[str, list[Any]] = {}
    count, most = 0, max_decoded() // BYTES_PER_CELL
    for row in rows:
        for column, value in row.items():
            values = columns.get(column)
            if values is None:
                values = columns[column] = []
                _check_columns(len(columns), name)
            if len(values) < count:
                values.extend([None] * (count - len(values)))
            values.append(value)
        count += 1
        if len(columns) * count > most:
            check_cells(len(columns), count, name)
    for values in columns.values():
        values.extend([None] * (count - len(values)))
    return columns


def check_cells(columns: int, rows: int, name: str) -> None:
    """Raise DataError for a table whose values take more memory than is allowed."""
    check_decoded(BYTES_PER_CELL * columns * rows, f"{name} with {plural(columns, 'column')} of {rows:,} values")


def _check_columns(columns: int, name: str) -> None:
    if columns > MAX_COLUMNS:
        raise DataError(f"{name} has more than {MAX_COLUMNS:,} columns: leave out columns that are not needed")


def cell(value: object) -> object:
    """Return a value as a cell that a spreadsheet takes for no formula; None for a number that is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, str):
        return value
    text = one_line(with_urls(value))
    return f"'{text}" if text.startswith(FORMULA) else text
