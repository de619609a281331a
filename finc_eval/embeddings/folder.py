"""The folder of embedding caches: what is in it, whether it still holds, and how to be rid of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import h5py

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.core.storage import PROGRAM
from finc_eval.embeddings.cache import PARTIAL, WHOLE, EmbeddingCache
from finc_eval.embeddings.recipe import Identity, Recipe, changes
from finc_eval.embeddings.writer import lock_of, only_writer, part_of
from finc_eval.extractors.card import Card
from finc_eval.samples import open_source
from finc_eval.samples.tar import expand

State = Literal["whole", "unfinished", "unreadable"]

PART = ".part"


@dataclass(frozen=True)
class Entry:
    """One cache of the folder.

    Attributes:
        path: the file; of an unfinished cache, what it is to become.
        state: "whole"; "unfinished", to be resumed; or "unreadable", such as damaged or of an older version.
        size: bytes on disk.
        modified: seconds since 1970.
        n, dim, extractor, source: as of `EmbeddingCache`; None where nobody knows.
        source_is_there: whether something lies at `source`; None where the samples were no file.
        note: why it is unreadable.
    """

    path: Path
    state: State
    size: int
    modified: float
    n: int | None = None
    dim: int | None = None
    extractor: str | None = None
    source: str | None = None
    source_is_there: bool | None = None
    note: str | None = None


def cache_folder() -> Path:
    """Where caches lie that were given no name: $FINC_EVAL_CACHE, or ~/.cache/finc-eval/embeddings."""
    return Path(os.environ.get("FINC_EVAL_CACHE") or "~/.cache/finc-eval/embeddings").expanduser()


def entries(folder: Path | None = None) -> list[Entry]:
    """What the folder holds, the latest first."""
    where = folder or cache_folder()
    found = [entry_of(path) for path in _files(where)] if where.is_dir() else []
    return sorted(found, key=lambda entry: entry.modified, reverse=True)


def find(name: str, folder: Path | None = None) -> Path:
    """The one cache that this is the path of, or the beginning of the key of.

    Raises:
        FincEvalError: there is none, or more than one.
    """
    if Path(name).is_file():
        return Path(name)
    where = folder or cache_folder()
    found = [entry.path for entry in entries(where) if entry.path.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise FincEvalError(
            f"{name!r} is neither a cache file nor the beginning of a key in {where}: see finc-eval cache ls"
        )
    raise FincEvalError(f"{len(found)} keys in {where} begin with {name!r}: give more of it, or the path")


def verify(path: Path) -> str | None:
    """Read every row of a cache; return what is wrong with it, None if nothing is."""
    try:
        with EmbeddingCache(path) as cache:
            for rows in (None, *cache.outputs):
                with EmbeddingCache(path, rows) as part:
                    if damage := part.damage():
                        return damage
    except FincEvalError as error:
        return str(error)
    return None


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
    """Say why the cache would, or would not, be used again: which parts of its key have changed.

    Args:
        cache: the cache.
        samples: the set to ask about, as `open_source` takes it; where the cache's samples came from when left out.
        card: the extractor to ask about.
        recipe: what that extractor's numbers are made of, as of `finc_eval.embeddings.extract.recipe_of`.
        n: how many samples would be taken.
        seed: of that subset.
        progress: told how far the samples are read.

    Returns:
        One line for each part of the key that differs; none where the cache is the one that would be used.
    """
    source = cache.source if samples is None else samples
    now = open_source(source, clip=card.clip, n=n, seed=seed)  # type: ignore[arg-type]
    lines = changes(cache.recipe, recipe)
    manifest = now.manifest(progress)
    if manifest.digest != cache.manifest_digest:
        before, after = {*cache.ids, *(name for name, _ in cache.failures)}, set(now.ids)
        added, removed = len(after - before), len(before - after)
        same = "" if added or removed else f", though all {len(before)} names are the same"
        lines.append(f"samples: other bytes in {now.name} ({added} added, {removed} removed{same})")
    # All else as it was, so that the key differs by them alone.
    otherwise = replace(manifest, digest=cache.manifest_digest)
    if Identity(cache.source, otherwise, cache.extractor, cache.recipe).key != cache.key:
        lines.append(f"annotations: the labels or prompts of {now.name} are others")
    return lines


def remove(entry: Entry) -> int:
    """Delete a cache and what is unfinished of it; return the bytes that are free now.

    Raises:
        FincEvalError: another process is writing it.
    """
    with only_writer(entry.path):
        for path in (entry.path, part_of(entry.path)):
            path.unlink(missing_ok=True)
    lock_of(entry.path).unlink(missing_ok=True)
    return entry.size


def _files(folder: Path) -> Iterator[Path]:
    """The caches of a folder, whole or not; other files may lie there, and are nobody's business."""
    names = {path.name.removesuffix(PART) for path in folder.iterdir() if path.name.removesuffix(PART).endswith(".h5")}
    return (folder / name for name in names if _is_cache(folder / name))


def _is_cache(path: Path) -> bool:
    """Whether this is a cache: a whole one, of any version, an unfinished one, or one that is damaged."""
    try:
        with h5py.File(path if path.exists() else part_of(path), "r") as file:
            return file.attrs.get("program") == PROGRAM and file.attrs.get("kind") in (WHOLE, PARTIAL)
    except OSError:
        return path.suffix == ".h5"


def entry_of(path: Path) -> Entry:
    """What is known of one cache, whole or unfinished.

    Raises:
        FincEvalError: it is some other file.
    """
    path = path.with_name(path.name.removesuffix(PART))
    if not _is_cache(path):
        raise FincEvalError(f"{path} is no embedding cache: name one of finc-eval cache ls, or the file of another")
    files = [file for file in (path, part_of(path)) if file.exists()]
    size = sum(file.stat().st_blocks * 512 for file in files)
    modified = max((file.stat().st_mtime for file in files), default=0.0)
    if not path.exists():
        return Entry(path, "unfinished", size, modified)
    try:
        with EmbeddingCache(path) as cache:
            return Entry(
                path,
                "whole",
                size,
                modified,
                n=cache.n,
                dim=cache.dim,
                extractor=cache.extractor,
                source=cache.source,
                source_is_there=_is_there(cache.source),
            )
    except FincEvalError as error:
        return Entry(path, "unreadable", size, modified, note=str(error))


def _is_there(source: str) -> bool | None:
    """Whether the samples are where they were, all shards of them; None where they were no file."""
    if not Path(source).is_absolute():
        return None
    return Path(source).exists() or all(Path(shard).exists() for shard in expand(source))
