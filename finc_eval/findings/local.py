"""Local evidence of two sets: what the samples looked at show, with their ids, and as findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.cells import Cells
from finc_eval.findings.causes import Held, Members
from finc_eval.findings.finding import Finding
from finc_eval.local_evidence.find import PERMUTATIONS, find_local
from finc_eval.local_evidence.inputs import LocalInput
from finc_eval.local_evidence.result import SHOWN, FoundPart, Heat, LocalPart
from finc_eval.naming.looks import MOST_EXAMPLES
from finc_eval.naming.measured import MeasuredSets, PictureLooks, looked_rows, measure_sets
from finc_eval.naming.repeated import REPEATED, digests_of
from finc_eval.numerics.exchanges import unit_numbers
from finc_eval.numerics.inference import BESIDE_ALPHA

UNLIKE = {
    "more": "a part that hardly any reference picture has",
    "less": "a part that hardly any generated picture has",
}
"""Words for a part of pictures that nothing names, by side."""


@dataclass(frozen=True)
class PartOfSet(FoundPart):
    """A part of a set of pictures that hardly any picture of the other set is like, or a change of all pictures.

    Attributes:
        kind: what shows it: "patches" of pictures, "likeness" of pictures to themselves, near "pairs", "orientation".
        name: what these pictures have, such as "two halves that mirror each other"; "on average" for a change of all
            pictures; None if nothing names it.
        side: "more" for a part of the generated set, "less" for a part of the reference that the generated set lacks.
        p_value: p-value of "both sets are samples of one law" by this part, adjusted for all that was looked at.
        share_gen: share of the generated set that is flagged; None for a change of all pictures.
        share_ref: share of the reference that is flagged; None for a change of all pictures.
        at_least: lower end of the share of the part, 2.24 standard errors below `share`; None for a change of all.
        samples: ids of the flagged samples, the surest first, in the set that has more of the part.
        others: ids of samples of the other set that are most like them.
        heat: how much each window of the first samples says so, row by row of the grid over the middle square that the
            network sees, in standard deviations of the scores of pictures; empty if not of patches.
    """

    samples: tuple[str, ...]
    others: tuple[str, ...] = ()
    heat: tuple[Heat, ...] = ()

    @property
    def words(self) -> str:
        """The name, or words for a part that nothing names; see `have_part`."""
        return self.name or UNLIKE[self.side]

    @property
    def owner(self) -> str:
        """Label of the set that has more of it."""
        return _owner(self.side)

    def examples(self, label: str) -> tuple[str, ...]:
        """Return ids of the samples of a set that a page shows: the surest, or those of the other set like them."""
        return self.samples[:SHOWN] if label == self.owner else self.others

    @property
    def finding(self) -> Finding:
        """The part as a finding, with its least share."""
        least, is_more = self.at_least or 0.0, self.side == "more"
        return Finding(
            self.words, "part", False, least * is_more, least * (not is_more), self.p_value,
            ids=self.samples[:MOST_EXAMPLES],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class LocalParts:
    """Local evidence of two sets: its p-value, and parts with the samples of `looked_rows` that they flag.

    Attributes:
        p_value: p-value of "both sets are samples of one law"; None if nothing local was looked at.
        parts: parts, with the samples of `looked_rows` that they flag.
        notes: why cells of one set were not compared.
        units: number of independent samples that were looked at, by label.
        elsewhere: share of each further set that has each part, by label, where it is known.
    """

    p_value: float | None
    parts: tuple[tuple[PartOfSet, Members], ...] = ()
    notes: tuple[str, ...] = ()
    units: Mapping[str, int] = field(default_factory=dict)
    elsewhere: tuple[Mapping[str, float], ...] = ()

    def held(self) -> list[Held]:
        """Return the parts that are said, of a least share of 1 %, where the sets differ at the level beside kinds.

        Near pairs are said as copies and repeats, which have their own test.
        """
        if self.p_value is None or self.p_value > BESIDE_ALPHA:
            return []
        return [
            hold_part(part, members)
            for part, members in self.parts
            if part.kind != "pairs" and part.p_value <= BESIDE_ALPHA and (part.at_least or 0.0) >= REPEATED
        ]


def hold_part(part: PartOfSet, members: Members) -> Held:
    """Return a part as a finding, with the samples of `looked_rows` that it flags."""
    examples = {label: part.examples(label) for label in members}
    return Held(part.finding, members, part.words, examples=examples, share=part.share or 0.0)


def find_parts(
    sets: Mapping[str, Embeddings],
    blocks: Mapping[str, NDArray[np.int64]] | None = None,
    seed: int = 0,
    run: Run | None = None,
    permutations: int = PERMUTATIONS,
    others: Mapping[str, tuple[Embeddings, PictureLooks | None]] = MappingProxyType({}),
    measured: MeasuredSets | None = None,
) -> LocalParts:
    """Look at the samples of `looked_rows` for local evidence; sets without cells and pictures are not looked at.

    Args:
        sets: embeddings, "gen" and "ref".
        blocks: block of each sample of paired sets, by label.
        seed: random seed.
        run: run, whose device is used.
        permutations: random permutations behind the p-value.
        others: further sets with what `measure_pictures` returns, by label, in which the parts of the generated set
            are looked for.
        measured: what `measure_sets` returns for these sets; default: they are measured.
    """
    looked = {label: looked_rows(samples) for label, samples in sets.items()}
    cells = _cells(sets, looked)
    absent = [samples.cells_absent for samples in sets.values() if samples.cells_absent]
    notes = (f"parts of pictures are compared without cells: {absent[0]}",) if len(absent) == 1 else ()
    _, of_sets = measure_sets(sets, run=Run.of(run)) if measured is None else measured
    pictures = {label: each.pictures for label, each in of_sets.items() if each.pictures is not None}
    if not cells and len(pictures) < len(sets):
        return LocalParts(None, notes=notes)
    taken = {label: cells[label].rows if cells else np.arange(len(rows)) for label, rows in looked.items()}
    rows = {label: looked[label][places] for label, places in taken.items()}
    digests = digests_of(sets, run)
    inputs = {
        label: LocalInput(
            cells=cells[label].values if cells else None,
            likeness=pictures[label].likeness[taken[label]] if label in pictures else None,
            embeddings=samples.rows_at(rows[label]).cpu().numpy(),
            flipped=_flipped(pictures.get(label), rows[label]),
            units=unit_numbers(samples.unit_keys())[rows[label]],
            blocks=None if blocks is None else blocks[label][rows[label]],
            digests=digests[label][rows[label]],
        )
        for label, samples in sets.items()
    }
    further = _further(others, cells)
    evidence = find_local(
        inputs["gen"], inputs["ref"], seed=seed, permutations=permutations, others=[*further.values()]
    )
    if evidence is None:
        return LocalParts(None, notes=notes)
    return LocalParts(
        evidence.p_value,
        tuple(_with_ids(part, sets, rows, looked) for part in evidence.parts),
        notes,
        {label: len(np.unique(each.units)) for label, each in inputs.items() if each.units is not None},
        tuple(_shares_elsewhere(part, further) for part in evidence.parts),
    )


def _further(
    others: Mapping[str, tuple[Embeddings, PictureLooks | None]], known: Mapping[str, Cells]
) -> dict[str, LocalInput]:
    """Return cells, likeness and orientation of further sets; sets without cells and likeness are left out."""
    spaces, found = {cells.space for cells in known.values()}, {}
    for label, (samples, pictures) in others.items():
        rows = looked_rows(samples)
        cells = None if samples.cells is None or samples.cells.space not in spaces else samples.cells.take(rows)
        places = np.arange(len(rows)) if cells is None else cells.rows
        likeness = None if pictures is None else pictures.likeness[places]
        flipped = _flipped(pictures, rows[places])
        if cells is not None or likeness is not None:
            found[label] = LocalInput(
                cells=None if cells is None else cells.values,
                likeness=likeness,
                embeddings=None if flipped is None else samples.rows_at(rows[places]).cpu().numpy(),
                flipped=flipped,
            )
    return found


def _shares_elsewhere(part: LocalPart, further: Mapping[str, LocalInput]) -> dict[str, float]:
    """Return the share of each further set that has a part, where its samples could be flagged."""
    found = zip(further.items(), part.elsewhere, strict=False)  # parts of the reference are not looked for
    return {
        label: len(rows) / (given.turned if part.kind == "orientation" else given.n)
        for (label, given), rows in found
        if rows is not None
    }


def _cells(sets: Mapping[str, Embeddings], rows: Mapping[str, NDArray[np.int64]]) -> dict[str, Cells]:
    """Return the cells of some samples of each set; empty unless all sets have cells that can be compared."""
    found = {label: cells for label, samples in sets.items() if (cells := samples.cells) is not None}
    if len(found) < len(sets) or len({cells.space for cells in found.values()}) > 1:
        return {}
    return {label: cells.take(rows[label]) for label, cells in found.items()}


def _flipped(pictures: PictureLooks | None, rows: NDArray[np.int64]) -> NDArray[np.float32] | None:
    """Return the embeddings of pictures upside down, NaN where they were not turned; None where none was."""
    if pictures is None or (turned := pictures.turned) is None:
        return None
    flipped = np.full((len(rows), turned.values.shape[1]), np.nan, np.float32)
    _, places, own = np.intersect1d(rows, turned.rows, return_indices=True)
    flipped[places] = turned.values[own]
    return flipped


def _with_ids(
    part: LocalPart,
    sets: Mapping[str, Embeddings],
    rows: Mapping[str, NDArray[np.int64]],
    looked: Mapping[str, NDArray[np.int64]],
) -> tuple[PartOfSet, Members]:
    """Return a part with ids, and which of the samples looked at it flags."""
    owner = _owner(part.side)
    other = next(label for label in sets if label != owner)
    flagged = rows[owner][list(part.samples)]
    members = {owner: np.isin(looked[owner], flagged), other: np.zeros(len(looked[other]), bool)}
    found = PartOfSet(
        part.kind, part.name, part.side, part.p_value, part.share_gen, part.share_ref, part.at_least,
        sets[owner].ids_at(flagged), sets[other].ids_at(rows[other][list(part.others)]), part.heat,
    )  # fmt: skip
    return found, members


def _owner(side: str) -> str:
    """Return the label of the set that has more of a part."""
    return "gen" if side == "more" else "ref"
