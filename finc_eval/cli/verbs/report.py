"""`finc-eval report`: the page of a comparison, drawn again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe


def report(
    comparison: Annotated[Path, typer.Option(help="Comparison, an .h5 file that compare wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="HTML file to write; default: --comparison with the suffix .html.")
    ] = None,
    gen_samples: Annotated[str | None, typer.Option(help="Where the generated images are now, if they moved.")] = None,
    ref_samples: Annotated[str | None, typer.Option(help="Where the reference images are now, if they moved.")] = None,
) -> None:
    """Write the report of a saved comparison again.

    The report is one HTML file that loads nothing. It shows the images that it finds.
    """
    result = fe.Comparison.load(comparison)
    samples = {"gen": gen_samples, "ref": ref_samples}
    moved = {label: where for label, where in samples.items() if where is not None}
    print(result.to_html(out or comparison.with_suffix(".html"), samples=moved))
