"""The embedding cache: one HDF5 file per set and extractor, that knows what it was made of.

`EmbeddingCache` reads a whole one. `CacheWriter` makes one: rows go to `<name>.part`, which survives a kill
at any instant, and the finished file takes its place under its name in one step.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import filelock
import h5py
import numpy as np
import numpy.typing as npt

from finc_eval.errors import FincEvalError
from finc_eval.progress import Progress, silent
from finc_eval.storage import PROGRAM

WHOLE, PARTIAL = "embeddings", "unfinished embeddings"
SCHEMA = 1
DTYPE = "float32"
BLOCK_BYTES = 1 << 18
REASON_BYTES = 200
SPARE_BYTES = 1 << 20
# A checkpoint waits for the disk; one a second costs little and loses little.
CHECKPOINT_SECONDS = 1.0
OK, FAILED = 1, 2

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Identity:
    """What a cache is made of.

    Attributes:
        extractor: the card's name.
        card_digest: the card's digest.
        manifest_digest: the digest of the set's manifest.
        source: absolute path of the set, or "array".
        ignored: files of the set that are no images, counted by suffix.
    """

    extractor: str
    card_digest: str
    manifest_digest: str
    source: str
    ignored: dict[str, int]

    @property
    def key(self) -> str:
        """SHA-256 (hex) of what decides the rows. Names and places are no part of it."""
        return hashlib.sha256(json.dumps([self.manifest_digest, self.card_digest, DTYPE, SCHEMA]).encode()).hexdigest()


class EmbeddingCache:
    """A whole embedding cache, open for reading.

    Attributes:
        path: the file.
        key: digest of what decides the rows.
        n: number of embeddings.
        dim: length of an embedding.
        extractor: name of the card; `card_digest` is its digest.
        manifest_digest: digest of the samples' manifest.
        source: absolute path the samples were read from, or "array".
        ignored: files of the set that are no images, counted by suffix.
        failures: (id, reason) of every sample that could not be read.

    Raises:
        FincEvalError: the file is missing, unfinished, damaged, or no embedding cache.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = _open(self.path)
        try:
            attributes = self._file.attrs
            self.key = str(attributes["key"])
            self.extractor = str(attributes["extractor"])
            self.card_digest = str(attributes["card_digest"])
            self.manifest_digest = str(attributes["manifest_digest"])
            (self.source,) = _strings(self._file["source"])
            self.ignored: dict[str, int] = json.loads(attributes["ignored"])
            self._embeddings = self._file["embeddings"]
            self.n, self.dim = map(int, self._embeddings.shape)
            self.failures: list[tuple[str, str]] = list(
                zip(
                    _strings(self._file["failures/ids"]),
                    _strings(self._file["failures/reasons"]),
                    strict=True,
                )
            )
        except (KeyError, OSError, ValueError) as error:
            self.close()
            raise _damaged(self.path) from error

    @property
    def digest(self) -> str:
        """The key: what tells two caches apart."""
        return self.key

    @cached_property
    def ids(self) -> list[str]:
        """The samples' ids, one per row."""
        return _strings(self._file["ids"])

    @cached_property
    def content(self) -> npt.NDArray[np.uint64]:
        """(n,) uint64: a digest of each decoded image; equal for exact copies, within and across sets."""
        return cast("npt.NDArray[np.uint64]", self._file["content"][:])

    def batches(self, size: int) -> Iterator[Floats]:
        """Yield the rows in order, `size` at a time: (b, dim) float32."""
        for start in range(0, self.n, size):
            yield self._embeddings[start : start + size]

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int | slice | npt.NDArray[Any] | Sequence[int]) -> Floats:
        """Return the rows `index` names, as numpy would: in its order, repeats and negatives included."""
        if isinstance(index, slice) and index.step in (None, 1):
            return cast(Floats, self._embeddings[index])
        rows = np.arange(self.n)[index]
        result = np.empty((*rows.shape, self.dim), np.float32)
        # HDF5 is slow at lists of single rows, so whole blocks are read.
        size = _block_rows(self.dim)
        for block in np.unique(rows // size):
            inside = rows // size == block
            result[inside] = self._embeddings[block * size : (block + 1) * size][rows[inside] - block * size]
        return result

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an EmbeddingCache is read from its file: it cannot become an array without a copy")
        return np.asarray(self._embeddings[:], dtype)

    def __repr__(self) -> str:
        failures = f", failures={len(self.failures)}" if self.failures else ""
        return f"EmbeddingCache({str(self.path)!r}, n={self.n}, dim={self.dim}, {self.extractor!r}{failures})"

    def close(self) -> None:
        """Close the file; the rows cannot be read any more."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def part_of(path: Path) -> Path:
    """Return where the unfinished cache of `path` lies."""
    return path.with_name(f"{path.name}.part")


def whole_cache(path: Path, key: str) -> EmbeddingCache | None:
    """Return the cache at `path` if it has this key, None if there is none or it is made of something else.

    Raises:
        FincEvalError: something lies at `path` that is no embedding cache, and must not be overwritten.
    """
    if not path.exists():
        return None
    if path.is_dir():
        raise FincEvalError(f"{path} is a folder: name the file to write, such as {path / 'gen.h5'}")
    cache = EmbeddingCache(path)
    if cache.key == key:
        return cache
    cache.close()
    return None


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold the lock that makes this process the only one to write `path`.

    Raises:
        FincEvalError: another process (or thread) holds it.
    """
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path.with_name(f".{path.name}.lock"), timeout=0)
        try:
            lock.acquire()
        except filelock.Timeout as error:
            raise FincEvalError(
                f"{path} is being written by another process: wait for it, or choose another output file"
            ) from error
    try:
        yield
    finally:
        lock.release()


class CacheWriter:
    """Writes one cache, resuming what an earlier writer of the same key left. To be used under `only_writer`.

    The unfinished file gets all its metadata and all its space when it is made, so that writing rows changes
    raw data only: at a checkpoint the rows reach the disk first, the count of rows that are done second.
    A kill between any two writes leaves a file that opens, and a count that is true.

    Attributes:
        done: rows that need not be made again; a multiple of `batch_size`, or all of them.

    Raises:
        FincEvalError: the disk has too little room, or the file cannot be made.
    """

    def __init__(self, path: Path, identity: Identity, ids: Sequence[str], dim: int, batch_size: int) -> None:
        self.path, self.part, self._identity, self._ids = path, part_of(path), identity, ids
        self._shape = (len(ids), dim)
        row_bytes = dim * np.dtype(DTYPE).itemsize + REASON_BYTES
        self._bytes = SPARE_BYTES + sum(len(name) + row_bytes for name in ids)
        self._last_checkpoint = 0.0
        with disk_errors(path):
            # The unfinished and the whole file lie side by side for a moment.
            occupied = self.part.stat().st_blocks * 512 if self.part.exists() else 0
            _check_room(path, 2 * self._bytes - occupied)
            self._file = self._resume() or self._create()
        done = int(self._file["done"][0])
        # Rows are made in the batches an uninterrupted run would make, so that the bits are its bits.
        self.done = done if done == len(ids) else done - done % batch_size

    def write(self, rows: Floats, content: npt.NDArray[np.uint64], reasons: Sequence[str | None]) -> None:
        """Append a batch.

        Args:
            rows: (b, dim) float32; rows of samples that failed are ignored.
            content: (b,) uint64 digests of the decoded images.
            reasons: b times None, or why that sample failed.
        """
        here = slice(self.done, self.done + len(rows))
        with disk_errors(self.path):
            self._file["embeddings"][here] = rows
            self._file["content"][here] = content
            self._file["status"][here] = [OK if reason is None else FAILED for reason in reasons]
            self._file["reason"][here] = [_short(reason or "") for reason in reasons]
            self.done = here.stop
            due = time.monotonic() - self._last_checkpoint >= CHECKPOINT_SECONDS
            if due or self.done == len(self._ids):
                self._checkpoint()

    def failures(self) -> list[tuple[str, str]]:
        """Return (id, reason) of the samples that failed so far."""
        failed = np.flatnonzero(self._file["status"][: self.done] == FAILED).tolist()
        reasons = self._file["reason"][: self.done][failed] if failed else []
        return [(self._ids[row], reason.decode()) for row, reason in zip(failed, reasons, strict=True)]

    def finish(self, progress: Progress = silent) -> None:
        """Copy the good rows to a whole cache, put it in place, and remove the unfinished one."""
        new = self.path.with_name(f".{self.path.name}.new")
        with disk_errors(self.path), _removed_on_error(new):
            _check_room(self.path, self._bytes)
            with h5py.File(new, "w") as file:
                self._copy(file, progress)
            _sync(new)
            new.replace(self.path)
            self.discard()

    def discard(self) -> None:
        """Remove the unfinished cache."""
        self.close()
        self.part.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the unfinished cache; another writer may resume it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # HDF5 repeats a failed write when it closes; the first error is the one that counts.
        with suppress(OSError, RuntimeError) if error else disk_errors(self.path):
            self.close()

    def _resume(self) -> h5py.File | None:
        """Open the unfinished cache if it is of this key and sound."""
        try:
            file = h5py.File(self.part, "r+")
        except OSError:  # there is none, or it is damaged
            return None
        try:
            same = file.attrs["kind"] == PARTIAL and file.attrs["key"] == self._identity.key
            if same and file["embeddings"].shape == self._shape and 0 <= file["done"][0] <= len(self._ids):
                return file
        except (KeyError, OSError):
            pass
        file.close()
        return None

    def _create(self) -> h5py.File:
        """Make the unfinished cache under another name, so that a kill leaves no half-made one."""
        new = self.path.with_name(f".{self.path.name}.new")
        n = len(self._ids)
        layouts = {
            "embeddings": (self._shape, DTYPE),
            "content": ((n,), "uint64"),
            "status": ((n,), "uint8"),
            "reason": ((n,), f"S{REASON_BYTES}"),
            "done": ((1,), "int64"),
        }
        with _removed_on_error(new):
            with h5py.File(new, "w") as file:
                for name, (shape, dtype) in layouts.items():
                    _fixed(file, name, shape, dtype)
                file["done"][0] = 0
                file.attrs["key"] = self._identity.key
                file.attrs["program"] = PROGRAM
                file.attrs["kind"] = PARTIAL
            _sync(new)
            new.replace(self.part)
        return h5py.File(self.part, "r+")

    def _checkpoint(self) -> None:
        self._file.flush()
        os.fsync(self._file.id.get_vfd_handle())
        self._file["done"][0] = self.done
        self._file.flush()
        self._last_checkpoint = time.monotonic()

    def _copy(self, file: h5py.File, progress: Progress) -> None:
        n, dim = self._shape
        good = self._file["status"][:] == OK
        failures = self.failures()
        _write_strings(file, "ids", [self._ids[row] for row in np.flatnonzero(good).tolist()])
        _write_strings(file, "failures/ids", [name for name, _ in failures])
        _write_strings(file, "failures/reasons", [reason for _, reason in failures])
        _write_strings(file, "source", [self._identity.source])
        file.attrs["extractor"] = self._identity.extractor
        file.attrs["card_digest"] = self._identity.card_digest
        file.attrs["manifest_digest"] = self._identity.manifest_digest
        file.attrs["ignored"] = json.dumps(self._identity.ignored)
        file.attrs["key"] = self._identity.key
        file.attrs["schema"] = SCHEMA
        file.attrs["kind"] = WHOLE
        file.attrs["program"] = PROGRAM
        file["content"] = self._file["content"][:][good]
        # Contiguous, not chunked: a disk that fills up while chunks are cached makes HDF5 crash at exit.
        rows = _fixed(file, "embeddings", (int(good.sum()), dim), DTYPE)
        file.flush()
        end, size = 0, _block_rows(dim)
        for start in range(0, n, size):
            here = slice(start, start + size)
            kept = self._file["embeddings"][here][good[here]]
            rows[end : end + len(kept)] = kept
            end += len(kept)
            progress("write cache", min(here.stop, n), n)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn the errors of writing at `path` into one sentence that says what to do."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py raises both, the number often in the text alone
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if full or os.strerror(errno.ENOSPC) in str(error) or os.strerror(errno.EDQUOT) in str(error):
            raise FincEvalError(
                f"the disk is full while writing {path}: the finished part is kept in {part_of(path).name}; "
                "free some space and run the same command again to resume"
            ) from error
        raise FincEvalError(f"{path} cannot be written ({error}): check the folder, or choose another") from error


def _open(path: Path) -> h5py.File:
    """Open a file that says that it is a whole cache."""
    if not path.exists():
        raise FincEvalError(f"{path} does not exist: make it with finc-eval extract")
    if path.is_dir() or not h5py.is_hdf5(path):
        raise FincEvalError(f"{path} is no finc-eval embedding cache: make one with finc-eval extract")
    try:
        file = h5py.File(path, "r")
        program, kind, schema = (file.attrs.get(name) for name in ("program", "kind", "schema"))
    except (OSError, RuntimeError) as error:
        raise _damaged(path) from error
    if (program, kind, schema) == (PROGRAM, WHOLE, SCHEMA):
        return file
    file.close()
    if program == PROGRAM and kind == PARTIAL:
        raise FincEvalError(f"{path} is unfinished: run the same finc-eval extract again to resume it")
    if program == PROGRAM and kind == WHOLE:
        raise FincEvalError(
            f"{path} has cache schema {schema} and this finc-eval reads {SCHEMA}: "
            "move it away and extract again, or use the finc-eval it was made with"
        )
    raise FincEvalError(f"{path} is no finc-eval embedding cache: make one with finc-eval extract")


def _damaged(path: Path) -> FincEvalError:
    return FincEvalError(f"{path} is cut short or damaged: delete it and run finc-eval extract again")


def _check_room(path: Path, needed: int) -> None:
    """Refuse to begin what the disk cannot hold; HDF5 itself crashes where not even its metadata fits."""
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise FincEvalError(
            f"{path.parent} has {free / 1e6:,.0f} MB free and {path.name} needs about {needed / 1e6:,.0f} MB "
            "more to be written: free some space and run the same command again, or choose another folder"
        )


@contextmanager
def _removed_on_error(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _fixed(file: h5py.File, name: str, shape: tuple[int, ...], dtype: str) -> h5py.Dataset:
    """Create a contiguous dataset that has its place in the file from the start."""
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    return file.create_dataset(name, shape, dtype, dcpl=layout, track_times=False)


def _block_rows(dim: int) -> int:
    return max(1, BLOCK_BYTES // (dim * np.dtype(DTYPE).itemsize))


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _short(reason: str) -> bytes:
    """Return the reason in at most `REASON_BYTES` bytes, cut between characters."""
    return reason.encode("utf-8", "replace")[:REASON_BYTES].decode("utf-8", "ignore").encode()


def _strings(dataset: h5py.Dataset) -> list[str]:
    return cast("list[str]", dataset.asstr("utf-8", "surrogateescape")[:].tolist())


def _write_strings(file: h5py.File, name: str, strings: Sequence[str]) -> None:
    # File names on Linux need not be valid UTF-8; their bytes are kept as they are.
    data = [string.encode("utf-8", "surrogateescape") for string in strings]
    file.create_dataset(name, (len(data),), h5py.string_dtype(), data=data or None)
