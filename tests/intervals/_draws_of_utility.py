"""Designs of the utility of synthetic records: classifiers of two trainings on the same private records."""

from functools import partial

import numpy as np
from _law import Design, Drawn, Holds

from finc_eval.private.synthesis.utility import classifiers_utility, trained

PROMISES = {
    "ClassifierUtility.interval": Holds(
        width=None, why="of these trained classifiers, while each repetition trains others"
    )
}


def people(rng, n, rare, noise):
    """Draw three features and a class, of which the second is rare; synthetic ones have more noise."""
    classes = (rng.random(n) < rare).astype(np.int64)
    return rng.standard_normal((n, 3)) * (1 + noise) + 1.5 * classes[:, None], classes


def trainings(rng, n, rare, noise):
    """Of these trained classifiers, the truth is their difference on many fresh records."""
    private, synthetic = people(rng, n, rare, 0), people(rng, n, rare, noise)
    name = "logistic regression"
    (found,) = classifiers_utility(private, synthetic, 2, [name])
    of_synthetic, of_halves, halves = trained(name, private, synthetic, 0)
    x, y = people(rng, 20_000, rare, 0)
    by_class = []
    for number in (0, 1):
        chosen, parts = y == number, [(halves[private[1] == number] == half).mean() for half in (0, 1)]
        # A half of the records is tested by the classifier of the other one.
        by_private = sum(
            part * (predict(x[chosen]) == number).mean() for part, predict in zip(parts, of_halves[::-1], strict=True)
        )
        by_class.append((of_synthetic(x[chosen]) == number).mean() - by_private)
    yield Drawn("ClassifierUtility.interval", found.difference, found.interval, float(np.mean(by_class)))


NUMBERS = ("ClassifierUtility.interval",)

DESIGNS = (
    Design(
        "a classifier of 60 synthetic and of 60 private records",
        "small",
        NUMBERS,
        partial(trainings, n=60, rare=0.4, noise=1),
        runs=300,
        quick=15,
    ),
    Design(
        "classifiers of 300 records with a rare class",
        "rare",
        NUMBERS,
        partial(trainings, n=300, rare=0.05, noise=0.5),
        runs=300,
        quick=15,
    ),
    Design(
        "classifiers of 1500 records",
        "paired",
        NUMBERS,
        partial(trainings, n=1500, rare=0.3, noise=2),
        runs=150,
        quick=0,
    ),
)
