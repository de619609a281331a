"""Records of a user: small JSON files with one entry by key, to which several processes may add at once.

They lie in a folder that is the user's own, beside the caches.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from finc_eval.core.doors import known_home
from finc_eval.core.errors import DataError
from finc_eval.core.files.parsed import json_table, read_text
from finc_eval.core.storage import after_other_writers_of, write_text

RECORDS = "~/.cache/finc-eval"  # folder of the records, beside the other caches of the user; no variable moves it


def place_of(name: str) -> str:
    """Return the path of a record as sentences name it."""
    return f"{RECORDS}/{name}"


def entries_of(name: str) -> dict[str, object] | None:
    """Read the record of this file name; None if it is damaged."""
    path = _record(name)
    if path is None or not path.exists():
        return {}
    try:
        return json_table(read_text(path), str(path))
    except DataError:
        return None


def add_entry(name: str, key: str, value: object) -> None:
    """Add an entry to a record; a user whose home cannot be written goes without."""
    path = _record(name)
    if path is None:
        return
    with suppress(DataError, OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with after_other_writers_of(path):
            entries = entries_of(name) or {}
            if entries.get(key) != value:
                write_text(path, json.dumps({**entries, key: value}, indent=1, sort_keys=True) + "\n")


def _record(name: str) -> Path | None:
    """Return the path of a record; None for a user without a home."""
    return known_home(Path(RECORDS, name))
