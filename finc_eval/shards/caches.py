"""Shards of embeddings joined to the cache that one process would have made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from finc_eval.samples.shards import Shard, check_complete, check_same_set, ids_digest, joined
from finc_eval.samples.source import DIGEST_BYTES, Manifest, manifest_digest

SAMPLES = 4096
"""Samples whose ids and digests are read together."""

AGAIN = "make this shard again"


def merge_caches(paths: Sequence[Path], out: Path, force: bool, progress: Progress) -> EmbeddingCache:
    """Join the shards of one set; see `merge`."""
    first, shard, in_order = _checked(paths)
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
            new.header |= plain(CacheHeader.of(identity, Profile.of(_traits(in_order)), first.columns, first.outputs))
    return EmbeddingCache(out)


def _checked(paths: Sequence[Path]) -> tuple[CacheHeader, Shard, list[Path]]:
    """Check that files are all shards of one set, made alike.

    Returns:
        The header of the first file, its shard, and the files in the order of the samples.
    """
    first, readable = _header(paths[0])[0], 0
    shard = _shard(first, paths[0])
    places: list[tuple[int, int, Path]] = []
    named: list[tuple[str, Shard]] = []
    for path in paths:
        header, rows = _header(path)
        own = _shard(header, path)
        check_same_set(str(paths[0]), shard, str(path), own)
        if header.extractor_digest != first.extractor_digest:
            differ = "; ".join(changes(first.recipe, header.recipe))
            raise IncompatibleError(f"{paths[0]} and {path} were made in unlike ways ({differ}): make one again")
        if (header.columns, header.outputs) != (first.columns, first.outputs):
            raise IncompatibleError(
                f"{paths[0]} has the metadata {listed(first.columns) or 'of none'}, and {path} "
                f"{listed(header.columns) or 'none'}: make one again, with the same --metadata"
            )
        readable += rows
        places.append((own.start, own.stop, path))
        # The texts of the first one, so that a thousand shards do not hold a thousand copies.
        named.append((str(path), replace(own, ids=shard.ids, metadata=shard.metadata, command=shard.command)))
    check_complete(joined(named))
    if not readable:
        raise DataError(f"none of the {shard.n:,} samples of {first.source} can be read: repair or replace them")
    return first, shard, [path for _, _, path in sorted(places)]


def _header(path: Path) -> tuple[CacheHeader, int]:
    with _opened(path) as file, content_of(path, AGAIN):
        return structured(CacheHeader, file.header, str(path)), len(file.stored("embeddings"))


def _shard(header: CacheHeader, path: Path) -> Shard:
    if header.shard is None:
        raise DataError(f"{path} holds a whole set, and merge joins shards of one set: leave it out")
    return header.shard


def _opened(path: Path) -> StoredFile:
    return StoredFile(path, WHOLE, CACHE_LAYOUT, AGAIN)


def _samples(paths: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
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


def _traits(paths: Sequence[Path]) -> Iterator[Traits]:
    for path in paths:
        with _opened(path) as file, content_of(path, AGAIN):
            traits = file.texts(TRAITS)
            for start in range(0, len(traits), SAMPLES):
                yield from [Traits.decode(one.encode("ascii")) for one in traits.between(start, start + SAMPLES)]
