"""`finc-eval compare score`: the kind of each sample, and its place along the directions of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

import finc_eval as fe
from finc_eval.cli.class_tables import is_table_of
from finc_eval.cli.options import Json, Samples, Work, check_given, embeds
from finc_eval.cli.output import Force, check_suffix, print_json, print_listing, refuse_loss
from finc_eval.core.doors import create_text
from finc_eval.core.files.csv_text import spelled, write_rows
from finc_eval.core.storage import write_whole
from finc_eval.core.words import percent, plural
from finc_eval.extractors.settings import Extraction
from finc_eval.naming.evidence import with_id
from finc_eval.report.terminal import print_notes

BEFORE = ("id", "kind", "kind_name")  # columns before the columns of the directions


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
    """Assign samples to the kinds of a comparison, and score them on its directions.

    The file has one row per sample. Its columns: id; kind, the id of its kind, empty if it belongs to no listed kind;
    kind_name; and the score on each direction, from −1 to 1.
    """
    check_given([comparison, samples], extraction.extractor)
    check_suffix(out, ".csv")
    from finc_eval.embeddings.opening import open_embeddings  # loads torch: wrong options need not wait
    from finc_eval.embeddings.set_info import notes_on, set_info

    result = fe.Comparison.load(comparison)
    columns = [*BEFORE, *(direction.id for direction in result.directions)]
    refuse_loss(out, lambda path: is_table_of(path, [columns]), force)
    counts = np.zeros(len(result.kinds) + 1, int)  # samples of no kind, and of each
    with work.running() as run:
        sources = {"samples": samples}
        embeddings = open_embeddings(sources, extraction, run, [result.space])["samples"]
        with write_whole(out) as temporary, create_text(temporary) as file:
            write_rows(file, [columns])
            for batch, scores in result.score_batches(embeddings, result.directions):
                places = result.assign(batch.rows) if result.kinds else np.full(len(batch.ids), -1)
                lines = _lines(result, batch.ids, places, scores)
                if not batch.start:
                    refuse_loss(out, partial(is_table_of, lines=[columns, *lines], rows=embeddings.n), force)
                counts += np.bincount(places + 1, minlength=len(counts))
                write_rows(file, lines, texts=len(BEFORE))
                run.progress("score", batch.start + len(batch.ids), embeddings.n)
    about = [*set_info("samples", embeddings, embeddings.n, "").warnings("the set"), *notes_on("the set", embeddings)]
    notes = [*dict.fromkeys(about), *_notes(result)]
    members = counts[1:].tolist()
    if as_json:
        fields = ("id", "title", "share_gen", "share_ref")
        kinds = [
            {**{name: getattr(kind, name) for name in fields}, "count": count}
            for kind, count in zip(result.kinds, members, strict=True)
        ]
        print_json({"path": str(out), "n": embeddings.n, "columns": columns, "kinds": kinds, "warnings": notes})
        return
    _print_kinds(result, members, embeddings.n)
    print_notes(notes)
    on = plural(len(result.directions), "direction")
    print(f"{out}: kinds of {plural(embeddings.n, 'sample')}, and their scores on {on}")


def _lines(
    result: fe.Comparison, ids: Sequence[str], places: NDArray[np.int64], scores: NDArray[np.float32]
) -> list[list[str]]:
    """Return the rows of samples in the table, from the places of their kinds, −1 for none, and their scores."""
    named = [(kind.id, spelled(kind.name or "")) for kind in result.kinds]
    owns = [("", "") if number < 0 else named[number] for number in places]
    return [
        [name, *kind, *(f"{value:.6f}" for value in line)] for name, kind, line in zip(ids, owns, scores, strict=True)
    ]


def _notes(result: fe.Comparison) -> list[str]:
    """Return what to know of the kinds and directions that samples are scored on."""
    from finc_eval.numerics.inference import ALPHA  # loads torch: wrong options need not wait

    notes = [] if result.kinds else ["the comparison has no kinds to assign samples to"]
    if not result.directions:
        notes.append("the comparison found no directions: samples have no scores")
    elif unsure := sum(direction.p_value > ALPHA for direction in result.directions):
        of = f"{unsure} of {plural(len(result.directions), 'direction')}"
        notes.append(f"{of} {'is' if unsure == 1 else 'are'} not significant, and may be chance")
    return notes


def _print_kinds(result: fe.Comparison, members: Sequence[int], n: int) -> None:
    """Print the number of samples of each kind, if there are kinds."""
    rows = []
    for kind, count in zip(result.kinds, members, strict=True):
        shares = [percent(share, 1) for share in (count / n, kind.share_gen, kind.share_ref)]
        rows.append([with_id(kind), f"{count:,}", *shares])
    if rows:
        headings = ["kind", "samples", "share", "of gen", "of ref"]
        print_listing(f"Kinds of {plural(n, 'sample')}", headings, rows, names=["kind"])
