"""Locks of files: at most one process writes a file at a time, and nothing is left when it has ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class HeldByAnother(Exception):
    """Another process or thread holds the lock."""


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
    with _held(path.with_name(f".{path.name}.lock"), wait):
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
