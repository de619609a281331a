"""Copies of remote files on the local disk: made when they are first read, and removed when they take too much room.

A copy is of one version of an object, and appears under its name only when it is whole. What is written to a URL is
made on the local disk, and uploaded when it is whole. The file cache of fsspec is not used: it has no limit, everybody
may read it, and a message could not name the URL of a file in it.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from finc_eval.core.doors import copy_file, create_file, private_folder
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.memory import readable, size_variable
from finc_eval.core.places import copy_path, is_copy, is_mirrored, root, target_of, url_of
from finc_eval.core.remote.store import (
    ChangedError,
    Found,
    MissingError,
    delete,
    describe,
    download,
    list_below,
    upload,
)
from finc_eval.core.secrets import redact_word

LIMIT = "FINC_EVAL_MAX_REMOTE"
STALE_SECONDS = 86_400  # age from which a temporary file is taken for one of a killed process
LOCKS = [threading.Lock() for _ in range(64)]  # locks by URL, so that threads that need one object fetch it once
SESSION = uuid.uuid4().hex  # version of an object whose server does not state one: its copy serves this process alone


def copy_of(url: str) -> Path | None:
    """Return the path of the copy of a file on the local disk, which is made if there is none; None for a folder."""
    with LOCKS[hash(url) % len(LOCKS)]:
        info = _known.get(url) or _known.setdefault(url, describe(url))
        if info.is_folder:
            return None
        try:
            return _copy(url, info)
        except ChangedError:  # between the look at it and the copy; a second change is an error
            info = _known[url] = describe(url)
            return _copy(url, info)


def file_behind(url: str) -> Path:
    """Return the path of the copy of a file, as `copy_of` does; DataError for a folder."""
    copy = copy_of(url)
    if copy is None:
        raise DataError(f"{redact_word(url)} is a folder, and a file is needed here: name one of its files")
    return copy


def files_below(url: str) -> dict[str, int]:
    """Return the sizes of all files in a remote folder, by their names in it."""
    infos = list_below(url)
    _known.update((f"{url}/{name}", info) for name, info in infos.items())
    return {name: info.size or 0 for name, info in infos.items()}


def was_read(url: str) -> bool:
    """Return whether this process has been asked for a URL before; a URL that only a file names is not fetched."""
    return url in _known


def refresh(path: Path) -> None:
    """Make the local place of a file to be uploaded what lies behind its URL now."""
    url = target_of(path)
    if url is None:
        return
    _known.pop(url, None)
    path.unlink(missing_ok=True)
    with suppress(MissingError):
        make_folder_of(path)
        _link(file_behind(url), path)


def put_in_place(temporary: Path, target: Path) -> None:
    """Rename a whole file to its name; a file that belongs to a URL is uploaded before."""
    url = target_of(target)
    if url is not None:
        info = _known[url] = upload(temporary, url)
    temporary.replace(target)
    if url is not None:
        copy = copy_path(url, info.version or SESSION)
        make_folder_of(copy)
        _link(target, copy)


def remove(target: Path) -> None:
    """Remove a file, also behind its URL."""
    if url := target_of(target):
        delete(url)
        _known.pop(url, None)
    target.unlink(missing_ok=True)


def limit() -> int:
    """Return how many bytes all copies may take."""
    # 20 << 30: bytes of all copies, unless the environment variable says otherwise.
    return size_variable(LIMIT, 20 << 30)


_known: dict[str, Found] = {}  # objects that this process has asked for: it reads one version of each, and asks once


def _copy(url: str, info: Found) -> Path:
    if info.size is None:
        raise DataError(f"the server of {redact_word(url)} does not state its size: download it, and pass the file")
    copy = copy_path(url, info.version or SESSION)
    with suppress(OSError):
        state = copy.stat()
        if state.st_size == info.size:
            # The copies that were used last are removed last. One that is in use keeps its time: it has not changed.
            if time.time() - state.st_mtime > STALE_SECONDS:
                os.utime(copy)
            return copy
    if info.size > limit():
        raise UsageError(
            f"{redact_word(url)} has {readable(info.size)}, above the {readable(limit())} of all copies: "
            f"set {LIMIT} to more"
        )
    _make_room(info.size)
    try:
        make_folder_of(copy)
        temporary = copy.with_name(f".{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            create_file(temporary, private=True).close()
            came = download(url, temporary, info, info.size)
            if came.version != info.version:
                _known[url], copy = came, copy_path(url, came.version or SESSION)
                make_folder_of(copy)
            temporary.replace(copy)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{redact_word(url)} cannot be copied to {root()} ({error.strerror or error}): check the folder"
        ) from error
    return copy


_making_room = threading.Lock()
_room = 0.0  # bytes that may be written before all copies are counted again


def _make_room(size: int) -> None:
    """Make room for `size` bytes: remove the copies that were used longest ago, if all take more than the limit.

    They are counted at first, and whenever a part of the limit is used, so that several processes exceed the limit by
    their parts at most.
    """
    global _room
    with _making_room:
        _room -= size
        if _room >= 0:
            return
        # 1 / 16: part of the limit that is written before all copies are counted again.
        _room = (1 / 16) * limit()
        files = sorted(_files(root()), key=lambda file: file[1])
        total, most = sum(taken for _, _, taken in files), limit() - _room - size
        for path, _, taken in files:
            if total <= most:
                break
            total -= taken
            path.unlink(missing_ok=True)
            for folder in path.parents:
                try:
                    folder.rmdir()
                except OSError:  # it has other files, or is gone
                    break


def _files(folder: Path) -> Iterator[tuple[Path, float, int]]:
    """Yield copies and uploaded files with the time of their last use and their size; unfinished work is not theirs."""
    for where, _, names in os.walk(folder):
        for name in names:
            path = Path(where, name)
            with suppress(OSError):
                state = path.stat()
                if name.startswith(".") and is_copy(path) and time.time() - state.st_mtime > STALE_SECONDS:
                    path.unlink()
                elif not name.startswith(".") and path.suffix != ".part":
                    yield path, state.st_mtime, state.st_size


def _link(path: Path, other: Path) -> None:
    """Make a file appear at a second path."""
    other.unlink(missing_ok=True)
    try:
        os.link(path, other)
    except OSError:  # a file system without links
        copy_file(path, other)


def make_folder_of(path: Path) -> None:
    """Make the folder of a file. The folders of copies are private, as the objects behind them may be."""
    if is_mirrored(path):
        private_folder(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)


def check_writable(path: Path) -> None:
    """Raise UsageError for a path that only looks like one of the local disk."""
    if url := url_of(path):
        raise UsageError(f"{redact_word(url)} cannot be used here: name a place on a local disk")
    if is_copy(path):
        raise UsageError(f"{path} is a copy of a remote file and is not changed: choose another output file")
