"""`finc-eval sketch`: the statistics of a set that a comparison needs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Device, given_options, running, takes
from finc_eval.cli.output import Force, check_suffix, make_room, refuse_loss
from finc_eval.cli.sets import check_given
from finc_eval.core.errors import UsageError
from finc_eval.core.files.reading import header_of
from finc_eval.sketches.settings import SketchSettings

OF_FEATURE_MAP = ("kernel", "sigma", "features", "seed")
"""Settings that a feature map already has."""


@takes(SketchSettings, "settings")
def sketch(
    context: typer.Context,
    embeddings: Annotated[Path, typer.Option(help="Embeddings, an .h5 file that extract wrote.")],
    out: Annotated[Path, typer.Option(help="HDF5 file to write.")],
    settings: SketchSettings,
    feature_map_of: Annotated[
        Path | None, typer.Option(help="Sketch whose feature map to use, so that both can be compared.")
    ] = None,
    device: Device = None,
    force: Force = False,
) -> None:
    """Reduce embeddings to the statistics that a comparison needs.

    Sketch the reference first, then every other set with --feature-map-of that sketch. Sketches are compared without
    their samples.
    """
    given = given_options(context, *OF_FEATURE_MAP)
    if feature_map_of is not None and given:
        raise UsageError(f"--feature-map-of brings its own feature map: leave {' and '.join(given)} out")
    check_given([embeddings, feature_map_of])
    check_suffix(out, ".h5")
    refuse_loss(out, lambda found: _sources(found) == [_digest(embeddings)], force)
    with running(device) as run:
        if feature_map_of is None:
            result = fe.Sketch.reference(embeddings, settings, run=run)
        else:
            phi = fe.Sketch.load(feature_map_of).feature_map
            phi = phi if device is None else phi.to(device)
            result = fe.Sketch.of(embeddings, phi, precision=settings.precision, groups=settings.groups, run=run)
    make_room(out, "sketch", force)
    result.save(out)
    size, rows = out.stat().st_size, 4 * result.n * result.dim
    if size > rows:
        warnings.warn(
            f"{out} has {size / 1e6:,.1f} MB, and the embeddings have {rows / 1e6:,.1f} MB: a sketch pays from about "
            f"{size // (4 * result.dim):,} samples on, or where embeddings may not be kept or shared",
            stacklevel=1,
        )
    phi = result.feature_map
    if phi.sigma is None:
        print(f"{out}: sketch of {result.n} samples, {phi.kernel} kernel, {phi.dim} entries per embedding")
    else:
        print(f"{out}: sketch of {result.n} samples, sigma {phi.sigma:.6g}, {phi.features} frequencies")


def _sources(path: Path) -> object:
    """Return the digests of the sets in a sketch; None for other files."""
    header = header_of(path) or {}
    return header.get("sources") if header.get("type") == "sketch" else None


def _digest(embeddings: Path) -> str:
    from finc_eval.embeddings.opening import as_embeddings  # loads torch, which wrong options need not wait for

    return as_embeddings(embeddings).digest
