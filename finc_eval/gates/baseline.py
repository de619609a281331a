"""`History`: the baselines of a generator, bundles of what a promoted release was, which never change.

A history is a folder of bundles 0001, 0002, …, and of the verdicts on releases that were not promoted, in `refused`.
A bundle holds the samples' embeddings, the verdict, the kinds that it was judged by, and `baseline.json`, which has
digests of all and of the bundle before. A bundle is put in place whole, by one renaming, and nothing in it is ever
written again.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from finc_eval.core.digest import sha256_of_file
from finc_eval.core.doors import copy_file, create_file, inside
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.stored import existing_file
from finc_eval.core.files.writing import new_file
from finc_eval.core.kept.folder import KeptFolder, check_digests, new_part
from finc_eval.core.kept.sealed import Sealed
from finc_eval.core.marks import text_digest
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.core.serialize import read_document
from finc_eval.core.storage import write_text
from finc_eval.core.words import join_words, plural
from finc_eval.embeddings.array_files import SINGULAR
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.embeddings.opened import OpenedSet
from finc_eval.embeddings.opening import digests_of, form_of, open_sets
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.gates.limit import Limit
from finc_eval.gates.sets import GEN, REF
from finc_eval.gates.verdict import Verdict
from finc_eval.partitions.counts import openers_of
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.sketches.opening import SetInput
from finc_eval.sketches.sketch import Sketch

TYPE_NAME, KINDS_TYPE, LAYOUT = "baseline", "baseline-kinds", 1

RESTORE = "restore it, or promote a release anew"
NEVER_CHANGES = "a baseline never changes: judge the release anew, after that one"

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


BASELINE = Sealed(Baseline, TYPE_NAME, LAYOUT, "a baseline", RESTORE)


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
        bundle = cls(folder, *BASELINE.read(path))
        digests, samples = bundle.stated.digests, bundle.stated.samples
        if {*digests} - {KINDS} != {samples, JUDGED} or "/" in samples or samples == KINDS:
            raise DataError(f"{path} has digests of {', '.join(digests)!r:.100}, not of its files: {RESTORE}")
        check_digests(folder, digests, f"was changed since its baseline was promoted: {RESTORE}")
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


def is_bundle(source: object) -> bool:
    """Return whether a set is the folder of a bundle."""
    return isinstance(source, str | Path) and (Path(source) / STATED).exists()


def write_samples(opened: OpenedSet[SetInput], folder: Path) -> str:
    """Write what a later gate needs of a set, and return the name of the file."""
    gen, title = opened.at_hand, opened.info().name
    stem = title if re.fullmatch(r"[\w-][\w. -]{0,60}", title) else "samples"  # what the set is called in later results
    if isinstance(opened.held, Sketch):
        opened.held.save(folder / f"{stem}.h5")
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


def write_bundle(
    folder: Path, verdict: Verdict, opened: OpenedSet[SetInput], parent: Bundle | None, reason: str | None
) -> None:
    """Write a bundle of a release, whole or not at all."""
    with new_part(folder, NEVER_CHANGES) as place:
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
            digests={name: sha256_of_file(place / name) for name in files},
            n=opened.at_hand.n,
            space=opened.space,
            content=opened.at_hand.digest,
            overall=verdict.overall,
            reason=reason,
            shares={limit.name: limit.shares["gen"] for limit in verdict.limits if limit.shares},
            scores=verdict.scores.get("gen", {}),
            provenance=verdict.provenance,
        )
        BASELINE.write(place / STATED, stated)


@dataclass(frozen=True)
class History:
    """The baselines of a generator."""

    folder: Path
    bundles: tuple[Bundle, ...]
    refused: tuple[Verdict, ...]

    @classmethod
    def open(cls, folder: str | Path) -> History:
        """Open a history, and check that each baseline is what was promoted, after the baseline before."""
        kept = _kept(folder)
        bundles = tuple(Bundle.open(kept.at(f"{name}/{STATED}").parent) for name in kept.numbered)
        parent: str | None = None
        for number, bundle in enumerate(bundles, 1):
            if (bundle.stated.number, bundle.stated.parent) != (number, parent):
                raise DataError(f"{bundle.folder} does not follow the baseline before it: restore what is missing")
            parent = bundle.checksum
        return cls(kept.path, bundles, tuple(read_verdict(kept.at(name)) for name in kept.names_in(REFUSED, ".json")))

    def check_begun(self) -> None:
        """Raise DataError before the first baseline is made."""
        if not self.bundles:
            raise DataError(f"{self.folder} has no baseline yet: make the first one with --first")

    def check_new(self) -> None:
        """Raise UsageError if the folder has other files than baselines."""
        _kept(self.folder).check_own()

    @property
    def latest(self) -> Bundle:
        """The baseline that the next release is compared with."""
        self.check_begun()
        return self.bundles[-1]

    @property
    def anchor(self) -> Bundle | None:
        """The first baseline, against which slow drift is seen; None as long as it is the latest."""
        return self.bundles[0] if len(self.bundles) > 1 else None

    def kinds_of(self, space: str) -> KindTree | None:
        """Return the kinds that the latest baseline was judged by, if it keeps them, for embeddings of this space."""
        return self.latest.kinds if space == self.latest.stated.space else None

    def never_fired(self, limits: tuple[Limit, ...]) -> tuple[str, ...]:
        """Return a sentence on the rules of a policy that no release has ever broken: they may be too wide to."""
        verdicts = [*(bundle.verdict for bundle in self.bundles), *self.refused]
        judged = [*limits, *(limit for verdict in verdicts for limit in verdict.limits)]
        fired = {limit.rule for limit in judged if limit.verdict == "regressed"}
        never = [rule for rule in dict.fromkeys(limit.rule for limit in limits) if rule not in fired]
        if not never or not verdicts:
            return ()
        return (f"never fired in {plural(len(verdicts) + 1, 'verdict')} of {self.folder.name}: {join_words(never)}",)

    def notes_on(self, limits: tuple[Limit, ...], ref: str) -> tuple[str, ...]:
        """Return which limits never fired, and a warning unless the latest baseline's reference had this digest."""
        same = self.latest.verdict.sets[REF].digest == ref
        return (*self.never_fired(limits), *([] if same else ["the baseline was promoted with another reference"]))

    def refuse_latest(self, gen: object, extractor: AnyExtractor, run: Run) -> None:
        """Raise UsageError for a release that is the latest baseline already; its samples are not embedded."""
        samples = samples_of(gen)
        if form_of(samples) != "samples" or not self.bundles:
            self.opened(gen, extractor, run)
            return
        parent = self.bundles[-1]
        if parent.stated.content == digests_of({"gen": samples}, extractor, [parent.stated.space])["gen"]:
            raise self._is_latest()

    def _is_latest(self) -> UsageError:
        return UsageError(f"this release is the latest baseline already, {self.bundles[-1].folder}: pass a new one")

    def opened(self, gen: object, extractor: AnyExtractor, run: Run) -> OpenedSet[SetInput]:
        """Open a release that may become the next baseline."""
        parent = self.bundles[-1] if self.bundles else None
        spaces = () if parent is None else (parent.stated.space,)
        samples = samples_of(gen)
        opened = open_sets({"gen": samples}, openers_of(), extractor, run, spaces)["gen"]
        is_parents = isinstance(samples, Path) and parent is not None and samples == parent.samples
        if parent is not None and (is_parents or parent.stated.content == opened.at_hand.digest):
            raise self._is_latest()
        return opened

    def promote(
        self, verdict: Verdict, gen: object, *, reason: str | None = None, extractor: AnyExtractor = None
    ) -> Path | None:
        """Make a release the next baseline, if it passed or there is a reason; otherwise keep its verdict alone.

        Return the folder of the new baseline; None if the release was refused.
        """
        if verdict.overall != "pass" and not reason:
            # The same release, judged again by the same policy, counts once.
            name = text_digest(f"{verdict.sets[GEN].digest} {verdict.signature}")
            write_text(_kept(self.folder).at(f"{REFUSED}/{name}.json"), verdict.to_json() + "\n")
            return None
        opened = self.opened(gen, extractor, Run.of(None))
        if opened.info().digest != verdict.sets[GEN].digest:
            raise UsageError("these samples were not judged: judge them as they are now, and promote them")
        folder = self.folder / f"{len(self.bundles) + 1:04}"
        parent = self.bundles[-1] if self.bundles else None
        write_bundle(folder, verdict, opened, parent, None if verdict.overall == "pass" else reason)
        return folder


def is_history(source: object) -> bool:
    """Return whether a set is the folder of a history that has a baseline."""
    if not isinstance(source, str | Path):
        return False
    return any(is_bundle(Path(source, name)) for name in _kept(source).numbered)


def samples_of(source: object) -> object:
    """Return the path of the samples of a bundle, or of the latest baseline of a history; any other set as it is."""
    if is_bundle(source):
        return Bundle.open(Path(str(source))).samples
    return History.open(str(source)).latest.samples if is_history(source) else source


def _kept(folder: str | Path) -> KeptFolder:
    """Return a history as a folder to which commands add."""
    return KeptFolder(Path(folder), (REFUSED,))
