"""Designs of classifications by models: accuracy, the recognized share of each class, and differences to yardsticks."""

from functools import cache, partial

import numpy as np
from _law import Design, Drawn, Holds, NoClaim

import finc_eval as fe
from finc_eval.embeddings.base import ArrayEmbeddings

PROMISES = {
    "Classification.accuracy_interval": Holds(width=(0.8, 1.6), why="Wilson's, which is wide near 1 and for few units"),
    "ClassifiedSample.margin": NoClaim("a fact about the two nearest models"),
    "ClassResult.interval": Holds(width=None, why="of a share of the samples of a class, whose number is drawn, too"),
    "Fabrication.bounds": NoClaim("the least and the largest value of an entry, which were asked for"),
    "Yardstick.interval": Holds(width=(0.8, 1.6), why="four more samples count, where both are mostly right"),
}

CENTERS = np.array([[0.0, 0, 0], [1.6, 0, 0], [0, 1.6, 0]])


def people(rng, n, shares, group=1):
    """Draw samples of three classes, (n, 3), their classes and groups; samples of a group are nearly equal."""
    classes = np.repeat(rng.choice(3, n // group, p=shares), group)
    rows = np.repeat(CENTERS[classes[::group]] + rng.standard_normal((n // group, 3)), group, 0)
    return rows + 0.05 * rng.standard_normal(rows.shape), classes, np.arange(n) // group


@cache
def fitted():
    """Fit models to 40 samples of each class; return them, and what they do to many fresh samples of each class."""
    rng = np.random.default_rng(5)
    labels = np.repeat([0, 1, 2], 40)
    models = fe.kahm.fit_classes(CENTERS[labels] + rng.standard_normal((120, 3)), labels, fe.kahm.KahmSettings(2))
    truth = []
    for label in range(3):
        rows = CENTERS[label] + rng.standard_normal((20_000, 3))
        found = fe.kahm.classify(models, rows, np.full(len(rows), label))
        truth.append([found.accuracy, *(one.difference for one in found.yardsticks)])
    return models, np.array(truth)


def classes_of(rng, n, shares, group=1):
    """The law of the samples is known by class, and so is that of their mixture."""
    models, truth = fitted()
    rows, labels, groups = people(rng, n, shares, group)
    given = ArrayEmbeddings(rows)
    given = given if group == 1 else given.with_groups(groups.astype(np.uint64), "group")
    found, whole = fe.kahm.classify(models, given, labels), np.array(shares) @ truth
    yield Drawn("Classification.accuracy_interval", found.accuracy, found.accuracy_interval, whole[0])
    for row, (right, *_) in zip(found.classes, truth, strict=True):
        if row.interval is not None:
            yield Drawn("ClassResult.interval", row.recognized, row.interval, right, of=row.name)
    for row, difference in zip(found.yardsticks, whole[1:], strict=True):
        yield Drawn("Yardstick.interval", row.difference, row.interval, difference, of=row.name)


NUMBERS = ("Classification.accuracy_interval", "ClassResult.interval", "Yardstick.interval")
EVEN, RARE = (0.4, 0.4, 0.2), (0.7, 0.26, 0.04)

DESIGNS = (
    Design(
        "40 samples by models of three classes", "small", NUMBERS, partial(classes_of, n=40, shares=EVEN), runs=1000
    ),
    Design(
        "400 samples by models of three classes", "large", NUMBERS, partial(classes_of, n=400, shares=EVEN), runs=600
    ),
    Design(
        "100 samples by models, 4 of a rare class", "rare", NUMBERS, partial(classes_of, n=100, shares=RARE), runs=1000
    ),
    Design(
        "80 groups of four samples by models",
        "clustered",
        NUMBERS,
        partial(classes_of, n=320, shares=EVEN, group=4),
        runs=600,
    ),
)
