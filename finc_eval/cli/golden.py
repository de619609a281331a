"""`finc-eval gate --golden`: a few golden pictures a night."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import typer

import finc_eval as fe
from finc_eval.cli.app import VerdictExit
from finc_eval.cli.options import given_options
from finc_eval.cli.output import check_suffix, emit, output_folder, refuse_loss
from finc_eval.cli.question import asking
from finc_eval.core.doors import create_file
from finc_eval.core.errors import UsageError
from finc_eval.core.marks import mark, mark_of
from finc_eval.core.storage import write_text, write_together, write_whole

OTHERS = ("baseline", "policy", "init", "anchor", "train", "interim", "groups", "first", "promote", "reason")
"""Options of a gate that are about releases."""

OURS = ("machine", "accept")  # options of golden pictures


def check_golden(context: typer.Context, golden: str | None) -> None:
    """Raise UsageError for options of releases beside golden pictures, and for theirs without any."""
    if golden is None and (given := given_options(context, *OURS)):
        raise UsageError(f"{given[0]} is an option of golden pictures: pass --golden FILE, too")
    if golden is not None and (given := given_options(context, *OTHERS)):
        raise UsageError(f"{given[0]} is an option of releases, and --golden judges a night: leave it out")


def run_golden(
    golden: str,
    gen: str | None,
    ref: str | None,
    machine: str | None,
    accept: str | None,
    *,
    comment: Path | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Judge a night of golden pictures, add it to their file, and write and print the verdict; or accept a night."""
    if accept is not None:
        if gen is not None or ref is not None:
            raise UsageError("--accept accepts a night that is known already: leave out --gen and --ref")
        print(fe.Golden(golden).accept(accept, machine))
        return
    if gen is None or ref is None:
        raise UsageError("golden pictures need those of tonight and the golden ones: pass --gen and --ref")
    titles = [Path(golden).stem or "golden"]
    with asking([], {}):  # the question is the floor: a night replaces the page of the one before
        output = output_folder("gate --golden", "night", {"golden": golden}, out, force, titles=titles)
    check_comment(comment, mark("night", output.job), force)
    night = fe.Golden(golden).add(gen, ref, machine)
    from finc_eval.golden.page import comment as comment_of
    from finc_eval.golden.pipelines import annotation_lines, junit_xml, tell_outcome

    emit(night, output, as_json, {".xml": junit_xml(night)})
    tell_outcome(night, night.verdict, os.environ)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print(*annotation_lines(night), sep="\n", file=sys.stderr if as_json else sys.stdout)
    if comment is not None:
        marked = night.marked(output.job)
        write_comment(comment, *comment_of(marked, comment.stem), marked.mark, force)
    raise VerdictExit(night.exit_code)


def check_comment(path: Path | None, mark: str, force: bool) -> None:
    """Raise UsageError if a file would be lost that another job made, or is not Markdown."""
    if path is not None:
        check_suffix(path, ".md", option="--comment")
        refuse_loss(path, lambda path: mark_of(path) == mark, force, option="--comment")


def write_comment(path: Path, text: str, pictures: Mapping[str, bytes], mark: str, force: bool) -> None:
    """Write a comment and its pictures, which replace no files but those of the same comment."""
    is_again = mark_of(path) == mark
    for name in pictures:
        refuse_loss(path.with_name(name), lambda _: is_again, force, option="--comment")
    with write_together():
        write_text(path, text)
        for name, data in pictures.items():
            with write_whole(path.with_name(name)) as part, create_file(part) as file:
                file.write(data)
