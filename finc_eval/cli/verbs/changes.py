"""`finc-eval changes`: what became of the modes from one release of a model to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Json, Page
from finc_eval.cli.output import emit, twin_of


def changes(
    old: Annotated[Path, typer.Option(help="Comparison of the earlier release, an .h5 file that compare wrote.")],
    new: Annotated[Path, typer.Option(help="Comparison of the later release with the same sketch of the reference.")],
    out: Page = Path("reports/changes.html"),
    as_json: Json = False,
) -> None:
    """Follow the modes from one release of a model to the next.

    Each mode is new, grown, unchanged, shrunk or gone. Compare both releases with one sketch of the reference, with
    the same settings.
    """
    twin_of(out)
    emit(fe.compare_releases(fe.Comparison.load(old), fe.Comparison.load(new)), out, as_json)
