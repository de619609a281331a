"""False alarms and widths of means over few groups of uneven sizes.

Two sets of one law are compared by their means, one-sided, at 0.5 % and at 5 %; *cluster* is the correlation of two
samples of a group. Three errors of a mean over G groups: `plain` has G − 1 degrees of freedom and the factor G / (G −
1), whatever the sizes; `mean size` takes each sample as 1 / M of an independent one, where M is the mean size of the
group of a sample, and n − 1 degrees; `by sizes` is `Estimate.of_mean` (`of_uneven_units`). *error* is the mean standard
error by sizes over the standard deviation of the difference: above 1 it is cautious. Values are normal, or lognormal
less their mean (skewed).
"""

import argparse
from itertools import product

import numpy as np
from _record import record
from scipy.special import stdtr

from finc_eval.estimates.error_source import of_uneven_units
from finc_eval.numerics.inference import clopper_pearson

SIZES = {
    "100 of 1": np.repeat(1, 100),
    "16 of 4": np.repeat(4, 16),
    "8 of 2, 8 of 12": np.repeat([2, 12], 8),
    "50 of 2, 50 of 12": np.repeat([2, 12], 50),
    "1 to 10": np.arange(1, 11),
    "1 of 10, 10 of 1": np.append(10, np.repeat(1, 10)),
    "1, 2, 4 to 128": 2 ** np.arange(8),
}
PAIRS = (
    ("100 of 1", "100 of 1"),
    ("100 of 1", "16 of 4"),
    ("100 of 1", "8 of 2, 8 of 12"),
    ("8 of 2, 8 of 12", "8 of 2, 8 of 12"),
    ("50 of 2, 50 of 12", "8 of 2, 8 of 12"),
    ("100 of 1", "1 to 10"),
    ("50 of 2, 50 of 12", "1, 2, 4 to 128"),
    ("100 of 1", "1 of 10, 10 of 1"),
)
CLUSTERS = (0.0, 0.3, 1.0)
LEVELS = (0.005, 0.05)
METHODS = ("plain", "mean size", "by sizes")
LOT = 20_000  # pairs of sets that are drawn at once


def draw(rng, sizes, cluster, skewed, runs):
    """Return the mean of each run, the sums of squared influences, and the variance of samples."""
    law = (lambda *shape: (rng.lognormal(0, 1, shape) - 1.6487) / 2.1612) if skewed else (lambda *s: rng.normal(size=s))
    starts, n = np.append(0, sizes.cumsum())[:-1], sizes.sum()
    values = np.sqrt(cluster) * law(runs, len(sizes)).repeat(sizes, 1) + np.sqrt(1 - cluster) * law(runs, n)
    means = values.mean(1)
    influences = np.add.reduceat(values - means[:, None], starts, 1) / n
    return means, (influences**2).sum(1), values.var(1, ddof=1)


def variances(method, sizes, squares, of_samples):
    """Return the variance of the mean of each run, and its degrees of freedom."""
    count, n = len(sizes), sizes.sum()
    if method == "mean size":
        return of_samples * (sizes**2).sum() / n / n, n - 1
    factor, degrees = (count / (count - 1), count - 1) if method == "plain" else of_uneven_units(sizes)
    return factor * squares, degrees


def rejected(difference, method, first, second):
    """Return the share of runs at each level, in percent, that are called larger, and the errors."""
    found = [variances(method, *one) for one in (first, second)]
    total = sum(variance for variance, _ in found)
    degrees = total**2 / sum(variance**2 / free for variance, free in found)
    p_values = stdtr(degrees, -difference / np.sqrt(total))
    return [int((p_values < level).sum()) for level in LEVELS], np.sqrt(total)


def one(pair, cluster, skewed, lots):
    rng = np.random.default_rng([*map([*SIZES].index, pair), int(10 * cluster), skewed])
    sizes = [SIZES[name] for name in pair]
    counts, errors, differences = dict.fromkeys(METHODS, 0), [], []
    for _ in range(lots):
        (mean, *first), (other, *second) = (draw(rng, each, cluster, skewed, LOT) for each in sizes)
        differences.append(mean - other)
        for method in METHODS:
            found, error = rejected(mean - other, method, (sizes[0], *first), (sizes[1], *second))
            counts[method] = counts[method] + np.array(found)
        errors.append(error)
    runs = LOT * lots
    row = {"sets": " against ".join(pair), "cluster": cluster, "values": "skewed" if skewed else "normal"}
    row |= {method: ", ".join(f"{100 * each / runs:.2f} %" for each in counts[method]) for method in METHODS}
    low, high = (100 * float(end) for end in clopper_pearson(counts["by sizes"][0], runs))
    row["by sizes at 0.5 %"] = f"[{low:.2f}, {high:.2f}]"
    return row | {"error": f"{np.mean(errors) / np.concatenate(differences).std():.2f}"}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lots", type=int, default=5, help=f"lots of {LOT:,} pairs of sets of each row")
    lots = arguments.parse_args().lots
    rows = [one(pair, cluster, False, lots) for pair, cluster in product(PAIRS, CLUSTERS)]
    rows += [one(pair, 1.0, True, lots) for pair in PAIRS]
    record("uneven_groups", rows, f"{LOT * lots:,} pairs of sets a row; false alarms at 0.5 % and at 5 %")


if __name__ == "__main__":
    main()
