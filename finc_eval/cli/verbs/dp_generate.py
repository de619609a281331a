"""`finc-eval dp-generate`: synthetic tables and images from one differentially private release of real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import finc_eval as fe
from finc_eval.cli.budget import Budget, LedgerFile, opened_ledger
from finc_eval.cli.fields import list_parser
from finc_eval.cli.options import Device, Json, running, takes
from finc_eval.cli.sets import check_given
from finc_eval.core.errors import UsageError
from finc_eval.core.record import plain
from finc_eval.privacy.synthesis.files import (
    SUFFIXES,
    check_out,
    columns_digest,
    read_columns,
    read_images,
    write_arrays,
)
from finc_eval.privacy.synthesis.settings import ImageSynthesisSettings


@takes(ImageSynthesisSettings, "settings")
def dp_generate(
    data: Annotated[
        Path,
        typer.Option(help="Private data: a table as .csv or .npz, or an .npz with images (n, h, w) uint8 and labels."),
    ],
    ledger: LedgerFile,
    out: Annotated[Path, typer.Option(help="File of the synthetic data to write: .csv or .npz, for images .npz.")],
    settings: ImageSynthesisSettings,
    budget: Budget = None,
    table: Annotated[
        Path | None,
        typer.Option(help="Public description of a table: a .toml or .json file of columns, their ranges and values."),
    ] = None,
    classes: Annotated[
        Any,
        typer.Option(
            metavar="NAME,NAME,…", parser=list_parser(str), help="Public list of classes, for images with labels."
        ),
    ] = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Release a noisy summary of private data once, and write synthetic records that agree with it.

    With --table the records are the rows of a table, whose ranges and values come from --table alone, never from the
    data. Without it the records are images. Every run on the same data spends epsilon again.
    """
    check_given([data, table])
    if table is None and data.suffix != ".npz":
        raise UsageError(
            f"{data} is a table: pass --table with its columns and their public ranges, which are not taken from the "
            "data"
        )
    if table is not None and classes is not None:
        raise UsageError(
            "--classes is for images: the classes of a table are its label in --table, so pass only one of the two"
        )
    check_out(out, SUFFIXES if table is not None else SUFFIXES[1:])
    with running(device) as run:
        if table is not None:
            columns = read_columns(data)
            made = fe.privacy.synthesize_table(
                columns,
                fe.privacy.Table.load(table),
                settings,
                ledger=opened_ledger(ledger, budget, settings),
                identities=[columns_digest(columns)],
                run=run,
            )
            arrays, synthesis = made.values, made.synthesis
        else:
            images, labels = read_images(data)
            drawn = fe.privacy.synthesize_images(
                images,
                None if classes is None or labels is None else labels.tolist(),
                settings,
                classes=classes or (),
                ledger=opened_ledger(ledger, budget, settings),
                run=run,
            )
            arrays = {"images": drawn.images} | ({} if drawn.labels is None else {"labels": drawn.labels})
            synthesis = drawn.synthesis
        write_arrays(out, arrays)
    if as_json:
        print(json.dumps(plain(synthesis), indent=1, ensure_ascii=False))
    else:
        print(f"{out}: {synthesis}")
