"""Copying what a finc-eval file holds into another one."""

from __future__ import annotations

from collections.abc import Collection

from finc_eval.core.files.front import BLOCK_BYTES
from finc_eval.core.files.reading import StoredFile
from finc_eval.core.files.writing import NewFile


def copy_content(old: StoredFile, new: NewFile, without: Collection[str] = ()) -> None:
    """Copy the header and all arrays, block by block, but those under certain names.

    Raises:
        DataError: the old file is damaged.
    """
    new.header |= old.header
    for name in old.arrays:
        if name in without or name.rpartition("/")[0] in without:
            continue
        stored = old.stored(name)
        rows = new.rows(name, stored.shape, stored.dtype.str)
        if not stored.shape:
            rows.append(stored.whole())
            continue
        size = max(1, BLOCK_BYTES // max(stored.row_bytes, 1))
        for start in range(0, len(stored), size):
            rows.append(stored.between(start, start + size))
