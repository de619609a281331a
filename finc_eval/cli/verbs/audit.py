"""`finc-eval audit`: copying in a generator's samples, attacks on its training set, and a stated guarantee."""

from __future__ import annotations

from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Device, Extractor, Json, Strict, running, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given, embed_all
from finc_eval.memorization.settings import AuditSettings


@takes(AuditSettings, "settings")
def audit(
    gen: Annotated[
        str, typer.Option(help="Generated set: a folder, .zip or .npz of images, or an .h5 file that extract wrote.")
    ],
    train: Annotated[str, typer.Option(help="All samples that the generator was trained on, in the same forms.")],
    holdout: Annotated[
        str,
        typer.Option(
            help="Samples of the same distribution that the generator has not seen, best as many as in --train."
        ),
    ],
    settings: AuditSettings,
    reference: Annotated[
        str | None, typer.Option(help="Further samples, in neither of the two, for the DOMIAS attack.")
    ] = None,
    out: Out = None,
    force: Force = False,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Audit a generator: are its samples copies, do attacks tell its training set, does a stated guarantee hold?

    Three questions have three answers. None of them is a guarantee. The exit code is 0 whatever is found.
    """
    sources = {"gen": gen, "train": train, "holdout": holdout} | ({} if reference is None else {"reference": reference})
    check_given(sources.values(), extractor)
    output = output_folder("audit", "audit", sources, out, force)
    with running(device) as run:
        sets = embed_all(sources, extractor, strict, run)
        result = fe.audit(
            sets["gen"], sets["train"], sets["holdout"], sets.get("reference"), settings=settings, run=run
        )
    emit(result, output, as_json)
