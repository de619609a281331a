"""Tables as CSV: written so that spreadsheets open them without surprises, and read in memory that is bounded.

All CSV goes through this module, both ways. A text that a spreadsheet takes for a formula is written with an
apostrophe before it, and the readers take that apostrophe off.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TextIO

from finc_eval.core.errors import DataError
from finc_eval.core.memory import check_decoded, max_decoded
from finc_eval.core.places import with_urls
from finc_eval.core.words import one_line, plural

FORMULA_LETTERS = "=+-@\t\r\n＝＋－＠"  # first letters of a text that a spreadsheet takes for a formula
FORMULA = re.compile(rf"'*[{re.escape(FORMULA_LETTERS)}]")  # beginning of a text that is written with one more "'"

MAX_CSV_COLUMNS = 10_000  # columns of a table that is read
MAX_ROW_LETTERS = 1 << 22  # letters of a row of CSV that is read: as texts of two letters each, they take 0.1 GB
MAX_CELL_LETTERS = 1 << 17  # letters of a cell that Python's csv module reads by default
BETWEEN = ",\t;|"  # letters between the values of a row, in the order in which they are tried
BYTES_PER_CELL = 64  # bytes that a value of a table takes: a text of up to 7 letters and its place in a list

MAX_EMPTY, FREE_CELLS = 100, 100_000
"""Cells of a table for each value that its rows give, beyond a number of cells that is always allowed. Rows that each
have a column of their own would otherwise take time and memory with the square of their number: 370 are refused."""


def csv_text(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as CSV, with a column for every name in any of them.

    Numbers are written in full, and None as an empty cell. Formulas are escaped; control characters, direction marks
    and the ends of lines are spelled out.
    """
    all_rows = [*rows]
    columns = dict.fromkeys(name for row in all_rows for name in row)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(cell(name) for name in columns)
    lines.writerows([cell(row.get(name)) for name in columns] for row in all_rows)
    return text.getvalue()


def write_rows(file: TextIO, rows: Iterable[Sequence[object]], *, texts: int | None = None, end: str = "\r\n") -> None:
    """Write rows of values as CSV, with formulas escaped.

    Args:
        file: text to write to.
        rows: values of each row.
        texts: number of first values of each row that are texts, while later ones are numbers that are written in some
            form; default: all texts may be formulas.
        end: end of each line.
    """
    lines = csv.writer(file, lineterminator=end)
    for row in rows:
        some = row if texts is None else row[:texts]
        lines.writerow([*(escape(cell) if isinstance(cell, str) else cell for cell in some), *row[len(some) :]])


def escape(text: str) -> str:
    """Return a text with an apostrophe before it if a spreadsheet would take it for a formula.

    A text of apostrophes before such a letter gets one more, so that `unescape` returns every text.
    """
    return f"'{text}" if FORMULA.match(text) else text


def unescape(text: str) -> str:
    """Return the text that `escape` was given."""
    return text[1:] if text[:1] == "'" and FORMULA.match(text) else text


def cell(value: object) -> object:
    """Return a value as a cell that a spreadsheet takes for no formula; None for a number that is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return escape(spelled(value)) if isinstance(value, str) else value


def spelled(text: str) -> str:
    """Return a text on one line, without control characters, and with URLs in place of their copies."""
    return one_line(with_urls(text))


class CsvLines:
    """Rows of CSV that are not empty, as lists of texts, from a text or from its lines.

    Attributes:
        number: number of the line that the row before ended in, as a person counts.

    Raises:
        DataError: a row or a cell is too long.
    """

    def __init__(self, text: str | Iterable[str], name: str) -> None:
        self.name, self.number, self._letters = name, 0, 0
        # Without newline="", a text is also cut at signs that do not end a line of CSV, or loses them.
        whole = io.StringIO(text.removeprefix("\ufeff"), newline="") if isinstance(text, str) else text
        pieces, first = self._pieces(whole), [""]
        while not first[-1].strip() and (piece := next(pieces, None)) is not None:
            first.append(piece)
        between = separator_in(first[-1])
        initial = f"{between} " in first[-1]
        self._reader = csv.reader(chain(first[1:], pieces), delimiter=between, skipinitialspace=initial)

    def _pieces(self, file: Iterable[str]) -> Iterator[str]:
        for piece in file:
            self._letters += len(piece)
            if self._letters > MAX_ROW_LETTERS:
                raise DataError(
                    f"{self.name} has a row of more than {MAX_ROW_LETTERS:,} letters: close its quotes, or shorten it"
                )
            yield piece

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        try:
            while not (line := next(self._reader)):
                self._letters = 0
        except csv.Error as error:
            raise DataError(
                f"{self.name} cannot be read as CSV at line {self._reader.line_num} ({error}): a value has at most "
                f"{MAX_CELL_LETTERS:,} letters; shorten it, or close its quotes"
            ) from None
        self._letters, self.number = 0, self._reader.line_num
        return [unescape(cell) if cell[:1] == "'" else cell for cell in line]


def csv_table(text: str | Iterable[str], name: str) -> tuple[list[str], Iterator[dict[str, str]]]:
    """Read the columns of a text of CSV, and its rows by their names; empty lines are left out.

    For what separates values, see `separator_in`.
    """
    columns, rows = csv_body(text, name)
    return columns, (dict(zip(columns, row, strict=True)) for row in rows)


def csv_columns(text: str | Iterable[str], name: str) -> dict[str, list[str]]:
    """Read a text of CSV as columns by name, none without a row; DataError for too many values."""
    columns, rows = csv_body(text, name)
    return cells_by_column(columns, rows, name)


def cells_by_column(columns: list[str], rows: Iterator[list[str]], name: str) -> dict[str, list[str]]:
    """Return rows as columns by name, read some at a time, none without a row; DataError for too many values."""
    cells: list[list[str]] = [[] for _ in columns]
    count, step = 0, max(1, FREE_CELLS // max(1, len(columns)))
    while some := [*islice(rows, step)]:
        count += len(some)
        check_cells(len(columns), count, name)
        for column, values in zip(cells, zip(*some, strict=True), strict=True):
            column.extend(values)
    return dict(zip(columns, cells, strict=True)) if count else {}


def csv_body(text: str | Iterable[str], name: str) -> tuple[list[str], Iterator[list[str]]]:
    """Read the heading of a text of CSV, and its rows, which have a value for each column."""
    lines = CsvLines(text, name)
    columns = [column.strip() for column in next((line for line in lines if any(map(str.strip, line))), [])]
    _check_columns(len(columns), name)
    if len(named := [column for column in columns if column]) > len({*named}):
        twice = Counter(named).most_common(1)[0][0]
        raise DataError(f"{name} has two columns {twice!r}: give each a name of its own")
    return columns, _regular(lines, len(columns))


def _regular(lines: CsvLines, columns: int) -> Iterator[list[str]]:
    for line in lines:
        if len(line) != columns:
            raise DataError(
                f"line {lines.number} of {lines.name} has {plural(len(line), 'value')} for "
                f"{plural(columns, 'column')}: give each column one, and quote a value with a comma"
            )
        yield line


def separator_in(line: str) -> str:
    """Return what separates the values of a first row: a comma or, where it has none, the first of `BETWEEN` in it."""

    def divides(between: str) -> bool:
        try:
            return len(next(csv.reader([line], delimiter=between), ())) > 1
        except csv.Error:  # too long a value: reading the row says so
            return False

    return next(filter(divides, BETWEEN), ",")


def gather_columns(rows: Iterable[Mapping[str, Any]], name: str) -> dict[str, list[Any]]:
    """Return rows of named values as columns, with None if a row lacks a value; DataError for too many."""
    columns: dict[str, list[Any]] = {}
    count, given, most = 0, 0, max_decoded() // BYTES_PER_CELL
    for row in rows:
        for column, value in row.items():
            values = columns.get(column)
            if values is None:
                values = columns[column] = []
                _check_columns(len(columns), name)
            if len(values) < count:
                values.extend([None] * (count - len(values)))
            values.append(value)
        count, given = count + 1, given + len(row)
        if len(columns) * count > min(most, MAX_EMPTY * given + FREE_CELLS):
            check_cells(len(columns), count, name)
            raise DataError(
                f"{name} has {plural(len(columns), 'column')} in its first {plural(count, 'row')}, and each row has "
                f"{given / count:.0f} of them: write the name of a column as a value"
            )
    for values in columns.values():
        values.extend([None] * (count - len(values)))
    return columns


def check_cells(columns: int, rows: int, name: str) -> None:
    """Raise DataError for a table whose values take more memory than is allowed."""
    check_decoded(BYTES_PER_CELL * columns * rows, f"{name} with {plural(columns, 'column')} of {rows:,} values")


def _check_columns(columns: int, name: str) -> None:
    if columns > MAX_CSV_COLUMNS:
        raise DataError(f"{name} has more than {MAX_CSV_COLUMNS:,} columns: leave out columns that are not needed")
