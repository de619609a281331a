"""Locks between processes: a hidden file beside the file that one alone may write, gone when nobody holds it."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from finc_eval.core.doors.reading import NotAFileError, check_regular
from finc_eval.core.errors import DataError
from finc_eval.core.remote.mirror import check_writable, make_folder_of

SILENT_SECONDS = 1.0
"""Longest wait for a lock that is not worth a word."""

SECONDS_BETWEEN_TRIES = 0.02

IN_THE_WAY = "remove it, and run the same command again"


@contextmanager
def only_writer_of(path: Path) -> Iterator[None]:
    """Hold the lock of `path` until the block ends.

    Raises:
        DataError: another process holds it.
        OSError: the lock cannot be made.
    """
    lock = lock_of(path)
    held = _acquired(lock, wait=False)
    if held is None:
        raise DataError(f"{path} is being written by another process: wait for it, or choose another output file")
    try:
        yield
    finally:
        _release(lock, held)


@contextmanager
def after_other_writers_of(path: Path) -> Iterator[None]:
    """Wait for the lock of `path`, hold it until the block ends, and warn if the wait is long.

    Raises:
        OSError: the lock cannot be made.
    """
    lock, until = lock_of(path), time.monotonic() + SILENT_SECONDS
    while (held := _acquired(lock, wait=False)) is None and time.monotonic() < until:
        time.sleep(SECONDS_BETWEEN_TRIES)
    if held is None:
        warnings.warn(f"another process holds {path}: waiting until it is done", stacklevel=3)
        held = _acquired(lock, wait=True)
    try:
        yield
    finally:
        _release(lock, held)


def lock_of(path: Path) -> Path:
    """Return the path of the lock of a file, whose folder is made."""
    check_writable(path)
    make_folder_of(path)
    return path.with_name(f".{path.name}.lock")


if sys.platform == "win32":  # pragma: no cover
    import filelock

    def _acquired(lock: Path, wait: bool) -> filelock.FileLock | None:
        found = filelock.FileLock(lock, timeout=-1 if wait else 0)
        try:
            found.acquire()
        except filelock.Timeout:
            return None
        return found

    def _release(lock: Path, held: filelock.FileLock | None) -> None:
        if held is not None:
            held.release()  # removes its file

else:
    import fcntl

    def _acquired(lock: Path, wait: bool) -> int | None:
        """Return the descriptor of the locked file, or None if another holds it."""
        while True:
            if lock.is_symlink():
                raise DataError(f"{lock} is a link in the place of a lock: {IN_THE_WAY}")
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
            try:
                check_regular(lock, os.fstat(descriptor))
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                if os.path.samestat(os.fstat(descriptor), lock.stat()):
                    return descriptor
            except BlockingIOError:
                os.close(descriptor)
                return None
            except FileNotFoundError:
                pass  # its holder removed it
            except NotAFileError as error:
                os.close(descriptor)
                raise DataError(f"{lock} is {error.kind} in the place of a lock: {IN_THE_WAY}") from error
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _release(lock: Path, held: int | None) -> None:
        # Only the holder removes the file, and before it lets go: whoever waited for this file then finds that it is
        # not at its path any more, and begins again.
        if held is not None:
            with suppress(OSError):  # a folder that has become read-only keeps it, and it is in nobody's way
                lock.unlink()
            os.close(held)
