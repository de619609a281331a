"""Run the demo: plant differences between two sets of digits, compare them as any others, and say what was found."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from finc_eval.comparison.compare import compare
from finc_eval.comparison.result import Comparison
from finc_eval.core.run import Run
from finc_eval.demo.found import Experiment, find_planted, shares_of
from finc_eval.demo.planted import COPIES, RARE_DIGIT, planted_sets
from finc_eval.demo.prompts import prompted_sets
from finc_eval.embeddings.extract import extract


def run_demo(folder: str | Path, run: Run | None = None, job: str | None = None, *, force: bool = False) -> Experiment:
    """Plant differences between two sets of about 2 000 digits, and find them.

    Half of the generated digits are colored by class, most gray sixes are missing, and 20 digits are copies of
    reference digits. The sets take the path of any others: folders of images, embeddings, a comparison, a report.

    Args:
        folder: folder that receives samples, embeddings, comparison and report.
        run: device, portions and progress.
        job: digest of the command, by which it knows its files.
        force: overwrite files of embeddings that this demo did not make.
    """
    out, run = Path(folder), Run.of(run)
    for done, (name, planted_set) in enumerate(zip(("gen", "ref"), planted_sets(), strict=True)):
        run.progress("write samples", done, 2)
        planted_set.write(out / "samples" / name)
    run.progress("write samples", 2, 2)
    gen, ref = (
        extract(out / "samples" / name, extractor="pixels", out=out / f"{name}.h5", run=run, force=force)
        for name in ("gen", "ref")
    )
    comparison = compare(gen, ref, run=run).marked(job)
    comparison.save(out / "comparison.h5")
    in_gen, in_ref = ([PurePosixPath(name).parent.name for name in cache.ids] for cache in (gen, ref))
    found, shares = comparison.significant(), shares_of(in_gen, in_ref)  # `significant` are the first of `kinds`
    of_gen, of_ref = (comparison.assign(cache) for cache in (gen, ref))
    planted = [
        find_planted(
            f"{digit} in its own color, absent from the reference", f"coloured-{digit}", found, of_gen, in_gen, shares
        )
        for digit in range(10)
    ]
    rare = f"gray {RARE_DIGIT}, nine in ten left out"
    planted.append(find_planted(rare, f"grey-{RARE_DIGIT}", found, of_ref, in_ref, shares))
    report = comparison.to_html(out / "comparison.html")
    return Experiment("Digits", comparison, tuple(planted), report, COPIES)


def run_prompts_demo(
    folder: str | Path, run: Run | None = None, job: str | None = None, *, force: bool = False
) -> tuple[Comparison, Path]:
    """Let two models draw the same prompts, and compare them within prompts; the first model has known faults.

    Args:
        folder: folder that receives samples, embeddings, comparison and report.
        run: device, portions and progress.
        job: digest of the command, by which it knows its files.
        force: overwrite files of embeddings that this demo did not make.

    Returns:
        The comparison, and the path of its report.
    """
    out, run = Path(folder), Run.of(run)
    for name, one in zip(("gen", "ref"), prompted_sets(), strict=True):
        one.write(out / "samples" / name)
    gen, ref = (
        extract(out / "samples" / name, extractor="pixels", out=out / f"{name}.h5", run=run, force=force)
        for name in ("gen", "ref")
    )
    comparison = compare(gen, ref, pairs="prompt", run=run).marked(job)
    comparison.save(out / "comparison.h5")
    return comparison, comparison.to_html(out / "comparison.html")
