"""How often does the 95 % interval of a Fréchet distance hold the distance of infinitely many samples?

Both sets are drawn afresh for each run, from laws whose distance is known: entries of variance 1/k, the generated set
1.1 times as wide and shifted by 0.1 standard deviations. `same` is one law, `white` has equal variances. Heavy tails
are Student's t with 5 degrees of freedom in each entry, heavy lengths one factor of this kind for all entries of a
sample. Samples of a group share 70 % of their variance. Sets of fewer samples than dimensions get no interval from
`fe.metrics`, for the reason that their row shows.

    python benchmarks/frechet_intervals.py [--runs N]       default: 100
"""

import argparse

import numpy as np
import torch
from _record import record

from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.measures.frechet import frechet_interval
from finc_eval.numerics.inference import clopper_pearson


def spectrum(dim, rank=None):
    """Standard deviations of the entries: variances 1/k."""
    return np.where(np.arange(dim) < (rank or dim), np.arange(1, dim + 1) ** -0.5, 0.0)


PLAIN = (0.1, 1.1)  # shift and width of the generated set
DESIGNS = {  # samples, dimensions or standard deviations, (shift, width), noise, samples of a group
    "1 dimension, 400 v 400, shifted": (400, 400, spectrum(1), (0.1, 1.0), "normal", 1),
    "2 dimensions, 400 v 400, wider": (400, 400, np.ones(2), (0.0, 1.1), "normal", 1),
    "16 dimensions, 250 v 250, same": (250, 250, spectrum(16), (0.0, 1.0), "normal", 1),
    "16 dimensions, 2000 v 2000, far": (2000, 2000, spectrum(16), (0.5, 1.3), "normal", 1),
    "100 dimensions, 101 v 101": (101, 101, spectrum(100), PLAIN, "normal", 1),
    "100 dimensions, 200 v 200": (200, 200, spectrum(100), PLAIN, "normal", 1),
    "100 dimensions, 1000 v 1000": (1000, 1000, spectrum(100), PLAIN, "normal", 1),
    "64 dimensions, 300 v 300": (300, 300, spectrum(64), PLAIN, "normal", 1),
    "64 dimensions, 300 v 300, same": (300, 300, spectrum(64), (0.0, 1.0), "normal", 1),
    "64 dimensions, 300 v 300, white": (300, 300, np.ones(64), PLAIN, "normal", 1),
    "64 dimensions, 300 v 5000": (300, 5000, spectrum(64), PLAIN, "normal", 1),
    "64 dimensions, 5000 v 300": (5000, 300, spectrum(64), PLAIN, "normal", 1),
    "64 dimensions, 500 v 500, heavy tails": (500, 500, spectrum(64), PLAIN, "entries", 1),
    "64 dimensions, 500 v 500, heavy lengths": (500, 500, spectrum(64), PLAIN, "lengths", 1),
    "64 dimensions of rank 20, 300 v 300": (300, 300, spectrum(64, 20), PLAIN, "normal", 1),
    "16 dimensions, 100 groups of 10": (1000, 1000, spectrum(16), PLAIN, "normal", 10),
    "16 dimensions, 30 groups of 20": (600, 600, spectrum(16), PLAIN, "normal", 20),
    "64 dimensions, 150 groups of 4": (600, 600, spectrum(64), PLAIN, "normal", 4),
    "64 dimensions, 40 groups of 25": (1000, 1000, spectrum(64), PLAIN, "normal", 25),
    "512 dimensions, 1000 v 1000": (1000, 1000, spectrum(512), PLAIN, "normal", 1),
    "512 dimensions, 1000 v 1000, heavy lengths": (1000, 1000, spectrum(512), PLAIN, "lengths", 1),
    "1280 dimensions, 500 v 500": (500, 500, spectrum(1280), PLAIN, "normal", 1),
}


def noise(rng, kind, n, dim):
    """Draw independent noise of variance 1."""
    if kind == "entries":
        return rng.standard_t(5, (n, dim)) * 0.6**0.5
    long = np.sqrt(3 / rng.chisquare(5, (n, 1))) if kind == "lengths" else 1.0
    return rng.standard_normal((n, dim)) * long


def draw(rng, n, deviations, shift, width, kind, group):
    """Draw a set."""
    rows = noise(rng, kind, n, len(deviations))
    if group > 1:
        shared = noise(rng, kind, n // group, len(deviations)).repeat(group, 0)
        rows = 0.7**0.5 * shared + 0.3**0.5 * rows
    found = ArrayEmbeddings((deviations * (shift + width * rows)).astype(np.float32))
    return found if group == 1 else found.with_groups(np.arange(n, dtype=np.uint64) // np.uint64(group), "video")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    torch.set_num_threads(1)
    rows = []
    for name, (n, m, deviations, (shift, width), kind, group) in DESIGNS.items():
        truth, found = float((deviations**2).sum() * (shift**2 + (width - 1) ** 2)), []
        for run in range(runs):
            rng = np.random.default_rng([run, n, m, len(deviations)])
            gen, ref = draw(rng, n, deviations, shift, width, kind, group), draw(rng, m, deviations, 0, 1, kind, group)
            found.append(frechet_interval(gen, ref))
        held = sum(one.low <= truth <= one.high for one in found)
        low, high = (float(end) for end in clopper_pearson(held, runs))
        rows.append(
            {
                "design": name,
                "distance": round(truth, 4),
                "read": round(float(np.mean([one.value for one in found])), 4),
                "unbiased, mean": round(float(np.mean([one.corrected for one in found])), 4),
                "interval holds the distance": f"{held}/{runs} [{low:.3f}, {high:.3f}]",
                "width, mean": round(float(np.mean([one.high - one.low for one in found])), 4),
            }
        )
        print(rows[-1], flush=True)
    record("frechet_intervals", rows, "95 % intervals of Fréchet distances around the unbiased value")


if __name__ == "__main__":
    main()
