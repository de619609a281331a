"""`finc-eval gate`: an exit code that a release pipeline can trust."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

import finc_eval as fe
from finc_eval.cli.app import VerdictExit
from finc_eval.cli.golden import check_comment, check_golden, run_golden, write_comment
from finc_eval.cli.options import Json, Work, check_given, embeds
from finc_eval.cli.output import Force, Out, TerminalOutput, check_suffix, emit, output_folder, refuse_loss
from finc_eval.core.errors import UsageError
from finc_eval.core.marks import job_digest, mark, mark_of, mark_text
from finc_eval.core.storage import write_readable
from finc_eval.extractors.settings import Extraction
from finc_eval.gates.policy import Policy

if TYPE_CHECKING:
    from finc_eval.gates.baseline import History
    from finc_eval.gates.verdict import Verdict


@embeds
def gate(
    context: typer.Context,
    extraction: Extraction,
    work: Work,
    ref: Annotated[
        str | None, typer.Option(help="Reference set, in any form that --gen takes, or a private sketch.")
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            help="Samples of the release before, in any form that --gen takes, or the folder of a history of "
            "baselines. Repeat it for the same model trained several times: from three on, the noise of training is "
            "measured."
        ),
    ] = None,
    policy: Annotated[
        Path, typer.Option(metavar="FILE", help="TOML file with what a release may do; --init writes the first.")
    ] = Path("gate.toml"),
    gen: Annotated[
        str | None, typer.Option(help="Samples of the new release, in any form that --gen of compare takes.")
    ] = None,
    init: Annotated[
        bool, typer.Option("--init", help="Write the policy from the baseline, with the noise that was measured.")
    ] = False,
    anchor: Annotated[
        str | None,
        typer.Option(
            help="Samples of an older release, against which slow drift over releases is seen; default: the first "
            "baseline of a history."
        ),
    ] = None,
    train: Annotated[
        str | None, typer.Option(help="All samples that the new release was trained on, for limits on copying.")
    ] = None,
    interim: Annotated[
        int | None, typer.Option(help="Number of runs with more and more samples that share the policy's alpha.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(help="Metadata column of samples that are not independent, for the policy, which --init writes."),
    ] = None,
    first: Annotated[
        bool, typer.Option("--first", help="Make the first baseline, in the folder --baseline, and say so everywhere.")
    ] = False,
    promote: Annotated[
        bool, typer.Option("--promote", help="Make a release that passed the next baseline of the history --baseline.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Promote a release that did not pass, for this reason.")
    ] = None,
    comment: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Markdown file for a comment on a change: what is wrong, with pictures before and now as files beside "
            "it. Its second line marks it, so that a pipeline can replace the comment of its last run.",
        ),
    ] = None,
    golden: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Judge a few pictures of tonight, --gen, by golden pictures with the same ids, --ref, and by the "
            "nights in this file, to which tonight is added. The exit code is 1 for red and 2 for amber.",
        ),
    ] = None,
    machine: Annotated[
        str | None, typer.Option(metavar="NAME", help="Machine that made tonight's pictures, for --golden.")
    ] = None,
    accept: Annotated[
        str | None,
        typer.Option(
            metavar="NIGHT", help="Accept a night of --golden, such as 2026-11-27: its state is known from now on."
        ),
    ] = None,
    out: Out = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Judge whether a new release may replace the one before it.

    Exit codes: 0 pass, 1 regression, 2 undecided, 3 error. --out gets verdict.json, .html, .md and .xml (JUnit).
    """
    check_golden(context, golden)
    if golden is not None:
        run_golden(golden, gen, ref, machine, accept, comment=comment, out=out, force=force, as_json=as_json)
        return
    if baseline is None or ref is None:
        raise UsageError(f"Missing option '--{'baseline' if baseline is None else 'ref'}'")
    _check_options(init=init, promote=first or promote, judges=first or promote or gen is not None, reason=reason)
    check_given([] if first else baseline, None)
    history = _open_history(baseline, first) if first or promote else None
    older = {} if first else _by_label(baseline)
    if init:
        _write_policy(policy, older, ref, groups, extraction, work, force=force)
        return
    if gen is None:
        raise UsageError("the gate needs the new release: pass --gen, or --init to write a policy")
    _check_policy(policy, baseline, ref)
    given = {"anchor": anchor, "train": train}
    sources = {"gen": gen, **older, "ref": ref} | {name: source for name, source in given.items() if source is not None}
    check_given(sources.values(), extraction.extractor)
    limits = Policy.of(policy)
    stated: dict[str, Any] = {"interim": interim, "groups": groups}
    limits = replace(limits, **{name: value for name, value in stated.items() if value is not None})
    if history is not None:
        # What is the latest baseline already is said before its outputs are held against those of the first time.
        with work.running() as run:
            history.refuse_latest(gen, extraction, run)
    output = output_folder("gate", "verdict", sources, out, force)
    check_comment(comment, mark("verdict", output.job), force)
    began, old = perf_counter(), baseline if len(baseline) > 1 else baseline[0]
    with work.running() as run:
        verdict = fe.gate(gen, old, ref, limits, anchor=anchor, train=train, first=first, extractor=extraction, run=run)
    notes = _emit(verdict, output, perf_counter() - began, as_json=as_json)
    _write_comment(verdict.marked(output.job), comment, force)
    if history is not None:
        made = history.promote(verdict, gen, reason=reason, extractor=extraction)
        print(
            f"promoted: {made}" if made else "not promoted: pass --reason TEXT to promote it all the same", file=notes
        )
    raise VerdictExit(verdict.exit_code)


def _open_history(baseline: Sequence[str], first: bool) -> History:
    """Open the history of baselines; UsageError unless it is the only baseline, and is new or begun, as it must be."""
    from finc_eval.gates.baseline import History

    if len(baseline) > 1:
        raise UsageError("--promote needs one history: pass its folder as the only --baseline")
    history = History.open(baseline[0])
    history.check_new() if first else history.check_begun()
    return history


def _by_label(baseline: Sequence[str]) -> dict[str, str]:
    """Return the samples of the baselines by label."""
    from finc_eval.gates.baseline import samples_of

    labels = ["baseline"] if len(baseline) == 1 else [f"baseline-{i}" for i in range(1, len(baseline) + 1)]
    return {name: str(samples_of(source)) for name, source in zip(labels, baseline, strict=True)}


def _check_options(*, init: bool, promote: bool, judges: bool, reason: str | None) -> None:
    """Raise UsageError if options contradict each other."""
    if init and judges:
        raise UsageError("--init writes a policy and judges no release: leave out --gen, --first and --promote")
    if reason is not None and not promote:
        raise UsageError("--reason is why a release is promoted: pass --promote, too")


def _write_policy(
    policy: Path,
    older: Mapping[str, str],
    ref: str,
    groups: str | None,
    extraction: Extraction,
    work: Work,
    *,
    force: bool,
) -> None:
    """Write the first policy, from the baselines by label, and print it."""
    from finc_eval.gates.first_policy import first_policy

    sources = {**older, "ref": ref}
    check_given(sources.values(), extraction.extractor)
    check_suffix(policy, ".toml", option="--policy")
    job = job_digest("gate --init", sources)
    own_mark = mark("policy", job)
    refuse_loss(policy, lambda path: mark_of(path) == own_mark, force, option="--policy")
    with work.running() as run:
        proposed = first_policy(list(older.values()), ref, groups=groups, extractor=extraction, run=run)
        text = mark_text("policy", job, proposed)
    write_readable(policy, text, Policy.of, Policy.parse(proposed))
    print(text, end="")


def _check_policy(policy: Path, baseline: Sequence[str], ref: str) -> None:
    """Raise UsageError if the policy does not exist."""
    if not policy.exists():
        places = " ".join(f"--baseline {shlex.quote(path)}" for path in baseline)
        raise UsageError(
            f"no release is judged without a policy, and {policy} does not exist: write it from the baseline by "
            f"finc-eval gate --init {places} --ref {shlex.quote(ref)} --policy {shlex.quote(str(policy))}"
        )


def _write_comment(verdict: Verdict, path: Path | None, force: bool) -> None:
    """Write a comment and its pictures."""
    from finc_eval.gates.page import comment

    if path is not None:
        write_comment(path, *comment(verdict, {}, path.stem), verdict.mark, force)


def _emit(verdict: Verdict, output: TerminalOutput | None, seconds: float, *, as_json: bool) -> TextIO:
    """Print and write the verdict and how long it took, also for GitHub; return the stream of further notes."""
    from finc_eval.gates.pipelines import annotation_lines, junit_xml, tell_github

    emit(verdict, output, as_json, {".xml": junit_xml(verdict, seconds)})
    tell_github(verdict, os.environ)
    notes = sys.stderr if as_json else sys.stdout
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print(*annotation_lines(verdict), sep="\n", file=notes)
    return notes
