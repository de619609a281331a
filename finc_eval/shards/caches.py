"""Shards of embeddings joined to the cache that one process would have made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.files.copying import join_content
from finc_eval.core.files.front import file_type
from finc_eval.core.files.reading import StoredFile, content_of
from finc_eval.core.files.writing import new_file
from finc_eval.core.progress import Progress
from finc_eval.core.record import plain, structured
from finc_eval.core.words import listed
from finc_eval.embeddings.cache import WHOLE, EmbeddingCache
from finc_eval.embeddings.files import only_writer, whole_cache
from finc_eval.embeddings.recipe import CACHE_LAYOUT, CacheHeader, Identity, changes
from finc_eval.embeddings.whole_file import DIGESTS, FAILED, TRAITS
from finc_eval.samples import Traits
from finc_eval.samples.profile import Profile
from finc_eval.samples.shards import Shard, check_same_set, ids_digest
from finc_eval.samples.source import DIGEST_BYTES, Manifest, manifest_digest
from finc_eval.shards.listing import ShardList

SAMPLES = 4096
"""Samples whose ids and digests are read together."""

AGAIN = "make this shard again"


def merge_caches(paths: Iterable[Path], out: Path, force: bool, progress: Progress) -> EmbeddingCache:
    """Join the shards of one set; see `merge`."""
    with ShardList() as in_order:
        first, shard = _checked(paths, in_order)
        if ids_digest(name for name, _ in _samples(in_order)) != shard.ids:
            raise DataError(f"the ids in the shards of {first.source} are not those of the set: make all of them again")
        manifest = Manifest("shards", shard.n, manifest_digest(_samples(in_order)), first.ignored, shard.metadata)
        identity = Identity(first.source, manifest, first.extractor, first.recipe)
        with only_writer(out):
            cache = whole_cache(out, identity.key, identity.origin, force)
            if cache is not None:
                return cache
            if force and out.exists() and file_type(out) != WHOLE:
                out.unlink()
            with new_file(out, WHOLE, CACHE_LAYOUT) as new:
                for done in join_content(in_order, _opened, new, (DIGESTS, FAILED, TRAITS)):
                    progress("merge", done, len(in_order))
                profile = Profile.of(_traits(in_order))
                new.header |= plain(CacheHeader.of(identity, profile, first.columns, first.outputs))
    return EmbeddingCache(out)


def _checked(paths: Iterable[Path], files: ShardList) -> tuple[CacheHeader, Shard]:
    """Check that files are all shards of one set, made alike, and list them.

    Returns:
        The header of the first file, and its shard.
    """
    remaining = iter(paths)
    first_path = next(remaining)
    first, readable = _header(first_path)
    shard = _shard(first, first_path)
    files.add(first_path, shard)
    for path in remaining:
        header, rows = _header(path)
        own = _shard(header, path)
        check_same_set(str(first_path), shard, str(path), own)
        if header.extractor_digest != first.extractor_digest:
            differ = "; ".join(changes(first.recipe, header.recipe))
            raise IncompatibleError(f"{first_path} and {path} were made in unlike ways ({differ}): make one again")
        if (header.columns, header.outputs) != (first.columns, first.outputs):
            raise IncompatibleError(
                f"{first_path} has the metadata {listed(first.columns) or 'none'}, and {path} "
                f"{listed(header.columns) or 'none'}: make one again, with the same --metadata"
            )
        readable += rows
        files.add(path, own)
    files.check()
    if not readable:
        raise DataError(f"none of the {shard.n:,} samples of {first.source} can be read: repair or replace them")
    return first, shard


def _header(path: Path) -> tuple[CacheHeader, int]:
    with _opened(path) as file, content_of(path, AGAIN):
        return structured(CacheHeader, file.header, str(path)), len(file.stored("embeddings"))


def _shard(header: CacheHeader, path: Path) -> Shard:
    if header.shard is None:
        raise DataError(f"{path} holds a whole set, and merge joins shards of one set: leave it out")
    return header.shard


def _opened(path: Path) -> StoredFile:
    return StoredFile(path, WHOLE, CACHE_LAYOUT, AGAIN)


def _samples(paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield the id and the content digest of each sample, also of those that could not be read."""
    for path in paths:
        with _opened(path) as file, content_of(path, AGAIN):
            digests = file.rows(DIGESTS, None, DIGEST_BYTES, dtype="|u1")
            failed = file.array(FAILED, None, dtype="<i8")
            good, bad = file.texts("ids"), file.texts("failures/ids", len(failed))
            if len(good) + len(failed) != len(digests) or (np.diff(failed, prepend=-1) < 1).any():
                raise ValueError("its numbers of samples differ")
            for start in range(0, len(digests), SAMPLES):
                contents = digests.between(start, start + SAMPLES)
                before, after = np.searchsorted(failed, (start, start + len(contents))).tolist()
                names = good.between(start - before, start + len(contents) - after)
                for number, name in zip(failed[before:after].tolist(), bad.between(before, after), strict=True):
                    names.insert(number - start, name)
                yield from zip(names, (one.tobytes() for one in contents), strict=True)


def _traits(paths: Iterable[Path]) -> Iterator[Traits]:
    for path in paths:
        with _opened(path) as file, content_of(path, AGAIN):
            traits = file.texts(TRAITS)
            for start in range(0, len(traits), SAMPLES):
                yield from [Traits.decode(one.encode("ascii")) for one in traits.between(start, start + SAMPLES)]
