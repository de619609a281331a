"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.locks import only_writer_of

PROGRAM = "finc-eval"
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
RESERVED_AT_ONCE = 1 << 20
"""Bytes of a reserved file that are written at once."""


@contextmanager
def disk_errors(path: Path, kept: str = "nothing half-written is left") -> Iterator[None]:
    """Turn errors of writing at `path` into one sentence; `kept` tells what is left on a full disk."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py raises both, the number often in the text alone
        named = any(os.strerror(number) in str(error) for number in DISK_FULL)
        full = named or getattr(error, "errno", None) in DISK_FULL
        if full:
            raise DataError(
                f"the disk is full while writing {path}: {kept}; free some space and run the same command again"
            ) from error
        if isinstance(error, OSError):
            raise DataError(f"{path} cannot be written ({error}): check the folder, or choose another") from error
        raise


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block ends well, and is removed otherwise."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def reserved(path: str | Path, size: int) -> Iterator[Callable[[Callable[[Path], object]], None]]:
    """Hold a new file's name and its room on the disk until the block ends, for content that is paid for.

    Yields a function that writes the file, `write(save)`, where `save` writes at the path that it is given. If the file
    cannot be written all the same, the content goes to the folder of temporary files, and the error says where.

    Args:
        path: file that does not exist yet.
        size: bytes to hold.

    Raises:
        UsageError: the file exists.
        DataError: another process holds the name, the disk is full, or the folder cannot be written to.
    """
    target = Path(path)
    room = target.with_name(f".{target.name}.room")

    def write(save: Callable[[Path], object]) -> None:
        _remove(room)
        try:
            save(target)
        except DataError as error:
            rescued = Path(tempfile.mkdtemp(prefix=f"{PROGRAM}-")) / target.name
            save(rescued)
            raise DataError(f"{error}; what was made, and has spent its budget, is in {rescued}") from error

    with ExitStack() as held:
        with disk_errors(target, "nothing is spent"):
            target.parent.mkdir(parents=True, exist_ok=True)
            # A lock cannot tell a folder that is not writable from one in which another process holds it.
            tempfile.TemporaryFile(dir=target.parent).close()
            held.enter_context(only_writer_of(target))
            if target.exists():
                raise UsageError(f"{target} exists, and what it cost would be lost: choose another name")
            held.callback(_remove, room)
            with room.open("wb") as file:
                for _ in range(-(-size // RESERVED_AT_ONCE)):
                    file.write(bytes(RESERVED_AT_ONCE))
                file.flush()
                os.fsync(file.fileno())
        yield write


def _remove(path: Path) -> None:
    with suppress(OSError):  # an open file cannot be removed everywhere
        path.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file whole or not at all, and return its path."""
    with written_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)
