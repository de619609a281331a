"""The verb monitor: samples of several steps of a training, with alarms that hold at every evaluation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Json, Work, check_given, embeds
from finc_eval.cli.output import Force, check_suffix, print_result, refuse_loss, warn_of_large
from finc_eval.core.errors import UsageError
from finc_eval.core.marks import job_digest, mark, mark_of
from finc_eval.core.storage import claim
from finc_eval.core.terminal import print_data
from finc_eval.core.words import join_words
from finc_eval.extractors.settings import Extraction
from finc_eval.monitoring.steps import order_steps, step_text

TYPE = "course"  # type of the result


@embeds
def monitor(
    extraction: Extraction,
    work: Work,
    checkpoints: Annotated[
        list[str],
        typer.Argument(
            metavar="STEP…",
            help="Samples of each step, in any form that compare takes: ckpt-*/. The step is the number that differs "
            "between the names and rises.",
        ),
    ],
    step: Annotated[
        list[str] | None,
        typer.Option(
            "--step", metavar="NAME=N", help="Step of a name that does not say it, such as final=20000; repeatable."
        ),
    ] = None,
    ref: Annotated[
        str | None,
        typer.Option(help="Reference set: samples of step 0, or real ones. Default: the samples of the first step."),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(help="Training set of the generator: samples near it are copies. Default: those near --ref are."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE.html", help="Page to write; its numbers are in its tables.")
    ] = Path("monitor.html"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Follow a generator over the steps of its training: which kinds die, which looks drift, and which step to keep.

    If nothing changes, the probability of any alarm, over all steps, is at most 5 %. Draw new seeds at each step.
    """
    steps = order_steps(checkpoints, step or ())
    check_given([*steps.values(), ref, train], extraction.extractor)
    check_suffix(out, ".html")
    if ref is None:
        if len(steps) < 2:
            raise UsageError("one step without --ref has nothing to be compared to: pass --ref, or further steps")
        ref = steps.pop(min(steps))
    inputs = (
        {step_text(at): path for at, path in steps.items()} | {"ref": ref} | ({} if train is None else {"train": train})
    )
    job = job_digest("monitor", inputs)
    refuse_loss(out, lambda path: mark_of(path) == mark(TYPE, job), force)
    claim(out)
    with work.running() as run:
        followed = fe.Monitor(ref, train=train, extractor=extraction, run=run)
        print(followed.needed, file=sys.stderr)
        for at, path in steps.items():
            followed.update(at, path)
    if not followed.steps:
        raise UsageError(f"no evaluation is left: {join_words(followed.warnings)}")
    course = followed.result.marked(job)
    course.to_html(out)
    if as_json:
        print_data(course.to_json())
        return
    print_result(course, [out])
    warn_of_large(out)
