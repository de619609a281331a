"""Files of tables as columns by name: CSV, JSON, JSON lines and Parquet, in memory that is bounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.csv_text import check_cells, csv_columns, gather_columns
from finc_eval.core.files.parquet import parquet_pieces, parquet_schema
from finc_eval.core.files.parsed import foreign_json, json_lines, json_size
from finc_eval.core.memory import BYTES_PER_LINE, BYTES_PER_TEXT_BYTE, check_decoded, check_list

Columns = dict[str, list[Any]]

UNREADABLE = (OSError, EOFError, ValueError, TypeError, KeyError, NotImplementedError, OverflowError)
"""Errors of pyarrow on what is not a table, or has values that Python does not hold."""


@dataclass(frozen=True)
class TableText:
    """Content of a text of a table.

    Attributes:
        columns: columns by name; empty if the text is one JSON value that is not a list of rows.
        first: number of the first row, as a person counts: 2 below the heading of CSV.
        value: JSON value of the whole text; None for CSV and JSON lines.
        has_heading: whether the text is not CSV without names of columns.
    """

    columns: Columns = field(default_factory=dict)
    first: int = 1
    value: Any = None
    has_heading: bool = True


def parquet_columns(path: Path, name: str) -> Columns:
    """Read a .parquet file as columns; DataError for too many values, by what the file states before it is decoded."""
    try:
        schema, rows = parquet_schema(path)
        check_list(rows, name, "rows", BYTES_PER_LINE)
        check_cells(len(schema.names), rows, name)
        columns: list[list[Any]] = [[] for _ in schema.names]
        for batch in parquet_pieces(path, BYTES_PER_TEXT_BYTE):
            for column, values in zip(columns, batch.columns, strict=True):
                column.extend(_python_values(values))
    except ImportError as error:
        raise UsageError(f"reading {name} needs {error.name}: pip install {error.name}") from error
    except FileNotFoundError as error:
        raise DataError(f"{name} does not exist") from error
    except UNREADABLE as error:  # pyarrow's errors are among these
        words = str(error).split("\n", 1)[0][:200]
        raise DataError(f"{name} cannot be read as a .parquet file ({words}): write it again") from error
    return dict(zip(schema.names, columns, strict=True))


def _python_values(values: Any) -> list[Any]:
    """Return an array of pyarrow as a list; rows of a category share its text, as in the file."""
    if not hasattr(values, "dictionary"):
        return list(values.to_pylist())
    categories = values.dictionary.to_pylist()
    return [None if number is None else categories[number] for number in values.indices.to_pylist()]


def text_columns(text: str, name: str, read_csv: Callable[[str, str], tuple[Columns, int]] | None = None) -> TableText:
    """Read a text of CSV, JSON or JSON lines, whichever it is, as columns; `read_csv` also finds the first row."""
    text = text.removeprefix("\ufeff")
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        check_list(text.count("\n"), name, "lines", BYTES_PER_LINE)
        columns, first = (csv_columns(text, name), 2) if read_csv is None else read_csv(text, name)
        return TableText({**columns}, first, has_heading=first > 1)
    check_decoded(json_size(text), name)
    lines = (line.lstrip() for line in text.split("\n"))
    if start == "{" and [line[0] for line, _ in zip(filter(None, lines), range(2), strict=False)] == ["{", "{"]:
        return TableText(json_line_columns(text, name))
    value = foreign_json(text, name)
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        return TableText(gather_columns(value, name), value=value)
    return TableText(value=value)


def json_line_columns(text: str, name: str) -> Columns:
    """Read lines of JSON, each a row of named values, as columns."""
    check_decoded(json_size(text), name)

    def row(number: int, value: Any) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise DataError(f"row {number} of {name} is {value!r:.60}, not a row of named values: correct it")
        return value

    return gather_columns((row(*numbered) for numbered in enumerate(json_lines(text, name), start=1)), name)
