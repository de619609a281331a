"""Measure prediction-powered means: how often their intervals hold the mean of all, and how wide they are.

    python benchmarks/labels.py [--repeats 2000]

Samples are of four kinds, each better than the one before by half a standard deviation; people label n prompts, and a
judge scores these and N others. The judge is good (on a scale of its own), biased by kind (two deviations too low for
the best kind), noise, reversed, or both give whole numbers from 1 to 5. *holds*: intervals of 95 % that hold the mean,
with the interval of that rate. *width*: of the intervals, in those of the labels alone.

A judge is also asked k times about the same samples of 40 prompts: each time, all scores are higher by a draw with the
standard deviation of *repeats*, where samples have .7, and each answer by one with that of *answers*. *by prompts*:
intervals without the part of the repeats.
"""

import argparse

import numpy as np
from _record import record
from scipy.stats import beta, t

from finc_eval.judges.asked_again import RepeatedScores, with_repeats
from finc_eval.judges.paired import mean_scores
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


ASKED = ((2, 0.0, 0.7), (3, 0.0, 0.7), (3, 0.1, 0.7), (3, 0.5, 0.7), (2, 0.5, 0.3), (5, 1.0, 0.3), (8, 0.2, 0.7))


def rate(held, repeats):
    low, high = beta.ppf(0.025, held, repeats - held + 1), beta.ppf(0.975, held + 1, repeats - held)
    return f"{100 * held / repeats:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def measure_repeats(asked, of_repeats, of_answers, repeats):
    draw = np.random.default_rng(asked)
    prompts, held = tuple(map(str, range(40))), np.zeros(2, int)
    for _ in range(repeats):
        scores = (
            draw.normal(0, 0.7, 40) + draw.normal(0, of_repeats, (asked, 1)) + draw.normal(0, of_answers, (asked, 40))
        )
        means = mean_scores({"model": scores.mean(0)}, {"model": prompts})
        found, _ = with_repeats(means, {"model": RepeatedScores(tuple(map(str, range(asked))), scores, prompts)})
        reaches = [t.ppf(0.975, each.degrees) * np.sqrt(each.covariance[0, 0]) for each in (found, means)]
        held += np.abs(means.values[0]) <= np.array(reaches)
    return {
        "asked": asked,
        "repeats": of_repeats,
        "answers": of_answers,
        "holds": rate(int(held[0]), repeats),
        "by prompts": rate(int(held[1]), repeats),
    }


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
    return {
        "judge": judge,
        "labeled": n,
        "others": others,
        "holds": rate(held, repeats),
        "width": round(float(np.mean(widths)), 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--tables", nargs="*", default=["labels", "asked"])
    options = parser.parse_args()
    notes = f"{options.repeats} repetitions of each row."
    if "labels" in options.tables:
        record("labels", [measure(judge, *sizes, options.repeats) for judge in JUDGES for sizes in SIZES], notes)
    if "asked" in options.tables:
        record("asked", [measure_repeats(*row, options.repeats) for row in ASKED], notes)
