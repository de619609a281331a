"""The verbs that compare: sketch, compare, methods, sweep, models, changes, score, report."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from finc_eval.cli.options import (
    Device,
    Extractor,
    Features,
    Gen,
    Json,
    KernelName,
    Modes,
    Neighbors,
    Novel,
    PrecisionName,
    Raw,
    Ref,
    Seed,
    Sigma,
    Strict,
    all_embedded,
    embedded,
    feature_count,
    listed_methods,
    listed_numbers,
    named_sets,
    sketching_options,
    twin_of,
)
from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import terminal

SWEEP_FEATURES = {"sigma": 1000, "rho": 2000}
"""Random frequencies of a sweep: over sigma there is a sketch in memory for every value."""


def sketch(
    context: typer.Context,
    embeddings: Annotated[Path, typer.Option(help="The .h5 file of embeddings that extract wrote.")],
    out: Annotated[Path, typer.Option(help="The .h5 file to write.")],
    like: Annotated[
        Path | None,
        typer.Option(help="A sketch whose feature map to use: needed for the two to be compared."),
    ] = None,
    kernel: KernelName = "gaussian",
    sigma: Sigma = None,
    features: Features = "2000",
    seed: Seed = 0,
    precision: PrecisionName = "float32",
    device: Device = None,
) -> None:
    """Reduce a set to the statistics a comparison needs. Sketches compare without their samples.

    Sketch the reference first; then every other set with --like that sketch.
    """
    from finc_eval.comparison.inputs import reference_feature_map
    from finc_eval.sketches.sketch import Sketch

    how = sketching_options(kernel, sigma, feature_count(features), seed, precision, device)
    sources = {name: context.get_parameter_source(name) for name in ("kernel", "sigma", "features", "seed")}
    given = [f"--{name}" for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if like is not None and given:
        raise FincEvalError(f"--like brings its own feature map: leave {' and '.join(given)} out")
    with terminal() as progress:
        if like is None:
            phi, _ = reference_feature_map(
                embeddings, kernel=how.kernel, features=how.features, sigma=sigma, seed=seed, device=device
            )
        else:
            phi = Sketch.load(like).feature_map
            phi = phi if device is None else phi.to(device)
        result = Sketch.of(embeddings, phi, precision=how.precision, progress=progress)
        result.save(out)
    if phi.sigma is None:
        print(f"{out}: sketch of {result.n} samples, {phi.kernel} kernel, {phi.dim} entries an embedding")
    else:
        print(f"{out}: sketch of {result.n} samples, sigma {phi.sigma:.6g}, {phi.features} frequencies")


def compare(
    gen: Gen,
    ref: Ref,
    out: Annotated[Path, typer.Option(help="The .h5 file to write; a JSON twin goes beside it.")] = Path(
        "reports/comparison.h5"
    ),
    report: Annotated[Path | None, typer.Option(help="The HTML report to write; beside --out when left out.")] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="finc|ken|rarity|fld",
            help="What finds the modes: finc, or a baseline of its paper, which needs embeddings of both sets.",
        ),
    ] = "finc",
    rho: Annotated[float, typer.Option(help="Report kinds with more than RHO times the mass in the other set.")] = 1.0,
    kernel: KernelName = "gaussian",
    sigma: Sigma = None,
    features: Features = "2000",
    modes: Modes = 10,
    seed: Seed = 0,
    raw: Raw = False,
    novel: Novel = None,
    neighbors: Neighbors = None,
    precision: PrecisionName = "float32",
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Find the kinds of samples that --gen has more of than --ref, and fewer; write a report."""
    from finc_eval.comparison.compare import compare as run
    from finc_eval.comparison.method import Method
    from finc_eval.comparison.result import Comparison
    from finc_eval.report.tables import print_comparison

    chosen = Method.of(method, novel, neighbors)
    if raw and chosen.name != "finc":
        raise FincEvalError(f"--raw is about FINC's eigenvectors, and {chosen.name} rotates none: leave it out")
    twin = Comparison.twin(out)
    how = sketching_options(kernel, sigma, feature_count(features), seed, precision, device)
    with terminal() as progress:
        sets = all_embedded({"gen": gen, "ref": ref}, extractor, strict, device, progress)
        result = run(
            gen=sets["gen"],
            ref=sets["ref"],
            method=chosen.name,
            rho=rho,
            kernel=how.kernel,
            sigma=sigma,
            features=how.features,
            modes=modes,
            seed=seed,
            rotation=None if raw else "varimax",
            novel=novel,
            neighbors=neighbors,
            precision=how.precision,
            device=device,
            progress=progress,
        )
    result.save(out)
    page = result.to_html(report or out.with_suffix(".html"))
    if as_json:
        print(result.to_json())
        return
    print_comparison(result)
    print(f"\n{page}\n{out}\n{twin}")


def methods(
    gen: Gen,
    ref: Ref,
    by: Annotated[
        str, typer.Option(metavar="M,M,…", help="The methods, separated by commas, in the order of the columns.")
    ] = "finc,ken,rarity,fld",
    out: Annotated[Path, typer.Option(help="The HTML file to write; a JSON twin goes beside it.")] = Path(
        "reports/methods.html"
    ),
    rho: Annotated[float, typer.Option(help="Report kinds with more than RHO times the mass in the other set.")] = 1.0,
    kernel: KernelName = "gaussian",
    sigma: Sigma = None,
    features: Features = "2000",
    modes: Modes = 10,
    seed: Seed = 0,
    raw: Raw = False,
    novel: Novel = None,
    neighbors: Neighbors = None,
    precision: PrecisionName = "float32",
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Compare two sets by FINC and by the baselines of its paper; write a page with their modes side by side."""
    from finc_eval.comparison.methods import compare_methods
    from finc_eval.report.tables import print_methods

    chosen = listed_methods(by)
    twin = twin_of(out)
    how = sketching_options(kernel, sigma, feature_count(features), seed, precision, device)
    with terminal() as progress:
        sets = all_embedded({"gen": gen, "ref": ref}, extractor, strict, device, progress)
        table = compare_methods(
            sets["gen"],
            sets["ref"],
            chosen,
            rho=rho,
            kernel=how.kernel,
            sigma=sigma,
            features=how.features,
            modes=modes,
            seed=seed,
            rotation=None if raw else "varimax",
            novel=novel,
            neighbors=neighbors,
            precision=how.precision,
            device=device,
            progress=progress,
        )
    page, text = table.to_html(out), table.to_json(twin)
    if as_json:
        print(text)
        return
    print_methods(table)
    print(f"\n{page}\n{twin}")


def sweep(
    gen: Gen,
    ref: Ref,
    over: Annotated[
        str,
        typer.Option(
            metavar="sigma|rho",
            help="What to vary: sigma, the bandwidth, to see which kinds there are at which scale; or rho, to see "
            "which remain when one set must have many times the mass of the other.",
        ),
    ],
    values: Annotated[
        str | None,
        typer.Option(
            metavar="V,V,…",
            help="The values, separated by commas, in the units of the embedding for sigma; when left out, seven from "
            "0.25 to 2 x the reference's median distance, or 1,2,5,10 for rho.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The HTML file to write; a JSON twin goes beside it.")] = Path(
        "reports/sweep.html"
    ),
    rho: Annotated[float, typer.Option(help="The RHO of a sweep over sigma.")] = 1.0,
    kernel: Annotated[
        str, typer.Option(metavar="gaussian|cosine", help="The kernel of a sweep over rho; only gaussian has a sigma.")
    ] = "gaussian",
    sigma: Annotated[
        float | None,
        typer.Option(help="The bandwidth of a sweep over rho; half the reference's median distance when left out."),
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(
            help="Number of random frequencies, at every value; 1000 over sigma, 2000 over rho when left out."
        ),
    ] = None,
    modes: Modes = 10,
    seed: Seed = 0,
    raw: Raw = False,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Compare two sets under many bandwidths, or many RHO, reading each once; write a page of how modes come and go.

    Intervals are conservative here, so fewer modes pass than in compare, which takes the value you choose.
    """
    from finc_eval.comparison.sweep import RHOS, sweep_rho, sweep_sigma
    from finc_eval.report.tables import print_sweep

    if over not in ("sigma", "rho"):
        raise FincEvalError(f"--over must be sigma or rho, got {over!r}")
    if over == "sigma" and (sigma is not None or kernel != "gaussian"):
        raise FincEvalError(
            "a sweep over sigma tries bandwidths of the Gaussian kernel: leave --sigma and --kernel out"
        )
    if over == "rho" and rho != 1:
        raise FincEvalError("a sweep over rho tries many of them: leave --rho out, and pass them as --values")
    chosen = None if values is None else listed_numbers(values)
    twin = twin_of(out)
    count = SWEEP_FEATURES[over] if features is None else features
    how = sketching_options(kernel, sigma, count, seed, "float32", device)
    rotation: Literal["varimax"] | None = None if raw else "varimax"
    with terminal() as progress:
        sets = all_embedded({"gen": gen, "ref": ref}, extractor, strict, device, progress)
        if over == "sigma":
            result = sweep_sigma(
                sets["gen"],
                sets["ref"],
                chosen,
                rho=rho,
                features=count,
                modes=modes,
                seed=seed,
                rotation=rotation,
                device=device,
                progress=progress,
            )
        else:
            result = sweep_rho(
                sets["gen"],
                sets["ref"],
                chosen or RHOS,
                kernel=how.kernel,
                sigma=sigma,
                features=count,
                modes=modes,
                seed=seed,
                rotation=rotation,
                device=device,
                progress=progress,
            )
    page, text = result.to_html(out), result.to_json(twin)
    if as_json:
        print(text)
        return
    print_sweep(result)
    print(f"\n{page}\n{twin}")


def models(
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=PATH...",
            help="The models, each a name and its samples: images, or an .h5 of extract or sketch.",
        ),
    ],
    ref: Annotated[
        str | None,
        typer.Option(help="A reference set, likewise: it decides the bandwidth, and shows what the models lack."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The HTML file to write; a JSON twin goes beside it.")] = Path(
        "reports/models.html"
    ),
    rho: Annotated[
        float, typer.Option(help="Report kinds with more than RHO times the mean mass in the other sets.")
    ] = 1.0,
    kernel: KernelName = "gaussian",
    sigma: Sigma = None,
    features: Features = "2000",
    modes: Annotated[int, typer.Option(help="How many modes of each set at most.")] = 10,
    seed: Seed = 0,
    raw: Raw = False,
    precision: PrecisionName = "float32",
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Find the kinds of samples on which several models differ, and how much of each is whose; write a page."""
    from finc_eval.comparison.models import REFERENCE, compare_models
    from finc_eval.report.tables import print_models

    sources = named_sets(sets)
    twin = twin_of(out)
    how = sketching_options(kernel, sigma, feature_count(features), seed, precision, device)
    with terminal() as progress:
        wanted = sources | ({} if ref is None else {REFERENCE: ref})
        found = all_embedded(wanted, extractor, strict, device, progress)
        table = compare_models(
            {label: found[label] for label in sources},
            None if ref is None else found[REFERENCE],
            rho=rho,
            kernel=how.kernel,
            sigma=sigma,
            features=how.features,
            modes=modes,
            seed=seed,
            rotation=None if raw else "varimax",
            precision=how.precision,
            device=device,
            progress=progress,
        )
    page, text = table.to_html(out), table.to_json(twin)
    if as_json:
        print(text)
        return
    print_models(table)
    print(f"\n{page}\n{twin}")


def changes(
    old: Annotated[Path, typer.Option(help="The .h5 that compare wrote for the earlier release.")],
    new: Annotated[
        Path,
        typer.Option(help="The .h5 for the later one, compared with one sketch of the reference, in the same way."),
    ],
    as_json: Json = False,
) -> None:
    """Follow the modes from one release of a model to the next: new, grown, gone, shrunk, unchanged."""
    from finc_eval.comparison.changes import match_releases
    from finc_eval.comparison.result import Comparison
    from finc_eval.report.tables import print_changes

    found = match_releases(Comparison.load(old), Comparison.load(new))
    if as_json:
        print(json.dumps([change.to_dict() for change in found], indent=1))
        return
    print_changes(found)


def score(
    comparison: Annotated[Path, typer.Option(help="The .h5 file that compare wrote.")],
    samples: Annotated[str, typer.Option(help="Fresh samples: images, or an .h5 of extract.")],
    out: Annotated[Path, typer.Option(help="The .csv file to write: one row a sample, one column a mode.")],
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Score fresh samples on the modes of a comparison: high means the sample is of the mode."""
    from finc_eval.comparison.result import Comparison
    from finc_eval.core.storage import written_whole
    from finc_eval.embeddings.base import as_embeddings

    result = Comparison.load(comparison)
    with terminal() as progress:
        rows = as_embeddings(embedded("samples", samples, result.space.split("@")[0], strict, device, progress))
        with written_whole(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *(mode.id for mode in result.all_modes)])
            for batch, scores in result.score_batches(rows, result.all_modes):
                lines = ([f"{score:.6f}" for score in line] for line in scores)
                writer.writerows([name, *line] for name, line in zip(batch.ids, lines, strict=True))
                progress("score", batch.start + len(batch.ids), rows.n)
    print(f"{out}: scores of {rows.n} samples on {len(result.all_modes)} modes")


def report(
    comparison: Annotated[Path, typer.Option(help="The .h5 file that compare wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="The HTML file to write; beside the comparison when left out.")
    ] = None,
    gen_samples: Annotated[str | None, typer.Option(help="Where the generated images are now, if moved.")] = None,
    ref_samples: Annotated[str | None, typer.Option(help="Where the reference images are now, if moved.")] = None,
) -> None:
    """Write the HTML report of a comparison: one self-contained file."""
    from finc_eval.comparison.result import Comparison

    result = Comparison.load(comparison)
    print(result.to_html(out or comparison.with_suffix(".html"), gen_samples=gen_samples, ref_samples=ref_samples))
