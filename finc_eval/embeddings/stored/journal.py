"""The unfinished cache, a journal of the batches that are done: HDF5 cannot be opened after a kill while it grows.

It has one line that says what it is of, and then one record a batch. A record that was cut off by a kill, or is
damaged, ends what is believed: its batch and all later batches are made again.
"""

from __future__ import annotations

import json
import os
import struct
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from finc_eval.core.doors import NotAFileError, create_file, open_file, open_to_change
from finc_eval.core.errors import DataError
from finc_eval.core.files.parsed import json_table, parse_json
from finc_eval.core.storage import PROGRAM

PARTIAL = "unfinished embeddings"  # type of the file, in its first line

JOURNAL_LAYOUT = 4

MAX_TITLE = 4096  # bytes of the first line at most

HEAD = struct.Struct("<4sIIIII")
"""Beginning of a record: mark, number of samples, number of those with cells, bytes of its texts, checksum of its data,
checksum of this.

The last one continues from the number of the first row, so that a record counts in its own place alone.
"""

MARK = b"rows"

Floats = npt.NDArray[np.float32]


def new_of(path: Path) -> Path:
    """Return the path at which a file is made before it takes its place."""
    return path.with_name(f".{path.name}.new")


class JournalBatch(NamedTuple):
    """One batch of a journal."""

    rows: Floats  # embeddings and further outputs side by side, (b, width)
    content: npt.NDArray[np.uint64]  # digests of the decoded samples, (b,)
    reasons: Sequence[str | None]  # reason of each sample's failure, or None
    encodings: Sequence[str]  # encoding of each sample, as text; "" without any
    with_cells: npt.NDArray[np.bool_]  # whether the cells of a sample are kept, (b,)
    cells: npt.NDArray[np.int8]  # cells of those samples, (k, bytes of a sample's cells)

    def beginning(self, n: int) -> JournalBatch:
        """Return the batch of the first n samples."""
        rows, content, reasons, encodings, with_cells, cells = self
        kept = with_cells[:n]
        return JournalBatch(rows[:n], content[:n], reasons[:n], encodings[:n], kept, cells[: kept.sum()])


@dataclass(frozen=True)
class Title:
    """The first line of a journal: what its rows are made of."""

    key: str  # key of the cache
    origin: str  # digest of the set and the extractor, which may replace what they left
    n: int  # number of samples
    width: int  # entries of a row
    cells: int = 0  # bytes of the cells of a sample that has any

    def line(self) -> bytes:
        """Return the line as it is written."""
        known = {"program": PROGRAM, "type": PARTIAL, "layout": JOURNAL_LAYOUT, **self.__dict__}
        return json.dumps(known | {"crc32": zlib.crc32(json.dumps(known).encode())}).encode() + b"\n"

    @classmethod
    def of(cls, line: bytes) -> Title | None:
        """Read the line; None if it is not one, or damaged."""
        try:
            match json_table(line):
                case {"key": str(key), "origin": str(origin), "n": int(n), "width": int(width), "cells": int(cells)}:
                    title = cls(key, origin, n, width, cells)
                    return title if title.line() == line else None
        except DataError:
            pass
        return None


def title_of(path: Path) -> Title | None:
    """Read what an unfinished cache is of; None if there is none that can be read."""
    try:
        with open_file(path) as file:
            return Title.of(file.readline(MAX_TITLE))
    except (OSError, NotAFileError):
        return None


class Journal:
    """The batches of an unfinished cache, open for reading and appending.

    Attributes:
        title: what the rows are made of.
        done: number of rows that are there, from the first one on.
        failures: reason of each sample that failed, by its number.
    """

    def __init__(self, file: IO[bytes], title: Title, path: Path) -> None:
        self.title, self.path, self._file = title, path, file
        self.done = 0
        self.failures: dict[int, str] = {}
        self._starts: list[tuple[int, int]] = []
        """First row and place of each record."""

    @classmethod
    def create(cls, path: Path, title: Title) -> Journal:
        """Make an empty journal instead of what is there."""
        new = new_of(path)
        try:
            with create_file(new) as file:
                file.write(title.line())
            new.replace(path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        return cls(open_to_change(path), title, path)

    @classmethod
    def resume(cls, path: Path, title: Title) -> Journal | None:
        """Open a journal with this title, up to the first record that is not whole; None if there is none.

        A file that is not a journal, or a damaged record, gives a warning, and counts as not done.
        """
        try:
            file = open_to_change(path)
        except (OSError, NotAFileError):
            return None
        stated = Title.of(file.readline(MAX_TITLE))
        if stated != title:
            file.close()
            if stated is None:
                warnings.warn(f"{path} is damaged, or of another version: its samples are embedded again", stacklevel=2)
            return None
        journal = cls(file, title, path)
        journal._find_records()
        return journal

    def _find_records(self) -> None:
        start, size = self._file.tell(), os.fstat(self._file.fileno()).st_size
        while start < size and (batch := self._record_at(start, self.done)) is not None:
            self._count(batch, start)
            start = self._file.tell()
        rest = size - start
        self._file.seek(start)
        # A kill leaves the beginning of a record, anything else is damage.
        head = self._file.read(HEAD.size)
        if rest >= HEAD.size and self._length(head, self.done) <= rest:
            warnings.warn(
                f"{self.path} is damaged after {self.done:,} of {self.title.n:,} samples: the others are embedded "
                "again",
                stacklevel=2,
            )
        self._file.truncate(start)
        self._file.seek(start)

    def _length(self, head: bytes, start: int) -> int:
        """Return the length of the record of the rows from a start on; 0 if its head is damaged or of other rows."""
        mark, count, cells, texts, _, checksum = HEAD.unpack(head)
        right = mark == MARK and zlib.crc32(head[:-4], start) == checksum
        return HEAD.size + texts + count * (9 + 4 * self.title.width) + cells * self.title.cells if right else 0

    def _record_at(self, offset: int, start: int) -> JournalBatch | None:
        """Read the record at a place, of the rows from a start on; None if it is not whole."""
        self._file.seek(offset)
        head = self._file.read(HEAD.size)
        length = self._length(head, start) if len(head) == HEAD.size else 0
        if not length or length > os.fstat(self._file.fileno()).st_size - offset:
            return None
        _, count, cells, texts, checksum, _ = HEAD.unpack(head)
        data = self._file.read(length - HEAD.size)
        if zlib.crc32(data) != checksum or not 0 < count <= self.title.n:
            return None
        try:
            reasons, encodings = parse_json(data[:texts])
        except (DataError, ValueError, TypeError):
            return None
        width, after = self.title.width, texts + 8 * count
        content = np.frombuffer(data, "<u8", count, texts)
        with_cells = np.frombuffer(data, np.bool_, count, after)
        rows = np.frombuffer(data, "<f4", count * width, after + count).reshape(count, width)
        values = np.frombuffer(data, np.int8, offset=after + count + 4 * count * width)
        if with_cells.sum() != cells:
            return None
        values = values.reshape(cells, self.title.cells)
        return JournalBatch(rows, content.astype(np.uint64), reasons, encodings, with_cells, values)

    def _count(self, batch: JournalBatch, offset: int) -> None:
        self._starts.append((self.done, offset))
        self.failures |= {self.done + row: why for row, why in enumerate(batch.reasons) if why is not None}
        self.done += len(batch.rows)

    def append(self, batch: JournalBatch) -> None:
        """Write a batch after the others."""
        texts = json.dumps([batch.reasons, batch.encodings]).encode()
        rows = np.ascontiguousarray(batch.rows, "<f4")
        parts = (
            *(texts, batch.content.astype("<u8").tobytes(), batch.with_cells.tobytes()),
            *(array.data.cast("B") if array.size else b"" for array in (rows, np.ascontiguousarray(batch.cells))),
        )
        checksum = 0
        for part in parts:
            checksum = zlib.crc32(part, checksum)
        head = HEAD.pack(MARK, len(rows), len(batch.cells), len(texts), checksum, 0)[:-4]
        offset = self._file.seek(0, os.SEEK_END)
        for written in (head, struct.pack("<I", zlib.crc32(head, self.done)), *parts):
            self._file.write(written)
        self._file.flush()
        self._count(batch, offset)

    def batches(self) -> Iterator[JournalBatch]:
        """Yield the batches in order."""
        for start, offset in self._starts:
            batch = self._record_at(offset, start)
            if batch is None:
                raise DataError(f"{self.path} changed while it was read: run the same command again")
            yield batch

    def cut(self, row: int) -> None:
        """Forget this row and all later rows."""
        while self._starts and self._starts[-1][0] + 1 > row:
            self._drop_last()
        if self.done > row:
            start, offset = self._starts[-1]
            batch = self._record_at(offset, start)
            self._drop_last()
            if batch is not None:
                self.append(batch.beginning(row - start))

    def _drop_last(self) -> None:
        self.done, offset = self._starts.pop()
        self.failures = {row: why for row, why in self.failures.items() if row < self.done}
        self._file.truncate(offset)

    def sync(self) -> None:
        """Wait until all that is written is on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; it can be resumed."""
        self._file.close()
