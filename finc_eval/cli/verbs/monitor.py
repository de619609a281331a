"""The verb monitor: samples of several steps of a training, with alarms that hold at every look."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval import report
from finc_eval.cli.options import Json, Work, check_given, embeds
from finc_eval.cli.output import Force, check_suffix, refuse_loss, warn_of_large
from finc_eval.core.doors import with_home
from finc_eval.core.errors import UsageError
from finc_eval.core.marks import job_digest, mark, mark_of
from finc_eval.core.storage import claim
from finc_eval.core.terminal import print_data
from finc_eval.extractors.settings import Extraction

TYPE = "course"  # type of the result


@embeds
def monitor(
    extraction: Extraction,
    work: Work,
    checkpoints: Annotated[
        list[str],
        typer.Argument(
            metavar="STEP…",
            help="Samples of each step, in any form that compare takes: ckpt-*/. The last number there is its step.",
        ),
    ],
    ref: Annotated[
        str | None,
        typer.Option(help="Reference set: samples of step 0, or real ones. Default: the samples of the first step."),
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
    steps = order_steps(checkpoints)
    check_given([*steps.values(), ref], extraction.extractor)
    check_suffix(out, ".html")
    if ref is None:
        if len(steps) < 2:
            raise UsageError("one step without --ref has nothing to be compared to: pass --ref, or further steps")
        ref = steps.pop(min(steps))
    inputs = {f"{step:g}": path for step, path in steps.items()} | {"ref": ref}
    job = job_digest("monitor", inputs)
    refuse_loss(out, lambda found: mark_of(found) == mark(TYPE, job), force)
    claim(out)
    with work.running() as run:
        followed = fe.Monitor(ref, extractor=extraction, run=run)
        print(followed.needed, file=sys.stderr)
        for step, path in steps.items():
            followed.update(step, path)
    course = followed.result.marked(job)
    course.to_html(out)
    if as_json:
        print_data(course.to_json())
        return
    report.show(course)
    print("", out, sep="\n")
    warn_of_large(out)


def order_steps(checkpoints: list[str]) -> dict[float, str]:
    """Return the paths of checkpoints by their step, the last number in the name of each, in ascending order.

    Raises:
        UsageError: a name has no number, or two have the same.
    """
    found: dict[float, str] = {}
    for path in checkpoints:
        name = with_home(path).name
        numbers = re.findall(r"\d+", name.split(".")[0])
        if not numbers:
            raise UsageError(f"{name} has no number, which would be its step: rename it, as step-100 for example")
        step = float(numbers[-1])
        if step in found:
            raise UsageError(f"{found[step]} and {path} are both of step {step:g}: give each step once")
        found[step] = path
    return dict(sorted(found.items()))
