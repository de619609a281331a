"""Files of an embedding cache: finished and unfinished, with one writer at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.front import file_type
from finc_eval.core.files.reading import StoredFile, copy_content
from finc_eval.core.files.writing import NewFile, new_file
from finc_eval.core.record import plain
from finc_eval.core.remote.mirror import refresh
from finc_eval.core.storage import disk_errors, lock_of, only_writer_of, remove_leftovers
from finc_eval.embeddings.cache import EXTRACT_AGAIN, WHOLE, EmbeddingCache
from finc_eval.embeddings.journal import new_of, title_of
from finc_eval.embeddings.recipe import CACHE_LAYOUT, Identity, column_array, origin_of

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
            own = "" if larger else origin_of(cache.source, cache.extractor)
        _refuse_loss(path, what, own, origin, force)
    elif (unfinished := title_of(part_of(path))) and unfinished.key != key:
        own = unfinished.origin if n is None else ""
        _refuse_loss(part_of(path), "unfinished embeddings of other samples", own, origin, force)
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


def _refuse_loss(path: Path, what: str, own: str, origin: str, force: bool) -> None:
    if not force and (not origin or own != origin):
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
    if all(name in cache.columns and cache.column(name) == list(values) for name, values in columns.items()):
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
    if any(one.exists() for one in (*remains, lock_of(path))):
        with suppress(DataError), only_writer(path):
            for one in remains:
                one.unlink(missing_ok=True)


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
