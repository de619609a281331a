"""`finc-eval score`: how much single samples belong to the modes of a comparison."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

import finc_eval as fe
from finc_eval.cli.class_tables import is_table_of
from finc_eval.cli.options import Json, Samples, Work, embeds
from finc_eval.cli.output import Force, check_suffix, print_json, refuse_loss
from finc_eval.cli.sets import check_given
from finc_eval.core.doors.creating import created_text
from finc_eval.core.record import Record
from finc_eval.core.storage import written_whole
from finc_eval.core.words import counted, percent
from finc_eval.extractors.settings import Extraction
from finc_eval.naming.unique_names import with_id
from finc_eval.report.terminal import print_notes, print_table

BEFORE = ("id", "best_mode", "member_of")
"""Columns before those of the modes."""

NOT_TOLD = "– rare modes that only clusters found: their members cannot be told among other samples"
NO_THRESHOLD = (
    "– modes that only clusters found: their scores are on another scale, so they are the best mode of no sample"
)


@dataclass(frozen=True)
class ModeCount(Record):
    """Samples of a mode among those that were scored.

    Attributes:
        id: the mode.
        title: its name, or its id.
        role: "over" or "under".
        threshold: score of a sample that is typical of the mode; None for a mode that only clusters found.
        members: samples that are members; None for a rare mode that only clusters found.
        best: samples that score higher on this mode than on any other with a threshold; None without a threshold.
    """

    id: str
    title: str
    role: str
    threshold: float | None
    members: int | None
    best: int | None


@embeds
def score(
    samples: Samples,
    comparison: Annotated[Path, typer.Option(help="Comparison, an .h5 file that compare wrote.")],
    out: Annotated[Path, typer.Option(help="CSV file to write, one row per sample.")],
    extraction: Extraction,
    work: Work,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Score samples on the modes of a comparison.

    The file has one row per sample. Its columns: id; best_mode, the mode with a threshold on which the sample scores
    highest; member_of, the modes that it is a member of, separated by spaces; and the score on each mode, from −1 to 1.
    A sample is a member of a mode if enough of its nearest neighbors, among the samples that the comparison keeps, are
    of the mode's kind. Modes that only clusters found have scores on another scale, and are never the best mode.
    """
    check_given([comparison, samples], extraction.extractor)
    check_suffix(out, ".csv")
    from finc_eval.embeddings.opening import as_embeddings, opened_sets  # loads torch: wrong options need not wait
    from finc_eval.embeddings.set_info import set_info

    result = fe.Comparison.load(comparison)
    modes = result.modes
    columns = [*BEFORE, *(mode.id for mode in modes)]
    refuse_loss(out, lambda found: is_table_of(found, [columns]), force)
    told = [place for place, mode in enumerate(modes) if mode.threshold is not None]
    members, best = np.zeros(len(modes), int), np.zeros(len(modes), int)
    with work.running() as run:
        sources = {"samples": samples}
        embeddings = opened_sets(sources, as_embeddings, extraction, run, [result.space])["samples"]
        with written_whole(out) as temporary, created_text(temporary) as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            for batch, scores in result.score_batches(embeddings, modes):
                inside = result.members_of(batch.rows, scores, modes)
                lines = _lines(modes, batch.ids, scores, inside)
                if not batch.start:
                    refuse_loss(out, partial(is_table_of, lines=[columns, *lines], rows=embeddings.n), force)
                members += inside.sum(0)
                best += np.bincount(np.take(told, scores[:, told].argmax(1)), minlength=len(modes)) if told else 0
                writer.writerows(lines)
                run.progress("score", batch.start + len(batch.ids), embeddings.n)
    counts = [
        ModeCount(
            id=mode.id,
            title=mode.title,
            role=mode.role,
            threshold=mode.threshold,
            members=inside if known else None,
            best=None if mode.threshold is None else first,
        )
        for mode, known, inside, first in zip(
            modes, result.tells_members(), members.tolist(), best.tolist(), strict=True
        )
    ]
    notes = [*set_info("samples", embeddings, embeddings.n, "").warnings("the set"), *_on_modes(result)]
    if as_json:
        print_json({"path": str(out), "n": embeddings.n, "columns": columns, "modes": counts, "warnings": notes})
        return
    if counts:
        _print_counts(counts, embeddings.n)
    print_notes(notes)
    print(f"{out}: scores of {counted(embeddings.n, 'sample')} on {counted(len(modes), 'mode')}")


def _on_modes(result: fe.Comparison) -> list[str]:
    """Return a note where modes are missing, or where some may be chance."""
    if not result.modes:
        return ["the comparison found no modes: samples have no scores, and are members of none"]
    unsure = len(result.modes) - len(result.significant())
    are = "is" if unsure == 1 else "are"
    return [f"{unsure} of {counted(len(result.modes), 'mode')} {are} not significant, and may be chance"] * (unsure > 0)


def _lines(
    modes: Sequence[fe.Mode], ids: Sequence[str], scores: NDArray[np.float32], members: NDArray[np.bool_]
) -> list[list[str]]:
    """Return the rows of samples, as they are written."""
    told = [place for place, mode in enumerate(modes) if mode.threshold is not None]
    found = []
    for name, line, own in zip(ids, scores, members, strict=True):
        first = modes[told[int(line[told].argmax())]].id if told else ""
        of = " ".join(mode.id for mode, is_one in zip(modes, own, strict=True) if is_one)
        found.append([name, first, of, *(f"{value:.6f}" for value in line)])
    return found


def _print_counts(counts: Sequence[ModeCount], n: int) -> None:
    rows = [
        [
            with_id(one),
            f"{one.role}-represented",
            "–" if one.threshold is None else f"{one.threshold:.3f}",
            "–" if one.members is None else f"{one.members:,} ({percent(one.members / n, 1)})",
            "–" if one.best is None else f"{one.best:,}",
        ]
        for one in counts
    ]
    columns = ["mode", "role", "threshold", "members", "best mode of"]
    print_table(f"Scores of {counted(n, 'sample')}", columns, rows, names=["mode"])
    if any(one.members is None for one in counts):
        print(NOT_TOLD)
    if any(one.threshold is None for one in counts):
        print(NO_THRESHOLD)
