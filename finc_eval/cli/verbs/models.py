"""`finc-eval models`: the modes on which several models differ."""

from __future__ import annotations

from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Gens, Json, Pictures, Work, embeds, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given, named_sets
from finc_eval.comparison.settings import REFERENCE, Finc, Settings
from finc_eval.extractors.settings import Extraction
from finc_eval.gallery.counts import SHOWN_SAMPLES, check_shown


@takes(Settings, "settings", method=Finc)
@embeds
def models(
    gen: Gens,
    settings: Settings,
    extraction: Extraction,
    work: Work,
    ref: Annotated[
        str | None,
        typer.Option(help="Reference set, which decides the bandwidth, and shows what the models lack."),
    ] = None,
    out: Out = None,
    force: Force = False,
    pictures: Pictures = SHOWN_SAMPLES,
    as_json: Json = False,
) -> None:
    """Find the modes on which many models differ, and how much of each mode each model has.

    Every set is compared with the mean of all other sets.
    """
    sources = named_sets(gen, ref)
    check_given(sources.values(), extraction.extractor)
    check_shown(pictures)
    output = output_folder("models", "models", sources, out, force, titles=list(sources))
    with work.running() as run:
        models = {name: source for name, source in sources.items() if name != REFERENCE}
        result = fe.compare_models(models, ref, settings, extractor=extraction, run=run)
    emit(result.showing(pictures), output, as_json)
