"""`finc-eval compare changes`: what became of the kinds from one release of a model to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Json, Pictures
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given
from finc_eval.gallery.counts import SHOWN_SAMPLES, check_shown


def changes(
    old: Annotated[Path, typer.Option(help="Comparison of the earlier release, an .h5 file that compare wrote.")],
    new: Annotated[
        Path, typer.Option(help="Comparison of the later release with the same reference, made with --kinds.")
    ],
    out: Out = None,
    force: Force = False,
    pictures: Pictures = SHOWN_SAMPLES,
    as_json: Json = False,
) -> None:
    """Follow the kinds from one release of a model to the next.

    Each kind is new, grown, unchanged, undecided, shrunk or gone. Compare both releases with one reference, the later
    one by the kinds of the earlier one: compare --kinds old.h5.
    """
    sources = {"old": str(old), "new": str(new)}
    check_given(sources.values())
    check_shown(pictures)
    before, after = fe.Comparison.load(old), fe.Comparison.load(new)
    titles = (before.gen.name, after.gen.name)
    output = output_folder("changes", "changes", sources, out, force, titles=titles)
    emit(fe.compare_releases(before, after).showing(pictures), output, as_json)
