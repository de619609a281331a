"""Tables of others as columns by name: files, frames, mappings of columns, and lists of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import copysign, inf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.columns_in import Columns, TableText, parquet_columns, text_columns
from finc_eval.core.files.csv_text import CsvLines, cells_by_column, csv_body, gather_columns
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.parsed import read_text
from finc_eval.core.places import is_url
from finc_eval.core.words import join_words, plural

TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet")  # endings of files of tables
SCORE = "score"  # name of a judge that a table does not name
MISSING = ("", "nan", "none", "null", "na", "n/a")  # texts of a missing number, in small letters


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


@dataclass(frozen=True)
class NamedColumns:
    """Columns of equal lengths, by name.

    Attributes:
        name: name of the table in messages.
        columns: columns by name; empty if the data is one JSON value that is not a list of rows.
        first: number of the first row, as a person counts: 2 below the heading of a CSV file.
        value: JSON value of the whole data; None without one.
        unnamed: path of a table without a heading, whose one judge has the name `SCORE`; "" for any other.
        tables: tables whose rows these are, one below the other.
    """

    name: str
    columns: Columns
    first: int = 1
    value: Any = None
    unnamed: str = ""
    tables: tuple[NamedColumns, ...] = field(default=())

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def place(self, row: int) -> str:
        """Return where a row is, by its index from 0."""
        for table in self.tables:
            if row < table.n:
                return table.place(row)
            row -= table.n
        return f"row {row + self.first} of {self.name}"

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows, each with all columns; None is a missing value."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def texts(self, column: str | None) -> list[str]:
        """Return a column as texts; empty texts without it."""
        return [text_of(cell) for cell in self.columns[column]] if column is not None else [""] * self.n

    @classmethod
    def joined(cls, tables: Sequence[NamedColumns]) -> NamedColumns:
        """Put the rows of several tables below each other."""
        if len(tables) == 1:
            return tables[0]
        columns: Columns = {}
        rows = 0
        for table in tables:
            for column, values in table.columns.items():
                joined = columns.setdefault(column, [])
                joined.extend([None] * (rows - len(joined)))
                joined.extend(values)
            rows += table.n
        for joined in columns.values():
            joined.extend([None] * (rows - len(joined)))
        return cls(join_words([table.name for table in tables]), columns, tables=tuple(tables))


def read_table(source: object, name: str) -> NamedColumns:
    """Read a table: a path of CSV, JSON, JSON lines or Parquet, a frame, columns by name, or rows.

    Raises:
        UsageError: the source is not a table.
        DataError: a file cannot be read.
    """
    if isinstance(source, str | Path):
        return _read_file(source)
    if hasattr(source, "to_dicts") and hasattr(source, "get_columns"):  # polars
        return NamedColumns(name, checked({column.name: column.to_list() for column in source.get_columns()}, name))
    if hasattr(source, "to_dict") and hasattr(source, "reset_index"):  # pandas, whose index may be the ids
        named = getattr(source, "index", None)
        whole: Any = source if getattr(named, "name", None) is None else source.reset_index()
        return NamedColumns(name, checked({str(column): whole[column].tolist() for column in whole.columns}, name))
    if isinstance(source, Mapping):
        return NamedColumns(name, checked(columns_of(source, name), name))
    if isinstance(source, np.ndarray):
        source = source.tolist()
    if isinstance(source, Sequence) and source and not isinstance(source, bytes):
        if all(isinstance(row, Mapping) for row in source):
            rows = ({str(key): value for key, value in row.items()} for row in source)
            return NamedColumns(name, checked(gather_columns(rows, name), name))
        if all(map(is_number, source)):
            return NamedColumns(name, {SCORE: list(source)})
    if isinstance(source, Sequence) and not source:
        raise DataError(f"{name} have no row: give some, or leave them out")
    raise UsageError(f"{name} must be a path, a frame, columns by name or rows, got {type(source).__name__}")


def checked(columns: Columns, name: str) -> Columns:
    """Return columns; DataError if a name is a number as data has it, so that a first row is lost in the heading."""
    lost = [heading for heading in columns if is_data(heading) and not heading.strip().isdigit()]
    if lost:
        raise DataError(
            f"{name} have a column called {lost[0]!r}, which is data: read the table without a heading (header=None)"
        )
    if columns and all(heading == str(place) for place, heading in enumerate(columns)):
        return _headed([*columns.values()], name)
    return columns


def columns_of(columns: Mapping[Any, Any], name: str) -> Columns:
    """Return columns of equal lengths, or those of numbers by id, or of named numbers by id.

    Raises:
        UsageError: the lengths differ.
    """
    values = [*columns.values()]
    if any(map(is_number, values)) and all(value is None or is_number(value) for value in values):
        return {"id": [str(key) for key in columns], SCORE: values}
    if values and all(isinstance(value, Mapping) and any(map(is_number, value.values())) for value in values):
        return gather_columns(({"id": str(key), **row} for key, row in columns.items()), name)
    lists = {str(key): _listed(value) for key, value in columns.items() if np.ndim(value) == 1}
    sizes = {len(column) for column in lists.values()}
    if len(lists) < len(columns) or len(sizes) != 1:
        raise UsageError(f"{name} must have columns of equal lengths, got {plural(len(sizes), 'length')}")
    return lists


def _listed(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)


def is_file(name: str) -> bool:
    """Return whether a text names a file of a table: by its ending, as a URL, or because it is there."""
    try:
        return Path(name).suffix.lower() in TABLE_SUFFIXES or is_url(name) or is_there(name)
    except ValueError:
        return False


def is_there(name: str) -> bool:
    """Return whether a text is the path of a file or a folder; a text may be longer than any path."""
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def is_number(value: object) -> bool:
    """Return whether a value is one number and not a truth value."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def is_data(heading: str) -> bool:
    """Return whether the name of a column is a number, as only a table without a heading has it."""
    try:
        return not isnan(float(heading)) or heading.strip() == "nan"
    except ValueError:
        return False


def _read_file(source: str | Path) -> NamedColumns:
    name, path = str(source), on_disk(source)
    if name.lower().endswith(".parquet"):
        found = TableText(checked(parquet_columns(path, name), name))
        if not found.columns or not next(iter(found.columns.values())):
            raise DataError(f"{name} has no row: give it some, or leave it out")
    else:
        found = text_columns(read_text(source, "a table", newline=""), name, _read_csv)
    columns, unnamed = found.columns, "" if found.has_heading else name
    if isinstance(found.value, list) and found.value and all(map(is_number, found.value)):
        columns, unnamed = {SCORE: found.value}, name
    elif isinstance(found.value, Mapping):
        columns = _of_mapping(found.value, name)
        unnamed = name if [*columns] == ["id", SCORE] else ""
    return NamedColumns(name, columns, found.first, found.value, unnamed)


def _of_mapping(value: Mapping[str, Any], name: str) -> Columns:
    """Return the columns of a JSON object as Python takes it; its values as one row if it is not a table."""
    try:
        return columns_of(value, name)
    except (UsageError, ValueError, DataError):
        return {key: [cell] for key, cell in value.items()}


def _read_csv(text: str, name: str) -> tuple[Columns, int]:
    """Read CSV, and find the number of its first row: 1 without a heading."""
    heading = next((row for row in CsvLines(text, name) if any(map(str.strip, row))), [])
    known = {cell.strip().lower().replace(" ", "_") for cell in heading} & HEADINGS
    if known or not any(map(is_data, heading)):
        columns, rows = csv_body(text, name)
        if not (found := cells_by_column(columns, rows, name)):
            raise DataError(f"{name} has no row below its heading ({', '.join(columns):.200}): give it some")
        return {**found}, 2
    body = (row for row in CsvLines(text, name) if any(map(str.strip, row)))
    numbered = [str(place) for place in range(len(heading))]

    def rows_of() -> Iterator[list[str]]:
        for number, row in enumerate(body, start=1):
            if len(row) != len(heading):
                raise DataError(f"row {number} of {name} has {plural(len(row), 'value')}, and row 1 {len(heading)}")
            yield row

    return _headed([*cells_by_column(numbered, rows_of(), name).values()], name), 1


HEADINGS = words(
    "id sample_id file_name filename file path image name image_path video_path prompt caption text model left"
    " right winner voter score seed"
)
"""Names of columns that are not data, so that a table that has one has a heading."""


def _headed(columns: Sequence[list[Any]], name: str) -> Columns:
    """Return the columns of a table without a heading by name: ids, if it has them, and one judge.

    Raises:
        DataError: the columns do not say which of them is the judge.
    """
    numbers = [column for column in columns if all(number_of(value) is not None for value in column)]
    texts = [column for column in columns if not any(column is own for own in numbers)]
    if len(columns) == 2 and len(numbers) == 2 and _counts(columns[0]) and not _counts(columns[1]):
        numbers, texts = [columns[1]], [columns[0]]
    if len(numbers) != 1 or len(texts) > 1:
        first = ", ".join(text_of(column[0]) for column in columns)
        raise DataError(f"{name} has no heading (its first row is {first:.100}): write one, such as id,clip,prompt")
    return {"id": texts[0], SCORE: numbers[0]} if texts else {SCORE: numbers[0]}


def _counts(values: Sequence[Any]) -> bool:
    """Return whether values are different whole numbers, such as ids."""
    found = [number_of(value) for value in values]
    return all(number is not None and number.is_integer() for number in found) and len({*found}) == len(found)


def text_of(value: object) -> str:
    """Return a value as the text that names it, without spaces around it; see `exact_text`."""
    return exact_text(value).strip()


def exact_text(value: object) -> str:
    """Return a value as the text that names it: "" for a missing one, "3" for 3.0."""
    if isinstance(value, str):
        return value
    if value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return shown(value, str)


def shown(value: object, write: Any = repr) -> str:
    """Return a value as messages show it; a whole number that Python does not write by the number of its digits."""
    try:
        return str(write(value))
    except ValueError:  # more than 4 300 digits
        return "a number of thousands of digits"


def number_of(value: object) -> float | None:
    """Return a value as a number, NaN if it is missing, infinity if it is too large; None if it is neither."""
    if isinstance(value, str):
        text = value.strip().lower()
        if text in MISSING:
            return nan
        if text in ("true", "false"):
            return float(text == "true")
        try:
            return float(text)
        except ValueError:
            return None
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return nan
    if isinstance(value, int | float | np.floating | np.integer | np.bool_ | Decimal | Fraction):
        try:
            return float(value)
        except OverflowError:  # a whole number of more than 308 digits
            return copysign(inf, 1 if value > 0 else -1)
    return None


def find_column(columns: Iterable[object], *names: str) -> str | None:
    """Return the first of these names among columns, whatever their capitals and spaces; None without one."""
    usual: dict[str, str] = {}
    for column in columns:
        usual.setdefault(str(column).strip().lower().replace(" ", "_"), str(column))
    return next((usual[name] for name in names if name in usual), None)
