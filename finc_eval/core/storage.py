"""Files that are written whole or not at all, by one process at a time, under names that a command has claimed.

A lock is a hidden file next to the file that one process alone may write, gone when nobody holds it. The package
filelock makes it: it follows no link, and drops the lock of a file that was removed meanwhile.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Container, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from finc_eval.core.doors import NotAFileError, check_regular, create_file, create_text, open_file, open_to_change
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.places import advice_on, out_path
from finc_eval.core.remote import mirror

PROGRAM = "finc-eval"
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
LOCKS = "FINC_EVAL_LOCKS"  # environment variable: 0 goes on where a disk refuses locks
RESERVED_AT_ONCE = 1 << 20  # bytes of a reserved file that are written at once
SILENT_SECONDS = 1.0  # longest wait for a lock without a warning

NOTHING_HALF = "nothing half-written is left"  # state of most files on a full disk
IN_THE_WAY = "remove it, and run the same command again"


@contextmanager
def disk_errors(path: Path, kept: str = NOTHING_HALF) -> Iterator[None]:
    """Turn errors of writing at `path` into one sentence; `kept` says what is left on a full disk."""
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
            raise DataError(f"{path} cannot be written ({error}): {advice_on(path)}") from error
        raise


@contextmanager
def write_whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block ends well, and is removed otherwise.

    The block makes the file by `create_file`. A link at `path` is replaced, and what it leads to stays as it is.
    Within `write_together` it replaces `path` when that block ends. Temporary files that killed processes left are
    removed. A file that belongs to a URL is made on the local disk, and uploaded before it replaces `path`.
    """
    target = out_path(path)
    with disk_errors(target), write_together() as together:
        temporary = together.temporaries.get(target)
        if temporary is None:
            mirror.make_folder_of(target)
            remove_leftovers(target)
            temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
            together.held.enter_context(only_writer_of(temporary))
            together.held.callback(_remove, temporary)
            together.temporaries[target] = temporary
        yield temporary
        with open_file(temporary) as file:
            os.fsync(file.fileno())


@contextmanager
def write_together(*, and_list: bool = False) -> Iterator[Together]:
    """Put all files that are written in the block in place when it ends well, and none of them otherwise.

    Files of an earlier run that they replace are removed first, the last written one first. So a kill leaves the old
    files, the new ones, or the first few of either: never a mix of new and old files. With `and_list`, the last file
    is a list of files to which the others are added: it is replaced last, and a kill leaves the old or the new list.
    """
    if outer := _together.get():
        yield outer
        return
    with ExitStack() as held:
        together = Together(held, {})
        held.callback(_together.reset, _together.set(together))
        yield together
        for target in [] if and_list else [*together.temporaries][:0:-1]:
            with disk_errors(target):
                mirror.remove(target)
        for target, temporary in together.temporaries.items():
            with disk_errors(target):
                mirror.put_in_place(temporary, target)


def put_whole(made: Path, target: Path) -> None:
    """Rename a file that was made whole beside its target, once it is on the disk; for a URL, upload it before."""
    with open_to_change(made) as written:
        os.fsync(written.fileno())
    mirror.put_in_place(made, target)


def refresh(path: Path) -> None:
    """Look again at what is there already: the local place of a file of a URL becomes what lies behind it now."""
    mirror.refresh(path)


class Together(NamedTuple):
    """Files that are put in place together."""

    held: ExitStack  # what removes the temporary files with their locks when all is done
    temporaries: dict[Path, Path]  # path of a file while it is written, by its target


_together: ContextVar[Together | None] = ContextVar("_together", default=None)


def remove_leftovers(target: Path) -> None:
    """Remove the temporary files of `target` whose writers were killed; living writers hold locks."""
    name = re.compile(rf"\.?(\.{re.escape(target.name)}\.[0-9]+\.tmp)(?:\.lock)?")
    names_left = {match[1] for path in target.parent.iterdir() if (match := name.fullmatch(path.name))}
    for temporary in (target.with_name(old) for old in names_left):
        with suppress(DataError, OSError), only_writer_of(temporary):
            temporary.unlink(missing_ok=True)


@contextmanager
def reserve(path: str | Path, size: int) -> Iterator[Callable[[Callable[[Path], object]], None]]:
    """Hold a new file's name and its room on the disk until the block ends, for content that is paid for.

    Yields a function that writes the file, `write(save)`, where `save` writes at the path that it is given. If the file
    cannot be written all the same, the content goes to the folder of temporary files, and the error says where.
    """
    target = out_path(path)
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
            mirror.make_folder_of(target)
            # A lock cannot tell a folder that is not writable from one in which another process holds it.
            tempfile.TemporaryFile(dir=target.parent).close()
            held.enter_context(only_writer_of(target))
            check_free(target)
            held.callback(_remove, room)
            with create_file(room) as file:
                for _ in range(-(-size // RESERVED_AT_ONCE)):
                    file.write(bytes(RESERVED_AT_ONCE))
                file.flush()
                os.fsync(file.fileno())
        yield write


def check_free(path: Path) -> None:
    """Raise UsageError if there is a file already, for content that is paid for."""
    if path.exists():
        raise UsageError(f"{path} exists, and what it cost would be lost: choose another name")


def _remove(path: Path) -> None:
    with suppress(OSError):  # an open file cannot be removed everywhere
        path.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file whole or not at all, and return its path. What UTF-8 cannot hold is written as an escape."""
    with write_whole(path) as temporary, create_text(temporary, errors="backslashreplace") as file:
        file.write(text)
    return Path(path)


def check_writable(path: Path) -> None:
    """Raise DataError unless a file can be made at a path, or in it if it is a folder: call it before the work."""
    mirror.check_writable(path)
    folder = path if path.is_dir() else next(parent for parent in path.parents if parent.exists())
    with disk_errors(path):
        tempfile.TemporaryFile(dir=folder).close()


def write_readable(path: str | Path, text: str, read: Callable[[Path], object], meant: object) -> Path:
    """Write a text file that finc-eval reads later, after its reader has made of the text what was meant.

    Raises:
        DataError: `read` refuses the text, or makes something else of it than `meant`; nothing is written.
    """
    with write_whole(path) as temporary:
        with create_text(temporary, errors="backslashreplace") as file:
            file.write(text)
        check_readable(temporary, path, read, meant)
    return Path(path)


def check_readable(written: Path, path: str | Path, read: Callable[[Path], object], meant: object) -> None:
    """Raise DataError unless `read` makes of a file, before it gets the name `path`, what was meant."""
    try:
        problem = None if read(written) == meant else "it would be read as something else"
    except (DataError, UsageError) as error:
        problem = str(error).replace(str(written), Path(path).name)
    if problem is not None:
        raise DataError(
            f"{path} is not written, because finc-eval could not read it back ({problem}): give plainer names, and "
            "report this if the names are plain"
        )


def check_own_folder(folder: Path, names: Container[str]) -> None:
    """Raise UsageError if a folder has files by other names; hidden files do not count."""
    others = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    others = [name for name in others if name not in names and not name.startswith(".")]
    if others:
        raise UsageError(f"{folder} has other files, such as {others[0]}: name a new folder")


def only_writer_of(path: Path) -> AbstractContextManager[None]:
    """Hold the lock of `path` until the block ends; DataError if another process holds it."""
    return _hold(path, wait=False)


def after_other_writers_of(path: Path) -> AbstractContextManager[None]:
    """Wait for the lock of `path`, hold it until the block ends, and warn if the wait is long."""
    return _hold(path, wait=True)


@contextmanager
def alone_with(path: Path, kept: str = NOTHING_HALF) -> Iterator[None]:
    """Wait for other processes that change `path`, hold them off, and turn errors of the disk into one sentence."""
    with disk_errors(path, kept), after_other_writers_of(path):
        yield


def lock_of(path: Path) -> Path:
    """Return the path of the lock of a file, whose folder is made."""
    mirror.check_writable(path)
    mirror.make_folder_of(path)
    return path.with_name(f".{path.name}.lock")


@contextmanager
def _hold(path: Path, *, wait: bool) -> Iterator[None]:
    from filelock import FileLock, Timeout  # slow to import, and many commands write nothing

    lock_path = lock_of(path)
    if lock_path.is_symlink():
        raise DataError(f"{lock_path} is a link in the place of a lock: {IN_THE_WAY}")
    try:
        check_regular(lock_path)
    except FileNotFoundError:
        pass
    except NotAFileError as error:
        raise DataError(f"{lock_path} is {error.kind} in the place of a lock: {IN_THE_WAY}") from error
    lock = FileLock(lock_path, fallback_to_soft=False)
    try:
        lock.acquire(timeout=SILENT_SECONDS if wait else 0)
    except Timeout as error:
        if not wait:
            raise DataError(
                f"{path} is being written by another process: wait for it, or choose another output file"
            ) from error
        warnings.warn(f"another process holds {path}: waiting until it is done", stacklevel=3)
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        check_unlocked(path, error)
    try:
        yield
    finally:
        # The holder alone removes the file, and before it lets go: whoever waited for this file then begins again.
        _remove(lock_path)  # a folder that has become read-only keeps it, and it is in nobody's way
        lock.release()


def check_unlocked(path: Path, error: Exception) -> None:
    """Go on without a lock on a disk that has none, if the user allows it; else raise DataError."""
    if getattr(error, "errno", errno.ENOSYS) not in NO_LOCKS:
        raise error
    if os.environ.get(LOCKS) != "0":
        raise DataError(
            f"{path} lies on a disk that does not lock files ({error}): write to a local folder, or set {LOCKS}=0 and "
            "HDF5_USE_FILE_LOCKING=FALSE if no other process writes there"
        ) from error


@contextmanager
def claims() -> Iterator[None]:
    """Hold what is claimed in the block until it ends."""
    with ExitStack() as held:
        held.callback(_claims.reset, _claims.set(held))
        yield


def claim(path: Path) -> None:
    """Claim the name of a file for the command that runs, and make its folder, which goes again if it stays empty."""
    held = _claims.get()
    if held is None:
        return
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        held.callback(_remove_empty, folder)
    with disk_errors(path):
        held.enter_context(only_writer_of(path))


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


_claims: ContextVar[ExitStack | None] = ContextVar("_claims", default=None)
"""Names that the running command holds; None outside of commands."""
