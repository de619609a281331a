"""Error of the estimated total variation between two sets, and coverage of its interval.

Counts are drawn from two laws of K kinds. *none*: the laws are equal. *sparse*: one kind of 5 % that the reference
lacks. *dense*: all shares of gen are multiplied by log-normal numbers (sd 0.4 of the logarithm). *half gone*: gen lacks
every second kind. *collapsed*: nine tenths of gen are of one kind, the rest of two others. The shares of the reference
are even, or in proportion to 1/rank (*zipf*). The truth is the total variation of the laws. *plain* is that of the
samples, *permuted* the plain one minus its mean under permuted labels.
"""

import argparse
from itertools import product

import numpy as np
from _record import record
from _runs import counted

from finc_eval.partitions.difference import total_variation

KINDS, SIZES = (20, 50, 200), ((100, 100), (1000, 1000), (5000, 5000), (100, 5000), (1000, 10_000), (50, 10_000))
DRAWS = 200
"""Permutations behind the mean that is subtracted."""


def laws(name, kinds, rng):
    """Return the shares of gen and ref."""
    ref = 1 / np.arange(1, kinds + 1) if name.startswith("zipf") else np.ones(kinds)
    gen = ref / ref.sum()
    if name.endswith("sparse"):
        return np.append(0.95 * gen, 0.05), np.append(gen, 0)
    if name.endswith("dense"):
        gen = gen * np.exp(0.4 * rng.standard_normal(kinds))
    if name.endswith("half gone"):
        gen = gen * (np.arange(kinds) % 2)
    if name == "collapsed":
        gen = np.append([0.9, 0.07, 0.03], np.zeros(kinds - 3))
    return gen / gen.sum(), ref / ref.sum()


def one(name, kinds, sizes, seed):
    """Return truth, the three estimates, and whether interval and p-value are right."""
    rng = np.random.default_rng(seed)
    shares = laws(name, kinds, rng)
    gen, ref = (rng.multinomial(n, share) for n, share in zip(sizes, shares, strict=True))
    truth = np.abs(shares[0] - shares[1]).sum() / 2
    found = total_variation(gen, ref, seed)
    plain = np.abs(gen / sizes[0] - ref / sizes[1]).sum() / 2
    drawn = rng.multivariate_hypergeometric(gen + ref, sizes[0], DRAWS, method="marginals")
    by_chance = (np.abs(drawn / sizes[0] - (gen + ref - drawn) / sizes[1]).sum(1) / 2).mean()
    low, high = found.interval
    return truth, plain, plain - by_chance, found.value, low <= truth + 1e-12 <= high + 2e-12, found.p_value <= 0.05


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=200, help="runs of each setting")
    runs = arguments.parse_args().runs
    rows = []
    for name, sizes in product(("none", "zipf none", "sparse", "dense", "zipf dense", "half gone", "collapsed"), SIZES):
        for kinds in KINDS:
            found = [one(name, kinds, sizes, seed) for seed in range(runs)]
            truth, plain, permuted, value, held, rejected = np.array(found).T
            rows.append(
                {
                    "laws": name,
                    "gen v ref": f"{sizes[0]} v {sizes[1]}",
                    "K": kinds,
                    "truth": f"{truth.mean():.3f}",
                    "bias: plain": f"{(plain - truth).mean():+.3f}",
                    "permuted": f"{(permuted - truth).mean():+.3f}",
                    "ours": f"{(value - truth).mean():+.3f}",
                    "rmse of ours": f"{np.sqrt(np.square(value - truth).mean()):.3f}",
                    "interval holds": counted(int(held.sum()), runs),
                    "p ≤ .05": counted(int(rejected.sum()), runs),
                }
            )
            print(rows[-1], flush=True)
    record("total_variation", rows, f"{runs} runs a row, with Clopper–Pearson 95 % intervals")


if __name__ == "__main__":
    main()
