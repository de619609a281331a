"""`finc-eval compare`: the modes on which two sets differ."""

from __future__ import annotations

from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Gen, Json, Ref, Work, embeds, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given
from finc_eval.comparison.settings import MAX_SHOWN, SHOWN_SAMPLES, Settings, check_shown
from finc_eval.extractors.settings import Extraction

Pictures = Annotated[
    int,
    typer.Option(
        help=f"Typical samples of each set and mode to show, and as many drawn at random, at most {MAX_SHOWN}. The .h5 "
        "file keeps small pictures of them, so that report finds them from any folder. 0: none."
    ),
]


@takes(Settings, "settings")
@embeds
def compare(
    gen: Gen,
    ref: Ref,
    settings: Settings,
    extraction: Extraction,
    work: Work,
    out: Out = None,
    force: Force = False,
    pictures: Pictures = SHOWN_SAMPLES,
    as_json: Json = False,
) -> None:
    """Find the modes on which two sets of samples differ, and write a report.

    A mode is a kind of samples that one set has more of than the other. Over-represented modes are more frequent in
    --gen, under-represented modes in --ref.
    """
    sources = {"gen": gen, "ref": ref}
    check_given(sources.values(), extraction.extractor)
    check_shown(pictures)
    output = output_folder("compare", "comparison", sources, out, force)
    with work.running() as run:
        result = fe.compare(gen, ref, settings, extractor=extraction, run=run)
    emit(result.showing(pictures), output, as_json)
