"""`finc-eval score`: how much single samples belong to the modes of a comparison."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Device, Strict, running
from finc_eval.cli.output import Force, check_suffix, refuse_loss
from finc_eval.cli.sets import check_given, embed, is_embedded
from finc_eval.core.run import BATCH_SIZE
from finc_eval.core.storage import written_whole
from finc_eval.core.words import counted


def score(
    comparison: Annotated[Path, typer.Option(help="Comparison, an .h5 file that compare wrote.")],
    samples: Annotated[str, typer.Option(help="Samples to score: images, or an .h5 file that extract wrote.")],
    out: Annotated[Path, typer.Option(help="CSV file to write: one row per sample, one column per mode.")],
    strict: Strict = False,
    device: Device = None,
    force: Force = False,
) -> None:
    """Score samples on the modes of a comparison.

    A high score means that the sample belongs to the mode.
    """
    check_given([comparison, samples])
    check_suffix(out, ".csv")
    from finc_eval.embeddings.opening import as_embeddings  # loads torch, which wrong options need not wait for

    result = fe.Comparison.load(comparison)
    columns = ["id", *(mode.id for mode in result.modes)]
    refuse_loss(out, lambda found: _scores(found, columns, samples), force)
    with running(device) as run:
        found = embed("samples", samples, result.space.split("@")[0], strict, run)
        embeddings = as_embeddings(found)
        with written_whole(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            for batch, scores in result.score_batches(embeddings, result.modes):
                lines = ([f"{score:.6f}" for score in line] for line in scores)
                writer.writerows([name, *line] for name, line in zip(batch.ids, lines, strict=True))
                run.progress("score", batch.start + len(batch.ids), embeddings.n)
    print(f"{out}: scores of {counted(embeddings.n, 'sample')} on {counted(len(result.modes), 'mode')}")


def _scores(path: Path, columns: list[str], samples: str) -> bool:
    """Return whether a file has scores in these columns, the first of one of these samples."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            head, first = next(lines, []), next(lines, [])
    except (OSError, ValueError, csv.Error):
        return False
    return head == columns and bool(first) and _has(samples, first[0])


def _has(samples: str, name: str) -> bool:
    if not is_embedded(samples):
        return name in fe.open_source(samples).ids
    from finc_eval.embeddings.opening import as_embeddings

    one = as_embeddings(samples)
    return any(name in one.ids_between(start, start + BATCH_SIZE) for start in range(0, one.n, BATCH_SIZE))
