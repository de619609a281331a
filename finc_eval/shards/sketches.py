"""Sketches of shards, or of sets without common samples, added up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.front import file_type
from finc_eval.core.files.reading import existing_file
from finc_eval.core.progress import Progress
from finc_eval.core.record import structured
from finc_eval.samples.shards import check_complete, joined
from finc_eval.sketches.header import SKETCH, SKETCH_LAYOUT, SketchHeader
from finc_eval.sketches.sketch import Sketch


def merge_sketches(paths: Sequence[Path], out: Path, force: bool, progress: Progress) -> Sketch:
    """Add up sketches, one after the other; see `merge`."""
    sources = _checked(paths)
    if out.is_dir():
        raise UsageError(f"{out} is a folder: name the file to write")
    if out.exists() and not force and (file_type(out) != SKETCH or _header(out).sources != sources):
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


def _checked(paths: Sequence[Path]) -> tuple[str, ...]:
    """Check that no sample is in two sketches and that no shard is missing, and return the digests of the sets."""
    of: dict[str, Path] = {}
    named, n = [], 0
    for path in paths:
        header = _header(path)
        n += max(header.n.values())
        named += [(str(path), shard) for shard in header.shards]
        for source in header.sources:
            if source in of:
                raise DataError(f"{of[source]} and {path} are sketches of the same samples: leave one of them out")
            of[source] = path
    check_complete(joined(named))
    if not n:
        raise DataError(f"no sample is in any of the {len(paths)} sketches: merge them with those of the other shards")
    # A thousand shards of one set are one set, whose digest should not be a thousand digests.
    return (sha256_of(*sorted(of)),) if named else tuple(sorted(of))


def _header(path: Path) -> SketchHeader:
    with existing_file(path, SKETCH, SKETCH_LAYOUT) as file:
        return structured(SketchHeader, file.header, str(path))
