"""Columns of metadata: one text a sample, from a mapping, a data frame, or a file in the order of its ids."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from finc_eval.core.doors import read_text
from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.files.columns_in import json_line_columns, parquet_columns
from finc_eval.core.files.csv_text import check_cells, csv_columns
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.memory import BYTES_PER_TEXT_BYTE, numbered
from finc_eval.core.words import join_words, plural
from finc_eval.samples.clips import video_of
from finc_eval.samples.files import in_short
from finc_eval.samples.metadata import LABEL_KEYS, NAME_KEYS, PROMPT_KEYS, ROWS_OF, SAMPLES_WITHOUT
from finc_eval.samples.source import readable, reason

Columns = dict[str, list[str]]

MISSING = frozenset(("NA", "N/A", "#N/A", "n/a", "NaN", "nan", "-nan", "<NA>", "<NaN>", "None", "NULL", "null", "NaT"))
"""Texts that stand for a missing value in columns of numbers and dates, as pandas reads tables; we keep ""."""


def columns_of(metadata: object, n: int, name: str) -> Columns:
    """Return the columns of a mapping or a pandas data frame as n texts each; a missing value is ""."""
    columns = {str(column): texts(values, str(column)) for column, values in columns_in(metadata, name).items()}
    for column, values in columns.items():
        if len(values) != n:
            raise UsageError(
                f"the column {column!r} of {name} has {plural(len(values), 'value')} for {plural(n, 'sample')}: "
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


def missing_texts(values: Iterable[str]) -> frozenset[str]:
    """Return the texts of a column that stand for a missing value, without "".

    In a column of words there are none, since a class may be called NA or None: a word has a letter, and is neither a
    number, a date nor a truth value.

    Example:
        >>> from finc_eval.embeddings.columns import missing_texts
        >>> missing_texts(["3", "NA"]), missing_texts(["sea", "None"])
        (frozenset({'NA'}), frozenset())
    """
    different = set(values)
    missing = different & MISSING
    return frozenset() if missing and any(map(_is_word, different - MISSING)) else frozenset(missing)


def drop_missing(values: list[str], missing: Container[str] | None = None) -> list[str]:
    """Return values with "" for texts that stand for a missing value; by default `missing_texts` of them."""
    missing = missing_texts(values) if missing is None else missing
    return ["" if value in missing else value for value in values] if missing else values


def words_of_missing(missing: Iterable[str]) -> str:
    """Return " (written NA or nan)", or "" if no text stands for a missing value."""
    return f" (written {join_words(sorted(missing), 'or')})" if missing else ""


def _is_word(value: str) -> bool:
    if not any(map(str.isalpha, value)) or value.strip().casefold() in {"true", "false"}:
        return False
    for parse in (float, datetime.fromisoformat):
        with suppress(ValueError):
            parse(value.strip())
            return False
    return True


def text(value: object) -> str:
    """Return a value as text: "" for None, NaN and NaT, "3" for 3.0."""
    # NaN and pandas' NaT differ from themselves; pandas turns whole numbers with a gap into floats.
    if value is None or type(value).__name__ == "NAType" or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def to_text(written: str) -> str:
    """Return a text, or "" if it stands for a missing value."""
    return "" if written in MISSING else written


def check_columns(wanted: Iterable[str], columns: Collection[str], name: str) -> None:
    """Raise UsageError unless a set of this name has all columns that are wanted."""
    for column in wanted:
        if column not in columns:
            raise unknown_column(column, [*columns], name)


PLACES = (
    "give it as a column of a file metadata.csv in the folder of the samples, beside a column file_name, of embeddings "
    "as fe.EmbeddingSet(…, metadata=…), or by finc-eval extract --metadata TABLE"
)
"""Places of the columns of a set."""

PLACES_OF_PROMPTS = (
    "prompts go into a file metadata.csv in the folder of the samples, with the columns file_name and prompt, or pass "
    "--prompts FILE, in Python fe.Extraction(prompts=…); of embeddings, fe.EmbeddingSet(…, metadata={'prompt': …})"
)
"""Places of prompts."""

PLACES_OF_LABELS = (
    "labels are the names of folders of classes, or go into a file metadata.csv in the folder of the samples, with the "
    "columns file_name and label; of embeddings, fe.EmbeddingSet(…, metadata={'label': …})"
)
"""Places of labels."""


def unknown_column(column: str, columns: Sequence[str], name: str, use: str = "") -> UsageError:
    """Return the error for a column that a set does not have, with the place where it belongs; `use` is its use."""
    has = f"it has {', '.join(columns)}" if columns else "it has no metadata"
    for kept, keys, places in (("label", LABEL_KEYS, PLACES_OF_LABELS), ("prompt", PROMPT_KEYS, PLACES_OF_PROMPTS)):
        if column.strip().lower() in keys:
            kept_as = f"the column {column} of a table is kept as {kept}"
            has = f"{has}; {kept_as if kept in columns else places}"
            break
    else:
        has = has if columns else f"{has}; {PLACES}"
    return UsageError(f"{name} has no column {column!r}{use}{did_you_mean(column, columns)}: {has}")


KEYS = ("file_name", "id")  # columns that hold the ids of the samples, in the order of the search


def metadata_table(metadata: object, ids: Sequence[str]) -> tuple[Columns, dict[str, int]]:
    """Return the columns of a table in the order of the samples, and counts of what has no partner.

    The column "file_name" or "id" holds the ids; the id of a video serves all its windows. A table without such a
    column has a row for each sample, in the order of their numbers. `metadata` is the path of a .csv, .jsonl or
    .parquet file, a mapping of columns, or a pandas data frame.
    """
    name = str(metadata) if isinstance(metadata, str | Path) else "the metadata"
    raw = _read(on_disk(metadata)) if isinstance(metadata, str | Path) else columns_in(metadata, "the set")
    table = {str(column): texts(values, str(column)) for column, values in raw.items()}
    sizes = {len(values) for values in table.values()}
    if len(sizes) > 1:
        raise UsageError(f"the columns of {name} have {min(sizes)} to {max(sizes)} values: give each the same number")
    known = {*ids, *map(video_of, ids)}
    usual = (key for key in NAME_KEYS if key in table and not known.isdisjoint(map(_normal, table[key])))
    key = next((key for key in KEYS if key in table), None) or next(usual, None)
    names = table.pop(key) if key else numbered(max(sizes, default=0), name)
    rows = {_normal(text): row for row, text in enumerate(names) if text}
    if len(rows) < sum(map(bool, names)):
        twice = next(text for row, text in enumerate(names) if text and rows[_normal(text)] != row)
        raise DataError(f"{name} names {twice!r} twice: keep one row a sample")
    row_of_sample = [rows.get(sample, rows.get(video_of(sample))) for sample in ids]
    used = {row for row in row_of_sample if row is not None}
    if not used:
        held = f"must hold ids such as {ids[0]!r}"
        if key is not None:
            raise UsageError(f"{name} names none of the {plural(len(ids), 'sample')}: its column {key} {held}")
        raise UsageError(
            f"{name} has no column {' or '.join(KEYS)}, but {join_words([repr(key) for key in table])}: call the "
            f"column of ids file_name; it {held}"
        )
    check_cells(len(table), len(ids), name)
    columns = {
        column: ["" if row is None else values[row] for row in row_of_sample] for column, values in table.items()
    }
    missing, unused = row_of_sample.count(None), len(names) - len(used)
    table_name = Path(name).name
    counts = {f"{SAMPLES_WITHOUT} {table_name}": missing, f"{ROWS_OF} {table_name} without a sample": unused}
    return columns, {what: count for what, count in counts.items() if count}


def match_metadata(metadata: object, ids: Sequence[str], stacklevel: int) -> tuple[Columns, dict[str, int]]:
    """Return what `metadata_table` does, and warn of what has no partner."""
    columns, unmatched = metadata_table(metadata, ids)
    if unmatched:
        warnings.warn(f"metadata do not fit the samples: {in_short(unmatched)}", stacklevel=stacklevel)
    return columns, unmatched


def _normal(name: str) -> str:
    return str(PurePosixPath(name))


def _read(path: Path) -> dict[str, list[Any]]:
    try:
        match path.suffix.lower():
            case ".csv":
                return _keep_named({**csv_columns(_text(path, newline=""), str(path))}, path)
            case ".jsonl":
                return _keep_named(json_line_columns(_text(path), str(path)), path)
            case ".parquet":
                if not path.exists():
                    raise FileNotFoundError(path)
                with readable(path):
                    return parquet_columns(path, str(path))
            case other:
                raise UsageError(f"{path} ends in {other or 'nothing'}: metadata are a .csv, .jsonl or .parquet file")
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({reason(error)}): repair it") from error


def _keep_named(columns: dict[str, list[Any]], path: Path) -> dict[str, list[Any]]:
    if not columns:
        raise DataError(f"{path} must have a row of named values for each sample, and has none")
    return {name: values for name, values in columns.items() if name}


def _text(path: Path, newline: str | None = None) -> str:
    return read_text(path, "utf-8-sig", newline=newline, copies=BYTES_PER_TEXT_BYTE)
