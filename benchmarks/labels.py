"""Measure prediction-powered means: how often their intervals hold the mean of all, and how wide they are.

    python benchmarks/labels.py [--repeats 2000]

Samples are of four kinds, each better than the one before by half a standard deviation; people label n prompts, and a
judge scores these and N others. The judge is good (on a scale of its own), biased by kind (two deviations too low for
the best kind), noise, reversed, or both give whole numbers from 1 to 5. *holds*: intervals of 95 % that hold the mean,
with the interval of that rate. *width*: of the intervals, in those of the labels alone.
"""

import argparse

import numpy as np
from _record import record
from scipy.stats import beta, t

from finc_eval.judges.prediction_powered import Labeled, corrected_means

MEAN = 0.75  # of the quality of all samples
SIZES = ((20, 500), (50, 1000), (200, 2000))
JUDGES = {
    "good": lambda quality, kind, draw: 3 * quality + 10 + draw.normal(0, 0.5, len(kind)),
    "biased by kind": lambda quality, kind, draw: quality - 2.0 * (kind == 3) + draw.normal(0, 0.3, len(kind)),
    "noise": lambda quality, kind, draw: draw.normal(size=len(kind)),
    "reversed": lambda quality, kind, draw: -quality + draw.normal(0, 0.5, len(kind)),
    "whole numbers": lambda quality, kind, draw: whole(quality + draw.normal(0, 0.8, len(kind))),
}


def whole(values):
    return np.clip(np.rint(values + 3), 1, 5)


def drawn(draw, count, judge):
    """Return labels and scores of samples."""
    kind = draw.integers(0, 4, count)
    quality = draw.normal(size=count) + 0.5 * kind
    labels = whole(quality) if judge == "whole numbers" else quality + draw.normal(0, 0.4, count)
    return labels, JUDGES[judge](quality, kind, draw)


def measure(judge, n, others, repeats):
    draw = np.random.default_rng(n)
    truth = drawn(np.random.default_rng(9), 2_000_000, judge)[0].mean() if judge == "whole numbers" else MEAN
    names = tuple(map(str, range(n + others)))
    held, widths = 0, []
    for _ in range(repeats):
        labels, scores = drawn(draw, n + others, judge)
        known = Labeled(labels[:n], scores[:n], scores[n:], names[:n], names[n:])
        found = corrected_means({"model": known})
        reach = t.ppf(0.975, found.degrees) * np.sqrt((found.influences**2).sum())
        held += abs(found.values[0] - truth) <= reach
        widths.append(found.width)
    low, high = beta.ppf(0.025, held, repeats - held + 1), beta.ppf(0.975, held + 1, repeats - held)
    return {
        "judge": judge,
        "labeled": n,
        "others": others,
        "holds": f"{100 * held / repeats:.1f} % ({100 * low:.1f} to {100 * high:.1f})",
        "width": round(float(np.mean(widths)), 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=2000)
    repeats = parser.parse_args().repeats
    table = [measure(judge, *sizes, repeats) for judge in JUDGES for sizes in SIZES]
    record("labels", table, f"{repeats} repetitions of each row.")
