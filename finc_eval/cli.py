"""The command line: one verb per step; each parses, calls the library, prints. Nothing heavy loads before it must."""

from __future__ import annotations

import csv
import json
import sys
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from typer.core import TyperGroup

from finc_eval.errors import FincEvalError
from finc_eval.progress import Progress, terminal

if TYPE_CHECKING:
    from finc_eval.cache import EmbeddingCache
    from finc_eval.products import Precision
    from finc_eval.sides import Kernel, Sketching

BAD_INPUT, INTERRUPTED = 3, 130

SWEEP_FEATURES = {"sigma": 1000, "rho": 2000}
"""Random frequencies of a sweep: over sigma there is a sketch in memory for every value."""


class _Verbs(TyperGroup):
    """Turns what a user can cause into one sentence on stderr and an exit code, instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except FincEvalError as error:
            print(f"finc-eval: {error}", file=sys.stderr)
            raise typer.Exit(BAD_INPUT) from error
        except KeyboardInterrupt as error:
            print(
                "finc-eval: interrupted; what is finished is kept, and the same command goes on from there",
                file=sys.stderr,
            )
            raise typer.Exit(INTERRUPTED) from error


app = typer.Typer(
    cls=_Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Which kinds of images does one generative model make more often than another?\n\n"
        "  [bold]finc-eval demo[/bold]                              see it work, on digits that come with it\n\n"
        "  [bold]finc-eval compare --gen A/ --ref B/[/bold]         compare two folders, and write a report\n\n"
        "The steps can be run one by one, and each leaves a file that later steps re-use: "
        "extract → sketch → compare → score · report. Beyond two sets: sweep tries many bandwidths or ρ, models "
        "compares many models at once, changes follows the modes from one release to the next. "
        "Results go to stdout, progress to stderr. "
        "Exit code 0: done; 3: the input cannot be used, and stderr says why in one sentence."
    ),
)

Extractor = Annotated[str, typer.Option(help="Name of an extractor card, or the path of your own .toml.")]
Strict = Annotated[bool, typer.Option("--strict", help="Unreadable samples are an error, not a note.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 …; CUDA if there is one when left out.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout instead of a table.")]
Sigma = Annotated[
    float | None,
    typer.Option(help="Bandwidth of the Gaussian kernel; half the reference's median distance when left out."),
]
KernelName = Annotated[
    str,
    typer.Option(
        metavar="gaussian|cosine",
        help="gaussian tells kinds apart by their distance, at the scale of sigma; cosine by their angle alone, and is "
        "exact, with neither bandwidth nor frequencies.",
    ),
]
Features = Annotated[
    str,
    typer.Option(
        metavar="N|auto",
        help="Number of random frequencies: more is more exact, and slower. auto takes 1000, 2000 or 4000, the first "
        "whose measured error of the kernel is within 0.01.",
    ),
]
PrecisionName = Annotated[
    str,
    typer.Option(
        metavar="float32|tf32|bfloat16|float64",
        help="How features enter the covariances: tf32 and bfloat16 are faster on GPUs and coarser, float64 is slower.",
    ),
]
Gen = Annotated[
    str, typer.Option(help="The generated set: a folder, .zip or .npz of images, or an .h5 of extract or sketch.")
]
Ref = Annotated[str, typer.Option(help="The reference set, likewise.")]
Modes = Annotated[int, typer.Option(help="How many modes of each role at most.")]
Raw = Annotated[bool, typer.Option("--raw", help="The paper's raw eigenvectors, without the varimax rotation.")]
Seed = Annotated[int, typer.Option(help="Seed of the random frequencies.")]


@app.command()
def extract(
    samples: Annotated[str, typer.Argument(help="Folder, .zip or .npz of images.")],
    out: Annotated[
        Path | None, typer.Option(help="The .h5 file to write; by default one in ~/.cache/finc-eval.")
    ] = None,
    extractor: Extractor = "pixels",
    strict: Strict = False,
    batch_size: Annotated[int, typer.Option(help="Images per pass through the network.")] = 64,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Embed a set of images, once. Killed or interrupted, the same command goes on where it stopped."""
    from finc_eval.extraction import extract as run

    with terminal() as progress:
        cache = run(samples, extractor, out, strict=strict, batch_size=batch_size, device=device, progress=progress)
    record = {
        "path": str(cache.path),
        "n": cache.n,
        "dim": cache.dim,
        "extractor": cache.extractor,
        "key": cache.key,
        "unreadable": dict(cache.failures),
        "ignored": cache.ignored,
    }
    if as_json:
        print(json.dumps(record, indent=1))
        return
    print(f"{cache.path}: {cache.n} embeddings of dimension {cache.dim} by {cache.extractor}")
    _note_losses(cache)


@app.command()
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
    from finc_eval.sides import reference_feature_map
    from finc_eval.sketch import Sketch

    how = _sketching(kernel, sigma, _features(features), seed, precision, device)
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


@app.command()
def compare(
    gen: Gen,
    ref: Ref,
    out: Annotated[Path, typer.Option(help="The .h5 file to write; a JSON twin goes beside it.")] = Path(
        "reports/comparison.h5"
    ),
    report: Annotated[Path | None, typer.Option(help="The HTML report to write; beside --out when left out.")] = None,
    rho: Annotated[float, typer.Option(help="Report kinds with more than RHO times the mass in the other set.")] = 1.0,
    kernel: KernelName = "gaussian",
    sigma: Sigma = None,
    features: Features = "2000",
    modes: Modes = 10,
    seed: Seed = 0,
    raw: Raw = False,
    precision: PrecisionName = "float32",
    extractor: Extractor = "pixels",
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Find the kinds of samples that --gen has more of than --ref, and fewer; write a report."""
    from finc_eval.comparison import compare as run
    from finc_eval.results import Comparison
    from finc_eval.tables import print_comparison

    twin = Comparison.twin(out)
    how = _sketching(kernel, sigma, _features(features), seed, precision, device)
    with terminal() as progress:
        sets = _all_embedded({"gen": gen, "ref": ref}, extractor, strict, device, progress)
        result = run(
            gen=sets["gen"],
            ref=sets["ref"],
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
    result.save(out)
    page = result.to_html(report or out.with_suffix(".html"))
    if as_json:
        print(result.to_json())
        return
    print_comparison(result)
    print(f"\n{page}\n{out}\n{twin}")


@app.command()
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
    extractor: Extractor = "pixels",
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Compare two sets under many bandwidths, or many RHO, reading each once; write a page of how modes come and go.

    Intervals are conservative here, so fewer modes pass than in compare, which takes the value you choose.
    """
    from finc_eval.sweeps import RHOS, sweep_rho, sweep_sigma
    from finc_eval.tables import print_sweep

    if over not in ("sigma", "rho"):
        raise FincEvalError(f"--over must be sigma or rho, got {over!r}")
    if over == "sigma" and (sigma is not None or kernel != "gaussian"):
        raise FincEvalError(
            "a sweep over sigma tries bandwidths of the Gaussian kernel: leave --sigma and --kernel out"
        )
    if over == "rho" and rho != 1:
        raise FincEvalError("a sweep over rho tries many of them: leave --rho out, and pass them as --values")
    chosen = None if values is None else _values(values)
    twin = _twin(out)
    count = SWEEP_FEATURES[over] if features is None else features
    how = _sketching(kernel, sigma, count, seed, "float32", device)
    rotation: Literal["varimax"] | None = None if raw else "varimax"
    with terminal() as progress:
        sets = _all_embedded({"gen": gen, "ref": ref}, extractor, strict, device, progress)
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


@app.command()
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
    extractor: Extractor = "pixels",
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Find the kinds of samples on which several models differ, and how much of each is whose; write a page."""
    from finc_eval.ensemble import REFERENCE, compare_models
    from finc_eval.tables import print_models

    sources = _named(sets)
    twin = _twin(out)
    how = _sketching(kernel, sigma, _features(features), seed, precision, device)
    with terminal() as progress:
        wanted = sources | ({} if ref is None else {REFERENCE: ref})
        found = _all_embedded(wanted, extractor, strict, device, progress)
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


@app.command()
def changes(
    old: Annotated[Path, typer.Option(help="The .h5 that compare wrote for the earlier release.")],
    new: Annotated[
        Path,
        typer.Option(help="The .h5 for the later one, compared with one sketch of the reference, in the same way."),
    ],
    as_json: Json = False,
) -> None:
    """Follow the modes from one release of a model to the next: new, grown, gone, shrunk, unchanged."""
    from finc_eval.releases import match_releases
    from finc_eval.results import Comparison
    from finc_eval.tables import print_changes

    found = match_releases(Comparison.load(old), Comparison.load(new))
    if as_json:
        print(json.dumps([change.to_dict() for change in found], indent=1))
        return
    print_changes(found)


@app.command()
def score(
    comparison: Annotated[Path, typer.Option(help="The .h5 file that compare wrote.")],
    samples: Annotated[str, typer.Option(help="Fresh samples: images, or an .h5 of extract.")],
    out: Annotated[Path, typer.Option(help="The .csv file to write: one row a sample, one column a mode.")],
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Score fresh samples on the modes of a comparison: high means the sample is of the mode."""
    from finc_eval.embeddings import as_embeddings
    from finc_eval.results import Comparison
    from finc_eval.storage import written_whole

    result = Comparison.load(comparison)
    with terminal() as progress:
        rows = as_embeddings(_embedded("samples", samples, result.space.split("@")[0], strict, device, progress))
        with written_whole(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *(mode.id for mode in result.all_modes)])
            for batch, scores in result.score_batches(rows, result.all_modes):
                lines = ([f"{score:.6f}" for score in line] for line in scores)
                writer.writerows([name, *line] for name, line in zip(batch.ids, lines, strict=True))
                progress("score", batch.start + len(batch.ids), rows.n)
    print(f"{out}: scores of {rows.n} samples on {len(result.all_modes)} modes")


@app.command()
def report(
    comparison: Annotated[Path, typer.Option(help="The .h5 file that compare wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="The HTML file to write; beside the comparison when left out.")
    ] = None,
    gen_samples: Annotated[str | None, typer.Option(help="Where the generated images are now, if moved.")] = None,
    ref_samples: Annotated[str | None, typer.Option(help="Where the reference images are now, if moved.")] = None,
) -> None:
    """Write the HTML report of a comparison: one self-contained file."""
    from finc_eval.results import Comparison

    result = Comparison.load(comparison)
    print(result.to_html(out or comparison.with_suffix(".html"), gen_samples=gen_samples, ref_samples=ref_samples))


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("reports/demo"),
    as_json: Json = False,
) -> None:
    """Plant differences between two sets of real digits, compare them as any folders, and say what was found."""
    from finc_eval.demo.run import run_demo
    from finc_eval.tables import print_comparison, print_planted

    with terminal() as progress:
        result = run_demo(out, progress)
    if as_json:
        print(result.comparison.to_json())
        return
    print_comparison(result.comparison)
    print_planted(result)
    print(f"\nOpen the report: {result.report}")


def main() -> None:
    """Entry point of `finc-eval`: usage errors, too, end with exit code 3."""
    try:
        app()
    except SystemExit as end:
        raise SystemExit(BAD_INPUT if end.code == 2 else end.code) from None


def _sketching(
    kernel: str, sigma: float | None, features: int | Literal["auto"], seed: int, precision: str, device: str | None
) -> Sketching:
    """The options of a feature map, checked before any work is done."""
    from finc_eval.sides import Sketching

    return Sketching(cast("Kernel", kernel), sigma, features, seed, cast("Precision", precision), device=device)


def _features(text: str) -> int | Literal["auto"]:
    """The number in "2000", or "auto"."""
    if text == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError:
        raise FincEvalError(f"--features must be a whole number or auto, got {text!r}") from None


def _values(text: str) -> list[float]:
    """The numbers in "1,2,5"."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < value < inf for value in found):
        raise FincEvalError(f"--values must be positive numbers separated by commas, such as 1,2,5, got {text!r}")
    return found


def _named(arguments: list[str]) -> dict[str, str]:
    """Sets by name, from NAME=PATH."""
    sets: dict[str, str] = {}
    for argument in arguments:
        name, _, path = argument.partition("=")
        if not name or not path:
            raise FincEvalError(f"{argument!r} is not of the form NAME=PATH: write for example mine=samples/")
        if name in sets:
            raise FincEvalError(f"two models are called {name!r}: give each a name of its own")
        sets[name] = path
    return sets


def _twin(page: Path) -> Path:
    """Where the JSON twin of a page lies."""
    from finc_eval.storage import kind_of

    twin = page.with_suffix(".json")
    if twin == page:
        raise FincEvalError(f"{page} is the name of the JSON twin: call the page {page.stem}.html")
    if kind_of(page) is not None:
        raise FincEvalError(f"{page} is a finc-eval file, no page: it is not overwritten, choose another name")
    return twin


def _all_embedded(
    sources: dict[str, str], extractor: str, strict: bool, device: str | None, progress: Progress
) -> dict[str, EmbeddingCache | str]:
    return {label: _embedded(label, source, extractor, strict, device, progress) for label, source in sources.items()}


def _embedded(
    label: str, source: str, extractor: str, strict: bool, device: str | None, progress: Progress
) -> EmbeddingCache | str:
    """The path of embeddings or a sketch as it is; anything else is embedded first."""
    from finc_eval.extraction import extract as run
    from finc_eval.storage import kind_of

    if Path(source).is_file() and kind_of(source) is not None:
        return source

    def labelled(stage: str, done: int, total: int) -> None:
        progress(f"{stage} {label}", done, total)

    return run(source, extractor, strict=strict, device=device, progress=labelled)


def _note_losses(cache: EmbeddingCache) -> None:
    for name, reason in cache.failures[:10]:
        print(f"  unreadable: {name}: {reason}")
    if len(cache.failures) > 10:
        print(f"  … and {len(cache.failures) - 10} more unreadable samples")
    if cache.ignored:
        print("  ignored, no images: " + ", ".join(f"{count} × {suffix}" for suffix, count in cache.ignored.items()))
