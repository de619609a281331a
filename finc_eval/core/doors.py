"""Opening regular files, and creating files: no library asks whether a name leads to a pipe, a device or a link.

A name may lead to a pipe that never answers, or to a device that never ends, and what it leads to may change between
two looks. So the file is asked before it is opened, because devices act when they are, and again once it is open.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO

from finc_eval.core.errors import DataError
from finc_eval.core.memory import VARIABLE, check_decoded, max_decoded, readable

READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
CHANGING = os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)

READ_AT_ONCE = 1 << 20  # bytes that are read at once, so that what has no end is noticed early
MAX_TABLE_LINE = 1 << 20  # letters of a line of a table that is read line by line

SPECIAL = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))

FORBIDDEN = "\\:\0"  # characters of drives, addresses, streams and other systems' paths, which our files never need

NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


class NotAFileError(DataError):
    """A path that leads to a folder, a pipe, a socket or a device.

    Attributes:
        kind: what it leads to, such as "a pipe".
    """

    def __init__(self, path: str | Path, kind: str) -> None:
        self.kind = kind
        remedy = "write its content to a file, and pass that" if kind == "a pipe" else "pass a file"
        super().__init__(f"{path} is {kind}, not a file: {remedy}")


def check_regular(path: str | Path, state: os.stat_result | None = None, *, or_folder: bool = False) -> None:
    """Raise NotAFileError unless a path, or a file of this state, is a regular file, or an allowed folder."""
    mode = (state or os.stat(path)).st_mode  # noqa: PTH116 (making a Path takes longer than the call)
    if not (stat.S_ISREG(mode) or (or_folder and stat.S_ISDIR(mode))):
        raise NotAFileError(path, next((kind for is_one, kind in SPECIAL if is_one(mode)), "a device"))


def open_file(path: str | Path) -> io.BufferedReader:
    """Open a file for reading; NotAFileError unless it is a regular file, OSError if it cannot be opened."""
    return os.fdopen(_descriptor(path, READING), "rb")


def open_unbuffered(path: str | Path) -> io.FileIO:
    """Open a file that is read at once, as `open_file` does: a buffer would cost three more calls of the system."""
    return io.FileIO(_descriptor(path, READING), "rb")


def open_to_change(path: str | Path) -> io.BufferedRandom:
    """Open a file that is there for reading and writing, as `open_file` does; OSError for a link at its name."""
    return os.fdopen(_descriptor(path, CHANGING), "r+b")


def _descriptor(path: str | Path, flags: int) -> int:
    check_regular(path)
    descriptor = os.open(path, flags)
    try:
        check_regular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def fill_streams() -> None:
    """Lead the standard streams that a program was started without to nowhere, so that no file gets their numbers."""
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(number)


def with_home(path: str | Path) -> Path:
    """Return a path with the home of a user instead of a "~" at its start; DataError for an unknown user."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise DataError(f"{path} begins with a user who has no home here: name the folder itself") from error


def known_home(path: str | Path) -> Path | None:
    """Return what `with_home` does; None for an unknown user, who has nothing there."""
    try:
        return with_home(path)
    except DataError:
        return None


def without_links(path: str | Path) -> Path:
    """Return the absolute path that a path leads to; DataError for a link that leads to itself."""
    try:
        return Path(path).resolve()
    except RuntimeError as error:  # Python 3.13 and later return such a path, and cannot open it
        raise DataError(f"{path} is a link that leads to itself: remove it, or name another") from error


@contextmanager
def pin(path: str | Path) -> Iterator[str]:
    """Yield a path of an opened file, for libraries that open by themselves: no other file can take its place."""
    with open_file(path) as file:
        yield f"/proc/self/fd/{file.fileno()}" if sys.platform == "linux" else str(path)


def read_bytes(path: str | Path, copies: int = 1) -> bytes:
    """Read a whole file, as `open_file` does; DataError if `copies` of it take more than is decoded at once."""
    with open_file(path) as file:
        check_decoded(copies * os.fstat(file.fileno()).st_size, str(path))
        try:
            return at_most(file, max_decoded() // copies)
        except ValueError as error:
            raise DataError(f"{path} has {error}: make it smaller, or set {VARIABLE} to more") from error


def at_most(stream: IO[bytes], most: int, expected: int = READ_AT_ONCE) -> bytes:
    """Return all bytes of a stream, about so many; ValueError as soon as there are more than `most`."""
    parts, size = [], 0
    part = stream.read(min(expected + 1, READ_AT_ONCE))
    while part:
        size += len(part)
        if size > most:
            raise ValueError(f"more than {readable(most)}")
        parts.append(part)
        part = stream.read(READ_AT_ONCE)
    return b"".join(parts)


def read_text(
    path: str | Path, encoding: str = "utf-8", errors: str = "strict", *, newline: str | None = None, copies: int = 1
) -> str:
    """Read a whole text file: encoding, errors and newline as in `open`, all else as in `read_bytes`."""
    data = io.BytesIO(read_bytes(path, copies))
    return io.TextIOWrapper(data, encoding, errors, newline).read()


def lines_of(path: str | Path) -> Iterator[str]:
    """Yield the lines of a text in UTF-8, with their ends; ValueError for an endless line, or another encoding."""
    with io.TextIOWrapper(open_file(path), "utf-8", newline="") as text:
        while line := text.readline(MAX_TABLE_LINE):
            if len(line) == MAX_TABLE_LINE:
                raise ValueError(f"a line has more than {MAX_TABLE_LINE:,} letters")
            yield line


def inside(folder: str | Path, name: Any) -> Path:
    """Return the path of a file that another file of a folder names by a relative path with forward slashes.

    Whoever wrote that file chose the name, and must not choose a place outside the folder by it, not even by a link.
    """
    if not isinstance(name, str) or any(part in ("", ".", "..") for part in name.split("/")):
        raise _outside(folder, name)
    if any(letter in name for letter in FORBIDDEN):
        raise _outside(folder, name)
    path = Path(folder, name)
    try:
        if not path.resolve().is_relative_to(Path(folder).resolve()):
            raise _outside(folder, name)
        check_regular(path)
    except FileNotFoundError:
        return path
    except (OSError, RuntimeError, ValueError) as error:  # a link in a circle, a name that no system takes
        raise _outside(folder, name) from error
    return path


def check_unlinked(folder: Path, name: str) -> None:
    """Raise DataError if a folder that this program names below another folder, such as "samples/gen", is a link.

    The folder itself may be a link, as its user chose it. Whoever made the link below it chose where results go.
    """
    inner = folder
    for part in name.split("/"):
        inner = inner / part
        if inner.is_symlink():
            raise DataError(f"{inner} is a link, and nothing is written through it: remove it, or name another folder")


def folder_inside(folder: Path, name: str) -> Path:
    """Make a folder that this program names below another folder, and return it; see `check_unlinked`."""
    check_unlinked(folder, name)
    made = folder / name
    made.mkdir(parents=True, exist_ok=True)
    return made


def _outside(folder: str | Path, name: Any) -> DataError:
    return DataError(
        f"{folder} names the file {name!r:.100}, which must lie in that folder: get it from its source again"
    )


PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700  # permissions of what only its owner may see, whatever the umask is


def create_file(path: Path, *, private: bool = False) -> io.BufferedRandom:
    """Create a file instead of a file or link, and open it for writing and reading; OSError where a folder is.

    Nobody but the owner may read a private file.
    """
    path.unlink(missing_ok=True)
    descriptor = os.open(path, NEW, PRIVATE_FILE if private else 0o666)
    if private and hasattr(os, "fchmod"):
        os.fchmod(descriptor, PRIVATE_FILE)
    return os.fdopen(descriptor, "w+b")


def create_text(path: Path, errors: str = "strict") -> TextIO:
    """Create a text file in UTF-8, as `create_file` does; ends of lines are written as they are."""
    return io.TextIOWrapper(create_file(path), "utf-8", errors, newline="")


def copy_file(source: Path, target: Path) -> None:
    """Copy a file to a name, as `open_file` and `create_file` do."""
    with open_file(source) as old, create_file(target) as new:
        shutil.copyfileobj(old, new)


def private_folder(path: Path) -> Path:
    """Make a folder, and those above it that are missing, so that nobody else may look into it; return it."""
    for folder in reversed([path, *path.parents]):
        if not folder.exists():
            folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
            folder.chmod(PRIVATE_FOLDER)
    return path
