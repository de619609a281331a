"""The command line: one verb per step; each parses, calls the library, prints. Nothing heavy loads before it must."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finc_eval.cli import cache as caches
from finc_eval.cli import comparing, extractors, private_sketch, weights
from finc_eval.cli import extract as embedding
from finc_eval.cli.audit import audit
from finc_eval.cli.doctor import doctor
from finc_eval.cli.dp_generate import dp_generate
from finc_eval.cli.exit_codes import BAD_INPUT, Verbs
from finc_eval.cli.metrics import metrics
from finc_eval.cli.options import Json
from finc_eval.core.progress import terminal

app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Which kinds of images does one generative model make more often than another?\n\n"
        "  [bold]finc-eval demo[/bold]                              see it work, on digits that come with it\n\n"
        "  [bold]finc-eval compare --gen A/ --ref B/[/bold]         compare two folders, and write a report\n\n"
        "The steps can be run one by one, and each leaves a file that later steps re-use: "
        "extract → sketch → compare → score · report. Beyond two sets: sweep tries many bandwidths or ρ, methods "
        "sets FINC beside the baselines of its paper, models "
        "compares many models at once, changes follows the modes from one release to the next. "
        "audit asks whether samples are copies of training images. "
        "doctor looks at the installation. "
        "Results go to stdout, progress to stderr. "
        "Exit code 0: done; 3: the input cannot be used, and stderr says why in one sentence."
    ),
)

for verb in (
    embedding.extract,
    comparing.sketch,
    comparing.compare,
    comparing.methods,
    comparing.sweep,
    comparing.models,
    comparing.changes,
    comparing.score,
    comparing.report,
    metrics,
    dp_generate,
    audit,
    doctor,
):
    app.command()(verb)
app.add_typer(extractors.app, name="extractors")
app.add_typer(weights.app, name="weights")
app.add_typer(caches.app, name="cache")
app.add_typer(private_sketch.app, name="private-sketch")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("reports/demo"),
    as_json: Json = False,
) -> None:
    """Plant differences between two sets of real digits, compare them as any folders, and say what was found."""
    from finc_eval.demo.run import run_demo
    from finc_eval.demo.show import print_demo

    with terminal() as progress:
        experiment = run_demo(out, progress)
    if as_json:
        print(experiment.comparison.to_json())
        return
    print_demo(experiment)
    print(f"\nOpen the report: {experiment.report}")


def main() -> None:
    """Entry point of `finc-eval`: usage errors, too, end with exit code 3."""
    try:
        app()
    except SystemExit as end:
        raise SystemExit(BAD_INPUT if end.code == 2 else end.code) from None
