"""Locks between processes: one hidden file beside the file that only one process may write."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from finc_eval.core.errors import DataError

SILENT_SECONDS = 1.0
"""Longest wait for a lock that is not worth a word."""


def lock_of(path: Path) -> Path:
    """Return the path of the lock that the only writer of `path` holds."""
    return path.with_name(f".{path.name}.lock")


@contextmanager
def only_writer_of(path: Path) -> Iterator[None]:
    """Hold the lock of `path` until the block ends.

    Raises:
        DataError: another process holds it.
        OSError: the lock cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(lock_of(path), timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        raise DataError(
            f"{path} is being written by another process: wait for it, or choose another output file"
        ) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def after_other_writers_of(path: Path) -> Iterator[None]:
    """Wait for the lock of `path`, hold it until the block ends, and warn if the wait is long.

    Raises:
        OSError: the lock cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(lock_of(path))
    try:
        lock.acquire(timeout=SILENT_SECONDS)
    except filelock.Timeout:
        warnings.warn(f"another process holds {path}: waiting until it is done", stacklevel=3)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
