"""Tables as CSV that spreadsheets open without surprises: no formulas, and one line a row."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping

from finc_eval.core.terminal import visible

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


def _cell(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, str):
        return value
    told = visible(value).replace("\n", "\\n")
    return f"'{told}" if told.startswith(FORMULA) else told
