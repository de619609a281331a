"""Files of an embedding cache: the finished one, the unfinished one beside it, and the lock of its writer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import h5py

from finc_eval.core.errors import UsageError
from finc_eval.core.locks import only_writer_of
from finc_eval.core.storage import PROGRAM, disk_errors, written_whole
from finc_eval.embeddings.cache import WHOLE, EmbeddingCache
from finc_eval.embeddings.hdf5 import write_columns
from finc_eval.embeddings.recipe import CACHE_LAYOUT


def part_of(path: Path) -> Path:
    """Return the path of the unfinished cache of `path`."""
    return path.with_name(f"{path.name}.part")


def whole_cache(path: Path, key: str) -> EmbeddingCache | None:
    """Open the cache at `path` if it has this key; return None if there is none, or if it may be replaced."""
    if not path.exists():
        return None
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name the file to write, such as {path / 'gen.h5'}")
    if not h5py.is_hdf5(path):
        raise UsageError(f"{path} already exists and is not a finc-eval embedding cache: choose another name")
    if _is_of_an_older_version(path):
        return None
    cache = EmbeddingCache(path)
    if cache.key == key:
        return cache
    cache.close()
    return None


def _is_of_an_older_version(path: Path) -> bool:
    """Return whether an older finc-eval wrote a cache here; it may be replaced, as one of other samples may."""
    with suppress(OSError, RuntimeError), h5py.File(path, "r") as file:
        ours = (file.attrs.get("program"), file.attrs.get("kind")) == (PROGRAM, WHOLE)
        return ours and int(file.attrs["schema"]) < CACHE_LAYOUT
    return False


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
