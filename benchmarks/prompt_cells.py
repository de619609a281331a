"""Words of prompts × what pictures have: how many planted cells are found, and how often equal sets have any.

Prompts have three of 28 words. In each draw three words bring an attribute to most of the first set's pictures: a value
of a column of metadata, a look (a number beside each picture), or an object (a kind, with a label). A word of fewer
than three prompts is not tested: of 40 prompts, a planted word has so few in one of five draws. *in 3 prompts* counts
the planted words of three prompts or more. *other* counts cells that were not planted, in the same draws. *null* counts
draws of equal sets in which any cell is found, and *up to* is the upper end of its interval of 95 %. *other words* are
words and columns that no choice of the test was made by.

    python benchmarks/prompt_cells.py
"""

import argparse
import time
from itertools import product

import numpy as np
import torch
from _record import record
from scipy.stats import binomtest

import finc_eval as fe
from finc_eval.prompts.words import FEWEST_PROMPTS

ADJECTIVES, NOUNS = [f"adjective{n}" for n in range(14)], [f"noun{n}" for n in range(14)]
COLUMNS = ["weather", "season", "light", "crowd"]
PLANTED = {
    "words": (("adjective1", "weather"), ("noun2", "brightness"), ("adjective5", "object")),
    "other words": (("adjective3", "crowd"), ("adjective8", "brightness"), ("noun7", "object")),
}
SHARE = 0.75


def draw_set(prompts, rng, planted):
    """A set of pictures of prompts, as embeddings with columns."""
    n = len(prompts)
    has = {column: rng.random(n) < 0.08 for column in COLUMNS}
    objects, brightness = np.array([text.split()[2] for text in prompts], object), rng.normal(size=n)
    for word, what in planted:
        there = np.array([word in text.split() for text in prompts]) & (rng.random(n) < SHARE)
        if what == "object":
            objects[there] = "elephant"
        elif what == "brightness":
            brightness[there] += 4
        else:
            has[what] |= there
    rows = rng.normal(size=(n, 32))
    places = np.random.default_rng(0).normal(size=(len(NOUNS) + 1, 32)) * 3
    rows += places[[NOUNS.index(each) if each in NOUNS else -1 for each in objects]]
    rows[:, : len(COLUMNS)] += 3 * np.stack([has[column] for column in COLUMNS], 1)
    metadata = {column: np.where(values, "yes", "no").tolist() for column, values in has.items()}
    metadata |= {"label": objects.tolist(), "brightness": brightness.tolist(), "prompt": prompts}
    return fe.EmbeddingSet(rows.astype(np.float32), metadata=metadata)


def cells_of(prompts, each, seed, planted):
    """Return the cells of two sets, and the number of prompts with each planted word."""
    rng = np.random.default_rng(seed)
    texts = [f"{' '.join(rng.choice(ADJECTIVES, 2, replace=False))} {rng.choice(NOUNS)} {n}" for n in range(prompts)]
    repeated = np.repeat(texts, each).tolist()
    gen, ref = (draw_set(repeated, rng, own) for own in (planted, ()))
    cells = fe.compare(gen, ref, pairs="prompt", features=100).prompts.cells
    return cells, {word: sum(word in text.split() for text in texts) for word, _ in planted}


def measure(prompts, each, which, draws, nulls):
    """Return the row of a design."""
    started, right, other, testable = time.process_time(), 0, 0, 0
    design = list(PLANTED).index(which)
    for seed in range(draws):
        found, sizes = cells_of(prompts, each, [1 + 2 * design, seed], PLANTED[which])
        words = {cell.word for cell in found}
        right += len(words & sizes.keys())
        other += len(found) - len(words & sizes.keys())
        testable += sum(size >= FEWEST_PROMPTS for size in sizes.values())
    any_cell = sum(bool(cells_of(prompts, each, [2 + 2 * design, seed], ())[0]) for seed in range(nulls))
    return {
        "prompts": prompts,
        "pictures each": each,
        "planted": which,
        "in all": draws * len(PLANTED[which]),
        "in 3 prompts": testable,
        "found": right,
        "other": other,
        "null draws": nulls,
        "null": any_cell,
        "up to": f"{binomtest(any_cell, nulls).proportion_ci().high:.3f}",
        "CPU s each": f"{(time.process_time() - started) / (draws + nulls):.1f}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--nulls", type=int, default=200)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for (prompts, each), which in product(((40, 4), (400, 1)), PLANTED):
        rows.append(measure(prompts, each, which, given.draws, given.nulls))
        print(rows[-1], flush=True)
    record("prompt_cells", rows, "Arrays with columns.")


if __name__ == "__main__":
    main()
