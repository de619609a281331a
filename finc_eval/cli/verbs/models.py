"""`finc-eval models`: the modes on which several models differ."""

from __future__ import annotations

from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Device, Extractor, Json, Strict, running, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given, embed_all, named_sets
from finc_eval.comparison.settings import REFERENCE, Finc, Settings
from finc_eval.core.errors import UsageError


@takes(Settings, "settings", method=Finc)
def models(
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=PATH...",
            help="Models, each a name and its samples: images, or an .h5 file that extract or sketch wrote.",
        ),
    ],
    settings: Settings,
    ref: Annotated[
        str | None,
        typer.Option(help="Reference set, which decides the bandwidth, and shows what the models lack."),
    ] = None,
    out: Out = None,
    force: Force = False,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Find the modes on which many models differ, and how much of each mode each model has.

    Every set is compared with the mean of all other sets.
    """
    sources = named_sets(sets)
    if REFERENCE in sources:
        raise UsageError(f'a model cannot be called "{REFERENCE}": pass the reference as --ref, or rename the model')
    sources |= {} if ref is None else {REFERENCE: ref}
    check_given(sources.values(), extractor)
    output = output_folder("models", "models", sources, out, force, titles=list(sources))
    with running(device) as run:
        found = embed_all(sources, extractor, strict, run)
        reference = found.pop(REFERENCE, None)
        result = fe.compare_models(found, reference, settings, run=run)
    emit(result, output, as_json)
