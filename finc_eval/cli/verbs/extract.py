"""`finc-eval extract`: embed a set of samples; sketches, shards and caches."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.command import VerbGroup
from finc_eval.cli.options import Json, Quiet, Samples, Work, check_given, given_options, show_progress, takes, works
from finc_eval.cli.output import Force, check_suffix, has_header, make_room, print_json, refuse_loss
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.words import plural
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR, card_again, load_card
from finc_eval.extractors.settings import Extraction
from finc_eval.report.terminal import print_table
from finc_eval.samples.files import in_short
from finc_eval.samples.metadata import divide_ignored
from finc_eval.samples.shards import BY_RANK, MissingShards, Shard, shard_command, shard_path
from finc_eval.sketches.settings import SketchSettings

MAX_FAILURES_SHOWN = 10


@takes(Extraction, "extraction")
@works
def extract(
    samples: Annotated[
        str,
        typer.Argument(
            metavar="SAMPLES",
            help="Images: a folder, .zip, .npz, .tar shards, or a folder that Hugging Face datasets saved. Videos, for "
            "an extractor of clips: a folder or .zip of them, or of folders of frames. Or the URL of any of these "
            "(s3://, gs://, https:// …).",
        ),
    ],
    extraction: Extraction,
    work: Work,
    out: Annotated[Path | None, typer.Option(help="Path or URL of the .h5 file; default: a file in ~/.cache.")] = None,
    metadata: Annotated[
        Path | None,
        typer.Option(
            help="Table to keep with the samples (.csv, .jsonl or .parquet): labels, prompts, groups, anything. Its "
            "column file_name or id names the samples, or the video of all its windows. Samples that are embedded "
            "already get its columns without being embedded again."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Embed a set of samples, once. Killed or interrupted, the same command goes on where it stopped.

    Several processes share the work by --shard 1/8, --shard 2/8 …, or by --shard rank if torchrun starts them: torchrun
    --nproc-per-node 8 -m finc_eval extract … --shard rank --out set.h5. Then finc-eval extract merge joins what they
    made.
    """
    extraction, work = launch(extraction, work, out)
    check_given([samples, metadata], extraction.extractor)
    if out is not None:
        check_suffix(out, ".h5")
    with work.running() as run:
        cache = fe.extract(
            samples,
            extraction.extractor or DEFAULT_EXTRACTOR,
            out,
            n=extraction.n,
            seed=extraction.seed,
            strict=extraction.strict,
            precision=extraction.precision,
            fps=extraction.fps,
            metadata=metadata,
            shard=extraction.shard,
            **extraction.reading.choices,
            force=force,
            run=run,
        )
    if as_json:
        print_json(cache.to_dict())
        return
    print(f"{cache.path}: {plural(cache.n, 'embedding')} of dimension {cache.dim} by {cache.extractor}")
    if cache.shard is not None:
        print(f"  {describe(cache.shard)}")
    if cache.columns:
        print(f"  metadata: {', '.join(cache.columns)}")
    for name, reason in cache.failures[:MAX_FAILURES_SHOWN]:
        print(f"  unreadable: {name}: {reason}")
    if len(cache.failures) > MAX_FAILURES_SHOWN:
        print(f"  … and {len(cache.failures) - MAX_FAILURES_SHOWN} more unreadable")
    files, unmatched = divide_ignored(cache.ignored)
    if files:
        print("  ignored, not samples: " + in_short(files))
    if unmatched:
        print("  metadata that do not fit the samples: " + in_short(unmatched))


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
    extraction, work = launch(extraction, work, out)
    given = given_options(context, "kernel", "sigma", "features", "frequencies", "seed")
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
        from finc_eval.embeddings.needs import needs_columns  # they load torch: wrong options need not wait
        from finc_eval.embeddings.opening import open_embeddings

        shared = None if feature_map_of is None else fe.Sketch.load(feature_map_of)
        spaces = [] if shared is None else [shared.space]
        checks, or_shard = [needs_columns(settings.groups)], extraction.shard is not None
        sources = {"samples": samples}
        embeddings = open_embeddings(sources, extraction, run, spaces, or_shard=or_shard, checks=checks)["samples"]
        if (embeddings.shard and embeddings.shard.name) != extraction.shard:
            raise UsageError(f"{samples} is not shard {extraction.shard} of a set: sketch it without --shard")
        is_own = partial(_is_own, digest=embeddings.digest, settings=settings, shared=shared)
        refuse_loss(out, is_own, force)
        if shared is None:
            result = fe.Sketch.reference(embeddings, settings, run=run)
        else:
            phi = shared.feature_map if work.device is None else shared.feature_map.to(work.device)
            result = fe.Sketch.of(embeddings, phi, precision=settings.precision, groups=settings.groups, run=run)
    # The embeddings may have been made by another command.
    result.shards = tuple(replace(shard, command=shard_command()) for shard in result.shards)
    make_room(out, "sketch", force)
    result.save(out)
    _warn_of_size(out, result)
    _show_sketch(out, result, as_json)


def _is_own(path: Path, digest: str, settings: SketchSettings, shared: fe.Sketch | None) -> bool:
    """Return whether a file is a sketch of the embeddings with this digest, by the same settings."""
    if not has_header(path, type="sketch", sources=[digest], precision=settings.precision, groups=settings.groups):
        return False
    phi = fe.Sketch.load(path).feature_map
    if shared is not None:
        return phi.digest == shared.feature_map.digest
    asked = (settings.sigma, settings.features, settings.seed, settings.frequencies == "orthogonal")
    made = (phi.sigma, phi.features, phi.seed, phi.orthogonal)
    alike = all(wish in (None, "auto", other) for wish, other in zip(asked, made, strict=True))
    return phi.kernel == settings.kernel and (alike or phi.kernel == "cosine")


def _warn_of_size(out: Path, result: fe.Sketch) -> None:
    """Warn if a sketch takes more space than the embeddings of its set."""
    samples = result.shards[0].n if result.shards else result.n
    size, rows = out.stat().st_size, 4 * samples * result.dim
    if size > rows:
        warnings.warn(
            f"{out} has {size / 1e6:,.1f} MB, and the embeddings have {rows / 1e6:,.1f} MB: a sketch pays from about "
            f"{size // (4 * result.dim):,} samples on, or if embeddings may not be kept or shared",
            stacklevel=1,
        )


def _show_sketch(out: Path, result: fe.Sketch, as_json: bool) -> None:
    """Print what a sketch has, as JSON or in a line or two."""
    phi = result.feature_map
    if as_json:
        print_json({"path": str(out), **result.to_dict()})
    elif phi.sigma is None:
        print(f"{out}: sketch of {plural(result.n, 'sample')}, {phi.kernel} kernel, {phi.dim} entries per embedding")
    else:
        print(f"{out}: sketch of {plural(result.n, 'sample')}, sigma {phi.sigma:.6g}, {phi.features} frequencies")
    if result.shards and not as_json:
        print(f"  {describe(result.shards[0])}")


def merge(
    shards: Annotated[
        list[Path],
        typer.Argument(metavar="SHARDS", help="The files of all shards, in any order, such as set.*-of-8.h5."),
    ],
    out: Annotated[Path, typer.Option(help="HDF5 file to write.")],
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Join the shards of a set that several processes or machines made.

    The result is what one process would have made: embeddings from finc-eval extract --shard, or a sketch from
    finc-eval extract sketch --shard. Whole sketches of sets without common samples are added up as well.

    Missing shards are an error, and the commands that make them are printed on standard output, one a line. Shards that
    overlap, are damaged, or come from other samples or another extractor are refused.
    """
    check_given(shards)
    check_suffix(out, ".h5")
    try:
        with show_progress(quiet) as progress:
            made = fe.merge(shards, out, force=force, progress=progress)
    except MissingShards as error:
        print(*error.commands, sep="\n")
        raise
    if as_json:
        print_json({"path": str(out), **made.to_dict()})
    elif isinstance(made, fe.Sketch):
        print(f"{out}: sketch of {plural(made.n, 'sample')}, from {plural(len(shards), 'file')}")
    else:
        print(f"{out}: {plural(made.n, 'embedding')} by {made.extractor}, from {plural(len(shards), 'shard')}")
        if made.failures:
            print(f"  unreadable: {plural(len(made.failures), 'sample')}")


cache = typer.Typer(
    cls=VerbGroup,
    help="List, explain, verify and delete cached embeddings. They lie in $FINC_EVAL_CACHE, default: "
    "~/.cache/finc-eval/embeddings.",
)

Cache = Annotated[str, typer.Argument(help="Path of a cache, or the beginning of its key.")]
Caches = Annotated[list[str] | None, typer.Argument(help="Paths of caches, or the beginnings of their keys.")]


@cache.command()
def ls(as_json: Json = False) -> None:
    """List the caches, the latest first."""
    from finc_eval.embeddings import folder  # loads torch: wrong options need not wait

    caches = folder.entries()
    if as_json:
        print_json(caches)
        return
    if not caches:
        print(f"{folder.cache_folder()} holds no caches")
        return
    rows = []
    for cache in caches:
        shape, made = "" if cache.n is None else f"{cache.n} x {cache.dim}", datetime.fromtimestamp(cache.modified)
        about = cache.note or f"{cache.source or ''}{' (gone)' if cache.source_is_there is False else ''}"
        size = f"{cache.size / 1e6:,.1f}"
        rows.append(
            [cache.path.name[:12], cache.state, shape, cache.extractor or "", size, f"{made:%Y-%m-%d %H:%M}", about]
        )
    print_table("", ["key", "state", "embeddings", "extractor", "MB", "made", "samples"], rows)
    print(f"{sum(cache.size for cache in caches) / 1e6:,.1f} MB in {caches[0].path.parent}")


@cache.command()
@takes(Extraction, "extraction", strict=None)
def explain(
    cache: Cache,
    extraction: Extraction,
    samples: Annotated[
        str | None, typer.Option(help="Set of samples to compare with; default: the set that was embedded.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Explain why a cache would not be used again: print the parts of its key that have changed."""
    from finc_eval.embeddings import folder  # loads torch: wrong options need not wait
    from finc_eval.embeddings.cache import EmbeddingCache
    from finc_eval.embeddings.recipe import recipe_of

    with EmbeddingCache(folder.find(cache)) as opened, show_progress(quiet) as progress:
        card = load_card(extraction.extractor or card_again(opened.extractor))
        recipe = recipe_of(card, extraction.precision)
        lines = folder.explain(opened, samples, card, recipe, n=extraction.n, seed=extraction.seed, progress=progress)
        name = f"{opened.path}: {plural(opened.n, 'sample')} of {opened.source} by {opened.extractor}"
        path = str(opened.path)
    if as_json:
        print_json({"path": path, "used_again": not lines, "changed": lines})
        return
    print(name)
    for line in lines:
        print(f"  changed: {line}")
    print("  it would be made again" if lines else "  nothing has changed: it would be used as it is")


@cache.command()
def verify(caches: Caches = None, as_json: Json = False) -> None:
    """Read every row, and compare it with its checksum. Default: all caches."""
    from finc_eval.embeddings import folder  # loads torch: wrong options need not wait

    entries = [entry.path for entry in folder.entries() if entry.state != "unfinished"]
    paths = [folder.find(name) for name in caches] if caches else entries
    problems = {path: folder.verify(path) for path in paths}
    if as_json:
        print_json([{"path": str(path), "problem": problem} for path, problem in problems.items()])
    for path, problem in {} if as_json else problems.items():
        print(f"{path}: {problem or 'whole'}")
    damaged = [path for path, problem in problems.items() if problem]
    if damaged:
        raise DataError(
            f"{len(damaged)} of {plural(len(paths), 'cache')} damaged: finc-eval extract cache rm "
            f"{damaged[0].name[:12]}, and extract again"
        )


@cache.command()
def rm(
    caches: Caches = None,
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Delete every unfinished cache.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Delete all caches in the folder.")] = False,
    as_json: Json = False,
) -> None:
    """Delete caches, except caches that another process is writing."""
    if sum((bool(caches), unfinished, everything)) != 1:
        raise UsageError("name the caches to delete, or pass either --unfinished or --all")
    from finc_eval.embeddings import folder  # loads torch: wrong options need not wait

    if caches:
        wanted = [folder.entry_of(folder.find(name)) for name in caches]
    else:
        wanted = [entry for entry in folder.entries() if everything or entry.state == "unfinished"]
    freed: dict[str, int] = {}
    kept: list[DataError] = []
    for entry in wanted:
        try:
            freed[str(entry.path)] = folder.remove(entry)
        except DataError as error:
            kept.append(error)
    if as_json:
        print_json({"deleted": list(freed), "bytes": sum(freed.values())})
    else:
        print(f"deleted {plural(len(freed), 'cache')}, {sum(freed.values()) / 1e6:,.1f} MB")
    if kept:
        raise kept[0]


def launch(extraction: Extraction, work: Work, out: Path | None) -> tuple[Extraction, Work]:
    """Return the settings of this process, one of several that torchrun started if its shard is "rank".

    The first of them shows its progress. They never wait for each other. A training job that calls the command has
    RANK and WORLD_SIZE in its environment, too, so these alone make no shard.
    """
    if extraction.shard == BY_RANK:
        shard = shard_of_rank(os.environ)
        if shard is None:
            raise UsageError(
                "--shard rank takes the shard from RANK and WORLD_SIZE, which torchrun sets to more than one process: "
                "start it with torchrun, or pass --shard i/N"
            )
        extraction = replace(extraction, shard=shard)
        work = replace(work, quiet=work.quiet or not shard.startswith("1/"))
    if extraction.shard is not None and out is None:
        raise UsageError(
            f"shard {extraction.shard} needs --out: name the file of the whole set, such as set.h5, and the shard is "
            "written next to it with its number in the name"
        )
    return extraction, work


def shard_of_rank(environment: Mapping[str, str]) -> str | None:
    """Return the shard "i/N" of the process RANK = i − 1 of WORLD_SIZE = N; None for a process that is alone."""
    rank, size = (environment.get(name, "") for name in ("RANK", "WORLD_SIZE"))
    alone = not (rank.isdecimal() and size.isdecimal()) or int(size) == 1 or int(rank) >= int(size)
    return None if alone else f"{int(rank) + 1}/{int(size)}"


def describe(shard: Shard) -> str:
    """Return the line that says what a shard is."""
    samples = f"numbers {shard.start + 1:,} to {shard.stop:,}" if shard.size else "none"
    return f"shard {shard.name}: {samples} of {shard.n:,} samples; finc-eval extract merge joins all shards"
