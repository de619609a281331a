"""`merge`: the shards of a set become the file that one process would have made."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.digest import sha256_of
from finc_eval.core.doors import with_home, without_links
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.files.copies import join_content
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.stored import StoredFile, check_type, content_of, existing_file, file_type
from finc_eval.core.files.writing import NewFile, new_file
from finc_eval.core.places import out_path
from finc_eval.core.progress import Progress, automatic
from finc_eval.core.record import plain, structure
from finc_eval.core.words import join_words
from finc_eval.embeddings.cache import WHOLE, EmbeddingCache
from finc_eval.embeddings.cells import rows_with_cells
from finc_eval.embeddings.keys import string_hashes
from finc_eval.embeddings.recipe import CACHE_LAYOUT, DIGESTS, ENCODINGS, FAILED, CacheHeader, Identity, changes
from finc_eval.embeddings.stored.cell_block import ROWS, VALUES, CellBlock, new_cells
from finc_eval.embeddings.writer import only_writer, whole_cache
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.profile import Profile
from finc_eval.samples.shards import Shard, check_complete, check_same_set, ids_digest, join_in_order, join_shards
from finc_eval.samples.source import DIGEST_BYTES, Manifest, manifest_digest
from finc_eval.sketches.sketch import Sketch
from finc_eval.sketches.stored import SKETCH, SKETCH_LAYOUT, SketchHeader


def merge(
    shards: Iterable[str | Path], out: str | Path, *, force: bool = False, progress: Progress = automatic
) -> EmbeddingCache | Sketch:
    """Join the shards of a set that `extract` or `finc-eval extract sketch` made, on any machines, and open the result.

    One process would have made the same embeddings: rows in the same order, ids, metadata, unreadable samples and
    key. Only the rows of networks may differ in their last digits, as they do between batch sizes. Whole sketches of
    sets without common samples may be merged as well: the result is the sketch of all sets together. Memory does not
    grow with the set, and for embeddings not with the number of shards.

    Args:
        shards: paths of the files, in any order. An iterator of very many is not held in memory.
        out: path of the file.
        force: whether `out` may replace any file; otherwise only what the same samples gave before.
        progress: called with the number of files that are joined.

    Raises:
        UsageError: `out` is one of the shards, or holds other work.
        DataError: shards are missing (`MissingShards` has the commands that make them), two have samples in common, or
            a file is damaged or not a shard.
        IncompatibleError: the files come from different sets, or were made in different ways.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> images = np.random.default_rng(0).integers(0, 256, (50, 8, 8), dtype=np.uint8)
        >>> np.savez("gen.npz", images)
        >>> parts = [fe.extract("gen.npz", "pixels", "gen.h5", shard=f"{i}/3").path for i in (1, 2, 3)]
        >>> parts[1].name
        'gen.2-of-3.h5'
        >>> fe.merge(parts, "gen.h5")
        EmbeddingCache('gen.npz', n=50, dim=2352, 'pixels')
    """
    if isinstance(shards, str | Path):
        raise UsageError(f"shards must be a list of paths, one or more, got {shards!r}")
    target = out_path(with_home(out))
    paths = _files(shards, target)
    first = next(paths, None)
    if first is None:
        raise UsageError("shards must be a list of paths, one or more, got none")
    paths = chain([first], paths)
    if file_type(first) == SKETCH:
        return merge_sketches([*paths], target, force, progress)
    check_type(first, str(first), WHOLE)
    return merge_caches(paths, target, force, progress)


def _files(shards: Iterable[str | Path], target: Path) -> Iterator[Path]:
    whole = without_links(target)
    for shard in shards:
        path = on_disk(with_home(shard))
        if path.resolve() == whole:
            raise UsageError(f"{target} is one of the shards, which the merged file would replace: choose another name")
        yield path


class ShardList:
    """Files of shards of one set: added in any order, and listed in the order of their samples.

    It is a temporary file, which the system removes even if the process is killed. What fits into the 2 MB that SQLite
    holds never reaches the disk.
    """

    def __init__(self) -> None:
        self._first: Shard | None = None
        self._len = 0
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute("CREATE TABLE files (path BLOB, first INT, last INT, start INT, stop INT)")
        self._table.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._table.close()

    def __len__(self) -> int:
        return self._len

    def __iter__(self) -> Iterator[Path]:
        """Yield the paths in the order of the samples."""
        for (path,) in self._in_order("path"):
            yield Path(os.fsdecode(path))

    def add(self, path: Path, shard: Shard) -> None:
        """Add the file of a shard, of the same division of the same set as all others."""
        self._first = self._first or shard
        with _disk_errors():
            values = (os.fsencode(path), shard.first, shard.last, shard.start, shard.stop)
            self._table.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?)", values)
        self._len += 1

    def check(self) -> None:
        """Raise DataError if samples are in two files, and MissingShards if some are in none."""
        assert self._first is not None
        shard, listed = self._first, self._in_order("path, first, last, start, stop")
        shards = (
            (os.fsdecode(path), replace(shard, first=first, last=last, start=start, stop=stop))
            for path, first, last, start, stop in listed
        )
        check_complete(join_in_order(shards))

    def _in_order(self, columns: str) -> Iterator[tuple[Any, ...]]:
        with _disk_errors():
            rows = self._table.execute(f"SELECT {columns} FROM files ORDER BY start, stop, path")
            yield from iter(rows.fetchone, None)  # from the cursor itself, it would be closed after its list


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise DataError(
            f"the list of shards cannot be kept in the folder of temporary files ({error}): free some space there, or "
            "name another folder in SQLITE_TMPDIR"
        ) from error


SAMPLES = 4096  # samples whose ids and digests are read together

AGAIN = "make this shard again"


def merge_caches(paths: Iterable[Path], out: Path, force: bool, progress: Progress) -> EmbeddingCache:
    """Join the shards of one set; see `merge`."""
    with ShardList() as in_order:
        first, shard = _check(paths, in_order)
        if ids_digest(name for name, _ in _samples(in_order)) != shard.ids:
            raise DataError(f"the ids in the shards of {first.source} do not match the set: make all of them again")
        manifest = Manifest("shards", shard.n, manifest_digest(_samples(in_order)), first.ignored, shard.metadata)
        identity = Identity(first.source, manifest, first.extractor, first.recipe)
        with only_writer(out):
            cache = whole_cache(out, identity.key, identity.origin, force)
            if cache is not None:
                return cache
            if force and out.exists() and file_type(out) != WHOLE:
                out.unlink()
            with new_file(out, WHOLE, CACHE_LAYOUT) as new:
                for done in join_content(in_order, _open, new, (DIGESTS, FAILED, ENCODINGS, VALUES, ROWS)):
                    progress("merge", done, len(in_order))
                    if done == len(in_order) and first.cells is not None:  # before the texts, as one process does
                        _join_cells(in_order, first.cells, new)
                profile = Profile.of(_encodings(in_order))
                new.header |= plain(CacheHeader.of(identity, profile, first.columns, first.outputs, first.cells))
    return EmbeddingCache(out)


def _check(paths: Iterable[Path], files: ShardList) -> tuple[CacheHeader, Shard]:
    """Check that files are all shards of one set, made alike; return the header and the shard of the first file."""
    remaining = iter(paths)
    first_path = next(remaining)
    first, shard, readable = _header(first_path)
    files.add(first_path, shard)
    for path in remaining:
        header, given, rows = _header(path)
        check_same_set(str(first_path), shard, str(path), given)
        if header.extractor_digest != first.extractor_digest:
            differ = "; ".join(changes(first.recipe, header.recipe))
            raise IncompatibleError(f"{first_path} and {path} were made in unlike ways ({differ}): make one again")
        if (header.columns, header.outputs) != (first.columns, first.outputs):
            raise IncompatibleError(
                f"{first_path} has the metadata {join_words(first.columns) or 'none'}, and {path} "
                f"{join_words(header.columns) or 'none'}: make one again, with the same --metadata"
            )
        if header.cells != first.cells:  # shards of two versions: their cells cannot be compared
            first = replace(first, cells=None)
        readable += rows
        files.add(path, given)
    files.check()
    if not readable:
        raise DataError(f"none of the {shard.n:,} samples of {first.source} can be read: repair or replace them")
    return first, shard


def _header(path: Path) -> tuple[CacheHeader, Shard, int]:
    with _open(path) as file, content_of(path, AGAIN):
        header, rows = structure(CacheHeader, file.header, str(path)), len(file.stored("embeddings"))
    if header.shard is None:
        raise DataError(f"{path} holds a whole set, and merge joins shards of one set: leave it out")
    return header, header.shard, rows


def _open(path: Path) -> StoredFile:
    return StoredFile(path, WHOLE, CACHE_LAYOUT, AGAIN)


def _samples(paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield the id and the content digest of each sample, also of those that could not be read."""
    for path in paths:
        with _open(path) as file, content_of(path, AGAIN):
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
                yield from zip(names, (digest.tobytes() for digest in contents), strict=True)


def _join_cells(paths: Iterable[Path], space: str, new: NewFile) -> None:
    """Write the cells that one process would have kept; each shard has the smallest hashes among its own ids."""
    with _open(first := next(iter(paths))) as file, content_of(first, AGAIN):
        shape = CellBlock(file, 0, space).shape
    names = (name for name, _ in _samples(paths))
    chosen = rows_with_cells((string_hashes(part) for part in iter(lambda: [*islice(names, SAMPLES)], [])), shape[0])
    before = rows_before = 0
    rows, kept = list[NDArray[np.int64]](), list[NDArray[np.bool_]]()
    for path in paths:
        with _open(path) as file, content_of(path, AGAIN):
            n, failed = len(file.stored(DIGESTS)), file.array(FAILED, None, dtype="<i8")
            block = CellBlock(file, n - len(failed), space)
            own = block.rows()
            # Samples that failed have numbers, and no rows.
            numbers = own + np.searchsorted(failed - np.arange(len(failed)), own, side="right")
            kept.append(np.isin(before + numbers, chosen))
            rows.append(rows_before + own[kept[-1]])
            before, rows_before = before + n, rows_before + n - len(failed)
    values = new_cells(new, np.concatenate(rows), *shape)
    for path, of_shard in zip(paths, kept, strict=True):
        with _open(path) as file, content_of(path, AGAIN):
            stored = CellBlock(file, len(file.stored("embeddings")), space).values
            for start in range(0, len(stored), stored.together):
                values.append(stored.between(start, start + stored.together)[of_shard[start : start + stored.together]])


def _encodings(paths: Iterable[Path]) -> Iterator[Encoding]:
    for path in paths:
        with _open(path) as file, content_of(path, AGAIN):
            encodings = file.texts(ENCODINGS)
            for start in range(0, len(encodings), SAMPLES):
                yield from [
                    Encoding.decode(encoded.encode("ascii")) for encoded in encodings.between(start, start + SAMPLES)
                ]


def merge_sketches(paths: Sequence[Path], out: Path, force: bool, progress: Progress) -> Sketch:
    """Add up sketches in order; see `merge`."""
    sources = _sources(paths)
    if out.is_dir():
        raise UsageError(f"{out} is a folder: name the file to write")
    if out.exists() and not force and (file_type(out) != SKETCH or _sketch_header(out).sources != sources):
        raise UsageError(f"{out} holds other work, which would be lost: choose another name, or pass --force")
    total = Sketch.load(paths[0])
    for done, path in enumerate(paths[1:], start=2):
        total = total + Sketch.load(path)
        progress("merge", done, len(paths))
    total.sources = sources
    if force and out.exists() and file_type(out) != SKETCH:
        out.unlink()
    total.save(out)
    return total


def _sources(paths: Sequence[Path]) -> tuple[str, ...]:
    """Check that no sample is in two sketches and that no shard is missing, and return the digests of the sets."""
    of: dict[str, Path] = {}
    named, n = [], 0
    for path in paths:
        header = _sketch_header(path)
        n += max(header.n.values())
        named += [(str(path), shard) for shard in header.shards]
        for source in header.sources:
            if source in of:
                raise DataError(f"{of[source]} and {path} are sketches of the same samples: leave one of them out")
            of[source] = path
    check_complete(join_shards(named))
    if not n:
        raise DataError(
            f"no sample is in any of the {len(paths)} sketches: merge the sketches of the other shards, too"
        )
    # A thousand shards of one set are one set, whose digest should not be a thousand digests.
    return (sha256_of(*sorted(of)),) if named else tuple(sorted(of))


def _sketch_header(path: Path) -> SketchHeader:
    with existing_file(path, SKETCH, SKETCH_LAYOUT) as file:
        return structure(SketchHeader, file.header, str(path))
