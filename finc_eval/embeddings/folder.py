"""List, verify, explain and delete the embedding caches of a folder."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.stored import file_type, is_foreign
from finc_eval.core.places import user_folder
from finc_eval.core.progress import Progress, silent
from finc_eval.embeddings.cache import WHOLE, EmbeddingCache
from finc_eval.embeddings.pictures import open_stated
from finc_eval.embeddings.recipe import Identity, Recipe, changes
from finc_eval.embeddings.writer import PART, only_writer, part_of
from finc_eval.extractors.card import Card
from finc_eval.samples.opening import open_source
from finc_eval.samples.shards import select_shard
from finc_eval.samples.tar import expand

State = Literal["whole", "unfinished", "unreadable"]

KEY_NAME = re.compile(r"[0-9a-f]{64}\.h5")  # name of a file in the folder of caches


@dataclass(frozen=True)
class FolderEntry:
    """One cache of the folder."""

    path: Path  # path of the file; for an unfinished cache, the path it will have
    state: State  # "whole"; "unfinished", which can be resumed; or "unreadable": damaged, or of an older version
    size: int  # bytes on disk
    modified: float  # time of the last change, in seconds since 1970
    n: int | None = None  # number of rows. This and the next three are None unless the state is "whole".
    dim: int | None = None  # number of entries of a row
    extractor: str | None = None  # name of the card
    source: str | None = None  # absolute path the samples were read from, or "array"
    source_is_there: bool | None = None  # whether `source` exists; None if the samples are not files of this machine
    note: str | None = None  # reason why it is unreadable


def cache_folder() -> Path:
    """Return the folder of caches without a given path: $FINC_EVAL_CACHE, or ~/.cache/finc-eval/embeddings."""
    return user_folder("embeddings")


def entries(folder: Path | None = None) -> list[FolderEntry]:
    """List the caches of a folder, latest first."""
    where = folder or cache_folder()
    files = [path.name.removesuffix(PART) for path in where.iterdir()] if where.is_dir() else []
    caches = [entry_of(where / name) for name in {*files} if name.endswith(".h5") and _is_cache(where / name)]
    return sorted(caches, key=lambda entry: entry.modified, reverse=True)


def find(name: str, folder: Path | None = None) -> Path:
    """Return the path of the one cache with this path, or whose key begins with this text."""
    if Path(name).is_file():
        return Path(name)
    where = folder or cache_folder()
    paths = [entry.path for entry in entries(where) if entry.path.name.startswith(name)]
    if len(paths) == 1:
        return paths[0]
    if not paths:
        raise UsageError(
            f"{name!r} is neither a cache file nor the beginning of a key in {where}: see finc-eval extract cache ls"
        )
    raise UsageError(f"{len(paths)} keys in {where} begin with {name!r}: give more of the key, or the path")


def verify(path: Path) -> str | None:
    """Read every row of a cache and return the first problem, or None."""
    try:
        with EmbeddingCache(path) as cache:
            return cache.damage()
    except DataError as error:
        return str(error).removeprefix(f"{path} is ")


def explain(
    cache: EmbeddingCache,
    samples: object | None,
    card: Card,
    recipe: Recipe,
    *,
    n: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> list[str]:
    """Explain why a cache would not be used again: list the parts of its key that have changed.

    `samples` are by default the source of the cache; the list is empty if the cache would be used.
    """
    if samples is None:
        now = open_stated(cache.source, clip=card.clip, n=n, seed=seed, reading=cache.reading)
    else:
        now = open_source(samples, clip=card.clip, n=n, seed=seed, **cache.reading.choices)  # type: ignore[arg-type]
    if cache.shard is not None:
        now, _ = select_shard(now, cache.shard.name)
    lines = changes(cache.recipe, recipe)
    manifest = now.manifest(progress)
    if manifest.digest != cache.manifest_digest:
        before, after = {*cache.ids, *(name for name, _ in cache.failures)}, set(now.ids)
        added, removed = len(after - before), len(before - after)
        same = "" if added or removed else f", though all {len(before)} names are the same"
        lines.append(f"samples: other bytes in {now.name} ({added} added, {removed} removed{same})")
    # Everything else as in the cache, so that only labels and prompts can change the key.
    otherwise = replace(manifest, digest=cache.manifest_digest)
    if Identity(cache.source, otherwise, cache.extractor, cache.recipe, cache.shard).key != cache.key:
        lines.append(f"annotations: {now.name} has other labels or prompts")
    return lines


def remove(entry: FolderEntry) -> int:
    """Delete a cache, finished or not, and return the number of bytes that it took."""
    with only_writer(entry.path):
        for path in (entry.path, part_of(entry.path)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                why = f"{path} cannot be deleted ({error.strerror}): check who may write to its folder"
                raise DataError(why) from error
    return entry.size


def _is_cache(path: Path) -> bool:
    """Return whether this is a cache: finished in any version, unfinished, or damaged."""
    if not path.exists():
        return part_of(path).exists()
    try:
        type_name = file_type(path)
    except DataError:  # it may not be read
        return KEY_NAME.fullmatch(path.name) is not None
    if type_name or path.suffix != ".h5":
        return type_name == WHOLE
    # A name that is a key is ours, whatever has become of its content.
    return KEY_NAME.fullmatch(path.name) is not None or not is_foreign(path)


def entry_of(path: Path) -> FolderEntry:
    """Describe one cache, finished or not."""
    path = path.with_name(path.name.removesuffix(PART))
    if not _is_cache(path):
        raise UsageError(
            f"{path} is not an embedding cache: name one that finc-eval extract cache ls lists, or its file"
        )
    files = [file for file in (path, part_of(path)) if file.exists()]
    size = sum(file.stat().st_blocks * 512 for file in files)
    modified = max((file.stat().st_mtime for file in files), default=0.0)
    if not path.exists():
        return FolderEntry(path, "unfinished", size, modified)
    try:
        with EmbeddingCache(path) as cache:
            source = cache.source
            entry = FolderEntry(path, "whole", size, modified, cache.n, cache.dim, cache.extractor, source)
    except DataError as error:
        return FolderEntry(path, "unreadable", size, modified, note=str(error))
    if not Path(source).is_absolute():
        return entry
    try:
        is_there = Path(source).exists() or all(Path(shard).exists() for shard in expand(source))
    except (OSError, ValueError, UsageError):  # a name that no system takes, or endless shards
        is_there = False
    return replace(entry, source_is_there=is_there)
