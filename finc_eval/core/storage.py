"""Result files: one HDF5 layout header for all kinds, written whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from finc_eval.core.errors import DataError, FincEvalError

PROGRAM = "finc-eval"
FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def disk_errors(path: Path, kept: str = "nothing half-written is left") -> Iterator[None]:
    """Turn the errors of writing at `path` into one sentence; `kept` says what is left on a full disk."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py raises both, the number often in the text alone
        full = getattr(error, "errno", None) in FULL or any(os.strerror(number) in str(error) for number in FULL)
        if full:
            raise DataError(
                f"the disk is full while writing {path}: {kept}; free some space and run the same command again"
            ) from error
        if isinstance(error, OSError):
            raise DataError(f"{path} cannot be written ({error}): check the folder, or choose another") from error
        raise


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well, and vanishes otherwise."""
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


def check_target(path: str | Path, kind: str) -> None:
    """Raise FincEvalError when `path` holds anything but a finc-eval file of this kind, lest it be overwritten."""
    if Path(path).exists() and kind_of(path) != kind:
        raise FincEvalError(f"{path} exists and is no finc-eval {kind}: it is not overwritten, choose another name")


@contextmanager
def new_hdf5(path: str | Path, kind: str, schema: int) -> Iterator[h5py.File]:
    """A new HDF5 file of this kind at `path`, which appears there only when it is whole."""
    check_target(path, kind)
    with written_whole(path) as temporary, h5py.File(temporary, "w") as file:
        file.attrs["program"] = PROGRAM
        file.attrs["kind"] = kind
        file.attrs["schema"] = schema
        yield file


def kind_of(path: str | Path) -> str | None:
    """Which kind of finc-eval file this is ("embeddings", "sketch", "comparison"), or None."""
    try:
        with h5py.File(path, "r") as file:
            kind = file.attrs.get("kind") if file.attrs.get("program") == PROGRAM else None
            return None if kind is None else str(kind)
    except OSError:
        return None


@contextmanager
def existing_hdf5(path: str | Path, kind: str, schema: int) -> Iterator[h5py.File]:
    """The HDF5 file at `path`, read-only, when it is of this kind and schema.

    Raises:
        FincEvalError: when it is missing, unreadable, of another kind, or of another schema version.
    """
    if not Path(path).exists():
        raise FincEvalError(f"{path} does not exist")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise FincEvalError(f"{path} is not a readable HDF5 file ({error}): make it again") from error
    with file:
        found = file.attrs.get("kind") if file.attrs.get("program") == PROGRAM else None
        if found != kind:
            what = f"is of the kind {found!r}" if found else "was not written by finc-eval"
            raise FincEvalError(f"{path} {what}: a finc-eval file of the kind {kind!r} is needed here")
        version = int(file.attrs["schema"])
        if version != schema:
            raise FincEvalError(f"{path} has {kind} schema {version}, this version reads {schema}: make it again")
        yield file
