"""Result files: one HDF5 header for all types, written whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from finc_eval.core.errors import DataError

PROGRAM = "finc-eval"
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


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


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file whole or not at all, and return its path."""
    with written_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


def check_target(path: str | Path, type_name: str) -> None:
    """Raise DataError when `path` holds anything but a finc-eval file of this type, which would be overwritten."""
    if Path(path).exists() and file_type(path) != type_name:
        raise DataError(f"{path} already exists and is not a finc-eval {type_name}: choose another name")


@contextmanager
def new_hdf5(path: str | Path, type_name: str, layout: int) -> Iterator[h5py.File]:
    """Yield a new HDF5 file of this type, which appears at `path` only when it is whole."""
    check_target(path, type_name)
    with written_whole(path) as temporary, h5py.File(temporary, "w") as file:
        file.attrs["program"] = PROGRAM
        file.attrs["kind"] = type_name
        file.attrs["schema"] = layout
        yield file


def file_type(path: str | Path) -> str | None:
    """Return the type of a finc-eval file, such as "embeddings", "sketch" or "comparison"; None for other files."""
    try:
        with h5py.File(path, "r") as file:
            return _type_of(file)
    except OSError:
        return None


def file_attribute(path: str | Path, type_name: str, name: str) -> object:
    """Return a list of texts in the header of a finc-eval file of this type; None where it is not in there."""
    try:
        with h5py.File(path, "r") as file:
            return list(map(str, file.attrs[name])) if _type_of(file) == type_name else None
    except (OSError, KeyError):
        return None


@contextmanager
def existing_hdf5(path: str | Path, type_name: str, layout: int) -> Iterator[h5py.File]:
    """Yield the HDF5 file at `path`, read-only, if it is of this type and layout.

    Raises:
        DataError: it is missing, unreadable, of another type, or of another layout.
    """
    if not Path(path).exists():
        raise DataError(f"{path} does not exist")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise DataError(f"{path} is not a readable HDF5 file ({error}): make it again") from error
    with file:
        found = _type_of(file)
        if found != type_name:
            what = f"is of the type {found!r}" if found else "was not written by finc-eval"
            raise DataError(f"{path} {what}: a finc-eval file of the type {type_name!r} is needed here")
        written = int(file.attrs["schema"])
        if written != layout:
            raise DataError(f"{path} has {type_name} layout {written}, this version reads {layout}: make it again")
        yield file


def _type_of(file: h5py.File) -> str | None:
    return str(file.attrs["kind"]) if file.attrs.get("program") == PROGRAM and "kind" in file.attrs else None
