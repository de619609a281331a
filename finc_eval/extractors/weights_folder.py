"""The folder of weights, and the two records of digests in it.

`verified.json` remembers the digest of each file that was hashed, so that a run does not wait for 1.2 GB to be hashed
again: it holds while the file's size, time of change and inode stay the same. `pins.json` records the digest that a
file without a published one had on its first use: later files of that name must have it.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from finc_eval.core.doors.reading import open_file
from finc_eval.core.errors import DataError
from finc_eval.core.files.parsed import json_table, read_text
from finc_eval.core.locks import after_other_writers_of
from finc_eval.core.storage import write_text

FOLDER_VARIABLE = "FINC_EVAL_WEIGHTS"


def weights_folder() -> Path:
    """Return the folder of weights: $FINC_EVAL_WEIGHTS, else ~/.cache/finc-eval/weights."""
    return Path(os.environ.get(FOLDER_VARIABLE) or "~/.cache/finc-eval/weights").expanduser()


def file_digest(path: Path, *, rehash: bool = False) -> str:
    """Return the SHA-256 (hex) of a file, from `verified.json` where the file has not changed since.

    Args:
        path: the file.
        rehash: hash the file in any case; this finds what was altered behind size, time and inode.
    """
    known = None if rehash else (_entries("verified.json") or {}).get(str(path))
    if isinstance(known, dict) and known.get("stamp") == _stamp(path):
        return str(known.get("sha256"))
    digest = hash_file(path)
    remember_digest(path, digest)
    return digest


def remember_digest(path: Path, digest: str) -> None:
    """Record the digest of a file as it is now."""
    _add_entry("verified.json", str(path), {"stamp": _stamp(path), "sha256": digest})


def hash_file(path: Path) -> str:
    """Compute the SHA-256 (hex) of a file."""
    try:
        with open_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check its permissions") from error


def pinned_digest(name: str) -> str | None:
    """Return the digest that the file of this name had on its first use; None before that."""
    pins = _entries("pins.json")
    if pins is None:
        path = weights_folder() / "pins.json"
        raise DataError(f"{path} is damaged: remove it, and each file is trusted again on its first use")
    return str(pins[name]) if name in pins else None


def pin_digest(name: str, digest: str) -> None:
    """Record the digest of a file on its first use."""
    _add_entry("pins.json", name, digest)


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _entries(record: str) -> dict[str, object] | None:
    """Read one of the records; None if it is damaged."""
    path = weights_folder() / record
    if not path.exists():
        return {}
    try:
        return json_table(read_text(path), str(path))
    except DataError:
        return None


def _add_entry(record: str, key: str, value: object) -> None:
    """Add to one of the records; a shared folder that cannot be written goes without."""
    path = weights_folder() / record
    with suppress(DataError, OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with after_other_writers_of(path):
            entries = _entries(record) or {}
            if entries.get(key) != value:
                write_text(path, json.dumps({**entries, key: value}, indent=1, sort_keys=True) + "\n")
