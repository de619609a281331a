"""Tables as CSV: written so that spreadsheets open them without surprises, and read with a value for each column."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping

from finc_eval.core.errors import DataError
from finc_eval.core.terminal import spelled_out
from finc_eval.core.words import counted

FORMULA = ("=", "+", "-", "@", "\t", "＝", "＋", "－", "＠")
"""Beginnings of a text that a spreadsheet takes for a formula."""


def csv_text(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as CSV, with a column for every name in any of them.

    Numbers are written in full, and None as an empty cell. A text that a spreadsheet would take for a formula begins
    with an apostrophe. Control characters, direction marks and the ends of lines are spelled out.
    """
    found = [*rows]
    columns = dict.fromkeys(name for row in found for name in row)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_cell(name) for name in columns)
    lines.writerows([_cell(row.get(name)) for name in columns] for row in found)
    return text.getvalue()


def csv_rows(file: Iterable[str], name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file by the names in its first one; empty lines are none.

    Args:
        file: lines of the file.
        name: name of the file.

    Raises:
        DataError: a row has more or fewer values than there are columns, or columns are separated by semicolons.
    """
    lines = csv.reader(file)
    columns = next((line for line in lines if line), list[str]())
    if len(columns) == 1 and ";" in columns[0]:
        raise DataError(f"{name} separates its columns by semicolons, in {columns[0]!r:.60}: save it with commas")
    for line in lines:
        if line and len(line) != len(columns):
            raise DataError(
                f"line {lines.line_num} of {name} has {counted(len(line), 'value')} for "
                f"{counted(len(columns), 'column')}: give each column one, and quote a value with a comma"
            )
        if line:
            yield dict(zip(columns, line, strict=True))


def _cell(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, str):
        return value
    told = spelled_out(value).replace("\n", "\\n")
    return f"'{told}" if told.startswith(FORMULA) else told
