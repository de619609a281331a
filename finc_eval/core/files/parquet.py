"""Tables of Apache Arrow, .parquet files and streams: what they take in memory is known before they are decoded.

Runs, dictionaries and compression let a file of a few kB hold GBs, and its footer may say otherwise. So the headers of
the pages are read, which the decoder believes. Texts stay numbers of a dictionary until their lengths are known.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import unpack_from
from typing import IO, Any

from finc_eval.core.doors import open_file, pin
from finc_eval.core.errors import DataError
from finc_eval.core.memory import check_decoded

ROWS_AT_ONCE = 64  # rows that are decoded at once if their texts may be much larger than what the file holds of them
BYTES_AT_ONCE = 1 << 24  # bytes of rows that are decoded at once: a batch takes 25 ms for each thousand columns
READ_BYTES = 1 << 16  # bytes of a column that are read ahead: otherwise all that the file has of it is read at once
MAX_FOOTER_BYTES = 1 << 24  # bytes of a footer: it takes up to 35 times as many in memory

MAX_DEPTH, MAX_ENTRY_BYTES = 8, 1 << 20
"""Depth of structures in the header of a page, and bytes of an entry. Writers nest 3 deep, and use few bytes."""

WIDTHS = {"DOUBLE": 8, "INT64": 8, "INT96": 12}  # bytes of a value, by its type; values of other types take 4


NO_DICTIONARY = re.compile("map<|_view")  # types of columns that pyarrow does not turn from dictionaries into texts
BYTES_PER_LEVEL = 4  # bytes that say of a value in a list where the list begins and ends


def parquet_table(path: Path, copies: int = 1) -> Any:
    """Read a .parquet file as a table of pyarrow. Each byte will take this many `copies` in memory."""
    import pyarrow as arrow

    schema, _ = parquet_schema(path)
    return arrow.Table.from_batches(parquet_pieces(path, copies), schema).combine_chunks()


def parquet_pieces(path: Path, copies: int = 1) -> Iterator[Any]:
    """Yield the rows of a .parquet file, a few at a time, as batches of pyarrow; see `parquet_table`."""
    import pyarrow as arrow
    from pyarrow import parquet

    with open_file(path) as stream:
        _check_footer(stream, path)
        with parquet.ParquetFile(stream) as file:
            schema = file.schema_arrow
            texts, any_spelled, size = _check_pages(stream, path, file, copies)
            most = ROWS_AT_ONCE if any_spelled else file.metadata.num_rows
            at_once = max(1, min(most, BYTES_AT_ONCE * file.metadata.num_rows // max(1, size)))
        with parquet.ParquetFile(stream, read_dictionary=texts, buffer_size=READ_BYTES, pre_buffer=False) as file:
            size = rows = 0
            for batch in file.iter_batches(at_once):
                decoded = sum(map(_size, batch.columns))
                size, rows = size + copies * decoded, rows + len(batch)
                check_decoded(size, f"{path}, to row {rows:,},")
                # Where the texts of a dictionary are many or long, a part of the batch is spelled out at a time.
                step = max(1, min(len(batch), BYTES_AT_ONCE * len(batch) // max(1, decoded)))
                for piece in (batch.slice(start, step) for start in range(0, len(batch), step)):
                    plain = [column.cast(field.type) for column, field in zip(piece.columns, schema, strict=True)]
                    yield arrow.RecordBatch.from_arrays(plain, schema=schema)
    arrow.default_memory_pool().release_unused()


def parquet_schema(path: Path) -> tuple[Any, int]:
    """Return the schema of a .parquet file, of pyarrow, and its number of rows."""
    from pyarrow import parquet

    with open_file(path) as stream:
        _check_footer(stream, path)
        with parquet.ParquetFile(stream) as file:
            return file.schema_arrow, file.metadata.num_rows


def parquet_batches(path: Path, column: str, rows: Sequence[int] | None = None) -> Iterator[tuple[int, Any]]:
    """Yield numbers and values of rows of a column, as objects of Python, a few rows in memory at a time.

    `rows` are increasing numbers, by default all; groups without any of them are not decoded.
    """
    from pyarrow import parquet

    with open_file(path) as stream:
        _check_footer(stream, path)
        with parquet.ParquetFile(stream, buffer_size=READ_BYTES, pre_buffer=False) as file:
            _check_pages(stream, path, file, 1)
            first = 0
            for group in range(file.num_row_groups):
                last = first + file.metadata.row_group(group).num_rows
                wanted = (
                    range(first, last) if rows is None else rows[bisect_left(rows, first) : bisect_left(rows, last)]
                )
                batches = file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=[column]) if wanted else ()
                start, place = first, 0
                for batch in batches:
                    check_decoded(sum(map(_size, batch.columns)), f"{path}, after row {start},")
                    end = bisect_left(wanted, start + len(batch), place)
                    for row in wanted[place:end]:
                        yield row, batch.column(0)[row - start].as_py()
                    start, place = start + len(batch), end
                first = last


def _size(values: Any) -> int:
    """Return the bytes of an array whose texts are spelled out."""
    from pyarrow import compute, types

    if types.is_dictionary(values.type):
        lengths = compute.binary_length(values.dictionary).take(values.indices)
        return BYTES_PER_LEVEL * len(values) + (compute.sum(lengths).as_py() or 0)
    if types.is_nested(values.type):
        inside = [values.keys, values.items] if types.is_map(values.type) else values.flatten()
        return BYTES_PER_LEVEL * len(values) + sum(map(_size, inside if isinstance(inside, list) else [inside]))
    return int(values.nbytes)


def _check_footer(stream: IO[bytes], path: Path) -> None:
    # 8: bytes at the end of a file: the length of the footer, and a mark.
    stream.seek(max(0, stream.seek(0, 2) - 8))
    size, mark = int.from_bytes(stream.read(4), "little"), stream.read(4)
    if mark == b"PAR1" and size > MAX_FOOTER_BYTES:
        raise DataError(
            f"{path} has a footer of {size:,} bytes, above {MAX_FOOTER_BYTES:,}: write it with fewer groups of rows"
        )


def _check_pages(stream: IO[bytes], path: Path, file: Any, copies: int) -> tuple[list[str], bool, int]:
    """Return the names of columns that are read as dictionaries, whether others have texts, and the bytes of all."""
    footer, spelled = file.metadata, set[str]()
    fields = {field.name: str(field.type) for field in file.schema_arrow}
    columns = [footer.schema.column(number) for number in range(footer.num_columns)]
    texts = {column.path for column in columns if column.physical_type == "BYTE_ARRAY"}
    size = 0
    for group in (footer.row_group(number) for number in range(footer.num_row_groups)):
        for number, column in enumerate(columns):
            fixed = column.physical_type == "FIXED_LEN_BYTE_ARRAY"
            width = int(column.length) if fixed else WIDTHS.get(column.physical_type, 4)
            width += BYTES_PER_LEVEL if column.max_repetition_level else 0
            longest, count = 0, 0
            for page, values, encoding in _pages(stream, group.column(number)):
                size += max(page, width * values)
                check_decoded(copies * size, str(path))
                longest, count = max(longest, page), count + values
                # Encodings of texts that pyarrow does not read as a dictionary: their lengths apart, and their common
                # beginnings.
                if encoding in (6, 7):
                    spelled.add(column.path)
            if NO_DICTIONARY.search(fields.get(column.path.partition(".")[0], "")):
                spelled.add(column.path)
            if column.path in texts & spelled:
                # Each text may be as long as a page is.
                most = count if column.max_repetition_level else min(count, ROWS_AT_ONCE)
                check_decoded(copies * most * longest, f"{path}: the column {column.path}")
    return sorted(texts - spelled), not texts.isdisjoint(spelled), size


def _pages(stream: IO[bytes], chunk: Any) -> Iterator[tuple[int, int, int]]:
    """Yield the unpacked bytes, number of values and encoding of each page of a part of a column, by their headers.

    The numbers are field ids of PageHeader, DataPageHeader, DictionaryPageHeader and DataPageHeaderV2.
    """
    start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
    stream.seek(start)
    while stream.tell() < start + chunk.total_compressed_size:
        header = _structure(stream)
        match header:
            case (
                {5: {1: int(count), 2: int(encoding)}}
                | {7: {1: int(count), 2: int(encoding)}}
                | {8: {1: int(count), 4: int(encoding)}}
            ):
                pass
            case _:
                count = encoding = 0
        match header:
            case {2: int(size), 3: int(packed)} if min(size, packed, count) >= 0:
                yield size, count, encoding
                stream.seek(packed, 1)
            case _:
                raise ValueError("the header of a page is damaged")


def _structure(stream: IO[bytes], left: int = MAX_DEPTH) -> dict[int, Any]:
    """Read a structure of Thrift's compact protocol: values by the numbers of their fields."""
    found: dict[int, Any] = {}
    number = 0
    while byte := _byte(stream):
        number = number + (byte >> 4) if byte >> 4 else _whole(stream)
        found[number] = _value(stream, byte & 15, left)
    return found


def _value(stream: IO[bytes], kind: int, left: int) -> Any:
    match kind:
        case 1 | 2:
            return kind == 1
        case 3:
            return _byte(stream)
        case 4 | 5 | 6:
            return _whole(stream)
        case 7:
            return stream.read(8)
        case 8 if (size := _read_unsigned(stream)) <= MAX_ENTRY_BYTES:
            return stream.read(size)
        case 12 if left:
            return _structure(stream, left - 1)
    raise ValueError("the header of a page is damaged")


def _byte(stream: IO[bytes]) -> int:
    if not (data := stream.read(1)):
        raise ValueError("the file is cut short")
    return data[0]


def _read_unsigned(stream: IO[bytes]) -> int:
    number = 0
    for shift in range(0, 70, 7):
        byte = _byte(stream)
        number |= (byte & 127) << shift
        if byte < 128:
            return number
    raise ValueError("the header of a page is damaged")


def _whole(stream: IO[bytes]) -> int:
    number = _read_unsigned(stream)
    return (number >> 1) ^ -(number & 1)


DICTIONARY_BATCH, RECORD_BATCH = 2, 3  # numbers of messages with values (Message.fbs)

KIND, HEADER, DATA, COMPRESSION = 1, 2, 1, 3
"""Numbers of fields: of a message its kind and its header, of a dictionary its values, of values their compression."""


def check_stream(path: Path) -> None:
    """Raise DataError for a file that is not a stream of Arrow, or has compressed values."""
    import pyarrow as arrow

    try:
        with pin(path) as place, arrow.memory_map(place) as source:
            while source.tell() < source.size():
                if _is_compressed(arrow.ipc.read_message(source).metadata.to_pybytes()):
                    raise DataError(f"{path} has compressed values, which are not read: save the dataset again")
    except EOFError:  # the mark at the end
        pass
    except DataError:
        raise
    except Exception as error:  # damaged bytes may be anything
        raise DataError(f"{path} cannot be read as a stream of Arrow: save the dataset again") from error


def check_values(table: Any, name: str) -> None:
    """Raise DataError for a table of Arrow whose values lie outside of their bytes."""
    try:
        table.validate(full=True)
    except Exception as error:
        raise DataError(f"{name} has damaged values: save the dataset again") from error


def _is_compressed(message: bytes) -> bool:
    root = unpack_from("<I", message)[0]
    kind, header = _field(message, root, KIND), _field(message, root, HEADER)
    number = message[kind] if kind else 0
    if number not in (DICTIONARY_BATCH, RECORD_BATCH) or not header:
        return False
    values = _table(message, header)
    if number == DICTIONARY_BATCH:
        data = _field(message, values, DATA)
        return bool(data) and _field(message, _table(message, data), COMPRESSION) > 0
    return _field(message, values, COMPRESSION) > 0


def _table(message: bytes, place: int) -> int:
    """Return the place of a table that is named at a place."""
    return int(place + unpack_from("<I", message, place)[0])


def _field(message: bytes, table: int, number: int) -> int:
    """Return the place of a field of a table of FlatBuffers; 0 if the table lacks it."""
    fields = table - unpack_from("<i", message, table)[0]
    place = 4 + 2 * number
    if place + 2 > unpack_from("<H", message, fields)[0]:
        return 0
    offset = unpack_from("<H", message, fields + place)[0]
    return int(table + offset) if offset else 0


def image_columns(schema: Any) -> list[str]:
    """Return the names of the columns that hold encoded images, {bytes, path} or bytes."""
    from pyarrow import types

    def is_encoded(kind: Any) -> bool:
        if types.is_struct(kind):
            inside = {kind.field(number).name: kind.field(number).type for number in range(kind.num_fields)}
            return "bytes" in inside and is_encoded(inside["bytes"])
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    return [field.name for field in schema if is_encoded(field.type)]
