"""`finc-eval sketch`: the statistics of a set that a comparison needs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Json, Samples, Work, embeds, given_options, takes
from finc_eval.cli.output import Force, check_suffix, make_room, print_json, refuse_loss
from finc_eval.cli.sets import check_given
from finc_eval.core.errors import UsageError
from finc_eval.core.files.reading import header_of
from finc_eval.extractors.settings import Extraction
from finc_eval.sketches.settings import SketchSettings

OF_FEATURE_MAP = ("kernel", "sigma", "features", "frequencies", "seed")
"""Settings that a feature map already has."""


@takes(SketchSettings, "settings")
@embeds
def sketch(
    context: typer.Context,
    samples: Samples,
    out: Annotated[Path, typer.Option(help="HDF5 file to write.")],
    settings: SketchSettings,
    extraction: Extraction,
    work: Work,
    feature_map_of: Annotated[
        Path | None, typer.Option(help="Sketch whose feature map to use, so that both can be compared.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Reduce a set to the statistics that a comparison needs.

    Sketch the reference first, then every other set with --feature-map-of that sketch. Sketches are compared without
    their samples.
    """
    given = given_options(context, *OF_FEATURE_MAP)
    if feature_map_of is not None and given:
        raise UsageError(f"--feature-map-of brings its own feature map: leave {' and '.join(given)} out")
    check_given([samples, feature_map_of], extraction.extractor)
    check_suffix(out, ".h5")
    with work.running() as run:
        from finc_eval.embeddings.opening import as_embeddings, opened_sets  # loads torch: wrong options need not wait

        shared = None if feature_map_of is None else fe.Sketch.load(feature_map_of)
        spaces = [] if shared is None else [shared.space]
        embeddings = opened_sets({"samples": samples}, as_embeddings, extraction, run, spaces)["samples"]
        refuse_loss(out, lambda found: _sources(found) == [embeddings.digest], force)
        if shared is None:
            result = fe.Sketch.reference(embeddings, settings, run=run)
        else:
            phi = shared.feature_map if work.device is None else shared.feature_map.to(work.device)
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
    if as_json:
        print_json({"path": str(out), **result.to_dict()})
    elif phi.sigma is None:
        print(f"{out}: sketch of {result.n} samples, {phi.kernel} kernel, {phi.dim} entries per embedding")
    else:
        print(f"{out}: sketch of {result.n} samples, sigma {phi.sigma:.6g}, {phi.features} frequencies")


def _sources(path: Path) -> object:
    """Return the digests of the sets in a sketch; None for other files."""
    header = header_of(path) or {}
    return header.get("sources") if header.get("type") == "sketch" else None
