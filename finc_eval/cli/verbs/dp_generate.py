"""The verb that makes synthetic tables and images under differential privacy: dp-generate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, cast

import typer

from finc_eval.cli.options import Device, Json
from finc_eval.cli.verbs.private_sketch import opened_ledger
from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import terminal


def dp_generate(
    data: Annotated[
        Path,
        typer.Option(help="Private data: a table as .csv or .npz, or an .npz with images (n, h, w) uint8 and labels."),
    ],
    epsilon: Annotated[float, typer.Option(help="ε of the guarantee; all of it is spent.")],
    ledger: Annotated[Path, typer.Option(help="The file that counts what each data set has spent.")],
    out: Annotated[Path, typer.Option(help="The synthetic data to write: .csv or .npz, for images .npz.")],
    table: Annotated[
        Path | None,
        typer.Option(help="What is publicly known of a table: a .toml or .json of columns, their ranges and values."),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="NAME,NAME,…", help="For images with labels: the public list of classes.")
    ] = None,
    delta: Annotated[float, typer.Option(help="δ of the guarantee, well below one over the number of records.")] = 1e-5,
    budget: Annotated[
        float | None, typer.Option(help="For a new ledger: the ε that all releases of a data set may come to.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="dp-hp|dp-hp-few|dp-hp-paper|dp-merf",
            help="Which features: ours; first moments alone, for a table of a few hundred records; the paper's sums "
            "and products; or random Fourier features.",
        ),
    ] = "dp-hp",
    network: Annotated[
        str, typer.Option(metavar="smooth|fully-connected|convolutional", help="What makes images.")
    ] = "smooth",
    name: Annotated[str | None, typer.Option(help="What the ledger calls the data set.")] = None,
    n: Annotated[int | None, typer.Option(help="Synthetic records; as many as private ones when left out.")] = None,
    seed: Annotated[int, typer.Option(help="Of the generator and its samples; noise has no seed.")] = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Release a noisy summary of private data once, and write synthetic records that agree with it.

    Of a table, ranges and values come from --table alone, never from the data; records are images without it. Running
    it again on the same data spends epsilon again.
    """
    from finc_eval.core.device import usable_device
    from finc_eval.privacy.synthesis.files import (
        SUFFIXES,
        check_out,
        columns_digest,
        read_columns,
        read_images,
        write_arrays,
    )
    from finc_eval.privacy.synthesis.synthesize import NetworkKind, synthesize_images, synthesize_table
    from finc_eval.privacy.synthesis.tabular import Table

    if table is None and data.suffix != ".npz":
        raise FincEvalError(
            f"{data} is a table: pass --table with its columns and their public ranges, which are not read off the data"
        )
    if table is not None and classes is not None:
        raise FincEvalError(
            "--classes is for images: the classes of a table are its label in --table, pass one of both"
        )
    check_out(out, SUFFIXES if table is not None else SUFFIXES[1:])
    with terminal() as progress:
        if table is not None:
            described, columns = Table.load(table), read_columns(data)
            made = synthesize_table(
                columns,
                described,
                epsilon=epsilon,
                delta=delta,
                ledger=opened_ledger(ledger, budget, delta, "replace"),
                identities=[columns_digest(columns)],
                name=name,
                method=method,
                count=n,
                seed=seed,
                progress=progress,
            )
            arrays, synthesis = made.values, made.synthesis
        else:
            images, labels = read_images(data)
            drawn = synthesize_images(
                images,
                None if classes is None or labels is None else labels.tolist(),
                classes=[] if classes is None else [one.strip() for one in classes.split(",")],
                epsilon=epsilon,
                delta=delta,
                ledger=opened_ledger(ledger, budget, delta, "replace"),
                name=name,
                method=method,
                network=cast("NetworkKind", network),
                count=n,
                seed=seed,
                device=usable_device(device),
                progress=progress,
            )
            arrays = {"images": drawn.images} | ({} if drawn.labels is None else {"labels": drawn.labels})
            synthesis = drawn.synthesis
        write_arrays(out, arrays)
    print(json.dumps(synthesis.to_dict(), indent=1, ensure_ascii=False) if as_json else f"{out}: {synthesis}")
