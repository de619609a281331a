"""`finc-eval kinds`: sets divided into kinds whose shares add up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Device, Extractor, Json, Page, Strict, running, takes
from finc_eval.cli.output import emit, twin_of
from finc_eval.cli.sets import embed_all, named_sets
from finc_eval.partitions.settings import KindSettings


@takes(KindSettings, "settings")
def kinds(
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=PATH...",
            help="Sets, each a name and its samples: images, or an .h5 file that extract or sketch wrote.",
        ),
    ],
    settings: KindSettings,
    save: Annotated[
        Path | None, typer.Option(help="HDF5 file to write, by which later sets can be counted (fe.load, count).")
    ] = None,
    out: Page = Path("reports/kinds.html"),
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Divide sets into kinds whose shares add up to 100 %, and test which kinds differ.

    The kinds are found without regard to which set a sample is from, and each set is tested against all others.
    """
    sources = named_sets(sets)
    twin_of(out)
    with running(device) as run:
        result = fe.kinds(embed_all(sources, extractor, strict, run), settings, run=run)
    if save is not None:
        result.save(save)
    emit(result, out, as_json)
