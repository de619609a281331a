"""`finc-eval compare`: the modes on which two sets differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Device, Extractor, Gen, Json, Ref, Strict, running, takes
from finc_eval.cli.output import emit
from finc_eval.cli.sets import embed_all
from finc_eval.comparison.settings import Settings


@takes(Settings, "settings")
def compare(
    gen: Gen,
    ref: Ref,
    settings: Settings,
    out: Annotated[Path, typer.Option(help="HDF5 file to write. A JSON file of the same name is written, too.")] = Path(
        "reports/comparison.h5"
    ),
    report: Annotated[
        Path | None, typer.Option(help="HTML report to write; default: --out with the suffix .html.")
    ] = None,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Find the modes on which two sets of samples differ, and write a report.

    A mode is a kind of samples that one set has more of than the other. Over-represented modes are more frequent in
    --gen, under-represented modes in --ref.
    """
    twin = fe.Comparison.twin(out)
    with running(device) as run:
        sets = embed_all({"gen": gen, "ref": ref}, extractor, strict, run)
        result = fe.compare(sets["gen"], sets["ref"], settings, run=run)
    result.save(out)
    emit(result, report or out.with_suffix(".html"), as_json, saved_as=(out, twin))
