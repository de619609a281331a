"""Tables of Apache Arrow and .parquet files: pyarrow decodes them, and what the footer states is checked before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError
from finc_eval.core.files.stated import check_stated
from finc_eval.core.memory import check_decoded

ROWS_AT_ONCE = 64  # rows of images that are decoded at once
BYTES_AT_ONCE = 1 << 24  # bytes of rows that are decoded at once: a batch takes 25 ms for each thousand columns
READ_BYTES = 1 << 16  # bytes of a column that are read ahead: otherwise all that the file has of it is read at once


def parquet_pieces(path: Path, copies: int = 1) -> Iterator[Any]:
    """Yield the rows of a .parquet file, a few at a time, as batches of pyarrow.

    Each byte will take this many `copies` in memory.
    """
    import pyarrow as arrow
    from pyarrow import parquet

    with open_file(path) as stream, parquet.ParquetFile(stream, buffer_size=READ_BYTES, pre_buffer=False) as file:
        stated = check_stated("parquet", file.metadata, str(path), copies)
        most = max(1, min(file.metadata.num_rows, BYTES_AT_ONCE * file.metadata.num_rows // max(1, stated)))
        size = rows = 0
        for batch in file.iter_batches(most):
            size, rows = size + copies * batch.nbytes, rows + len(batch)
            check_decoded(size, f"{path}, to row {rows:,},")
            yield batch
    arrow.default_memory_pool().release_unused()


def parquet_schema(path: Path) -> tuple[Any, int]:
    """Return the schema of a .parquet file, of pyarrow, and its number of rows."""
    from pyarrow import parquet

    with open_file(path) as stream, parquet.ParquetFile(stream) as file:
        return file.schema_arrow, file.metadata.num_rows


def parquet_batches(path: Path, column: str, rows: Sequence[int] | None = None) -> Iterator[tuple[int, Any]]:
    """Yield numbers and values of rows of a column, as objects of Python, a few rows in memory at a time.

    `rows` are increasing numbers, by default all; groups without any of them are not decoded.
    """
    from pyarrow import parquet

    with open_file(path) as stream, parquet.ParquetFile(stream, buffer_size=READ_BYTES, pre_buffer=False) as file:
        first = 0
        for group in range(file.num_row_groups):
            last = first + file.metadata.row_group(group).num_rows
            wanted = range(first, last) if rows is None else rows[bisect_left(rows, first) : bisect_left(rows, last)]
            batches = file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=[column]) if wanted else ()
            start, place = first, 0
            for batch in batches:
                check_decoded(batch.nbytes, f"{path}, after row {start},")
                end = bisect_left(wanted, start + len(batch), place)
                for row in wanted[place:end]:
                    yield row, batch.column(0)[row - start].as_py()
                start, place = start + len(batch), end
            first = last


def check_values(table: Any, name: str) -> None:
    """Raise DataError for a table of Arrow whose values lie outside of their bytes."""
    try:
        table.validate(full=True)
    except Exception as error:
        raise DataError(f"{name} has damaged values: save the dataset again") from error


def image_columns(schema: Any) -> list[str]:
    """Return the names of the columns that hold encoded images, {bytes, path} or bytes."""
    from pyarrow import types

    def is_encoded(kind: Any) -> bool:
        if types.is_struct(kind):
            inside = {kind.field(number).name: kind.field(number).type for number in range(kind.num_fields)}
            return "bytes" in inside and is_encoded(inside["bytes"])
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    return [field.name for field in schema if is_encoded(field.type)]
