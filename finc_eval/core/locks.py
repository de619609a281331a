"""Locks between processes: a hidden file next to the file that one process alone may write, gone when nobody holds it.

The package filelock makes the locks. It follows no link, and drops the lock of a file that was removed meanwhile.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from finc_eval.core.doors.reading import NotAFileError, check_regular
from finc_eval.core.errors import DataError
from finc_eval.core.remote.mirror import check_writable, make_folder_of

SILENT_SECONDS = 1.0
"""Longest wait for a lock without a warning."""

IN_THE_WAY = "remove it, and run the same command again"


def only_writer_of(path: Path) -> AbstractContextManager[None]:
    """Hold the lock of `path` until the block ends.

    Raises:
        DataError: another process holds it.
        OSError: the lock cannot be made.
    """
    return _hold(path, wait=False)


def after_other_writers_of(path: Path) -> AbstractContextManager[None]:
    """Wait for the lock of `path`, hold it until the block ends, and warn if the wait is long.

    Raises:
        OSError: the lock cannot be made.
    """
    return _hold(path, wait=True)


def lock_of(path: Path) -> Path:
    """Return the path of the lock of a file, whose folder is made."""
    check_writable(path)
    make_folder_of(path)
    return path.with_name(f".{path.name}.lock")


@contextmanager
def _hold(path: Path, *, wait: bool) -> Iterator[None]:
    from filelock import FileLock, Timeout  # slow to import, and many commands write nothing

    place = lock_of(path)
    _check_place(place)
    lock = FileLock(place, fallback_to_soft=False)
    try:
        lock.acquire(timeout=SILENT_SECONDS if wait else 0)
    except Timeout as error:
        if not wait:
            raise DataError(
                f"{path} is being written by another process: wait for it, or choose another output file"
            ) from error
        warnings.warn(f"another process holds {path}: waiting until it is done", stacklevel=3)
        lock.acquire()
    try:
        yield
    finally:
        # The holder alone removes the file, and before it lets go: whoever waited for this file then begins again.
        with suppress(OSError):  # a folder that has become read-only keeps it, and it is in nobody's way
            place.unlink()
        lock.release()


def _check_place(place: Path) -> None:
    if place.is_symlink():
        raise DataError(f"{place} is a link in the place of a lock: {IN_THE_WAY}")
    try:
        check_regular(place)
    except FileNotFoundError:
        pass
    except NotAFileError as error:
        raise DataError(f"{place} is {error.kind} in the place of a lock: {IN_THE_WAY}") from error
