"""Files that are read, on the local disk: whatever names them, a path, file:///path or a URL, which is copied first."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from finc_eval.core.places import disk_path, url_of
from finc_eval.core.remote import mirror


def on_disk(path: str | Path) -> Path:
    """Return the path of a file on the local disk, which is copied there if it lies behind a URL."""
    url = url_of(path)
    return disk_path(path) if url is None else mirror.file_behind(url)


def file_of(path: str | Path) -> Path | None:
    """Return the path of a file as `on_disk` does; None for a remote folder."""
    url = url_of(path)
    return disk_path(path) if url is None else mirror.copy_of(url)


def any_was_read(urls: Iterable[str]) -> bool:
    """Return whether this process was asked for one of these URLs before; URLs in files are not fetched."""
    return any(map(mirror.was_read, urls))
