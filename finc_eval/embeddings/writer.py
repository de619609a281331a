"""Files of an embedding cache, finished and unfinished, with one writer at a time.

A kill at any instant leaves something the next run resumes from. Rows go to `<name>.part`; the finished file takes its
place under its name in one step.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.copies import copy_content
from finc_eval.core.files.stored import StoredFile, file_type
from finc_eval.core.files.writing import NewFile, fill_file, new_file
from finc_eval.core.progress import Progress, silent
from finc_eval.core.record import plain
from finc_eval.core.storage import disk_errors, lock_of, only_writer_of, put_whole, refresh, remove_leftovers
from finc_eval.embeddings.cache import EXTRACT_AGAIN, WHOLE, EmbeddingCache, Floats
from finc_eval.embeddings.cells import rows_with_cells
from finc_eval.embeddings.columns import drop_missing
from finc_eval.embeddings.recipe import (
    CACHE_LAYOUT,
    DIGESTS,
    DTYPE,
    ENCODINGS,
    FAILED,
    CacheHeader,
    Identity,
    column_array,
    origin_of,
)
from finc_eval.embeddings.stored.cell_block import new_cells
from finc_eval.embeddings.stored.journal import Journal, JournalBatch, Title, new_of, title_of
from finc_eval.extractors.cells import CellTable
from finc_eval.samples.encoding import ENCODING_BYTES, Encoding
from finc_eval.samples.profile import Profile
from finc_eval.samples.source import Digests

PART = ".part"

STREAM = ".stream-"  # beginning of the name of embeddings whose samples can be read only once, while they are read


def part_of(path: Path) -> Path:
    """Return the path of the unfinished cache of `path`."""
    return path.with_name(f"{path.name}{PART}")


def whole_cache(
    path: Path, key: str, origin: str = "", force: bool = False, n: int | None = None
) -> EmbeddingCache | None:
    """Open the cache at `path` if it has this key; return None if there is none, or if it may be replaced.

    `key` is the digest of what the rows are to be made of. The same `origin`, set and extractor, may replace its own
    embeddings, finished or not, but a subset of `n` no larger one.
    """
    refresh(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name the file to write, such as {path / 'gen.h5'}")
    if path.exists() and (cache := _at(path, force)):
        if cache.key == key:
            return cache
        with cache:
            what = f"the embeddings of {cache.source} by {cache.extractor}"
            larger = n is not None and cache.n + len(cache.failures) > n
            origin_of_other = "" if larger else origin_of(cache.source, cache.extractor, cache.recipe, cache.reading)
        _refuse_loss(path, what, origin_of_other, origin, force)
    elif (unfinished := title_of(part_of(path))) and unfinished.key != key:
        origin_of_other = unfinished.origin if n is None else ""
        _refuse_loss(part_of(path), "unfinished embeddings of other samples", origin_of_other, origin, force)
    return None


def copy_cache(
    cached: Path,
    path: Path,
    identity: Identity,
    usable: Callable[[EmbeddingCache | None], EmbeddingCache | None],
    columns_of: Callable[[EmbeddingCache], Mapping[str, Sequence[str]]],
) -> bool:
    """Copy the cache of the same key from the folder of caches, if there is a usable one; return whether there is.

    The copy gets the columns that `columns_of` gives for its rows.
    """
    try:
        cache = usable(whole_cache(cached, identity.key))
    except (DataError, UsageError):
        cache = None
    if cache is None:
        return False
    with cache, new_file(path, WHOLE, CACHE_LAYOUT) as new:
        _copy(cache, new, columns_of(cache))
        # The same samples may have been embedded from another place.
        new.header |= {"source": identity.source, "shard": identity.shard and plain(identity.shard)}
    return True


def _at(path: Path, force: bool) -> EmbeddingCache | None:
    """Open the cache at a path; None for another or a damaged file that may be replaced."""
    if file_type(path) != WHOLE and not force:
        raise UsageError(
            f"{path} already exists and is not a finc-eval embedding cache: choose another name, or pass --force "
            "(in Python force=True)"
        )
    try:
        return EmbeddingCache(path)
    except DataError:
        if force:
            return None
        raise


def _refuse_loss(path: Path, what: str, origin_of_other: str, origin: str, force: bool) -> None:
    if not force and (not origin or origin_of_other != origin):
        raise UsageError(
            f"{path} holds {what}, which would be lost: choose another output file, or pass --force "
            "(in Python force=True)"
        )


def with_columns(
    cache: EmbeddingCache, columns: Mapping[str, Sequence[str]], ignored: Mapping[str, int] | None = None
) -> EmbeddingCache:
    """Return a cache with these columns of metadata, one text a row, instead of columns of the same names.

    Its file is replaced by a copy with them, unless it has them already; `ignored` is what the copy says was left out.
    """
    same = (
        name in cache.columns and cache.column(name) == drop_missing(list(values)) for name, values in columns.items()
    )
    if all(same):
        return cache
    with only_writer(cache.path), new_file(cache.path, WHOLE, CACHE_LAYOUT) as new:
        _copy(cache, new, columns)
        if ignored is not None:
            new.header["ignored"] = dict(ignored)
    return EmbeddingCache(cache.path)


def _copy(cache: EmbeddingCache, new: NewFile, columns: Mapping[str, Sequence[str]]) -> None:
    """Copy a cache, with these columns instead of columns of the same names."""
    with StoredFile(cache.path, WHOLE, CACHE_LAYOUT, EXTRACT_AGAIN) as old:
        copy_content(old, new, [column_array(name) for name in columns])
    write_columns(new, columns)
    new.header["columns"] = list(dict.fromkeys([*cache.columns, *columns]))


def write_columns(file: NewFile, columns: Mapping[str, Sequence[str]]) -> None:
    """Write columns of metadata."""
    for name, strings in columns.items():
        file.texts(column_array(name), strings)


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold the lock that makes this process the only one to write `path`; what the killed left of it is removed."""
    with ExitStack() as held:
        with resumable(path, part_of(path).exists()):
            held.enter_context(only_writer_of(path))
            remove_leftovers(path)
        yield


def remove_remains(path: Path) -> None:
    """Remove what a kill after the last step left next to a whole cache; the files of a living writer stay."""
    remains = (part_of(path), new_of(path))
    if any(file.exists() for file in (*remains, lock_of(path))):
        with suppress(DataError), only_writer(path):
            for file in remains:
                file.unlink(missing_ok=True)


def remove_dead_streams(folder: Path) -> None:
    """Remove what killed processes left of sets that can be read only once: nobody can go on with them."""
    for part in folder.glob(f"{STREAM}*.h5{PART}") if folder.is_dir() else ():
        path = part.with_suffix("")
        with suppress(DataError), only_writer(path):
            for left in (part, new_of(part), new_of(path)):
                left.unlink(missing_ok=True)


@contextmanager
def resumable(path: Path, kept: bool) -> Iterator[None]:
    """Turn disk errors into one sentence, which says where the finished part is if it is kept."""
    with disk_errors(path, f"the finished part is kept in {part_of(path).name}") if kept else disk_errors(path):
        yield


REASON_BYTES = 200  # bytes of a sample's reason of failure, at most
CHECKPOINT_SECONDS = 1.0  # time between checkpoints. Each waits for the disk; one a second costs and loses little


class CacheWriter:
    """Writer of one cache, which resumes what an earlier writer of the same key left. Use it under `only_writer`.

    The unfinished file is a journal: each batch is one record with a checksum. After a kill between any two writes,
    or damage, the batches from there on are made again.

    `key` is the digest of what the rows are made of: an unfinished cache with another key is not resumed, and may be
    replaced by its own `origin`. `widths` are the entries of the embedding, under "embeddings", then of every further
    output, under its name. If the samples can be read only `once`, nobody could resume, and an error leaves nothing.
    `cells` is how the extractor makes cells, which are kept of at most `MAX_CELLS` samples; None for one without.

    Attributes:
        done: number of rows that need not be made again; a multiple of `batch_size`, or all of them.
    """

    def __init__(
        self,
        path: Path,
        key: str,
        ids: Sequence[str],
        widths: Mapping[str, int],
        batch_size: int,
        once: bool = False,
        origin: str = "",
        cells: CellTable | None = None,
    ) -> None:
        self._once, self._table = once, cells
        self._chosen = np.zeros(len(ids), bool)
        if cells is not None:
            from finc_eval.embeddings.keys import string_hashes  # loads torch, which the network needs in any case

            self._chosen[rows_with_cells([string_hashes(ids)], cells.windows)] = True
        cell_bytes = cells.windows * cells.channels if cells else 0
        self.path, self.part, self._ids, self._widths = path, part_of(path), ids, widths
        self._shape = (len(ids), sum(widths.values()))
        row_bytes = self._shape[1] * np.dtype(DTYPE).itemsize + REASON_BYTES + ENCODING_BYTES
        # 1 << 20: bytes that are allowed for everything in a cache that does not grow with the samples.
        self._bytes = (1 << 20) + sum(len(name) + row_bytes for name in ids) + self._chosen.sum() * cell_bytes
        self._last_checkpoint = 0.0
        title = Title(key, origin, *self._shape, cell_bytes)
        with resumable(path, self.part.exists()):
            # The unfinished and the whole file lie side by side for a moment.
            occupied = self.part.stat().st_blocks * 512 if self.part.exists() else 0
            _check_room(path, 2 * self._bytes - occupied)
            self._journal = Journal.resume(self.part, title) or Journal.create(self.part, title)
        self._checked_in = done = self._journal.done
        # Rows are made in the batches an uninterrupted run would make, so that the bits are its bits.
        self.done = done if done == len(ids) else done - done % batch_size

    def write(
        self,
        rows: Floats,
        content: npt.NDArray[np.uint64],
        reasons: Sequence[str | None],
        encodings: Sequence[Encoding | None],
        cells: npt.NDArray[np.int8] | None = None,
    ) -> None:
        """Append a batch.

        `rows` has embeddings and further outputs side by side, (b, sum of widths) float32; rows with a reason, of
        failed samples, are ignored. `content` has digests of the decoded samples, (b,) uint64. `cells` are those of the
        samples without a reason, (m, 49, c); None without any.
        """
        encoded = [encoding.encode().decode("ascii") if encoding else "" for encoding in encodings]
        # Reasons are cut between characters.
        short = [
            why if why is None else why.encode("utf-8", "replace")[:REASON_BYTES].decode("utf-8", "ignore")
            for why in reasons
        ]
        with_cells = self._chosen[self.done :][: len(rows)] & np.array([why is None for why in reasons])
        values = np.empty((0, self._journal.title.cells), np.int8)
        if cells is not None:
            kept = with_cells[[row for row, why in enumerate(reasons) if why is None]]
            values = cells[kept].reshape(-1, self._journal.title.cells)
        batch = JournalBatch(rows, content, short, encoded, with_cells, values)
        with resumable(self.path, self._worth_keeping):
            self._journal.cut(self.done)
            self._journal.append(batch)
            self.done = self._journal.done
            if time.monotonic() - self._last_checkpoint >= CHECKPOINT_SECONDS or self.done == len(self._ids):
                self._checkpoint()

    def failures(self) -> list[tuple[str, str]]:
        """Return (id, reason) of the samples that failed so far."""
        return [(self._ids[row], reason) for row, reason in sorted(self._journal.failures.items())]

    def finish(
        self,
        identity: Identity,
        target: Path | None = None,
        columns: Mapping[str, Sequence[str]] = MappingProxyType({}),
        *,
        digests: Digests | None = None,
        progress: Progress = silent,
    ) -> None:
        """Copy the good rows to a whole cache, put it in place, and remove the unfinished one.

        Columns have one text per id; a shard also keeps the content digests.
        """
        new = new_of(self.path)
        with resumable(self.path, self._worth_keeping):
            try:
                _check_room(self.path, self._bytes)
                with fill_file(new, WHOLE, CACHE_LAYOUT) as file:
                    self._write_rows(file, identity, columns, digests, progress)
                put_whole(new, target or self.path)
                self.discard()
            except BaseException:
                new.unlink(missing_ok=True)
                raise

    def _write_rows(
        self,
        file: NewFile,
        identity: Identity,
        columns: Mapping[str, Sequence[str]],
        digests: Digests | None,
        progress: Progress,
    ) -> None:
        """Write the good rows, each output to its own array, and all that describes them."""
        n, lost = self._journal.done, self._journal.failures
        kept = [row for row in range(n) if row not in lost]
        targets = [
            file.rows(name if name == "embeddings" else f"outputs/{name}", (len(kept), entries), DTYPE)
            for name, entries in self._widths.items()
        ]
        content = file.rows("content", (len(kept),), "<u8")
        rows_of_cells = np.flatnonzero(self._chosen[kept])
        cells = new_cells(file, rows_of_cells, table.windows, table.channels) if (table := self._table) else None
        ends, done, encodings = np.cumsum([*self._widths.values()]).tolist(), 0, list[str]()
        for batch in self._journal.batches():
            good = np.array([reason is None for reason in batch.reasons])
            content.append(batch.content[good])
            for target, rows in zip(targets, np.split(batch.rows[good], ends[:-1], axis=1), strict=True):
                target.append(rows)
            if cells is not None and len(batch.cells):
                cells.append(batch.cells.reshape(-1, *cells.shape[1:]))
            encodings += [encoding for encoding, fine in zip(batch.encodings, good, strict=True) if fine and encoding]
            done += len(good)
            progress("write cache", done, n)
        file.texts("ids", [self._ids[row] for row in kept])
        write_columns(file, {name: [values[row] for row in kept] for name, values in columns.items()})
        file.texts("failures/ids", [name for name, _ in self.failures()])
        file.texts("failures/reasons", [reason for _, reason in self.failures()])
        if identity.shard is not None and digests is not None:
            file.array(DIGESTS, digests)
            file.array(FAILED, np.array(sorted(lost), np.int64))
            file.texts(ENCODINGS, encodings)
        profile = Profile.of(Encoding.decode(encoding.encode("ascii")) for encoding in encodings)
        space = None if self._table is None else self._table.space
        file.header |= plain(CacheHeader.of(identity, profile, tuple(columns), tuple(self._widths)[1:], space))

    def discard(self) -> None:
        """Remove the unfinished cache."""
        self.close()
        self.part.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the unfinished cache; another writer may resume it."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A failed write is repeated when the file is closed; the first error is the one that counts.
        with suppress(OSError, RuntimeError) if error else resumable(self.path, self._worth_keeping):
            self.close()
        if error and not self._worth_keeping:
            self.part.unlink(missing_ok=True)

    @property
    def _worth_keeping(self) -> bool:
        """True if the unfinished cache spares the next run some work."""
        return self._checked_in > 0 and not self._once

    def _checkpoint(self) -> None:
        self._journal.sync()
        self._checked_in = self.done
        self._last_checkpoint = time.monotonic()


def _check_room(path: Path, needed: int) -> None:
    """Raise DataError if the disk cannot hold a file; HDF5 crashes if not even its metadata fits."""
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise DataError(
            f"{path.parent} has {free / 1e6:,.0f} MB free and {path.name} needs about {needed / 1e6:,.0f} MB "
            "more to be written: free some space and run the same command again, or choose another folder"
        )
