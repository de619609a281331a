"""`finc-eval compare`: the kinds and directions on which two sets differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Gen, Json, Pictures, Ref, Work, embeds, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given
from finc_eval.comparison.settings import Settings
from finc_eval.extractors.settings import Extraction
from finc_eval.gallery.counts import SHOWN_SAMPLES, check_shown


@takes(Settings, "settings")
@embeds
def compare(
    gen: Gen,
    ref: Ref,
    settings: Settings,
    extraction: Extraction,
    work: Work,
    kinds: Annotated[
        Path | None,
        typer.Option(help="Earlier comparison, an .h5 file, whose kinds to count by; then changes tells what changed."),
    ] = None,
    out: Out = None,
    force: Force = False,
    pictures: Pictures = SHOWN_SAMPLES,
    as_json: Json = False,
) -> None:
    """Find the kinds of samples on which two sets differ, and write a report.

    Every sample is of one kind, and the shares of the kinds add up to 100 % of each set. Beside the kinds there are
    FINC's directions: they show differences that no separate kind shows, such as a change of style over many kinds.
    """
    sources = {"gen": gen, "ref": ref}
    check_given([*sources.values(), kinds], extraction.extractor)
    check_shown(pictures)
    output = output_folder("compare", "comparison", sources, out, force)
    with work.running() as run:
        result = fe.compare(gen, ref, settings, kinds=kinds, extractor=extraction, run=run)
    emit(result.showing(pictures), output, as_json)
