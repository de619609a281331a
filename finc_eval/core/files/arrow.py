"""Streams of Apache Arrow: only those are read whose bytes are those of the values, so that none fills the memory."""

from __future__ import annotations

from pathlib import Path
from struct import unpack_from
from typing import Any

from finc_eval.core.doors.reading import pinned
from finc_eval.core.errors import DataError

DICTIONARY_BATCH, RECORD_BATCH = 2, 3
"""Numbers of messages with values (Message.fbs)."""

KIND, HEADER, DATA, COMPRESSION = 1, 2, 1, 3
"""Numbers of fields: of a message its kind and its header, of a dictionary its values, of values their compression."""


def check_stream(path: Path) -> None:
    """Raise DataError for a file that is not a stream of Arrow, or has compressed values."""
    import pyarrow as arrow

    try:
        with pinned(path) as place, arrow.memory_map(place) as source:
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
    """Return the place of a field of a table of FlatBuffers; 0 where the table lacks it."""
    fields = table - unpack_from("<i", message, table)[0]
    place = 4 + 2 * number
    if place + 2 > unpack_from("<H", message, fields)[0]:
        return 0
    offset = unpack_from("<H", message, fields + place)[0]
    return int(table + offset) if offset else 0
