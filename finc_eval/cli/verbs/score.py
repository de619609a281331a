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
from finc_eval.core.storage import written_whole


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
    result = fe.Comparison.load(comparison)
    columns = ["id", *(mode.id for mode in result.modes)]
    refuse_loss(out, lambda found: _scores(found, columns, samples), force)
    with running(device) as run:
        found = embed("samples", samples, result.space.split("@")[0], strict, run)
        cache = fe.EmbeddingCache(found) if isinstance(found, str) else found
        with written_whole(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            for batch, scores in result.score_batches(cache, result.modes):
                lines = ([f"{score:.6f}" for score in line] for line in scores)
                writer.writerows([name, *line] for name, line in zip(batch.ids, lines, strict=True))
                run.progress("score", batch.start + len(batch.ids), cache.n)
    print(f"{out}: scores of {cache.n} samples on {len(result.modes)} modes")


def _scores(path: Path, columns: list[str], samples: str) -> bool:
    """Return whether a file has the scores of these samples in these columns."""
    if is_embedded(samples):
        with fe.EmbeddingCache(samples) as cache:
            known = set(cache.ids)
    else:
        known = set(fe.open_source(samples).ids)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
    except (OSError, ValueError, csv.Error):
        return False
    return head == columns and bool(rows) and known.issuperset(row[0] for row in rows if row)
