"""Baselines: bundles of what a promoted release was, which never change.

A history is a folder of bundles 0001, 0002, …, and of the verdicts on releases that were not promoted, in `refused`.
A bundle holds the samples' embeddings, the verdict, the kinds that it was judged by, and `baseline.json`, which has
digests of all and of the bundle before. A bundle is put in place whole, by one renaming, and nothing in it is ever
written again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from finc_eval.core.doors import PRIVATE_FILE, PRIVATE_FOLDER, copy_file, create_file, inside, open_file
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.reading import existing_file
from finc_eval.core.files.writing import new_file
from finc_eval.core.marks import CHECKSUM, read_sealed, seal
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import Record, plain, structure
from finc_eval.core.serialize import read_document
from finc_eval.core.storage import disk_errors, only_writer_of, write_text
from finc_eval.embeddings.array_files import SINGULAR
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.gates.verdict import Verdict
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.sets import OpenedSet

TYPE_NAME, KINDS_TYPE, LAYOUT = "baseline", "baseline-kinds", 1

RESTORE = "restore it, or promote a release anew"

STATED, JUDGED, KINDS, REFUSED = "baseline.json", "verdict.json", "kinds.tree", "refused"
"""Names of the files of a bundle, and of the folder of refused releases in a history."""


@dataclass(frozen=True)
class Baseline(Record):
    """Description of a bundle, by itself.

    Attributes:
        number: place in the history, from 1.
        parent: checksum of the bundle before; None for the first.
        anchor: checksum of the first bundle; None for the first itself.
        samples: name of the file of its samples.
        digests: SHA-256 of each file of the bundle, by name.
        n: number of samples.
        space: extractor of the embeddings, as name@digest.
        content: digest of the samples.
        overall: verdict that it was promoted with.
        reason: why it was promoted in spite of it; None if it passed.
        shares: share of each kind of the verdict.
        scores: its scores, by name.
        provenance: what made it.
    """

    number: int
    parent: str | None
    anchor: str | None
    samples: str
    digests: dict[str, str]
    n: int
    space: str
    content: str
    overall: str
    reason: str | None
    shares: dict[str, float]
    scores: dict[str, float]
    provenance: Provenance


@dataclass(frozen=True)
class Bundle:
    """A bundle on the disk."""

    folder: Path
    stated: Baseline
    checksum: str

    @classmethod
    def open(cls, folder: Path) -> Bundle:
        """Open a bundle, and check that none of its files was changed."""
        path = inside(folder, STATED)
        data = read_sealed(path, "a baseline", [TYPE_NAME], LAYOUT, RESTORE)
        bundle = cls(folder, structure(Baseline, data, str(path)), str(data[CHECKSUM]))
        digests, samples = bundle.stated.digests, bundle.stated.samples
        if {*digests} - {KINDS} != {samples, JUDGED} or "/" in samples or samples == KINDS:
            raise DataError(f"{path} has digests of {', '.join(digests)!r:.100}, not of its files: {RESTORE}")
        # Every name is checked before a file is read: no message may say what another file of this machine holds.
        for file, digest in [(inside(folder, name), digest) for name, digest in digests.items()]:
            if not file.exists() or digest_of(file) != digest:
                raise DataError(f"{file} was changed since its baseline was promoted: {RESTORE}")
        return bundle

    @property
    def samples(self) -> Path:
        """Path of its samples."""
        return inside(self.folder, self.stated.samples)

    @cached_property
    def kinds(self) -> KindTree | None:
        """Kinds of the reference that it was judged by; None if no limit was on them."""
        if KINDS not in self.stated.digests:
            return None
        with existing_file(inside(self.folder, KINDS), KINDS_TYPE, LAYOUT, RESTORE) as file:
            return KindTree.read(file)

    @cached_property
    def verdict(self) -> Verdict:
        """Verdict that it was promoted with."""
        return read_verdict(inside(self.folder, JUDGED))


def read_verdict(path: Path) -> Verdict:
    """Read a verdict."""
    return Verdict.from_dict(read_document(path, [Verdict.type_name]), str(path))


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_bundle(source: object) -> bool:
    """Return whether a set is the folder of a bundle."""
    return isinstance(source, str | Path) and (Path(source) / STATED).exists()


@contextmanager
def new_bundle(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes a bundle when the block ends well, and is removed otherwise.

    What a kill left of the same bundle is removed first.
    """
    temporary = folder.with_name(f".{folder.name}.tmp")
    with disk_errors(folder), only_writer_of(folder):
        if folder.exists():
            raise UsageError(f"{folder} exists, and a baseline never changes: judge the release anew, after that one")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(PRIVATE_FOLDER)
        try:
            yield temporary
            for file in temporary.iterdir():
                file.chmod(PRIVATE_FILE)
            temporary.replace(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def write_samples(opened: OpenedSet, folder: Path) -> str:
    """Write what a later gate needs of a set, and return the name of the file."""
    gen, title = opened.embeddings, opened.info().name
    stem = title if re.fullmatch(r"[\w-][\w. -]{0,60}", title) else "samples"  # what the set is called in later results
    if opened.sketch is not None:
        opened.sketch.save(folder / f"{stem}.h5")
        return f"{stem}.h5"
    if isinstance(gen, CachedEmbeddings):
        copy_file(gen.cache.path, folder / f"{stem}.h5")
        return f"{stem}.h5"
    if taken := sorted({"embeddings", "ids", *SINGULAR}.intersection(gen.columns)):
        raise UsageError(f"a baseline cannot keep a column called {taken[0]!r}: give it another name in all sets")
    columns = {name: np.array(gen.column(name)) for name in gen.columns}
    with create_file(folder / "rows") as scratch:
        rows = np.memmap(scratch, np.float32, "w+", shape=(gen.n, gen.dim))
    for batch in gen.batches():
        rows[batch.start : batch.start + len(batch.rows)] = batch.rows.cpu().numpy()
    arrays: dict[str, Any] = {"embeddings": rows, "ids": np.array(gen.ids_between(0, gen.n)), **columns}
    with (
        create_file(folder / f"{stem}.npz") as target,
        ZipFile(target, "w") as file,
    ):  # numpy.savez takes no array called "file"
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
    del rows, arrays
    (folder / "rows").unlink()
    return f"{stem}.npz"


def write_bundle(folder: Path, verdict: Verdict, opened: OpenedSet, parent: Bundle | None, reason: str | None) -> None:
    """Write a bundle of a release, whole or not at all."""
    with new_bundle(folder) as place:
        samples = write_samples(opened, place)
        files = [samples, JUDGED]
        if verdict.tree is not None:
            files.append(KINDS)
            with new_file(place / KINDS, KINDS_TYPE, LAYOUT) as file:
                verdict.tree.write(file)
        write_text(place / JUDGED, json.dumps(verdict.to_dict(), indent=1, allow_nan=False) + "\n")
        stated = Baseline(
            number=1 if parent is None else parent.stated.number + 1,
            parent=None if parent is None else parent.checksum,
            anchor=None if parent is None else parent.stated.anchor or parent.checksum,
            samples=samples,
            digests={name: digest_of(place / name) for name in files},
            n=opened.embeddings.n,
            space=opened.space,
            content=opened.embeddings.digest,
            overall=verdict.overall,
            reason=reason,
            shares={one.name: one.shares["gen"] for one in verdict.limits if one.shares},
            scores=verdict.scores.get("gen", {}),
            provenance=verdict.provenance,
        )
        write_text(place / STATED, json.dumps(seal(TYPE_NAME, LAYOUT, plain(stated)), indent=1) + "\n")
