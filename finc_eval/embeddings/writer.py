"""Writing an embedding cache so that a kill at any instant leaves something the next run resumes from.

Rows go to `<name>.part`; the finished file takes its place under its name in one step.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import filelock
import h5py
import numpy as np
import numpy.typing as npt

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.core.storage import PROGRAM, disk_errors
from finc_eval.embeddings.cache import PARTIAL, WHOLE, EmbeddingCache, Floats, block_rows
from finc_eval.embeddings.recipe import DTYPE, SCHEMA, Identity
from finc_eval.samples import Traits
from finc_eval.samples.profile import Profile

REASON_BYTES = 200
TRAITS_BYTES = 48
SPARE_BYTES = 1 << 20
# A checkpoint waits for the disk; one a second costs little and loses little.
CHECKPOINT_SECONDS = 1.0
OK, FAILED = 1, 2


def part_of(path: Path) -> Path:
    """Return where the unfinished cache of `path` lies."""
    return path.with_name(f"{path.name}.part")


def lock_of(path: Path) -> Path:
    """Return the file whose lock makes a process the only one to write `path`."""
    return path.with_name(f".{path.name}.lock")


def whole_cache(path: Path, key: str) -> EmbeddingCache | None:
    """Return the cache at `path` if it has this key, None if there is none or it is made of something else.

    Raises:
        FincEvalError: something lies at `path` that is no embedding cache, and must not be overwritten.
    """
    if not path.exists():
        return None
    if path.is_dir():
        raise FincEvalError(f"{path} is a folder: name the file to write, such as {path / 'gen.h5'}")
    if not h5py.is_hdf5(path):
        raise FincEvalError(f"{path} is no finc-eval embedding cache, and is not overwritten: choose another name")
    if _is_of_an_older_version(path):
        return None
    cache = EmbeddingCache(path)
    if cache.key == key:
        return cache
    cache.close()
    return None


def _is_of_an_older_version(path: Path) -> bool:
    """Whether a finc-eval before this one wrote a cache here, which may be replaced as one of other samples may."""
    with suppress(OSError, RuntimeError), h5py.File(path, "r") as file:
        ours = (file.attrs.get("program"), file.attrs.get("kind")) == (PROGRAM, WHOLE)
        return ours and int(file.attrs["schema"]) < SCHEMA
    return False


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold the lock that makes this process the only one to write `path`.

    Raises:
        FincEvalError: another process (or thread) holds it.
    """
    with _resumable(path, part_of(path).exists()):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(lock_of(path), timeout=0)
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

    Args:
        path: the cache that is to be.
        key: what the rows are made of; an unfinished cache of another key is not resumed.
        ids: of the samples.
        widths: the entries of the embedding, under "embeddings", and then of every further output by its name.
        batch_size: rows that are made together.
        once: whether the samples cannot be read again, so that nobody could resume: an error then leaves nothing.

    Raises:
        FincEvalError: the disk has too little room, or the file cannot be made.
    """

    def __init__(
        self,
        path: Path,
        key: str,
        ids: Sequence[str],
        widths: Mapping[str, int],
        batch_size: int,
        once: bool = False,
    ) -> None:
        self._once = once
        self.path, self.part, self._key, self._ids, self._widths = path, part_of(path), key, ids, widths
        self._shape = (len(ids), sum(widths.values()))
        row_bytes = self._shape[1] * np.dtype(DTYPE).itemsize + REASON_BYTES + TRAITS_BYTES
        self._bytes = SPARE_BYTES + sum(len(name) + row_bytes for name in ids)
        self._last_checkpoint = 0.0
        with _resumable(path, self.part.exists()):
            # The unfinished and the whole file lie side by side for a moment.
            occupied = self.part.stat().st_blocks * 512 if self.part.exists() else 0
            _check_room(path, 2 * self._bytes - occupied)
            self._file = self._resume() or self._create()
        self._checked_in = done = int(self._file["done"][0])
        # Rows are made in the batches an uninterrupted run would make, so that the bits are its bits.
        self.done = done if done == len(ids) else done - done % batch_size

    def write(
        self,
        rows: Floats,
        content: npt.NDArray[np.uint64],
        reasons: Sequence[str | None],
        traits: Sequence[Traits | None],
    ) -> None:
        """Append a batch.

        Args:
            rows: float32, (b, entries of the embedding and of all further outputs); those of samples that failed are
                ignored.
            content: (b,) uint64 digests of the decoded samples.
            reasons: b times None, or why that sample failed.
            traits: b times how that sample was encoded, or None.
        """
        here = slice(self.done, self.done + len(rows))
        with _resumable(self.path, self._worth_keeping):
            self._file["rows"][here] = rows
            self._file["content"][here] = content
            self._file["traits"][here] = [one.encode() if one else b"" for one in traits]
            self._file["status"][here] = [OK if reason is None else FAILED for reason in reasons]
            self._file["reason"][here] = [_short(reason or "") for reason in reasons]
            self.done = here.stop
            due = time.monotonic() - self._last_checkpoint >= CHECKPOINT_SECONDS
            if due or self.done == len(self._ids):
                self._checkpoint()

    def failed(self) -> list[int]:
        """Return the numbers of the samples that failed so far."""
        numbers: list[int] = np.flatnonzero(self._file["status"][: self.done] == FAILED).tolist()
        return numbers

    def failures(self) -> list[tuple[str, str]]:
        """Return (id, reason) of the samples that failed so far."""
        failed = self.failed()
        reasons = self._file["reason"][: self.done][failed] if failed else []
        return [(self._ids[row], reason.decode()) for row, reason in zip(failed, reasons, strict=True)]

    def forget(self, row: int) -> None:
        """Count the rows from this one on as not done."""
        self.done = row
        with _resumable(self.path, True):
            self._checkpoint()

    def finish(
        self,
        identity: Identity,
        target: Path | None = None,
        *,
        labels: Sequence[str] | None = None,
        prompts: Sequence[str] | None = None,
        progress: Progress = silent,
    ) -> None:
        """Copy the good rows to a whole cache, put it in place, and remove the unfinished one.

        Args:
            identity: what the rows were made of.
            target: where the cache goes; its own path when left out.
            labels: the samples' classes, one for every id.
            prompts: the samples' prompts, one for every id.
            progress: told how far the copying is.
        """
        new = self.path.with_name(f".{self.path.name}.new")
        with _resumable(self.path, self._worth_keeping), _removed_on_error(new):
            _check_room(self.path, self._bytes)
            with h5py.File(new, "w") as file:
                good = self._file["status"][:] == OK
                self._describe(file, identity, good, {"labels": labels, "prompts": prompts})
                self._copy(file, good, progress)
            _sync(new)
            new.replace(target or self.path)
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
        with suppress(OSError, RuntimeError) if error else _resumable(self.path, self._worth_keeping):
            self.close()
        if error and not self._worth_keeping:
            self.part.unlink(missing_ok=True)

    @property
    def _worth_keeping(self) -> bool:
        """Whether the unfinished cache spares the next run any work."""
        return self._checked_in > 0 and not self._once

    def _resume(self) -> h5py.File | None:
        """Open the unfinished cache if it is of this key and sound."""
        try:
            file = h5py.File(self.part, "r+")
        except OSError:  # there is none, or it is damaged
            return None
        try:
            same = file.attrs["kind"] == PARTIAL and file.attrs["key"] == self._key
            if same and file["rows"].shape == self._shape and 0 <= file["done"][0] <= len(self._ids):
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
            "rows": (self._shape, DTYPE),
            "content": ((n,), "uint64"),
            "status": ((n,), "uint8"),
            "reason": ((n,), f"S{REASON_BYTES}"),
            "traits": ((n,), f"S{TRAITS_BYTES}"),
            "done": ((1,), "int64"),
        }
        with _removed_on_error(new):
            with h5py.File(new, "w") as file:
                for name, (shape, dtype) in layouts.items():
                    _fixed(file, name, shape, dtype)
                file["done"][0] = 0
                file.attrs["key"] = self._key
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
        self._checked_in = self.done
        self._last_checkpoint = time.monotonic()

    def _describe(
        self,
        file: h5py.File,
        identity: Identity,
        good: npt.NDArray[np.bool_],
        given: Mapping[str, Sequence[str] | None],
    ) -> None:
        """Write everything but the rows."""
        kept = np.flatnonzero(good).tolist()
        for name, texts in {"ids": self._ids, **given}.items():
            if texts is not None:
                _write_strings(file, name, [texts[row] for row in kept])
        failures = self.failures()
        _write_strings(file, "failures/ids", [name for name, _ in failures])
        _write_strings(file, "failures/reasons", [reason for _, reason in failures])
        profile = Profile.of(Traits.decode(one) for one in self._file["traits"][:][good])
        _write_strings(file, "profile", [json.dumps(profile.to_dict())])
        _write_strings(file, "recipe", [json.dumps(identity.recipe)])
        _write_strings(file, "source", [identity.source])
        file["content"] = self._file["content"][:][good]
        file.attrs["extractor"] = identity.extractor
        file.attrs["extractor_digest"] = identity.extractor_digest
        file.attrs["manifest_digest"] = identity.manifest.digest
        file.attrs["ignored"] = json.dumps(identity.manifest.ignored)
        file.attrs["key"] = identity.key
        file.attrs["schema"] = SCHEMA
        file.attrs["kind"] = WHOLE
        file.attrs["program"] = PROGRAM

    def _copy(self, file: h5py.File, good: npt.NDArray[np.bool_], progress: Progress) -> None:
        """Write the good rows, each output to its own dataset, with a digest of its bytes."""
        n, width = self._shape
        # Contiguous, not chunked: a disk that fills up while chunks are cached makes HDF5 crash at exit.
        targets = [
            _fixed(file, name if name == "embeddings" else f"outputs/{name}", (int(good.sum()), entries), DTYPE)
            for name, entries in self._widths.items()
        ]
        bounds = np.cumsum([0, *self._widths.values()]).tolist()
        digests = [hashlib.blake2b(digest_size=32) for _ in targets]
        file.flush()
        end, size = 0, block_rows(width)
        for start in range(0, n, size):
            here = slice(start, start + size)
            kept = self._file["rows"][here][good[here]]
            for number, (target, digest) in enumerate(zip(targets, digests, strict=True)):
                part = np.ascontiguousarray(kept[:, bounds[number] : bounds[number + 1]])
                target[end : end + len(part)] = part
                digest.update(part.data)
            end += len(kept)
            progress("write cache", min(here.stop, n), n)
        for target, digest in zip(targets, digests, strict=True):
            target.attrs["blake2b"] = digest.hexdigest()


@contextmanager
def _resumable(path: Path, kept: bool) -> Iterator[None]:
    """Disk errors as one sentence that tells where the finished part is, if one is kept."""
    with disk_errors(path, f"the finished part is kept in {part_of(path).name}") if kept else disk_errors(path):
        yield


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


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _short(reason: str) -> bytes:
    """Return the reason in at most `REASON_BYTES` bytes, cut between characters."""
    return reason.encode("utf-8", "replace")[:REASON_BYTES].decode("utf-8", "ignore").encode()


def _write_strings(file: h5py.File, name: str, strings: Sequence[str]) -> None:
    # File names on Linux need not be valid UTF-8; their bytes are kept as they are.
    data = [string.encode("utf-8", "surrogateescape") for string in strings]
    file.create_dataset(name, (len(data),), h5py.string_dtype(), data=data or None)
