"""Measure how often the 95 % interval of a metric contains the mean over fresh sets of the same sizes.

Both sets are drawn afresh for each run, from a mixture of six kinds in 8 dimensions. `same` is one law; `other` has
other shares of the kinds, and is shifted by a fifth of a standard deviation. Samples of a group share 80 % of their
variance around their kind. The mean over the runs stands for the mean over samples. The error is that of
`Metric.estimator`, which boards and gates take.

    python benchmarks/metric_intervals.py [--runs N]       default: 100
"""

import argparse

import numpy as np
import torch
from _record import record

from finc_eval.core.run import Run
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.measures.registry import METRICS
from finc_eval.numerics.inference import clopper_pearson

NAMES = ("kid", "mmd", "jedi", "mind", "prd", "clipped")
KINDS, DIM = 6, 8
OTHER = np.array([0.3, 0.3, 0.1, 0.1, 0.1, 0.1])
DESIGNS = {  # samples, whether the laws are one, samples of a group
    "300 v 300, same": (300, 300, True, 1),
    "300 v 300, other": (300, 300, False, 1),
    "250 v 1000, other": (250, 1000, False, 1),
    "1000 v 1000, same": (1000, 1000, True, 1),
    "400 v 400, other, groups of 4": (400, 400, False, 4),
}


def draw(rng, n, is_other, group):
    """Draw a set."""
    centers = np.random.default_rng(5).normal(size=(KINDS, DIM)) * 3
    kind = rng.choice(KINDS, n // group, p=OTHER if is_other else None).repeat(group)
    own = rng.normal(size=(n, DIM))
    if group > 1:
        own = 0.8**0.5 * rng.normal(size=(n // group, DIM)).repeat(group, 0) + 0.2**0.5 * own
    found = ArrayEmbeddings((centers[kind] + own + 0.2 * is_other).astype(np.float32))
    return found if group == 1 else found.with_groups(np.arange(n, dtype=np.uint64) // np.uint64(group), "group")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    torch.set_num_threads(1)
    rows = []
    for name in NAMES:
        for design, (n, m, is_same, group) in DESIGNS.items():
            found = []
            for run in range(runs):
                rng = np.random.default_rng([run, n, m, group])
                gen, ref = draw(rng, n, not is_same, group), draw(rng, m, False, group)
                found.append(METRICS[name].estimator(ref, Run("cpu"))(gen, None))
            values = np.array([one.value for one in found])
            held = sum(one.interval[0] <= values.mean() <= one.interval[1] for one in found)
            low, high = (float(end) for end in clopper_pearson(held, runs))
            rows.append(
                {
                    "metric": name,
                    "design": design,
                    "mean": float(f"{values.mean():.3g}"),
                    "interval holds the mean": f"{held}/{runs} [{low:.3f}, {high:.3f}]",
                    "standard deviation": float(f"{values.std():.3g}"),
                    "standard error, mean": float(f"{np.mean([one.standard_error for one in found]):.3g}"),
                }
            )
            print(rows[-1], flush=True)
    record("metric_intervals", rows, "95 % intervals of metrics, for the mean over other samples of as many")


if __name__ == "__main__":
    main()
