"""`finc-eval audit`: copying in a generator's samples, attacks on its training set, and a stated guarantee."""

from __future__ import annotations

from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Gen, Json, Work, check_given, embeds, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.extractors.settings import Extraction
from finc_eval.memorization.settings import AuditSettings


@takes(AuditSettings, "settings")
@embeds
def audit(
    gen: Gen,
    train: Annotated[
        str, typer.Option(help="All samples that the generator was trained on, in any form that --gen takes.")
    ],
    holdout: Annotated[
        str,
        typer.Option(
            help="Samples of the same distribution that the generator has not seen, ideally as many as in --train."
        ),
    ],
    settings: AuditSettings,
    extraction: Extraction,
    work: Work,
    reference: Annotated[
        str | None, typer.Option(help="Further samples, in neither of the two, for the DOMIAS attack.")
    ] = None,
    out: Out = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Audit a generator: are its samples copies, do attacks recognize its training set, does a stated guarantee hold?

    Three questions have three answers. None of them is a guarantee. The exit code is 0 whatever is found.
    """
    sources = {"gen": gen, "train": train, "holdout": holdout} | ({} if reference is None else {"reference": reference})
    check_given(sources.values(), extraction.extractor)
    output = output_folder("audit", "audit", sources, out, force, how=[extraction])
    with work.running() as run:
        result = fe.audit(gen, train, holdout, reference, settings, extractor=extraction, run=run)
    emit(result, output, as_json)
