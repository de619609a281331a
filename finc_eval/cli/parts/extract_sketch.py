"""`finc-eval extract sketch`: the statistics of a set that a comparison needs."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.launch import describe, launched
from finc_eval.cli.options import Json, Samples, Work, given_options, takes, works
from finc_eval.cli.output import Force, check_suffix, make_room, print_json, refuse_loss
from finc_eval.cli.sets import check_given
from finc_eval.core.errors import UsageError
from finc_eval.core.files.reading import header_of
from finc_eval.core.words import counted
from finc_eval.extractors.settings import Extraction
from finc_eval.samples.shards import shard_command, shard_path
from finc_eval.sketches.settings import SketchSettings

OF_FEATURE_MAP = ("kernel", "sigma", "features", "frequencies", "seed")
"""Settings that a feature map already has."""


@takes(SketchSettings, "settings")
@takes(Extraction, "extraction", seed=None, precision=None)
@works
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
    their samples. With --shard, the set may also be the .h5 file that extract --shard was given as --out.
    All shards take one --feature-map-of, and finc-eval extract merge adds them up.
    """
    extraction, work = launched(extraction, work, out)
    given = given_options(context, *OF_FEATURE_MAP)
    if feature_map_of is not None and given:
        raise UsageError(f"--feature-map-of brings its own feature map: leave {' and '.join(given)} out")
    check_suffix(out, ".h5")
    if extraction.shard is not None:
        if feature_map_of is None:
            raise UsageError(
                "sketches of shards add up if they have one feature map: sketch a part of the reference first, such "
                "as finc-eval extract sketch REF --n 20000 --out map.h5, and pass it to all, --feature-map-of map.h5"
            )
        out = shard_path(out, extraction.shard)
        if Path(samples).suffix == ".h5":
            samples = str(shard_path(Path(samples), extraction.shard))
    check_given([samples, feature_map_of], extraction.extractor)
    with work.running() as run:
        from finc_eval.embeddings.opening import (  # loads torch: wrong options need not wait
            as_embeddings,
            as_embeddings_of_any_shard,
            open_sets,
        )

        shared = None if feature_map_of is None else fe.Sketch.load(feature_map_of)
        spaces = [] if shared is None else [shared.space]
        open_one = as_embeddings if extraction.shard is None else as_embeddings_of_any_shard
        embeddings = open_sets({"samples": samples}, open_one, extraction, run, spaces)["samples"]
        if (embeddings.shard and embeddings.shard.name) != extraction.shard:
            raise UsageError(f"{samples} is not shard {extraction.shard} of a set: sketch it without --shard")
        refuse_loss(out, lambda found: _sources(found) == [embeddings.digest], force)
        if shared is None:
            result = fe.Sketch.reference(embeddings, settings, run=run)
        else:
            phi = shared.feature_map if work.device is None else shared.feature_map.to(work.device)
            result = fe.Sketch.of(embeddings, phi, precision=settings.precision, groups=settings.groups, run=run)
    # The embeddings may have been made by another command.
    result.shards = tuple(replace(one, command=shard_command()) for one in result.shards)
    make_room(out, "sketch", force)
    result.save(out)
    samples_of_set = result.shards[0].n if result.shards else result.n
    size, rows = out.stat().st_size, 4 * samples_of_set * result.dim
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
        print(f"{out}: sketch of {counted(result.n, 'sample')}, {phi.kernel} kernel, {phi.dim} entries per embedding")
    else:
        print(f"{out}: sketch of {counted(result.n, 'sample')}, sigma {phi.sigma:.6g}, {phi.features} frequencies")
    if result.shards and not as_json:
        print(f"  {describe(result.shards[0])}")


def _sources(path: Path) -> object:
    """Return the digests of the sets in a sketch; None for other files."""
    header = header_of(path) or {}
    return header.get("sources") if header.get("type") == "sketch" else None
