"""Creating files and folders: at a name that nothing has, so that a link that waits there leads nowhere."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path
from typing import TextIO

from finc_eval.core.doors.reading import open_file

NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
"""Permissions of what only its owner may see, whatever the umask is."""


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
