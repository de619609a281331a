"""Sizes that files state before they are decoded: one table, by format, and one check against FINC_EVAL_MAX_DECODED.

What a format's own library states is believed; a file that lies to its library beyond that is not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from finc_eval.core.memory import BYTES_PER_PIXEL, BYTES_PER_TEXT_BYTE, check_decoded

WIDTHS = {"DOUBLE": 8, "INT64": 8, "INT96": 12}  # bytes of a value of Parquet by its type; others take 4


def _footer(footer: Any) -> int:
    """Return the bytes of all values by the footer of a .parquet file, or of its unpacked pages if these are more."""
    size = 0
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            size += max(column.total_uncompressed_size, column.num_values * WIDTHS.get(column.physical_type, 4))
    return size


STATED: Mapping[str, Callable[[Any], int]] = {
    "array of numpy": lambda header: header.size,
    "list of tensors": lambda info: 5 * info.file_size,  # a byte of a text: itself, and a letter of up to four
    "parquet": _footer,
    "picture": lambda size: BYTES_PER_PIXEL * size[0] * size[1],
    "table of texts": lambda size: BYTES_PER_TEXT_BYTE * size,
}
"""Bytes that a content takes when it is decoded, of what its library states of it, by format."""


def check_stated(kind: str, stated: Any, where: str, copies: int = 1) -> int:
    """Return how many bytes a content takes by what its library states; DataError if they are too many.

    Args:
        kind: its format, a key of `STATED`.
        stated: what its library states of it, such as the footer of a .parquet file.
        where: what to call it in a message.
        copies: how often each byte will be in memory.
    """
    size = STATED[kind](stated)
    check_decoded(copies * size, where)
    return size
