"""`finc-eval report`: the page of a comparison, drawn again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Json
from finc_eval.cli.output import Force, check_suffix, print_json, refuse_loss
from finc_eval.cli.sets import check_given
from finc_eval.core.marks import mark, mark_of, text_digest


def report(
    comparison: Annotated[Path, typer.Argument(help="Comparison, an .h5 file that compare wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="HTML file to write; default: COMPARISON with the suffix .html.")
    ] = None,
    gen_samples: Annotated[str | None, typer.Option(help="Where the generated images are now, if they moved.")] = None,
    ref_samples: Annotated[str | None, typer.Option(help="Where the reference images are now, if they moved.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the report of a saved comparison again.

    The report is one HTML file that loads nothing. It shows the pictures that the comparison's file keeps, or those of
    the samples that --gen-samples and --ref-samples name.
    """
    check_given([comparison, gen_samples, ref_samples])
    page = out or comparison.with_suffix(".html")
    check_suffix(page, ".html")
    result = fe.Comparison.load(comparison)
    job = result.provenance.job or text_digest(result.to_json())  # made in Python: known by its content
    own = mark(result.type_name, job)
    refuse_loss(page, lambda found: mark_of(found) == own, force)
    samples = {"gen": gen_samples, "ref": ref_samples}
    moved = {label: where for label, where in samples.items() if where is not None}
    written = result.marked(job).to_html(page, samples=moved)
    print_json({"path": str(written)}) if as_json else print(written)
