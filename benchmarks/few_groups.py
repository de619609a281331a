"""False alarms of sets with few groups.

Both sets are of one law of K kinds, with even shares or in proportion to 1/rank, and all samples of a group are of one
kind. A set of n samples is *worth* n / M independent ones, where M is the mean size of the group of a sample; its
*effective* samples are n over the mean design effect of its kinds. Of two sets, the smaller number counts. *overall*:
the difference of the sets has p ≤ .05; it is not tested below `MIN_EFFECTIVE`. *a kind*: a kind has an adjusted p ≤
.05; sets that are worth fewer than `MIN_INDEPENDENT` are refused.
"""

import argparse
from itertools import pairwise, product

import numpy as np
from _record import record
from _runs import counted

from finc_eval.embeddings.repeats import MIN_INDEPENDENT
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.counts import Counts, tally_sets
from finc_eval.partitions.difference import MIN_EFFECTIVE, permutation_p_value
from finc_eval.partitions.tests import test_kinds

KINDS = (5, 20, 50)
ENDS = (0, 2, MIN_INDEPENDENT, MIN_EFFECTIVE, 8, 10, 15, 20, 40, 400)


def pareto(count, shape, least, most):
    return lambda rng: np.minimum(least * (1 + rng.pareto(shape, count)), most).astype(int)


def fixed(*sizes):
    return lambda rng: np.repeat(*zip(*sizes, strict=True))


DESIGNS = {
    "singles v one large": (fixed((1, 500)), fixed((300, 1), (1, 500))),
    "one large in both": (fixed((300, 1), (1, 500)), fixed((300, 1), (1, 500))),
    "singles v 15 heavy": (fixed((1, 500)), pareto(15, 1.0, 20, 3000)),
    "15 heavy v 15 heavy": (pareto(15, 1.0, 20, 3000), pareto(15, 1.0, 20, 3000)),
    "singles v 40 heavy": (fixed((1, 500)), pareto(40, 1.0, 20, 3000)),
    "40 heavy v 40 heavy": (pareto(40, 1.0, 20, 3000), pareto(40, 1.0, 20, 3000)),
    "singles v 15 Pareto": (fixed((1, 500)), pareto(15, 1.2, 5, 400)),
    "15 Pareto v 15 Pareto": (pareto(15, 1.2, 5, 400), pareto(15, 1.2, 5, 400)),
    "singles v 60 Pareto": (fixed((1, 500)), pareto(60, 1.2, 5, 400)),
    "60 Pareto v 60 Pareto": (pareto(60, 1.2, 5, 400), pareto(60, 1.2, 5, 400)),
    "singles v 10 of 50": (fixed((1, 500)), fixed((50, 10))),
    "10 of 50 v 10 of 50": (fixed((50, 10)), fixed((50, 10))),
    "singles v 60 of 10": (fixed((1, 300)), fixed((10, 60))),
}


def counts_of(sizes, shares, rng):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    kinds = rng.choice(len(shares), len(sizes), p=shares)[groups]
    return Counts.of(len(shares), kinds, groups.astype(np.uint64))


def one(design, kinds, seed):
    """Return how many samples the smaller set is worth, and has effectively, and the alarms of both tests."""
    rng = np.random.default_rng([seed, kinds])
    shares = np.ones(kinds) if seed % 2 else 1 / np.arange(1, kinds + 1)
    shares = shares / shares.sum()
    sets = {name: counts_of(draw(rng), shares, rng) for name, draw in zip("ab", DESIGNS[design], strict=True)}
    worth = min(each.n / each.grouped(0).sizes.mean for each in sets.values())
    tallies = tally_sets(sets)
    effective = [each.effective() for each in tallies.values()]
    p_value = permutation_p_value(*effective, seed, least=1)
    differs = p_value is not None and p_value <= ALPHA
    return worth, min(one.n for one in effective), differs, test_kinds(tallies).adjusted.min() <= ALPHA


def within(found, low, high):
    """Return how many alarms were raised where the first column lies between two numbers."""
    alarms = found[(found[:, 0] >= low) & (found[:, 0] < high), 1]
    return counted(int(alarms.sum()), len(alarms))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runs", type=int, default=200, help="runs of each design and number of kinds")
    runs = arguments.parse_args().runs
    found = np.array([one(*design, seed) for design in product(DESIGNS, KINDS) for seed in range(runs)])
    rows = []
    for low, high in pairwise(ENDS):
        kind, overall = (within(found[:, [column, test]], low, high) for column, test in ((0, 3), (1, 2)))
        rows.append(
            {
                "samples": f"{low} to {high}",
                "overall, by effective ones": overall + " (not tested)" * (high <= MIN_EFFECTIVE),
                "a kind, by those it is worth": kind + " (refused)" * (high <= MIN_INDEPENDENT),
            }
        )
    designs = f"{runs} runs of each of {len(DESIGNS)} designs and of 5, 20 and 50 kinds"
    record("few_groups", rows, f"{designs}, with 95 % intervals")


if __name__ == "__main__":
    main()
