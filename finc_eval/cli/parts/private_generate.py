"""`finc-eval private generate`: synthetic tables and images from one differentially private release of real ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Annotated, Any

import typer

import finc_eval as fe
from finc_eval.cli.budget import Budget, LedgerFile, opened_ledger
from finc_eval.cli.claims import claim
from finc_eval.cli.fields import list_parser
from finc_eval.cli.options import Json, Work, takes, works
from finc_eval.cli.output import Force, Output, check_suffix, emit
from finc_eval.cli.sets import check_given
from finc_eval.core.errors import UsageError
from finc_eval.core.marks import job_digest
from finc_eval.core.storage import check_free, reserved
from finc_eval.core.words import counted
from finc_eval.privacy.synthesis.files import (
    SUFFIXES,
    irregular_lines,
    read_columns,
    read_images,
    write_arrays,
)
from finc_eval.privacy.synthesis.result import Synthesis
from finc_eval.privacy.synthesis.settings import ImageSynthesisSettings

BYTES_OF_A_CELL = 64
"""Bytes that are held on the disk for a cell of a table, or for the label of an image."""


@takes(ImageSynthesisSettings, "settings")
@works
def generate(
    data: Annotated[
        Path,
        typer.Option(help="Private data: a table as .csv or .npz, or an .npz with images (n, h, w) uint8 and labels."),
    ],
    ledger: LedgerFile,
    out: Annotated[
        Path,
        typer.Option(
            help="File of the synthetic data to write: .csv or .npz, for images .npz. A page about the release, and "
            "the same as JSON, are written beside it."
        ),
    ],
    settings: ImageSynthesisSettings,
    work: Work,
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
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Release a noisy summary of private data once, and write synthetic records that agree with it.

    With --table the records are the rows of a table, whose ranges and values come from --table alone, never from the
    data. Without it the records are images. Every run on the same data spends epsilon again.
    """
    check_given([data, table])
    if data.is_dir():
        raise UsageError(
            f"{data} is a folder, and private images are taken from one file: pass an .npz of an array images of shape "
            "(n, height, width), uint8, and labels where there are classes, which numpy.savez writes"
        )
    if table is None and data.suffix != ".npz":
        raise UsageError(
            f"{data} is a table: pass --table with its columns and their public ranges, which are not taken from the "
            "data"
        )
    if table is not None and classes is not None:
        raise UsageError(
            "--classes is for images: the classes of a table are its label in --table, so pass only one of the two"
        )
    check_suffix(out, *(SUFFIXES if table is not None else SUFFIXES[1:]))
    inputs = {"data": str(data)} | ({} if table is None else {"table": str(table)})
    output = Output(out.parent, Synthesis.type_name, out.stem, job_digest("dp-generate", inputs), force)
    check_free(out)
    output.check()
    claim(output.files[".html"])
    book = opened_ledger(ledger, budget, settings)
    with work.running() as run:
        if table is not None:
            columns, described = read_columns(data), fe.privacy.Table.load(table)
            if irregular := irregular_lines(data):
                warnings.warn(
                    f"{data} has {counted(irregular, 'record')} with more or fewer cells than its line of names: "
                    "missing cells count as empty, and cells beyond it are dropped. No noise protects this number: "
                    "keep it to yourself",
                    stacklevel=1,
                )
            n = settings.count or len(next(iter(columns.values())))
            with reserved(out, n * len(described.levels) * BYTES_OF_A_CELL) as write:
                made = fe.privacy.synthesize_table(columns, described, settings, ledger=book, run=run)
                synthesis = _written(
                    made.synthesis, output, {}, partial(write, partial(write_arrays, arrays=made.values))
                )
        else:
            images, labels = read_images(data)
            _check_classes(data, labels is not None, classes)
            n = settings.count or len(images)
            with reserved(out, n * (prod(images.shape[1:]) + BYTES_OF_A_CELL)) as write:
                drawn = fe.privacy.synthesize_images(
                    images,
                    None if labels is None else list(labels),
                    settings,
                    classes=classes or (),
                    ledger=book,
                    run=run,
                )
                arrays = {"images": drawn.images} | ({} if drawn.labels is None else {"labels": drawn.labels})
                pictures = {"synthetic": drawn.images}
                written = partial(write, partial(write_arrays, arrays=arrays))
                synthesis = _written(drawn.synthesis, output, pictures, written)
    emit(synthesis, None, as_json)
    if not as_json:
        print("", *reversed(output.files.values()), out, sep="\n")


def _check_classes(data: Path, labeled: bool, classes: Sequence[str] | None) -> None:
    """Refuse labels without their public list, and a list without labels, before anything is spent."""
    if labeled and classes is None:
        raise UsageError(
            f"{data} has labels: pass --classes, the public list of classes, or a file without labels for images alone"
        )
    if classes is not None and not labeled:
        raise UsageError(f"--classes needs the class of each image, and {data} has no array labels: add it")


def _written(synthesis: Synthesis, output: Output, pictures: Mapping[str, Any], write: Callable[[], None]) -> Synthesis:
    """Write the page and the JSON, then the data, whatever becomes of the page.

    The same command replaces a page that has no data, and never data that were paid for.
    """
    marked = synthesis.marked(output.job)
    try:
        output.write(marked, {}, pictures)
    finally:
        write()
    return marked
