"""Values of registered columns that are kept, by the digest of the column's code and that of a picture's pixels.

They are in memory, and on the disk beside the embedding caches, a file for each column.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from finc_eval.core.doors import create_file
from finc_eval.core.errors import DataError
from finc_eval.core.files.npz import NpzFile
from finc_eval.core.places import user_folder
from finc_eval.core.storage import write_whole

KeptColumn = dict[int, tuple[float, bool]]  # value by the digest of pixels, and whether it is True or False

MOST_VALUES = 100_000  # values of a column that are kept, in 1.7 MB: those of 100 sets of 1,000 looked-at pictures
MOST_FILES = 100  # columns on the disk; of more, those that were written first go

_KEPT: dict[str, KeptColumn] = {}


def known_values(digest: str) -> KeptColumn:
    """Return the kept values of a column, by the digest of its code."""
    if digest not in _KEPT:
        _KEPT[digest] = _read(digest)
    return _KEPT[digest]


def keep_values(digest: str, fresh: KeptColumn) -> None:
    """Keep values of a column, in memory and on the disk; of too many, the oldest go.

    What cannot be written is measured again by the next process.
    """
    if not fresh:
        return
    kept = known_values(digest)
    kept.update(fresh)
    for key in [*kept][: max(0, len(kept) - MOST_VALUES)]:
        del kept[key]
    values, flags = zip(*kept.values(), strict=True)
    try:
        path = folder_of_columns() / f"{digest}.npz"
        with write_whole(path) as temporary, create_file(temporary) as file:
            keys = np.array([*kept], np.uint64)
            np.savez(file, keys=keys, values=np.array(values, np.float64), flags=np.array(flags, np.bool_))
        by_age = sorted(path.parent.glob("*.npz"), key=lambda entry: entry.stat().st_mtime)
        for old in by_age[: max(0, len(by_age) - MOST_FILES)]:
            old.unlink(missing_ok=True)
    except (DataError, OSError):
        return


def folder_of_columns() -> Path:
    """Return the folder of measured columns, beside the embedding caches."""
    return (
        user_folder("embeddings") / "columns-1"
    )  # another number is for another layout, or other numbers of the same code


def _read(digest: str) -> KeptColumn:
    """Return what the disk has of a column; nothing of a file that is damaged, or of another layout."""
    try:
        path = folder_of_columns() / f"{digest}.npz"
        if not path.is_file():
            return {}
        file = NpzFile(path)
        expected = {"keys": np.uint64, "values": np.float64, "flags": np.bool_}
        headers = {name: file.header(name) for name in expected if name in file.names}
        sizes = {header.shape for header in headers.values()}
        is_whole = len(headers) == len(expected) and len(sizes) == 1 and len(next(iter(sizes))) == 1
        if not is_whole or any(headers[name].dtype != kind for name, kind in expected.items()):
            return {}
        keys, values, flags = (file.array(name) for name in expected)
    except (DataError, OSError):
        return {}
    known = np.isfinite(values)
    return dict(zip(keys[known].tolist(), zip(values[known].tolist(), flags[known].tolist(), strict=True), strict=True))
