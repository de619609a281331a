"""Files of an embedding cache: the finished one and the unfinished one beside it, with one writer at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import h5py

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.locks import only_writer_of
from finc_eval.core.storage import disk_errors, written_whole
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.hdf5 import write_columns, write_strings
from finc_eval.embeddings.recipe import Identity, origin_of


def part_of(path: Path) -> Path:
    """Return the path of the unfinished cache of `path`."""
    return path.with_name(f"{path.name}.part")


def whole_cache(
    path: Path, key: str, origin: str = "", force: bool = False, n: int | None = None
) -> EmbeddingCache | None:
    """Open the cache at `path` if it has this key; return None if there is none, or if it may be replaced.

    Args:
        path: path of the cache.
        key: digest of what the rows are to be made of.
        origin: set and extractor, which may replace their own embeddings, finished or not; "" may replace none.
        force: whether any file may be replaced.
        n: size of the subset that was asked for, which may not replace a larger one; None for the whole set.

    Raises:
        UsageError: a folder, another file or the embeddings of another set would be lost.
        DataError: the cache is damaged, or of another layout.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name the file to write, such as {path / 'gen.h5'}")
    if path.exists() and (cache := _at(path, force)):
        if cache.key == key:
            return cache
        with cache:
            what = f"the embeddings of {cache.source} by {cache.extractor}"
            larger = n is not None and cache.n + len(cache.failures) > n
            own = "" if larger else origin_of(cache.source, cache.extractor)
        _refuse_loss(path, what, own, origin, force)
    elif (unfinished := _unfinished(path)) and unfinished[0] != key:
        own = unfinished[1] if n is None else ""
        _refuse_loss(part_of(path), "unfinished embeddings of other samples", own, origin, force)
    return None


def copied_cache(cached: Path, path: Path, identity: Identity) -> bool:
    """Copy the cache of the same key from the folder of caches, if there is one; return whether there is."""
    try:
        cache = whole_cache(cached, identity.key)
    except (DataError, UsageError):
        cache = None
    if cache is None:
        return False
    cache.close()
    with written_whole(path) as temporary:
        shutil.copyfile(cached, temporary)
        with h5py.File(temporary, "r+") as file:
            # The same samples may have been embedded from another place.
            del file["source"]
            write_strings(file, "source", [identity.source])
    return True


def _at(path: Path, force: bool) -> EmbeddingCache | None:
    """Open the cache at a path; None for another or a damaged file that may be replaced."""
    if not h5py.is_hdf5(path) and not force:
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


def _unfinished(path: Path) -> tuple[str, str] | None:
    """Return key and origin of the unfinished cache of `path`; None if there is none that can be read."""
    with suppress(OSError, KeyError), h5py.File(part_of(path), "r") as file:
        return str(file.attrs["key"]), file.attrs["origin"].decode()
    return None


def _refuse_loss(path: Path, what: str, own: str, origin: str, force: bool) -> None:
    if not force and (not origin or own != origin):
        raise UsageError(
            f"{path} holds {what}, which would be lost: choose another output file, or pass --force "
            "(in Python force=True)"
        )


def with_columns(cache: EmbeddingCache, columns: Mapping[str, Sequence[str]]) -> EmbeddingCache:
    """Return a cache with these columns of metadata, one text a row, in place of those of the same names.

    Its file is replaced by a copy with them, unless it has them already.
    """
    if all(name in cache.columns and cache.column(name) == list(values) for name, values in columns.items()):
        return cache
    path = cache.path
    with only_writer(path), written_whole(path) as temporary:
        shutil.copyfile(path, temporary)
        with h5py.File(temporary, "r+") as file:
            write_columns(file, columns)
    return EmbeddingCache(path)


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold the lock that makes this process the only one to write `path`."""
    with ExitStack() as held:
        with resumable(path, part_of(path).exists()):
            held.enter_context(only_writer_of(path))
        yield


@contextmanager
def resumable(path: Path, kept: bool) -> Iterator[None]:
    """Turn disk errors into one sentence, which says where the finished part is if it is kept."""
    with disk_errors(path, f"the finished part is kept in {part_of(path).name}") if kept else disk_errors(path):
        yield
