"""The list of the files of shards, kept on the disk: memory does not grow with their number."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from finc_eval.core.errors import DataError
from finc_eval.samples.shards import Shard, check_complete, joined_in_order


class ShardList:
    """Files of shards of one set: added in any order, and listed in the order of their samples.

    It is a temporary file, which the system removes even if the process is killed. What fits into the 2 MB that SQLite
    holds never reaches the disk.
    """

    def __init__(self) -> None:
        self._first: Shard | None = None
        self._len = 0
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute("CREATE TABLE files (path BLOB, first INT, last INT, start INT, stop INT)")
        self._table.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._table.close()

    def __len__(self) -> int:
        return self._len

    def __iter__(self) -> Iterator[Path]:
        """Yield the paths in the order of the samples."""
        for (path,) in self._in_order("path"):
            yield Path(os.fsdecode(path))

    def add(self, path: Path, shard: Shard) -> None:
        """Add the file of a shard, of the same division of the same set as all others."""
        self._first = self._first or shard
        with _disk_errors():
            values = (os.fsencode(path), shard.first, shard.last, shard.start, shard.stop)
            self._table.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?)", values)
        self._len += 1

    def check(self) -> None:
        """Raise DataError if samples are in two files, and MissingShards if some are in none."""
        check_complete(joined_in_order(self._shards()))

    def _shards(self) -> Iterator[tuple[str, Shard]]:
        for path, first, last, start, stop in self._in_order("path, first, last, start, stop"):
            assert self._first is not None
            yield os.fsdecode(path), replace(self._first, first=first, last=last, start=start, stop=stop)

    def _in_order(self, columns: str) -> Iterator[tuple[Any, ...]]:
        with _disk_errors():
            rows = self._table.execute(f"SELECT {columns} FROM files ORDER BY start, stop, path")
            yield from iter(rows.fetchone, None)  # from the cursor itself, it would be closed after its list


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise DataError(
            f"the list of shards cannot be kept in the folder of temporary files ({error}): free some space there, or "
            "name another folder in SQLITE_TMPDIR"
        ) from error
