"""Does the overall difference of `compare` order seven real generators of digits as the Fréchet distance does?

Needs the test assets (FINC_EVAL_ASSETS): 10 000 digits of each generator, and 10 000 of real training data, against the
MNIST test set, by pixels. FD separates two generators if their intervals do not overlap, and so does the difference.
"""

from functools import cache
from itertools import combinations

import numpy as np
from _real import asset, mnist
from _record import record
from _runs import run
from generators import MODELS

import finc_eval as fe

REAL = "real (train)"


@cache
def real_digits():
    rows, _ = mnist()
    return rows[:10_000], rows[10_000:]


def one(model, seed):
    ref, train = real_digits()
    if model == REAL:
        gen = train
    else:
        with np.load(asset("mnist_generated", f"{model}.npz")) as data:
            gen = data["images"].reshape(len(data["images"]), -1).astype(np.float32) / 255
    found = fe.compare(gen, ref, seed=seed)
    score = fe.metrics(gen, ref, ["fd"])["fd"]
    return {
        "difference": found.difference,
        "difference interval": found.difference_interval,
        "fd": score.unbiased,
        "fd interval": score.interval,
        "significant": len(found.significant()),
        "of which over": len([kind for kind in found.significant() if kind.share_difference > 0]),
    }


def report(found):
    one_each = {model: runs[0] for model, runs in found.items()}
    ordered = sorted(one_each, key=lambda model: one_each[model]["fd"])

    def below(key, first, second):
        return one_each[first][f"{key} interval"][1] < one_each[second][f"{key} interval"][0]

    separated = [pair for pair in combinations(ordered, 2) if below("fd", *pair)]
    agree = sum(one_each[better]["difference"] < one_each[worse]["difference"] for better, worse in separated)
    against = sum(below("difference", worse, better) for better, worse in separated)
    rows = [
        {
            "generator": model,
            "FD": with_interval(one_each[model]["fd"], one_each[model]["fd interval"], 2),
            "difference": with_interval(one_each[model]["difference"], one_each[model]["difference interval"], 3),
            "kinds with p ≤ .05": one_each[model]["significant"],
            "of which over": one_each[model]["of which over"],
        }
        for model in ordered
    ]
    record(
        "inference_generators",
        rows,
        f"pixels of 10 000 + 10 000 digits, FD unbiased; the difference has the order of FD in {agree} of the "
        f"{len(separated)} pairs that FD separates, and separates {against} of them in the other order",
    )


def with_interval(value, interval, digits):
    return f"{value:.{digits}f} [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"


if __name__ == "__main__":
    run("inference_generators", (*MODELS, REAL), one, report, 1)
