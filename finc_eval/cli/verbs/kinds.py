"""`finc-eval kinds`: sets divided into kinds whose shares add up."""

from __future__ import annotations

from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Device, Extractor, Json, Strict, running, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given, embed_all, named_sets
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
    out: Out = None,
    force: Force = False,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Divide sets into kinds whose shares add up to 100 %, and test which kinds differ.

    The kinds are found without regard to which set a sample is from, and each set is tested against all others.
    By kinds.h5 in --out, later sets can be counted (fe.load, count).
    """
    sources = named_sets(sets)
    check_given(sources.values(), extractor)
    output = output_folder("kinds", "kinds", sources, out, force, titles=list(sources))
    with running(device) as run:
        result = fe.kinds(embed_all(sources, extractor, strict, run), settings, run=run)
    emit(result, output, as_json)
