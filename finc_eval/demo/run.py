"""Runs the demo: plants differences, compares the two folders as any folders, and says what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from finc_eval.comparison import compare
from finc_eval.demo.planted import COPIES, RARE_DIGIT, planted_sets
from finc_eval.extraction import extract
from finc_eval.modes import Mode
from finc_eval.progress import Progress, silent
from finc_eval.results import Comparison

FOUND_PURITY = 0.8
"""A planted kind is found when more than this share of some mode's 50 best samples are of it."""


@dataclass(frozen=True)
class Planted:
    """One planted difference, and what the comparison says of it.

    Attributes:
        what: the difference, in words.
        kind: the kind of sample, as named by its folder.
        share_gen, share_ref: the true share of the kind in each set.
        mode: the mode that shows it, the purest one; None when none does.
        purity: the share of the mode's best samples that are of the kind.
    """

    what: str
    kind: str
    share_gen: float
    share_ref: float
    mode: Mode | None
    purity: float


@dataclass(frozen=True)
class DemoResult:
    """The comparison of the demo's sets, and planted against found."""

    comparison: Comparison
    planted: tuple[Planted, ...]
    copies_planted: int
    report: Path


def kind_of_sample(sample_id: str) -> str:
    """The kind of a sample: the folder it lies in."""
    return PurePosixPath(sample_id).parent.name


def purity(ids: Sequence[str], kind: str) -> float:
    """The share of these samples that are of the kind."""
    return Counter(map(kind_of_sample, ids))[kind] / len(ids) if ids else 0.0


def run_demo(folder: str | Path, progress: Progress = silent) -> DemoResult:
    """Write the sets, their embeddings, the comparison and its report into `folder`."""
    out = Path(folder)
    samples = out / "samples"
    sets = planted_sets()
    for done, (name, made) in enumerate(zip(("gen", "ref"), sets, strict=True)):
        progress("write samples", done, 2)
        made.write(samples / name)
    progress("write samples", 2, 2)
    gen, ref = (
        extract(samples / name, extractor="pixels", out=out / f"{name}.h5", progress=progress)
        for name in ("gen", "ref")
    )
    comparison = compare(gen=gen, ref=ref, progress=progress)
    comparison.save(out / "comparison.h5")
    report = comparison.to_html(out / "report.html")
    wanted = [(f"{d} in its own colour, absent from the reference", f"coloured-{d}", "over") for d in range(10)]
    wanted.append((f"grey {RARE_DIGIT}, nine in ten left out", f"grey-{RARE_DIGIT}", "under"))
    shares = [{kind: count / len(made.kinds) for kind, count in Counter(made.kinds).items()} for made in sets]
    planted = []
    for what, kind, role in wanted:
        purities = [
            (purity(m.tails[0].gen_ids if role == "over" else m.tails[0].ref_ids, kind), m)
            for m in (comparison.modes if role == "over" else comparison.under_represented)
        ]
        best, mode = max(purities, key=lambda pair: pair[0], default=(0.0, None))
        planted.append(
            Planted(
                what=what,
                kind=kind,
                share_gen=shares[0].get(kind, 0.0),
                share_ref=shares[1].get(kind, 0.0),
                mode=mode if best > FOUND_PURITY else None,
                purity=best,
            )
        )
    return DemoResult(comparison, tuple(planted), COPIES, report)
