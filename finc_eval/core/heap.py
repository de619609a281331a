"""Memory of the process: a block may keep what it frees for its next step.

A layer of a network fills tens of megabytes and frees them. glibc gives such memory back to the system, which clears it
page by page when the next layer takes it again: that was up to half of the CPU seconds of embedding photographs
(benchmarks/extraction.py).
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # names of glibc's malloc.h

KEEPING = {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: 2**31 - 1}
"""No mapping for each large tensor, and no end of the heap that is given back."""

AFTERWARDS = {M_MMAP_MAX: 65536, M_MMAP_THRESHOLD: 32 << 20, M_TRIM_THRESHOLD: 64 << 20}
"""glibc moves the two thresholds until a program sets them, and never again. These are the largest that it moves them
to, where they are once a process has freed arrays of 32 MB."""

CHOICES = ("mmap_max", "mmap_threshold", "trim_threshold")  # names in GLIBC_TUNABLES, and MALLOC_…_ in capitals


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep memory that is freed in the block, for the whole process; at the end, give back all that is free.

    glibc's thresholds stay as in `AFTERWARDS`. With another C library nothing happens, nor where the environment sets a
    threshold. Blocks may overlap in several threads: the last that ends gives back.
    """
    libc = _glibc()
    if libc is None:
        yield
        return
    _kept.enter(libc)
    try:
        yield
    finally:
        _kept.leave(libc)


class _Kept:
    """Number of blocks that keep memory now."""

    def __init__(self) -> None:
        self._blocks, self._lock = 0, threading.Lock()

    def enter(self, libc: Any) -> None:
        with self._lock:
            self._blocks += 1
            if self._blocks == 1:
                _set(libc.mallopt, KEEPING)

    def leave(self, libc: Any) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0:
                _set(libc.mallopt, AFTERWARDS)
                libc.malloc_trim(0)


_kept = _Kept()


def _set(mallopt: Callable[[int, int], int], values: dict[int, int]) -> None:
    for parameter, value in values.items():
        mallopt(parameter, value)


def _glibc() -> Any | None:
    """Return the C library, if it is glibc and nobody has chosen its thresholds."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    chosen = any(f"malloc.{name}" in tunables or f"MALLOC_{name.upper()}_" in os.environ for name in CHOICES)
    if chosen or not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
