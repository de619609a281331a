"""The density difference of two samples of one distribution, N(0, 1): what the membership score is without members.

python benchmarks/kahm_null.py
"""

import numpy as np
from _record import record

from finc_eval.numerics.density_difference import density_difference

PERMUTATIONS = 39


def row(m, n, trials, permutations):
    """Return mean, quantile and maximum of the standardized score, and how often it passes its own threshold."""
    found = [
        density_difference(rng.normal(size=m), rng.normal(size=n), permutations=permutations, seed=trial)
        for trial in range(trials)
    ]
    values = [one.standardized for one in found]
    return {
        "members / others": f"{m} / {n}",
        "trials": trials,
        "mean": f"{np.mean(values):.2g}",
        "95 %": f"{np.quantile(values, 0.95):.2g}",
        "largest": f"{max(values):.2g}",
        "threshold by permutation, mean": f"{np.mean([one.threshold() for one in found]):.2g}" if permutations else "",
        "rejected at 5 %": round(float(np.mean([one.p_value <= 0.05 for one in found])), 3) if permutations else "",
    }


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    rows = [
        row(300, 300, 150, PERMUTATIONS),
        row(1200, 600, 100, PERMUTATIONS),
        row(8000, 2000, 50, 0),
        row(60_000, 10_000, 12, 0),
    ]
    record("kahm_null", rows, notes=f"standardized score of equal densities; {PERMUTATIONS} permutations")
