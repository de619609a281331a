"""Runs the demo: plants differences, compares the sets as any others, and says what was found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from finc_eval.comparison.compare import compare
from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.core.run import Run
from finc_eval.demo.found import Experiment, planted_kind, shares_of
from finc_eval.demo.planted import COPIES, RARE_DIGIT, planted_sets
from finc_eval.demo.real import clips, photographs
from finc_eval.embeddings.extract import extract

ASSETS = "FINC_EVAL_ASSETS"


@dataclass(frozen=True)
class DemoResult:
    """What the demo found.

    Attributes:
        digits: two sets of digits, from the package.
        copies_planted: how many digits of the generated set are copies of reference digits.
        real: real photographs and clips, where the test assets are at hand.
    """

    digits: Experiment
    copies_planted: int
    real: tuple[Experiment, ...]


def run_demo(folder: str | Path, progress: Progress = silent) -> DemoResult:
    """Write sets, embeddings, comparisons and reports into `folder`.

    The digits come with the package. Where $FINC_EVAL_ASSETS names the folder of the test assets, real photographs and
    clips are compared, too.
    """
    out, assets = Path(folder), _assets()
    real = [] if assets is None else _real(assets, out, progress)
    return DemoResult(digits(out, progress), COPIES, tuple(real))


def digits(out: Path, progress: Progress = silent) -> Experiment:
    """About 2 000 digits a set: half of the generated ones colored by class, most gray sixes left out, 20 copied."""
    sets = planted_sets()
    for done, (name, made) in enumerate(zip(("gen", "ref"), sets, strict=True)):
        progress("write samples", done, 2)
        made.write(out / "samples" / name)
    progress("write samples", 2, 2)
    gen, ref = (
        extract(out / "samples" / name, extractor="pixels", out=out / f"{name}.h5", run=Run(progress=progress))
        for name in ("gen", "ref")
    )
    comparison = compare(gen, ref, run=Run(progress=progress))
    comparison.save(out / "comparison.h5")
    kinds = tuple([PurePosixPath(name).parent.name for name in cache.ids] for cache in (gen, ref))
    shares = shares_of(kinds[0], kinds[1])
    over, under = comparison.score(gen), comparison.score(ref, comparison.under)
    planted = [
        planted_kind(
            f"{digit} in its own color, absent from the reference",
            f"coloured-{digit}",
            comparison.over,
            over,
            kinds[0],
            shares,
        )
        for digit in range(10)
    ]
    rare = f"gray {RARE_DIGIT}, nine in ten left out"
    planted.append(planted_kind(rare, f"grey-{RARE_DIGIT}", comparison.under, under, kinds[1], shares))
    return Experiment("Digits", comparison, tuple(planted), comparison.to_html(out / "report.html"))


def _assets() -> Path | None:
    """The folder of the test assets; None where nobody names it."""
    named = os.environ.get(ASSETS)
    if named and not Path(named).is_dir():
        raise FincEvalError(f"{ASSETS} names {named}, which is no folder: correct it, or unset it")
    return Path(named) if named else None


def _real(assets: Path, out: Path, progress: Progress) -> Iterator[Experiment]:
    yield photographs(assets, out / "photographs", progress=progress)
    yield clips(assets, progress=progress)
