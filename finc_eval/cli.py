"""The command line: one verb per step; each parses, calls the library, prints. Nothing heavy loads before it must."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from finc_eval.errors import FincEvalError
from finc_eval.progress import Progress, terminal

if TYPE_CHECKING:
    from finc_eval.cache import EmbeddingCache
    from finc_eval.demo.run import DemoResult
    from finc_eval.modes import Mode
    from finc_eval.results import Comparison

BAD_INPUT, INTERRUPTED = 3, 130


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
        "extract → sketch → compare → score · report. Results go to stdout, progress to stderr. "
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
Features = Annotated[int, typer.Option(help="Number of random frequencies.")]
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
    embeddings: Annotated[Path, typer.Option(help="The .h5 file of embeddings that extract wrote.")],
    out: Annotated[Path, typer.Option(help="The .h5 file to write.")],
    like: Annotated[
        Path | None,
        typer.Option(help="A sketch whose feature map to use: needed for the two to be compared."),
    ] = None,
    sigma: Sigma = None,
    features: Features = 2000,
    seed: Seed = 0,
    device: Device = None,
) -> None:
    """Reduce a set to the statistics a comparison needs. Sketches compare without their samples.

    Sketch the reference first; then every other set with --like that sketch.
    """
    from finc_eval.sides import reference_feature_map
    from finc_eval.sketch import Sketch

    if like is not None and sigma is not None:
        raise FincEvalError("--like brings its own bandwidth: leave --sigma out")
    with terminal() as progress:
        if like is None:
            phi, _ = reference_feature_map(embeddings, features=features, sigma=sigma, seed=seed, device=device)
        else:
            phi = Sketch.load(like).feature_map
            phi = phi if device is None else phi.to(device)
        result = Sketch.of(embeddings, phi, progress=progress)
        result.save(out)
    print(f"{out}: sketch of {result.n} samples, sigma {phi.sigma:.6g}, {phi.features} frequencies")


@app.command()
def compare(
    gen: Annotated[
        str,
        typer.Option(help="The generated set: a folder, .zip or .npz of images, or an .h5 of extract or sketch."),
    ],
    ref: Annotated[str, typer.Option(help="The reference set, likewise.")],
    out: Annotated[Path, typer.Option(help="The .h5 file to write; a JSON twin goes beside it.")] = Path(
        "reports/comparison.h5"
    ),
    report: Annotated[Path | None, typer.Option(help="The HTML report to write; beside --out when left out.")] = None,
    rho: Annotated[float, typer.Option(help="Report kinds with more than RHO times the mass in the other set.")] = 1.0,
    sigma: Sigma = None,
    features: Features = 2000,
    modes: Annotated[int, typer.Option(help="How many modes of each role at most.")] = 10,
    seed: Seed = 0,
    raw: Annotated[
        bool, typer.Option("--raw", help="The paper's raw eigenvectors, without the varimax rotation.")
    ] = False,
    extractor: Extractor = "pixels",
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Find the kinds of samples that --gen has more of than --ref, and fewer; write a report."""
    from finc_eval.comparison import compare as run
    from finc_eval.results import Comparison

    twin = Comparison.twin(out)
    with terminal() as progress:
        operands = [
            _embedded(name, source, extractor, strict, device, progress)
            for name, source in (("gen", gen), ("ref", ref))
        ]
        result = run(
            gen=operands[0],
            ref=operands[1],
            rho=rho,
            sigma=sigma,
            features=features,
            modes=modes,
            seed=seed,
            rotation=None if raw else "varimax",
            device=device,
            progress=progress,
        )
    result.save(out)
    page = result.to_html(report or out.with_suffix(".html"))
    if as_json:
        print(result.to_json())
        return
    _print_comparison(result)
    print(f"\n{page}\n{out}\n{twin}")


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

    with terminal() as progress:
        result = run_demo(out, progress)
    if as_json:
        print(result.comparison.to_json())
        return
    _print_comparison(result.comparison)
    _print_planted(result)
    print(f"\nOpen the report: {result.report}")


def main() -> None:
    """Entry point of `finc-eval`: usage errors, too, end with exit code 3."""
    try:
        app()
    except SystemExit as end:
        raise SystemExit(BAD_INPUT if end.code == 2 else end.code) from None


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


def _table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    # A pipe has no width: keep rows on one line.
    Console(width=None if sys.stdout.isatty() else 140, markup=False).print(table)


def _print_comparison(result: Comparison) -> None:
    def row(rank: int, mode: Mode) -> list[str]:
        low, high = mode.interval
        return [
            str(rank),
            mode.id,
            f"{mode.mass_gen:.4f}",
            f"{mode.mass_ref:.4f}",
            f"{mode.ratio:.2f}",
            f"{mode.excess:.4f} [{low:.4f}, {high:.4f}]",
            f"{mode.p_value:.1e}" if mode.p_value >= 1e-16 else "< 1e-16",
            (mode.tails[0].gen_ids if mode.role == "over" else mode.tails[0].ref_ids or ("",))[0],
        ]

    columns = ["", "mode", "mass gen", "mass ref", "ratio", "excess [95 %]", "p", "most typical sample"]
    for title, found in (
        ("More in gen than in ref", result.modes),
        ("Less in gen than in ref", result.under_represented),
    ):
        if found:
            _table(title, columns, [row(rank, mode) for rank, mode in enumerate(found, start=1)])
        else:
            print(f"{title}: nothing")
    error, settings = result.kernel_error, result.settings
    differ = len(result.significant())
    print(f"{differ} modes differ at family-wise level 0.05 ({result.tested} directions tested)")
    if settings.sigma is not None:
        print(f"sigma {settings.sigma:.4g} ({settings.sigma_rule}), {settings.features} frequencies")
    if error is not None:
        print(f"kernel error: rms {error.rms:.4f}, largest {error.max:.4f} of {error.pairs} pairs")
    for warning in result.warnings:
        print(f"note: {warning}")
    print(result.signature)


def _print_planted(result: DemoResult) -> None:
    rows = []
    for planted in result.planted:
        mode = planted.mode
        found = "not found" if mode is None else f"{mode.id}, ratio {mode.ratio:.2f}, p {mode.p_value:.0e}"
        rows.append(
            [
                planted.what,
                f"{planted.share_gen:.3f} / {planted.share_ref:.3f}",
                found,
                f"{planted.purity:.2f}",
            ]
        )
    copies = result.comparison.copies
    rows.append(
        [
            "exact copies of reference images",
            f"{result.copies_planted} images",
            f"{copies.count if copies else 0} images",
            "",
        ]
    )
    print()
    _table("Planted against found", ["planted", "share gen / ref", "found", "purity of top 50"], rows)
    print("Colouring half of the generated digits also halves its grey ones: the other grey modes are real, too.")
