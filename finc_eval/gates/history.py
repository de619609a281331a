"""`History`: the baselines of a generator, one after the other, and how releases become the next one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from finc_eval.core.doors import inside
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.marks import text_digest
from finc_eval.core.run import Run
from finc_eval.core.storage import check_own_folder, write_text
from finc_eval.core.words import join_words, plural
from finc_eval.embeddings.opening import open_sets
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.gates.baseline import REFUSED, STATED, Bundle, is_bundle, read_verdict, write_bundle
from finc_eval.gates.sets import GEN
from finc_eval.gates.verdict import Limit, Verdict
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.sets import OpenedSet, countable_set

NUMBER = re.compile(r"[0-9]{4,}")
"""Name of the folder of a bundle."""


@dataclass(frozen=True)
class History:
    """The baselines of a generator."""

    folder: Path
    bundles: tuple[Bundle, ...]
    refused: tuple[Verdict, ...]

    @classmethod
    def open(cls, folder: str | Path) -> History:
        """Open a history, and check that each baseline is what was promoted, after the baseline before."""
        folder = Path(folder)
        found = sorted((one for one in _within(folder) if NUMBER.fullmatch(one.name)), key=lambda one: int(one.name))
        bundles = tuple(Bundle.open(inside(folder, f"{one.name}/{STATED}").parent) for one in found)
        parent: str | None = None
        for number, one in enumerate(bundles, 1):
            if (one.stated.number, one.stated.parent) != (number, parent):
                raise DataError(f"{one.folder} does not follow the baseline before it: restore what is missing")
            parent = one.checksum
        names = sorted(path.name for path in (folder / REFUSED).glob("*.json"))
        refused = tuple(read_verdict(inside(folder, f"{REFUSED}/{name}")) for name in names)
        return cls(folder, bundles, refused)

    def check_begun(self) -> None:
        """Raise DataError before the first baseline is made."""
        if not self.bundles:
            raise DataError(f"{self.folder} has no baseline yet: make the first one with --first")

    def check_new(self) -> None:
        """Raise UsageError if the folder has other files than baselines."""
        check_own_folder(self.folder, (REFUSED, *(one.folder.name for one in self.bundles)))

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
        verdicts = [*(one.verdict for one in self.bundles), *self.refused]
        judged = [*limits, *(limit for one in verdicts for limit in one.limits)]
        fired = {limit.rule for limit in judged if limit.verdict == "regressed"}
        never = [rule for rule in dict.fromkeys(limit.rule for limit in limits) if rule not in fired]
        if not never or not verdicts:
            return ()
        return (f"never fired in {plural(len(verdicts) + 1, 'verdict')} of {self.folder.name}: {join_words(never)}",)

    def opened(self, gen: object, extractor: AnyExtractor, run: Run) -> OpenedSet:
        """Open a release that may become the next baseline."""
        parent = self.bundles[-1] if self.bundles else None
        spaces = () if parent is None else (parent.stated.space,)
        samples = samples_of(gen)
        (opened,) = open_sets({"gen": samples}, countable_set, extractor, run, spaces).values()
        own = isinstance(samples, Path) and parent is not None and samples == parent.samples
        if parent is not None and (own or parent.stated.content == opened.embeddings.digest):
            raise UsageError(f"this release is the latest baseline already, {parent.folder}: pass a new one")
        return opened

    def promote(
        self,
        verdict: Verdict,
        gen: object,
        *,
        reason: str | None = None,
        extractor: AnyExtractor = None,
        run: Run | None = None,
    ) -> Path | None:
        """Make a release the next baseline, if it passed or there is a reason; otherwise keep its verdict alone.

        Return the folder of the new baseline; None if the release was refused.
        """
        if verdict.overall != "pass" and not reason:
            # The same release, judged again by the same policy, counts once.
            name = text_digest(f"{verdict.sets[GEN].digest} {verdict.signature}")
            write_text(inside(self.folder, f"{REFUSED}/{name}.json"), verdict.to_json() + "\n")
            return None
        opened = self.opened(gen, extractor, Run.of(run))
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
    return any(NUMBER.fullmatch(one.name) and is_bundle(one) for one in _within(Path(source)))


def samples_of(source: object) -> object:
    """Return the path of the samples of a bundle, or of the latest baseline of a history; any other set as it is."""
    if is_bundle(source):
        return Bundle.open(Path(str(source))).samples
    return History.open(str(source)).latest.samples if is_history(source) else source


def _within(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
