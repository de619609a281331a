"""Locks of files: at most one process writes a file at a time, and nothing is left when it has ended."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from finc_eval.core.errors import DataError

SILENT_SECONDS = 1.0
"""Longest wait for a lock that is not worth a word."""


class HeldByAnother(Exception):
    """Another process or thread holds the lock."""


def lock_of(path: Path) -> Path:
    """Return the path of the lock that the only writer of `path` holds."""
    return path.with_name(f".{path.name}.lock")


@contextmanager
def only_writer_of(path: Path) -> Iterator[None]:
    """Hold the lock of `path`, and make its folder.

    Raises:
        DataError: another process holds it.
        OSError: the lock cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(held(path, wait=False))
        except HeldByAnother as error:
            raise DataError(
                f"{path} is being written by another process: wait for it, or choose another output file"
            ) from error
        yield


@contextmanager
def after_other_writers_of(path: Path) -> Iterator[None]:
    """Wait for the lock of `path`, warn if the wait is long, and hold it; its folder is made.

    Raises:
        OSError: the lock cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    told = time.monotonic() + SILENT_SECONDS
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(held(path, wait=time.monotonic() > told))
                break
            except HeldByAnother:
                time.sleep(SILENT_SECONDS / 20)
                if time.monotonic() > told:
                    warnings.warn(f"another process holds {path}: waiting until it is done", stacklevel=3)
        yield


@contextmanager
def held(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of the file at `path`, which need not exist. Its lock file is gone when nobody holds the lock.

    Args:
        path: file to lock, in a folder that exists.
        wait: whether to wait for another holder.

    Raises:
        HeldByAnother: another process or thread holds the lock, and `wait` is False.
        OSError: the lock file cannot be made.
    """
    with _held(lock_of(path), wait):
        yield


if sys.platform == "win32":  # pragma: no cover

    @contextmanager
    def _held(lock: Path, wait: bool) -> Iterator[None]:
        import filelock

        try:
            with filelock.FileLock(lock, timeout=-1 if wait else 0):  # removes its file when it is released
                yield
        except filelock.Timeout as error:
            raise HeldByAnother from error

else:
    import fcntl

    @contextmanager
    def _held(lock: Path, wait: bool) -> Iterator[None]:
        descriptor = _acquired(lock, wait)
        try:
            yield
        finally:
            # Only the holder removes the file, and before it lets go: whoever waited for this file then finds that it
            # is not at its path any more, and begins again.
            lock.unlink(missing_ok=True)
            os.close(descriptor)

    def _acquired(lock: Path, wait: bool) -> int:
        """Return the descriptor of the locked file that is at the path."""
        while True:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                if os.path.samestat(os.fstat(descriptor), lock.stat()):
                    return descriptor
            except BlockingIOError as error:
                os.close(descriptor)
                raise HeldByAnother from error
            except FileNotFoundError:
                pass  # its holder removed it
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
