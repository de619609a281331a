"""Measure prediction-powered means: how often their intervals hold the mean of all, and how wide they are.

    python benchmarks/labels.py [--repeats 2000]

Samples are of four kinds, each better than the one before by half a standard deviation; people label n prompts, and a
judge scores these and N others. The judge is good (on a scale of its own), biased by kind (two deviations too low for
the best kind), noise, reversed, or both give whole numbers from 1 to 5. *holds*: intervals of 95 % that hold the mean,
with the interval of that rate. *width*: of the intervals, in those of the labels alone.

A judge is also asked k times about the same samples of 40 prompts: each time, all scores are higher by a draw with the
standard deviation of *repeats*, where samples have .7, and each answer by one with that of *answers*. *by prompts*:
intervals without the part of the repeats.

Plans: a pilot of two models says how many prompts, votes or labels decide their order in 80 % of draws, and as many are
drawn anew. *planned*: the median number, and a tenth and nine tenths of pilots. *decided*: draws of the planned number
that decide for the better model, of pilots with a plan. Where a plan has fewer than are at hand, as many are drawn as
are at hand.
"""

import argparse

import numpy as np
from _record import record
from scipy.stats import beta, t

from finc_eval.judges.asked_again import RepeatedScores, with_repeats
from finc_eval.judges.paired import mean_scores
from finc_eval.judges.prediction_powered import Labeled, corrected_means
from finc_eval.leaderboards.assemble import rank_column
from finc_eval.leaderboards.judged import Judgments

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


def scored_models(draw, gap, prompts):
    """Return two models scored on the same prompts, the first better by a gap."""
    names, of_prompt = [f"p{n}" for n in range(prompts)], draw.normal(0, 1, prompts)
    own = {"a": gap + of_prompt + draw.normal(0, 0.7, prompts), "b": of_prompt + draw.normal(0, 0.7, prompts)}
    scores = {name: {"prompt": names, "judge": values.tolist()} for name, values in own.items()}
    return Judgments.read(scores, None, ("a", "b"), ()).results(0), 0


def voted_models(draw, gap, votes):
    """Return two models with votes: ten of each person on average, and five of each prompt."""
    wins = draw.random(votes) < 1 / (1 + np.exp(-gap))
    prompts, voters = draw.integers(0, max(votes // 5, 5), votes), draw.integers(0, max(votes // 10, 5), votes)
    rows = [
        {"prompt": f"p{prompt}", "left": "a", "right": "b", "winner": "a" if win else "b", "voter": f"v{voter}"}
        for prompt, voter, win in zip(prompts, voters, wins, strict=True)
    ]
    return Judgments.read(None, rows, ("a", "b"), ()).results(0), 0


def labeled_models(draw, gap, labels):
    """Return two models of 1,000 samples with scores, so many of them with labels."""
    scores, people = {}, {}
    for name, better in (("a", gap), ("b", 0.0)):
        quality = draw.normal(better, 1, 1000)
        ids = [f"s{n}" for n in range(1000)]
        scores[name] = {"id": ids, "judge": (3 * quality + 10 + draw.normal(0, 1.5, 1000)).tolist()}
        some = draw.choice(1000, labels, replace=False)
        rating = quality[some] + draw.normal(0, 0.4, labels)
        people[name] = {"id": [ids[row] for row in some], "rating": rating.tolist()}
    return Judgments.read(scores, None, ("a", "b"), (), labels=people).results(0), 1


PLANS = (
    ("prompts", scored_models, 0.15, 60),
    ("prompts", scored_models, 0.25, 60),
    ("prompts", scored_models, 0.15, 200),
    ("votes", voted_models, 0.25, 300),
    ("votes", voted_models, 0.4, 300),
    ("labels", labeled_models, 0.2, 100),
    ("labels", labeled_models, 0.25, 60),
    ("labels", labeled_models, 0.3, 60),
)


def measure_plan(unit, models, gap, have, repeats):
    numbers, decided, draw = [], [], np.random.default_rng(have)
    for _ in range(repeats):
        (plan,) = [plan for plan in models(draw, gap, have)[0].plans if plan.unit == unit]
        if plan.needed is None or plan.needed > 20_000:
            continue
        numbers.append(plan.needed)
        results, column = models(draw, gap, max(plan.needed, have))
        criterion, _ = rank_column(results.columns[column], {"a": None, "b": None})
        decided.append(criterion.better("a", "b", 0.05))
    low, middle, high = np.quantile(numbers, [0.1, 0.5, 0.9])
    return {
        "what": unit,
        "margin": gap,
        "at hand": have,
        "planned": f"{middle:,.0f} ({low:,.0f} to {high:,.0f})",
        "with a plan": f"{len(numbers):,} of {repeats:,}",
        "decided": rate(sum(decided), len(decided)),
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
    parser.add_argument("--tables", nargs="*", default=["labels", "asked", "planned"])
    options = parser.parse_args()
    notes = f"{options.repeats} repetitions of each row."
    if "labels" in options.tables:
        record("labels", [measure(judge, *sizes, options.repeats) for judge in JUDGES for sizes in SIZES], notes)
    if "asked" in options.tables:
        record("asked", [measure_repeats(*row, options.repeats) for row in ASKED], notes)
    if "planned" in options.tables:
        record("planned", [measure_plan(*row, options.repeats // 4) for row in PLANS], "Pilots of each row.")
