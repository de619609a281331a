"""The verb that asks what a generator's samples tell about its training set: audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finc_eval.cli.options import Device, Extractor, Json, Strict, running
from finc_eval.cli.output import twin_of
from finc_eval.cli.sets import embed_all


def audit(
    gen: Annotated[
        str, typer.Option(help="The generated set: a folder, .zip or .npz of images, or an .h5 of extract.")
    ],
    train: Annotated[str, typer.Option(help="All samples that the generator was trained on, likewise.")],
    holdout: Annotated[
        str, typer.Option(help="Samples of the same distribution that it has not seen, best as many as in --train.")
    ],
    reference: Annotated[
        str | None, typer.Option(help="Further samples, in neither of the two, for the DOMIAS attack.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The HTML file to write; a JSON twin goes beside it.")] = Path(
        "reports/audit.html"
    ),
    stated_epsilon: Annotated[
        float | None, typer.Option(help="ε of a guarantee that the trainer states for each training sample.")
    ] = None,
    stated_delta: Annotated[float | None, typer.Option(help="δ of that guarantee; 0 if it is pure.")] = None,
    pairs: Annotated[int, typer.Option(help="How many of the most suspicious pairs to show.")] = 24,
    seed: Annotated[int, typer.Option(help="Seed of subsets, planted copies and machines.")] = 0,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Audit a generator: are samples copies of training images, what do attacks tell, does a stated guarantee hold?

    Three questions with three answers; none of them is a guarantee. Exit code 0 whatever is found.
    """
    from finc_eval.memorization.audit import audit as run
    from finc_eval.memorization.stated import check_stated
    from finc_eval.report.private_tables import print_audit

    check_stated(stated_epsilon, stated_delta)
    twin = twin_of(out)
    sources = {"gen": gen, "train": train, "holdout": holdout} | ({} if reference is None else {"reference": reference})
    with running(device) as run_how:
        sets = embed_all(sources, extractor, strict, run_how)
        result = run(
            **sets,
            stated_epsilon=stated_epsilon,
            stated_delta=stated_delta,
            pairs=pairs,
            seed=seed,
            progress=run_how.progress,
        )
    page, text = result.to_html(out), result.to_json(twin)
    if as_json:
        print(text)
        return
    print_audit(result)
    print(f"\n{page}\n{twin}")
