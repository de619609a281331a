"""Are prompts that a model is fitted to told from fresh ones, and do planned prompts decide a word?

*Gaps*: images of prompts have a middle, which differs by prompt between the model and the reference, in 8 dimensions.
*Equal*: of old and fresh prompts alike. *Fitted*: on old prompts the model is nearer by a factor. *p ≤ .05*, *holds*:
draws, and draws in which the interval holds the difference of the law, with intervals of 95 %. *skewed*: distances of
prompts are log-normal with a spread of ½; *very skewed*: of 1.

*Plans*: a word of 1 in 4 prompts brings a value of a column to more of the model's images, of 4 a prompt, in tables of
8 words and 4 columns. *undecided*: draws in which this cell is planned, as it is not *found at once*. *more*: prompts
with the word that the plan adds, median. *decided*: of fresh draws with as many prompts, those in which the cell is
found.

    python benchmarks/prompt_sets.py [--runs 400]
"""

import argparse

import numpy as np
import torch
from _record import record
from scipy.stats import binomtest

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.numerics.eigen import PrincipalAxes
from finc_eval.partitions.blocks import pair
from finc_eval.partitions.kind_tree import KindTree, Tree
from finc_eval.prompts.cells import find_cells
from finc_eval.prompts.images import images_of, unit_of
from finc_eval.prompts.prompt_sets import divide_prompts, prompt_set_gaps, squared_distances
from finc_eval.prompts.words import Phrases

DIM = 8
GAPS = {
    "equal, 40 + 40 prompts × 4": ((40, 40), (4, 4), 1.0, 0.0),
    "equal, 12 + 12 prompts × 4": ((12, 12), (4, 4), 1.0, 0.0),
    "equal, 100 + 100 prompts × 1": ((100, 100), (1, 1), 1.0, 0.0),
    "equal, 100 × 2 and 20 × 8": ((100, 20), (2, 8), 1.0, 0.0),
    "equal, 100 + 20 prompts × 4, skewed": ((100, 20), (4, 4), 1.0, 0.5),
    "equal, 100 + 20 prompts × 4, very skewed": ((100, 20), (4, 4), 1.0, 1.0),
    "fitted by 0.7, 40 + 40 prompts × 4": ((40, 40), (4, 4), 0.7, 0.0),
    "fitted by 0.5, 40 + 40 prompts × 4": ((40, 40), (4, 4), 0.5, 0.0),
    "fitted by 0.5, 12 + 12 prompts × 4": ((12, 12), (4, 4), 0.5, 0.0),
    "fitted by 0.5, 100 + 100 prompts × 1": ((100, 100), (1, 1), 0.5, 0.0),
    "fitted by 0.5, 100 + 20 prompts × 4, skewed": ((100, 20), (4, 4), 0.5, 0.5),
    "fitted by 0.5, 100 + 20 prompts × 4, very skewed": ((100, 20), (4, 4), 0.5, 1.0),
}
"""Old and fresh prompts, images of each, the factor of the distance on old prompts, and the spread of its logarithm."""

WORDS = ("cat", "dog", "tree", "alone", "red", "old", "tall", "boat")
PLANS = {"30 prompts, 5 → 30 %": (30, 0.30), "60 prompts, 5 → 20 %": (60, 0.20), "120 prompts, 5 → 15 %": (120, 0.15)}


def no_kinds(dim):
    """Return a single kind on axes that are the entries of the embeddings."""
    axes = PrincipalAxes(torch.zeros(dim), torch.eye(dim), 1.0)
    tree = Tree(np.empty((0, 2), np.int64), np.empty(0))
    return KindTree(axes, torch.zeros(1, dim), np.zeros(1, np.int64), tree, np.inf, 0)


def gap(rng, prompts, each, factor, skew):
    """Return the gap between old and fresh prompts, and its value by the law."""
    is_old = np.arange(sum(prompts)) < prompts[0]
    images = np.where(is_old, *each)
    middle = 3 * rng.normal(size=(len(images), DIM))
    spread = np.where(is_old, factor, 1.0) * rng.lognormal(-(skew**2), skew, len(images))
    off = rng.normal(size=(len(images), DIM)) * spread[:, None]
    names, column = np.repeat([f"p{n}" for n in range(len(images))], images), np.repeat(is_old, images)
    sets = {}
    for label, shift in (("gen", off), ("ref", 0 * off)):
        rows = np.repeat(middle + shift, images, 0) + rng.normal(size=(len(names), DIM))
        metadata = {"prompt": names.tolist(), "fresh": np.where(column, "no", "yes").tolist()}
        sets[label] = fe.EmbeddingSet(rows.astype(np.float32), metadata=metadata)
    pairing, _ = pair(sets, "prompt")
    summed = images_of(pairing, no_kinds(DIM), Run())
    unit = unit_of(summed.values())
    (found,) = prompt_set_gaps(*divide_prompts(pairing), squared_distances(summed, unit), None, 0)
    return found, DIM * (1 - factor**2) / unit**2


def rate(hits, runs):
    low, high = binomtest(hits, runs).proportion_ci()
    return f"{hits}/{runs} [{low:.3f}, {high:.3f}]"


def gap_row(name, runs):
    drawn = [gap(np.random.default_rng([3, [*GAPS].index(name), run]), *GAPS[name]) for run in range(runs)]
    holds = sum(found.interval[0] <= truth <= found.interval[1] for found, truth in drawn)
    return {
        "regime": name,
        "p ≤ .05": rate(sum(found.p_value <= 0.05 for found, _ in drawn), runs),
        "holds": rate(holds, runs),
        "difference": f"{np.mean([found.difference for found, _ in drawn]):.3f}",
        "by the law": f"{np.mean([truth for _, truth in drawn]):.3f}",
    }


def cells_of(rng, prompts, share, added=0):
    """Return the cells of sets of prompts with words, "alone" in a quarter of them and in all that are `added`."""
    texts = []
    for number in range(prompts + added):
        word = "alone" if number % 4 == 0 or number >= prompts else rng.choice([w for w in WORDS if w != "alone"])
        texts.append(f"{word} {rng.choice(('cat', 'dog', 'tree'))} {number}")
    names, sets = np.repeat(texts, 4).tolist(), {}
    for label, own in (("gen", share), ("ref", 0.05)):
        rates = np.full((4, len(names)), 0.05)
        rates[0, ["alone" in text for text in names]] = own
        has = rng.random(rates.shape) < rates
        metadata = {f"column{n}": np.where(values, "yes", "no").tolist() for n, values in enumerate(has)}
        rows = rng.normal(size=(len(names), 2)).astype(np.float32)
        sets[label] = fe.EmbeddingSet(rows, metadata=metadata | {"prompt": names})
    pairing, _ = pair(sets, "prompt")
    kept = [str(name) for name in pairing.names]
    paired = images_of(pairing, no_kinds(2), Run())["gen"].paired
    asked = (Phrases.of(kept), ((), {}), no_kinds(2), "prompt", 0, Run())
    return find_cells(pairing.sets, pairing.block, paired, *asked)


def is_planted(cell):
    return (cell.word, cell.what) == ("alone", "column0")


def plan_row(name, runs):
    (prompts, share), more, at_once, decided, nulls = PLANS[name], [], 0, 0, []
    for run in range(runs):
        rng = np.random.default_rng([4, [*PLANS].index(name), run])
        cells = cells_of(rng, prompts, share)
        at_once += any(map(is_planted, cells.found))
        plan = next((plan for plan in cells.plans if is_planted(plan.cell)), None)
        if plan is not None:
            more.append(plan.more)
            decided += any(map(is_planted, cells_of(rng, prompts, share, plan.more).found))
        nulls.append(len(cells_of(rng, prompts, 0.05).plans))
    return {
        "regime": name,
        "found at once": f"{at_once} of {runs}",
        "undecided": f"{len(more)} of {runs}",
        "more": f"{np.median(more):.0f}",
        "decided": rate(decided, len(more)),
        "plans of equal sets": f"{np.mean(nulls):.1f}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name, regimes, row_of in (("prompt_sets", GAPS, gap_row), ("prompt_plans", PLANS, plan_row)):
        rows = []
        for regime in regimes:
            rows.append(row_of(regime, given.runs))
            print(rows[-1], flush=True)
        record(name, rows, "Arrays.")


if __name__ == "__main__":
    main()
