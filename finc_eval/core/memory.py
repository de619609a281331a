"""Limits of memory: the largest thing that is decoded at once, and how much is decoded side by side.

One number rules both, a number of bytes: 1 GiB, or the environment variable FINC_EVAL_MAX_DECODED.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from finc_eval.core.errors import DataError, UsageError

Item = TypeVar("Item")

VARIABLE = "FINC_EVAL_MAX_DECODED"

UNITS = {
    "": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", start=1)},
    **{f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", start=1)},
}
SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Z]*)")

BYTES_PER_PIXEL = 12
"""Bytes that a pixel takes while it is decoded, turned into RGB and resized. So 1 GiB allows 89 478 485 pixels, as
Pillow does."""

BYTES_PER_LINE = 350  # bytes that a line of a text takes as a row by names of columns, without its letters

BYTES_PER_TEXT_BYTE = 8  # bytes that a byte of a table of metadata takes while the table is read: 7 were measured


def max_decoded() -> int:
    """Return how many bytes anything may take when it is decoded."""
    return size_variable(VARIABLE, 1 << 30)


def size_variable(name: str, default: int) -> int:
    """Return the number of bytes in an environment variable, which may have a unit: "4GiB"."""
    given = os.environ.get(name, "").strip()
    if not given:
        return default
    match = SIZE.fullmatch(given.upper())
    size = int(float(match[1]) * UNITS[match[2]]) if match and match[2] in UNITS else 0
    if size < 1:
        raise UsageError(f"{name} must be a size such as 4GiB or 500MB, got {given!r}")
    return size


def max_pixels() -> int:
    """Return how many pixels an image may have."""
    return max_decoded() // BYTES_PER_PIXEL


def excess(size: int) -> str | None:
    """Return a phrase that says by how much `size` bytes are too many to decode, or None."""
    most = max_decoded()
    return f"{readable(size)} when decoded, above the {readable(most)} of {VARIABLE}" if size > most else None


def check_decoded(size: int, what: str) -> None:
    """Raise DataError if something, named as in a sentence, takes more than is decoded at once."""
    if too_much := excess(size):
        raise DataError(f"{what} takes {too_much}: make it smaller, or set {VARIABLE} to {-(-size // 2**30)}GiB")


def check_list(n: int, where: str, what: str = "samples", bytes_each: int = 200) -> None:
    """Raise DataError if a list of n samples, or of what else there is, takes more memory than is allowed."""
    check_decoded(bytes_each * n, f"{where}: the list of {n:,} {what}")


def counted(items: Iterable[Item], where: str, what: str = "samples") -> Iterator[Item]:
    """Yield the same items; DataError as soon as a list of them would take more memory than is allowed."""
    for number, item in enumerate(items):
        # 1 << 12: items of a list between two looks at their number.
        if not number % (1 << 12):
            check_list(number, where, what)
        yield item


def numbered(n: int, where: str) -> list[str]:
    """Return the ids "0" to n−1 of samples without names; DataError if there are too many."""
    check_list(n, where)
    return [*map(str, range(n))]


def readable(size: int) -> str:
    """Return a number of bytes with its unit: "1.07 GB"."""
    for unit in ("TB", "GB", "MB", "kB"):
        number = size / UNITS[unit.upper()]
        if number >= 1:
            return f"{number:,.3g} {unit}" if number < 1000 else f"{number:,.0f} {unit}"
    return f"{size} bytes"


class Budget:
    """Bytes that the threads of this process may decode side by side: as many as one thing may take alone.

    A thread takes what it needs within a block (`with budget:`), which gives it back. The first `take` waits for room.
    Later ones do not, because two threads could wait for each other.
    """

    def __init__(self) -> None:
        self.owner: Callable[[int], None] | None = None  # takes the bytes from the budget of another process instead
        self._used = 0
        self._room = threading.Condition()
        self._mine = threading.local()

    def __enter__(self) -> None:
        self._mine.held = 0

    def __exit__(self, *_: object) -> None:
        held, self._mine.held = self._mine.held, None
        if held:
            with self._room:
                self._used -= held
                self._room.notify_all()

    def take(self, size: int) -> None:
        """Take bytes until the block ends; do nothing outside of a block, and for few bytes."""
        if self.owner is not None:
            self.owner(size)
            return
        held = getattr(self._mine, "held", None)
        # 1 << 20: bytes below which a thread does not count what it decodes: counting takes longer.
        if held is None or size < (1 << 20):
            return
        with self._room:
            # Whatever is larger than all of the budget runs alone.
            self._room.wait_for(lambda: held > 0 or self._used == 0 or self._used + size <= max_decoded())
            self._used += size
            self._mine.held = held + size


ENCODED, DECODED = Budget(), Budget()
"""Budgets of the bytes of files and of what is decoded from them. A thread takes from the first before the second, so
that no two wait for each other."""
