"""`finc-eval evaluate`: everything about one generator that its sets allow, on one page."""

from __future__ import annotations

from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Gen, Json, Ref, Work, check_given, embeds, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.comparison.settings import Settings
from finc_eval.core.errors import UsageError
from finc_eval.extractors.settings import Extraction


@takes(Settings, "settings")
@embeds
def evaluate(
    gen: Gen,
    ref: Ref,
    settings: Settings,
    extraction: Extraction,
    work: Work,
    train: Annotated[
        str | None,
        typer.Option(help="All samples that the generator was trained on: with --holdout, copies are looked for."),
    ] = None,
    holdout: Annotated[
        str | None, typer.Option(help="Samples of the same distribution that the generator has not seen.")
    ] = None,
    out: Out = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Evaluate one generator by everything that its sets allow, on one page.

    Kinds that differ, directions, metrics, diversity, baselines and encodings need --gen and --ref. --train and
    --holdout add copies, attacks on membership and the membership-inference score. A private sketch as --ref gives the
    distance from the private records and its guarantee, next to that score. Every set is embedded once. A part that
    cannot be computed is left out, and the page says why. The verbs compare, metrics, methods, audit and private sketch
    score compute one part, with all its options and its whole page.
    """
    if (train is None) != (holdout is None):
        raise UsageError("an audit needs both --train and --holdout: pass both, or neither")
    sources = {"gen": gen, "ref": ref}
    audited = {} if train is None or holdout is None else {"train": train, "holdout": holdout}
    check_given([*sources.values(), *audited.values()], extraction.extractor)
    output = output_folder("evaluate", "evaluation", sources | audited, out, force, how=[extraction])
    with work.running() as run:
        result = fe.evaluate(gen, ref, train=train, holdout=holdout, settings=settings, extractor=extraction, run=run)
    emit(result, output, as_json)
