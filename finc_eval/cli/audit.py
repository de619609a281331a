"""`finc-eval audit`: copying in a generator's samples, attacks on its training set, and a stated guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finc_eval.cli.options import Device, Extractor, Json, Strict, all_embedded, twin_of
from finc_eval.core.progress import terminal
from finc_eval.core.run import Run
from finc_eval.memorization.settings import AuditSettings


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
    reference: Annotated[
        str | None, typer.Option(help="Further samples, in neither of the two, for the DOMIAS attack.")
    ] = None,
    out: Annotated[Path, typer.Option(help="HTML file to write; its JSON twin has the same name.")] = Path(
        "reports/audit.html"
    ),
    stated_epsilon: Annotated[
        float | None, typer.Option(help="ε of a guarantee that the trainer states for each training sample.")
    ] = None,
    stated_delta: Annotated[float | None, typer.Option(help="δ of that guarantee; 0 if it is pure.")] = None,
    pairs: Annotated[int, typer.Option(help="Number of the most suspicious pairs to show.")] = AuditSettings.pairs,
    seed: Annotated[
        int, typer.Option(help="Random seed of subsets, planted copies and kernel affine hull machines.")
    ] = AuditSettings.seed,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Audit a generator: are its samples copies, do attacks tell its training set, does a stated guarantee hold?

    Three questions have three answers. None of them is a guarantee. The exit code is 0 whatever is found.
    """
    from finc_eval.memorization.audit import audit as run_audit
    from finc_eval.report import show

    settings = AuditSettings(stated_epsilon, stated_delta, pairs, seed)
    twin = twin_of(out)
    sources = {"gen": gen, "train": train, "holdout": holdout} | ({} if reference is None else {"reference": reference})
    with terminal() as progress:
        sets = all_embedded(sources, extractor, strict, device, progress)
        result = run_audit(
            sets["gen"],
            sets["train"],
            sets["holdout"],
            sets.get("reference"),
            settings,
            run=Run(device, progress=progress),
        )
    page, text = result.to_html(out), result.to_json(twin)
    if as_json:
        print(text)
        return
    show(result)
    print(f"\n{page}\n{twin}")
