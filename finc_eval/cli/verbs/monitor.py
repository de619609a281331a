"""The verb monitor: samples of several steps of a training, with alarms that hold at every evaluation."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
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
from finc_eval.core.words import join_first
from finc_eval.extractors.settings import Extraction
from finc_eval.monitoring.steps import order_steps, step_text
from finc_eval.monitoring.trainings.steps_of_folders import named_trainings, pair_steps, steps_of


@embeds
def monitor(
    extraction: Extraction,
    work: Work,
    checkpoints: Annotated[
        list[str],
        typer.Argument(
            metavar="STEP…",
            help="Samples of each step, in any form that compare takes: ckpt-*/. The step is the number that differs "
            "between the names and rises. Or a folder of steps: run-a/; or two side by side: a=run-a/ b=run-b/.",
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
    fixed: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder with a folder for each step, of pictures of the same prompts and seeds at every step, which "
            "are compared pair by pair, by the names of their files.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE.html", help="Page to write; its numbers are in its tables.")
    ] = Path("monitor.html"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Follow a generator over the steps of its training: which kinds die, which looks drift, and which step to keep.

    Of two trainings, a=run-a/ b=run-b/, it says what differs, and since when. If nothing changes or differs, the
    probability of any alarm, over all steps, is at most 5 %. Draw new seeds at each step.
    """
    trainings = named_trainings(checkpoints, step or ())
    steps = steps_of_one(checkpoints, step or ()) if trainings is None else {}
    if trainings is None and ref is None:
        if len(steps) < 2:
            raise UsageError("one step without --ref has nothing to be compared to: pass --ref, or further steps")
        check_given([*steps.values()])
        ref = steps.pop(min(steps))
    if trainings is not None and fixed is not None:
        raise UsageError("--fixed is of one training: follow each of both with its own, or compare them without")
    pairs = pair_steps(fixed, steps, step or ())
    inputs = {step_text(at): path for at, path in steps.items()}
    for name, samples in {**(trainings or {}), **({"fixed": pairs} if pairs else {})}.items():
        inputs |= {f"{name}, step {step_text(at)}": str(path) for at, path in samples.items()}
    sets = {"ref": ref, "train": train}
    inputs |= {name: path for name, path in sets.items() if path is not None}
    check_given(inputs.values(), extraction.extractor)
    check_suffix(out, ".html")
    job = job_digest("monitor", inputs)
    type_name = "course" if trainings is None else "trainings"
    refuse_loss(out, lambda path: mark_of(path) == mark(type_name, job), force)
    claim(out)
    result: fe.Course | fe.Trainings
    with work.running() as run:
        if trainings is None:
            result = _follow(steps, pairs, fe.Monitor(ref, train=train, extractor=extraction, run=run))
        else:
            result = fe.compare_trainings(trainings, ref, train=train, extractor=extraction, run=run)
    marked = result.marked(job)
    marked.to_html(out)
    if as_json:
        print_data(marked.to_json())
        return
    print_result(marked, [out])
    warn_of_large(out)


def _follow(steps: dict[float, str], fixed: dict[float, object], followed: fe.Monitor) -> fe.Course:
    """Follow one training over its steps, with the pictures of fixed prompts of these steps."""
    print(followed.needed, file=sys.stderr)
    for at, path in steps.items():
        followed.update(at, path, fixed=fixed.get(at))
    if not followed.steps:
        raise UsageError(f"no evaluation is left: {join_first(followed.warnings, 2)}")
    return followed.result


def steps_of_one(arguments: Sequence[str], given: Collection[str] = ()) -> dict[float, str]:
    """Return the steps of one training from the arguments of a command line: its steps, or the folder that has them.

    One folder whose name says no step has a folder or a file for each step.

    Args:
        arguments: arguments of the command line.
        given: steps that are given by hand, as NAME=N.

    Raises:
        UsageError: no name says a step.
        DataError: the folder has no steps.
    """
    try:
        return order_steps(arguments, given)
    except UsageError:
        if len(arguments) > 1 or given or not Path(arguments[0]).is_dir():
            raise
    return {step: str(path) for step, path in steps_of(arguments[0]).items()}
