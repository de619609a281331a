"""`finc-eval compare kinds`: sets divided into kinds whose shares add up."""

from __future__ import annotations

from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Gens, Json, Named, Pictures, Work, check_given, embeds, name_sets, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.extractors.settings import Extraction
from finc_eval.gallery.counts import SHOWN_SAMPLES
from finc_eval.partitions.settings import KindSettings


@takes(KindSettings, "settings")
@embeds
def kinds(
    settings: KindSettings,
    extraction: Extraction,
    work: Work,
    sets: Named = None,
    gen: Gens = (),  # type: ignore[assignment]
    ref: Annotated[str | None, typer.Option(help="Reference set; it takes part like all others, as ref.")] = None,
    out: Out = None,
    force: Force = False,
    pictures: Pictures = SHOWN_SAMPLES,
    as_json: Json = False,
) -> None:
    """Divide sets into kinds whose shares add up to 100 %, and test which kinds differ.

    The kinds are found without regard to which set a sample is from, and each set is tested against all others.
    By kinds.h5 in --out, later sets can be counted (fe.load, count).
    """
    sources = name_sets([*(sets or ()), *gen], ref)
    check_given(sources.values(), extraction.extractor)
    output = output_folder("kinds", "kinds", sources, out, force, how=[extraction], titles=list(sources))
    with work.running() as run:
        result = fe.kinds(sources, settings, extractor=extraction, run=run)
    emit(result.showing(pictures), output, as_json)
