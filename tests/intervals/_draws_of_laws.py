"""Designs of the tests that sets are of one law, by the means of φ: two sets, sets and all others, releases."""

from functools import partial

import numpy as np
from _law import Design, Drawn, PValue

from finc_eval.core.run import Run
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.numerics.blocks import Blocked
from finc_eval.numerics.exchanges import MeanLaw, UnitSums, exchange_units, flip_blocks, sketched_p_value
from finc_eval.sketches.one_law import sets_p_values

PROMISES = {"Comparison.sets_p_value": PValue(), "Kinds.sets_p_values": PValue(), "Changes.sets_p_value": PValue()}

RUN = Run(device="cpu")


def samples(rng, sizes, dim, shift=0.0, alike=0.9):
    """Draw normal samples in groups of these sizes; the samples of a group share most of what they are."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    own = rng.normal(size=(len(groups), dim))
    if max(sizes) > 1:
        own = np.sqrt(alike) * rng.normal(size=(len(sizes), dim))[groups] + np.sqrt(1 - alike) * own
    return own + shift, groups


def features(rows, frequencies):
    return np.concatenate([np.cos(rows @ frequencies), np.sin(rows @ frequencies)], 1)


def sums_of(drawn, frequencies):
    rows, groups = drawn
    sums = np.zeros((groups[-1] + 1, 2 * frequencies.shape[1]), np.float32)
    np.add.at(sums, groups, features(rows, frequencies).astype(np.float32))
    return UnitSums(sums, np.bincount(groups).astype(float))


def two_sets(rng, first, second, dim, shift=0.0, exchanges=99):
    """Two sets of groups, or of samples; every sample of the first may be shifted."""
    frequencies = rng.normal(size=(dim, 24)) / np.sqrt(2 * dim)
    sides = samples(rng, first, dim, shift), samples(rng, second, dim)
    one, other = (sums_of(each, frequencies) for each in sides)
    found = exchange_units(one, other, int(rng.integers(1000)), by_column=False, exchanges=exchanges).p_value()
    yield Drawn("Comparison.sets_p_value", found, is_null=not shift)
    found = MeanLaw.of(one).p_value(MeanLaw.of(other))
    yield Drawn("Changes.sets_p_value", found, is_null=not shift)
    if max(*first, *second) == 1:
        rows = [features(side[0], frequencies) for side in sides]
        apart = float(((rows[0].mean(0) - rows[1].mean(0)) ** 2).sum())
        found = sketched_p_value(apart, np.cov(np.concatenate(rows).T), (len(first), len(second)))
        yield Drawn("Comparison.sets_p_value", found, is_null=not shift, of="sketches")


def pairs(rng, blocks, dim, shift=0.0, exchanges=99):
    """Pairs of samples, which have most in common; every sample of the first set may be shifted."""
    both = rng.normal(size=(blocks, dim))
    frequencies = rng.normal(size=(dim, 24)) / np.sqrt(2 * dim)
    one, other = (features(both + 0.7 * rng.normal(size=(blocks, dim)) + by, frequencies) for by in (shift, 0.0))
    found = flip_blocks(((one - other) / blocks).astype(np.float32), int(rng.integers(1000)), exchanges).p_value()
    yield Drawn("Comparison.sets_p_value", found, is_null=not shift)


def kinds_of_sets(rng, sizes, dim, shift=0.0):
    """Sets that are each compared with all others; every sample of the first may be shifted."""
    sets = {}
    for number, own in enumerate(sizes):
        rows, groups = samples(rng, own, dim, shift * (number == 0))
        one = ArrayEmbeddings(rows.astype(np.float32), str(number))
        sets[str(number)] = one if max(own) == 1 else one.with_groups(groups.astype(np.uint64), "video")
    found = sets_p_values(sets, int(rng.integers(1000)), RUN, exchanges=99)
    yield Drawn("Kinds.sets_p_values", found["0"], is_null=not shift)


def kinds_of_pairs(rng, sets, blocks, dim, shift=0.0):
    """Sets with a sample of each block; the samples of a block have most in common."""
    shared = rng.normal(size=(blocks, dim))
    rows = [shared + 0.7 * rng.normal(size=(blocks, dim)) + shift * (number == 0) for number in range(sets)]
    blocked = Blocked(np.tile(np.arange(blocks), sets), np.arange(sets).repeat(blocks))
    of_sets = {str(number): ArrayEmbeddings(one.astype(np.float32), str(number)) for number, one in enumerate(rows)}
    found = sets_p_values(of_sets, int(rng.integers(1000)), RUN, blocked=blocked, exchanges=99)
    yield Drawn("Kinds.sets_p_values", found["0"], is_null=not shift)


ONES = [1]
BOTH = ("Comparison.sets_p_value", "Changes.sets_p_value")
ALONE, KINDS = ("Comparison.sets_p_value",), ("Kinds.sets_p_values",)
UNEVEN = [*ONES * 60, *[5] * 10, 20, 20]


def _design(name, regime, numbers, draw, runs=300, quick=40, **options):
    return Design(name, regime, numbers, partial(draw, **options), runs, quick)


DESIGNS = (
    _design("laws of 60 and 80", "small", BOTH, two_sets, first=ONES * 60, second=ONES * 80, dim=2),
    _design(
        "laws of 60 and 80, shifted",
        "small",
        BOTH,
        two_sets,
        60,
        10,
        first=ONES * 60,
        second=ONES * 80,
        dim=2,
        shift=0.6,
    ),
    _design(
        "laws of 200 and 300, shifted",
        "large",
        BOTH,
        two_sets,
        60,
        10,
        first=ONES * 300,
        second=ONES * 400,
        dim=8,
        shift=0.15,
    ),
    _design("laws of 20 and 200", "rare", BOTH, two_sets, 200, 15, first=ONES * 20, second=ONES * 200, dim=4),
    _design("laws of 9 groups and 60 samples", "clustered", BOTH, two_sets, first=[8] * 9, second=ONES * 60, dim=2),
    _design("laws of groups of all sizes", "clustered", BOTH, two_sets, first=UNEVEN, second=UNEVEN, dim=1),
    _design(
        "laws of 60 groups, shifted",
        "clustered",
        BOTH,
        two_sets,
        60,
        10,
        first=[4] * 60,
        second=[4] * 60,
        dim=4,
        shift=0.4,
    ),
    _design("laws of 60 pairs", "paired", ALONE, pairs, 300, 40, blocks=60, dim=4),
    _design("laws of 60 pairs, shifted", "paired", ALONE, pairs, 60, 20, blocks=60, dim=4, shift=0.4),
    _design(
        "kinds, laws of three sets",
        "small",
        KINDS,
        kinds_of_sets,
        100,
        2,
        sizes=(ONES * 60, ONES * 40, ONES * 50),
        dim=2,
    ),
    _design(
        "kinds, laws of three sets, the first shifted",
        "small",
        KINDS,
        kinds_of_sets,
        30,
        2,
        sizes=(ONES * 60, ONES * 40, ONES * 50),
        dim=2,
        shift=0.9,
    ),
    _design("kinds, laws of 30 and 300", "rare", KINDS, kinds_of_sets, 60, 2, sizes=(ONES * 30, ONES * 300), dim=4),
    _design(
        "kinds, laws of groups of all sizes", "clustered", KINDS, kinds_of_sets, 60, 2, sizes=(UNEVEN, UNEVEN), dim=1
    ),
    _design("kinds, laws of 40 pairs", "paired", KINDS, kinds_of_pairs, 60, 2, sets=2, blocks=40, dim=4),
    _design(
        "kinds, laws of three paired sets, the first shifted",
        "paired",
        KINDS,
        kinds_of_pairs,
        30,
        2,
        sets=3,
        blocks=40,
        dim=4,
        shift=0.5,
    ),
)
