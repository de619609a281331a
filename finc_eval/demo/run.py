"""Run the demo: plant differences between two sets of digits, compare them as any others, and say what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.comparison.result import Comparison
from finc_eval.core.doors import folder_inside
from finc_eval.core.run import Run
from finc_eval.demo.planted import BLURRED, COPIES, RARE_DIGIT, REPEATED, planted_sets
from finc_eval.demo.prompts import prompted_sets
from finc_eval.demo.same_seed import runs_of_one_seed
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.extract import extract
from finc_eval.naming.looks import REPEAT, Look
from finc_eval.partitions.kind import Kind
from finc_eval.same_ids.result import ById

FOUND_PURITY = 0.8  # share of the samples of some kind that differs that are of the planted kind, which is then found
Compare = Callable[..., Comparison]  # `fe.compare`, which the caller hands over
Shares = tuple[dict[str, float], dict[str, float]]  # share of each planted kind in both sets


@dataclass(frozen=True)
class Planted:
    """One planted difference, and what the comparison says about it.

    Attributes:
        share_gen, share_ref: true share of the planted kind in each set.
    """

    what: str  # the difference, in words
    share_gen: float
    share_ref: float
    # of the kinds that differ and whose samples are mostly of the planted kind, the one that has most of its samples
    # and fewest others; None without any
    kind: Kind | None
    purity: float  # share of the samples of that kind that are of the planted one, in the set that has more
    recall: float  # share of the samples of the planted kind, in that set, that are of that kind


@dataclass(frozen=True)
class PlantedLook:
    """A planted look of a part of the generated set, and the look that the comparison finds."""

    what: str  # the look, in words
    share: float  # its share of the generated set
    look: Look | None


@dataclass(frozen=True)
class Experiment:
    """A comparison of two sets with planted differences."""

    comparison: Comparison  # its result
    report: Path  # file of the page
    planted: tuple[Planted, ...] = ()  # the planted differences of kinds, each with what was found
    looks: tuple[PlantedLook, ...] = ()  # the planted looks
    copies: int = 0  # number of generated samples that are planted copies of reference samples
    broken: Mapping[str, str] = field(default_factory=dict)  # planted broken pairs: what is wrong, by id
    whole: ById | None = None  # what is found of a run in which all ids are shifted by 1


def find_planted(
    what: str, name: str, kinds: Sequence[Kind], places: NDArray[np.int64], names: Sequence[str], shares: Shares
) -> Planted:
    """Look for one planted kind among the kinds that differ.

    `places`, shape (n,), has the place among `kinds` of each sample of the set that has more of the planted kind, or
    any other number; `names` has their planted kinds.
    """
    is_planted = np.array([planted_name == name for planted_name in names])
    both = [int((is_planted & (places == kind)).sum()) for kind in range(len(kinds))]
    sizes = [int((places == kind).sum()) for kind in range(len(kinds))]
    shown = [kind for kind in range(len(kinds)) if sizes[kind] and both[kind] >= FOUND_PURITY * sizes[kind]]
    best = max(shown, key=lambda kind: both[kind] / (sizes[kind] + is_planted.sum() - both[kind]), default=None)
    return Planted(
        what=what,
        share_gen=shares[0].get(name, 0.0),
        share_ref=shares[1].get(name, 0.0),
        kind=None if best is None else kinds[best],
        purity=0.0 if best is None else both[best] / sizes[best],
        recall=0.0 if best is None else both[best] / int(is_planted.sum()),
    )


def shares_of(gen: Sequence[str], ref: Sequence[str]) -> Shares:
    """Return the share of every planted kind in each set, from the names of their samples."""
    in_gen, in_ref = ({name: names.count(name) / len(names) for name in {*names}} for names in (gen, ref))
    return in_gen, in_ref


def run_demo(
    folder: str | Path, compare: Compare, run: Run | None = None, job: str | None = None, *, force: bool = False
) -> Experiment:
    """Plant differences between two sets of about 2 000 digits, and find them with `compare`.

    Half of the generated digits are colored by class, most gray sixes are missing, some are blurred, one is there 40
    times, and 20 digits are copies of reference digits. The sets take the path of any others: folders of images,
    embeddings, a comparison, a report.
    """
    gen, ref, comparison, report = _compared(Path(folder), planted_sets(), compare, Run.of(run), job, force)
    in_gen, in_ref = ([PurePosixPath(name).parent.name for name in cache.ids] for cache in (gen, ref))
    kinds, shares = comparison.significant(), shares_of(in_gen, in_ref)  # `significant` are the first of `kinds`
    of_gen, of_ref = (comparison.assign(cache) for cache in (gen, ref))
    planted = [
        find_planted(
            f"{digit} in its own color, absent from the reference", f"coloured-{digit}", kinds, of_gen, in_gen, shares
        )
        for digit in range(10)
    ]
    rare = f"gray {RARE_DIGIT}, nine in ten left out"
    planted.append(find_planted(rare, f"grey-{RARE_DIGIT}", kinds, of_ref, in_ref, shares))
    traits = {look.trait: look for look in comparison.looks}
    looks = [
        PlantedLook(what, share, traits.get(trait))
        for what, share, trait in (
            ("in color", sum(name.startswith("coloured") for name in in_gen) / gen.n, "gray"),
            ("blurred", BLURRED / gen.n, "sharpness"),
            ("one digit, again and again", REPEATED / gen.n, REPEAT),
        )
    ]
    return Experiment(comparison, report, tuple(planted), tuple(looks), COPIES)


def run_prompts_demo(
    folder: str | Path, compare: Compare, run: Run | None = None, job: str | None = None, *, force: bool = False
) -> Experiment:
    """Compare two models within prompts; the first has known faults."""
    return Experiment(*_compared(Path(folder), prompted_sets(), compare, Run.of(run), job, force, pairs="prompt")[2:])


def run_same_seed_demo(
    folder: str | Path, compare: Compare, run: Run | None = None, job: str | None = None, *, force: bool = False
) -> Experiment:
    """Compare a run that has broken pairs, and a run that has shifted ids, with the old run of the same seeds."""
    runs, out, run = runs_of_one_seed(), Path(folder), Run.of(run)
    compared = _compared(out, (runs.new, runs.old, runs.again), compare, run, job, force, pairs="id")
    runs.shifted.write(folder_inside(out, "samples/shifted"))
    shifted = extract(out / "samples" / "shifted", extractor="pixels", out=out / "shifted.h5", run=run, force=force)
    whole = compare(shifted, compared[1], pairs="id", run=run).by_id
    return Experiment(*compared[2:], broken=runs.broken, whole=whole)


def _compared(
    out: Path, sets: Sequence[Any], compare: Compare, run: Run, job: str | None, force: bool, **options: str
) -> tuple[EmbeddingCache, EmbeddingCache, Comparison, Path]:
    """Write and embed the samples of two sets, compare them, and write the result and its page.

    A third set is a further run of the baseline.
    """
    names = ("gen", "ref", "again")[: len(sets)]
    for done, (name, samples) in enumerate(zip(names, sets, strict=True)):
        run.progress("write samples", done, len(sets))
        samples.write(folder_inside(out, f"samples/{name}"))
    run.progress("write samples", len(sets), len(sets))
    gen, ref, *again = (
        extract(out / "samples" / name, extractor="pixels", out=out / f"{name}.h5", run=run, force=force)
        for name in names
    )
    more = {"again": again} if again else {}
    comparison = compare(gen, ref, run=run, **more, **options).marked(job)
    comparison.save(out / "comparison.h5")
    return gen, ref, comparison, comparison.to_html(out / "comparison.html")
