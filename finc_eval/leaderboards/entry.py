"""`Entry`: all that a board keeps of one model. Its size depends neither on samples nor on other models."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.kept.sealed import Sealed
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import NOT_IN_JSON, Record
from finc_eval.core.signature import Signature, SignatureText
from finc_eval.core.storage import PROGRAM
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.findings.finding import Finding
from finc_eval.findings.visible import Visible
from finc_eval.leaderboards.measures import Measure
from finc_eval.leaderboards.pictures import KeptPicture, ids_of_findings, kept_pictures, pictures_to_keep
from finc_eval.leaderboards.standings import run_label
from finc_eval.measures.registry import get_metric
from finc_eval.partitions.counts import Counted, Examples
from finc_eval.partitions.tests import Tally
from finc_eval.partitions.values import ValueCounts

LAYOUT = 3

ADD_AGAIN = "take it from a backup, or add the model again"


@dataclass(frozen=True)
class TrainingRun(Record):
    """One training run of a model, measured against the reference of a board.

    Attributes:
        info: description of its set of samples, with the digest of the embeddings or of the sketch.
        members: number of samples of each node of the tree of kinds.
        effects: factor by which the samples of each node inform less than independent samples.
        even: that factor if all kinds came in groups of the same sizes.
        within: number of samples in groups that are not larger than the largest with a member of the node.
        counted: number of samples that were counted: all, or the samples that a sketch holds.
        examples: samples of each node that show it.
        unmatched: how different it is from the reference by the kinds of the board, which compare it with others.
        by: numbers of samples by the values of a column; None if the board has no such table.
        findings: in what it differs from the reference, by name, the largest first; None where nobody looked.
        visible: what would have been found of it, by the number of models of the board; empty where nobody looked.
        own: shares from its samples and the reference alone, by key; empty for a run of an earlier version.
        share_floors: shares of as many samples of the reference against the rest of it, by key.
        columns: digest of the code of each registered column that was looked at, by name; "" where no digest holds it.
        found: the counted set, to name kinds by; None for a run that was read from a file.
    """

    info: SetInfo
    members: tuple[int, ...]
    effects: tuple[float, ...]
    even: tuple[float, ...]
    within: tuple[float, ...]
    counted: int
    examples: tuple[Examples, ...]
    unmatched: Measure
    measures: dict[str, Measure]
    by: ValueCounts | None = None
    findings: tuple[Finding, ...] | None = None
    visible: tuple[tuple[int, Visible], ...] = ()
    share_floors: dict[str, float] = field(default_factory=dict)
    own: dict[str, Measure] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    found: Annotated[Counted | None, *NOT_IN_JSON] = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.examples) != len(self.tally.members) or self.counted > self.info.n:
            raise DataError(f"its kinds are not those of {self.info.n:,} samples")

    @property
    def tally(self) -> Tally:
        """Number of samples of each node."""
        return Tally.of_lists(self.counted, self.members, self.effects, self.even, self.within)

    def floor(self, key: str) -> float | None:
        """Return what as many samples of the reference get by a number of the board; None if it is not known."""
        return self.measures[key].floor if key in self.measures else self.share_floors.get(key)


@dataclass(frozen=True)
class Entry(Record):
    """A model on a board.

    Attributes:
        runs: its training runs; most models have one.
        signature: reference, kinds, extractor and settings, which all entries of a board have in common.
        pictures: small pictures of samples of its first training run; None where nobody looked for them.
        pictures_ref: small pictures of samples of the reference that show in what the model differs from it.
    """

    name: str
    runs: tuple[TrainingRun, ...]
    warnings: tuple[str, ...]
    signature: SignatureText
    provenance: Provenance
    pictures: tuple[KeptPicture, ...] | None = None
    pictures_ref: tuple[KeptPicture, ...] = ()

    def __post_init__(self) -> None:
        if not self.runs:
            raise DataError("it has no training run")

    def with_pictures(self, info: SetInfo, ref: Tally, leaves: int) -> Entry:
        """Return the entry with pictures of its findings and kinds, most of those that it has more of.

        Args:
            info: the reference, whose samples show what the model lacks.
            ref: numbers of samples of the reference of each node.
            leaves: number of kinds.
        """
        first, tally = self.runs[0], self.runs[0].tally
        excess = tally.members[:leaves] / tally.n - ref.members[:leaves] / ref.n
        own, others = (ids_of_findings(first.findings or (), of_model=side) for side in (True, False))
        pictures = pictures_to_keep(first.info, first.examples, excess, own)
        return replace(self, pictures=pictures, pictures_ref=kept_pictures(info, others))

    def labels(self) -> list[str]:
        """Return a label for the set of each training run; the first has the name of the model."""
        return [run_label(self.name, number) for number in range(len(self.runs))]

    def floor(self, key: str) -> float | None:
        """Return the mean of the floors of its training runs by a number; None if one has none."""
        found = [floor for run in self.runs if (floor := run.floor(key)) is not None]
        return float(np.mean(found)) if len(found) == len(self.runs) else None

    def check_belongs(self, signature: Signature, where: str) -> None:
        """Refuse an entry of another board, or with numbers that this version computes differently."""
        unlike = self.signature.differences(signature)
        if unlike:
            raise IncompatibleError(
                f"{where} does not belong on this board: {'; '.join(unlike)} (the entry's value first): add the model "
                "again, with the reference and the settings of this board"
            )
        made = self.provenance.versions.get(PROGRAM, "0")
        for run in self.runs:
            for metric in run.measures:
                changed = [
                    version for version in get_metric(metric).numbers_changed_in if _version(made) < _version(version)
                ]
                if changed:
                    raise IncompatibleError(
                        f"{where} was made by {PROGRAM} {made}, and {metric} is another number from {changed[0]} on: "
                        "remove the model, and add it again"
                    )

    def shared(self) -> Entry:
        """Return the entry as it is kept: places outside the working folder have their name alone."""
        return replace(self, runs=tuple(replace(run, info=shareable(run.info)) for run in self.runs))


RENAMED = {"what": "kind", "share": "share_gen", "before": "share_ref"}
"""Keys of a finding by the names that they had in an earlier version."""


def _upgrade(data: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of an earlier version as this version writes it."""
    runs = [dict(run) for run in data["runs"]]
    for run in runs:
        found = run.get("findings") or ()
        if any("what" in finding for finding in found):
            run["findings"] = [{RENAMED.get(key, key): value for key, value in finding.items()} for finding in found]
    return data | {"runs": runs}


ENTRY = Sealed(Entry, "leaderboard-entry", LAYOUT, "an entry", ADD_AGAIN, _upgrade)


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall("[0-9]{1,9}", text)[:3]))


def shareable(info: SetInfo) -> SetInfo:
    """Return the description of a set as a board keeps it, which is passed on."""
    return replace(info, source=None if info.source is None else info.place)


DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
"""Names that Windows keeps for devices, whatever the suffix."""


def file_name(name: str) -> str:
    """Return the name of the file of a model: its own where a file can be called so, else with a digest."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:80].rstrip(".-")
    safe = f"model-{safe}" if DEVICE.match(safe) else safe
    same = safe != "" and safe == name and name == name.lower()  # some file systems ignore case
    return f"{safe}.json" if same else f"{safe or 'model'}-{sha256_of(name)[:8]}.json"
