"""Places of the values in a file of LMDB (data.mdb): its pages are read as numbers, and nothing is mapped.

The library of LMDB maps its file, and a damaged one may end the process. The layout follows mdb.c, version 1: two
pages of meta data, then a tree of pages, each with the offsets of its nodes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError

META = struct.Struct("<16xII16x48x48xQQ")
"""Header of a page, mark, version, address and size of the map, two databases, last page, number of the transaction."""

MAIN = 16 + 24 + 48  # place of the main database in a page of meta data

DATABASE = struct.Struct("<IHHQQQQQ")
"""Page size (of the first database), flags, depth, pages of branches, leaves and long values, entries, root."""

NODE = struct.Struct("<HHHH")  # halves of the size of the value or of a child's number, flags, size of the key

MARK, VERSION = 0xBEEFC0DE, 1
HEADER_BYTES, FLAGS_AT, LOWER_AT = 16, 10, 12
BRANCH, LEAF = 0x01, 0x02
LONG, NESTED = 0x01, 0x06  # flags: the value has pages of its own; it is a database or a page of several values

NO_ROOT = (1 << 64) - 1
PAGE_SIZES = tuple(1 << bits for bits in range(8, 17))
MAX_DEPTH = 64


class Value(NamedTuple):
    """Key of a value, and the place of its bytes in the file."""

    key: bytes
    offset: int
    size: int


def lmdb_values(path: Path) -> Iterator[Value]:
    """Yield the places of all values of the main database, by increasing keys."""
    with open_file(path) as file:
        try:
            size, root = _root(file)
            if root != NO_ROOT:
                end, used = file.seek(0, 2), 0
                for value in _below(file, size, root, MAX_DEPTH, set()):
                    if value.offset + value.size > end:
                        raise ValueError("it is cut short")
                    used += NODE.size + len(value.key) + value.size
                    if used > end:
                        raise ValueError("its values share bytes")
                    yield value
        except (ValueError, OverflowError, OSError, struct.error) as error:
            raise DataError(f"{path} cannot be read as a file of LMDB ({error}): copy it again") from error


def _root(file: IO[bytes]) -> tuple[int, int]:
    """Return the size of pages and the root of the newer of both pages of meta data."""
    newest, found = -1, None
    first = file.read(PAGE_SIZES[-1])
    size = DATABASE.unpack_from(first, HEADER_BYTES + 24)[0]
    if size not in PAGE_SIZES:
        raise ValueError("its pages have no usual size")
    file.seek(size)
    for page in (first[:size], file.read(size)):
        mark, version, _, transaction = META.unpack_from(page)
        if mark == MARK and version == VERSION and transaction > newest:
            newest, found = transaction, DATABASE.unpack_from(page, MAIN)[-1]
    if found is None:
        raise ValueError("it has another mark or version")
    return size, found


def _below(file: IO[bytes], size: int, number: int, depth: int, seen: set[int]) -> Iterator[Value]:
    """Yield the values below a page; no page is read twice."""
    if not depth or number in seen:
        raise ValueError("its pages lead in a circle")
    seen.add(number)
    if number > NO_ROOT // size >> 1:
        raise ValueError("a page lies nowhere")
    file.seek(number * size)
    page = file.read(size)
    if len(page) != size:
        raise ValueError("it is cut short")
    flags, lower = (struct.unpack_from("<H", page, at)[0] for at in (FLAGS_AT, LOWER_AT))
    if not HEADER_BYTES <= lower <= size:
        raise ValueError("a page is damaged")
    for place in struct.unpack_from(f"<{(lower - HEADER_BYTES) // 2}H", page, HEADER_BYTES):
        low, high, kind, key_size = NODE.unpack_from(page, place)
        at = place + NODE.size + key_size
        if flags & BRANCH:
            yield from _below(file, size, low | high << 16 | kind << 32, depth - 1, seen)
        elif not flags & LEAF or kind & NESTED or at > size:
            raise ValueError("it holds more than one plain value a key")
        else:
            length = low | high << 16
            offset = number * size + at
            if kind & LONG:
                offset = struct.unpack_from("<Q", page, at)[0] * size + HEADER_BYTES
            yield Value(page[place + NODE.size : at], offset, length)
