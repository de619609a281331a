"""`finc-eval demo`: planted differences against what a comparison finds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Json, Work, works
from finc_eval.cli.output import MAX_LINES, Force, make_room, output_folder, print_result, written
from finc_eval.cli.question import in_full
from finc_eval.core.errors import UsageError
from finc_eval.core.words import percent, plural
from finc_eval.demo.prompts import FAULTS
from finc_eval.report.terminal import aligned, print_table, wrap

if TYPE_CHECKING:
    from finc_eval.demo.run import Experiment, Planted
    from finc_eval.naming.looks import Look
    from finc_eval.partitions.kind import Kind


@works
def demo(
    work: Work,
    prompts: Annotated[
        bool,
        typer.Option("--prompts", help="Compare two text-to-image models, with known faults, on the same prompts."),
    ] = False,
    same_seed: Annotated[
        bool,
        typer.Option("--same-seed", help="Compare runs with the same seeds: some pairs are broken, then a whole run."),
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder to write to; default: reports/demo…")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Plant differences between two sets of real digits, compare them, and print what was found."""
    from finc_eval.demo import run as demos  # loads torch, which wrong options need not wait for

    if prompts and same_seed:
        raise UsageError("--prompts and --same-seed are two demos: pass one of them")
    output = output_folder("demo", "comparison", {}, out, force, titles=["demo"])
    make_room(output.files[".h5"], "comparison", force)
    with work.running() as run:
        made = demos.run_prompts_demo if prompts else demos.run_same_seed_demo if same_seed else demos.run_demo
        experiment = made(output.folder, fe.compare, run, output.job, force=force)
    comparison = experiment.comparison
    if as_json:
        print(comparison.to_json())
        return
    if not (prompts or same_seed or in_full.get()):
        print(*brief_of(experiment), *written([experiment.report]), sep="\n")
        print("next: finc-eval generated/ real/ (tables of the demo: --verbose)")
        return
    if prompts:
        words = [word.text for word in comparison.prompts.words] if comparison.prompts else []
        print(f"planted faults: {', '.join(FAULTS)}; words that were found: {', '.join(words) or 'none'}")
    elif same_seed and comparison.by_id is not None:
        listed = set(comparison.by_id.broken)
        right = len(listed & experiment.broken.keys())
        others = len(listed) - right
        print(f"planted broken pairs: {len(experiment.broken)}; listed: {right} of these, and {others} others")
        if experiment.whole is not None:
            print(f"a further run, with all ids shifted by 1: {experiment.whole.sentences['verdict']}")
    else:
        print_planted(experiment)
        print("Coloring half of the generated digits also halves its gray ones: so the other gray kinds also differ.")
    print_result(comparison, [experiment.report], MAX_LINES - 2)


def brief_of(experiment: Experiment) -> list[str]:
    """Return what was planted and found in a line each, and what the comparison says first."""
    *colored, rare = experiment.planted
    found = [planted.kind is not None for planted in colored]
    of_rare = "–" if rare.kind is None else percent(rare.kind.share_gen, 1)
    copies = 0 if experiment.comparison.copies is None else experiment.comparison.copies.count
    rows = [
        ("planted", "share", "found", "reference"),
        *(
            (look.what, percent(look.share, 1), "–" if look.look is None else percent(look.look.share_gen, 1), "0 %")
            for look in experiment.looks
        ),
        ("each digit in its own color", plural(len(found), "kind"), plural(sum(found), "kind"), "0 %"),
        (rare.what, percent(rare.share_gen, 1), of_rare, percent(rare.share_ref, 1)),
        ("exact copies of reference images", str(experiment.copies), str(copies), ""),
    ]
    seen = sum(found) + (rare.kind is not None) + sum(look.look is not None for look in experiment.looks)
    planted = len(experiment.planted) + len(experiment.looks)
    first = f"Two sets of real digits: of {planted} planted differences, {seen} are found."
    return [first, *aligned(rows), *wrap(f"finc-eval says: {experiment.comparison.headline}")]


def print_planted(experiment: Experiment) -> None:
    """Print what an experiment planted against what was found."""

    def shares(pictured: Planted | Kind | Look) -> str:
        return f"{percent(pictured.share_gen, 1)} / {percent(pictured.share_ref, 1)}"

    rows = [
        [planted.what, shares(planted), *found_as, f"{planted.purity:.2f}", f"{planted.recall:.2f}"]
        for planted in experiment.planted
        for found_as in [[planted.kind.title, shares(planted.kind)] if planted.kind else ["not found", "–"]]
    ]
    for planted in experiment.looks:
        seen = ["not found", "–"] if planted.look is None else [planted.look.name, shares(planted.look)]
        rows.append([planted.what, f"{percent(planted.share, 1)} / 0.0 %", *seen, "", ""])
    copies = 0 if experiment.comparison.copies is None else experiment.comparison.copies.count
    copied = ["exact copies of reference images", f"{experiment.copies} images", "", f"{copies} images", "", ""]
    recovered = [planted.kind for planted in experiment.planted] + [look.look for look in experiment.looks]
    columns = ["planted", "share gen / ref", "found as", "its share gen / ref", "purity", "recall"]
    print_table("Digits: planted against found", columns, [*rows, copied], prose=columns[:4])
    print(f"{sum(thing is not None for thing in recovered)} of {len(recovered)} planted differences are found")
