"""Designs of audits: generated samples that are fresh, or partly copies, and sets of one law or of two."""

from functools import partial
from unittest import mock

import numpy as np
from _law import Design, Drawn, Holds, NoClaim, PValue

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.neighbors import nearest, radii
from finc_eval.embeddings.subset import Subset
from finc_eval.memorization.copying import Closeness, authpct, c_t, cell_test, dcr, fld_gap, mifid, nndr, tail
from finc_eval.memorization.distances import measure
from finc_eval.memorization.holdout import Sides, holdout_p_value
from finc_eval.memorization.nearness import Near
from finc_eval.memorization.strata import copying_by_stratum

WIDE = "MiFID's is by Student's t of five blocks, the DCR share's by all ways to label, those of rare shares are exact"
PROMISES = {
    "Audit.holdout_p_value": PValue(),
    "CopiesFound.hash_bits": NoClaim("medians of two sets of samples"),
    "CopyingMeasure.interval": Holds(width=(0.8, 1.6), why=WIDE),
    "CopyingMeasure.control_interval": Holds(width=(0.8, 1.6), why=WIDE),
    "CopyingMeasure.p_value": PValue(),
    "CopyingMeasure.against_holdout": PValue(),
    "Stratum.p_value": PValue(together=True),
    "Stratum.against_holdout": PValue(),
}
CONFIDENCE = 0.95
RUN = Run(device="cpu")


def rows(rng, n, dim):
    return rng.normal(size=(n, dim)).astype(np.float32)


def generated(rng, n, train, copied, noise=0.0, spread=1.0):
    """Samples of the law of the training set, or of a wider law, a share of them copies with noise."""
    fresh = spread * rows(rng, n, train.shape[1])
    which, place = rng.random(n) < copied, rng.integers(len(train), size=n)
    copies = train[place] + noise * rows(rng, n, train.shape[1])
    return np.where(which[:, None], copies, fresh).astype(np.float32)


def closeness(x, train, k):
    found = nearest(x, train, k)
    spacings = np.sqrt(radii(as_embeddings(train), 1).squared)
    return Closeness.of(found.distances, spacings[found.indices[:, 0]])


def single_samples(rng, n, m, size, copied, spread=1.0, dim=3):
    """Measures of single samples. What is uncertain is which samples were generated: the training set is given."""
    k = 10
    train = rows(rng, size, dim)
    draw = partial(generated, rng, train=train, copied=copied, noise=0.02, spread=spread)
    gen, fresh = (closeness(one, train, k) for one in (draw(n), rows(rng, m, dim)))
    of_gen, of_fresh = (closeness(one, train, k) for one in (draw(3000), rows(rng, 3000, dim)))
    threshold = np.sort(fresh.calibrated)[max(int(0.01 * m), 1) - 1]
    found = {
        "authpct": (authpct(gen, fresh, CONFIDENCE), lambda one: one.authenticity.percent),
        "nndr": (nndr(gen, fresh, CONFIDENCE), lambda one: np.median(one.ratios)),
        "calibrated": (
            tail("calibrated", gen.calibrated, fresh.calibrated, CONFIDENCE),
            lambda one: (one.calibrated <= threshold).mean(),
        ),
    }
    for name, (one, law) in found.items():
        yield Drawn("CopyingMeasure.interval", one.value, one.interval, law(of_gen), of=name)
        yield Drawn("CopyingMeasure.control_interval", one.control, one.control_interval, law(of_fresh), of=name)
        if not copied and spread == 1:
            yield Drawn("CopyingMeasure.p_value", one.p_value, of=name)
        elif copied:
            yield Drawn("CopyingMeasure.p_value", one.p_value, is_null=False, of=name)


def cells(rng, n, m, size, copied, spread=1.0, dim=2):
    """C_T over four cells, of a given training set; a holdout is cut in two for the control."""
    train = rows(np.random.default_rng(1 << 40), size, dim)
    gen, fresh = generated(rng, n, train, copied, 0.02, spread), rows(rng, m, dim)
    near = [(nearest(one, train, 1).distances[:, 0], (one > 0) @ [1, 2]) for one in (gen, fresh)]
    half = np.arange(m) < m // 2
    own, control = cell_test(*near[0], *near[1]), cell_test(*(one[part] for part in (half, ~half) for one in near[1]))
    found = c_t(own, control, CONFIDENCE)
    yield Drawn("CopyingMeasure.interval", found.value, found.interval, None if copied or spread != 1 else 0, of="c_t")
    yield Drawn("CopyingMeasure.control_interval", found.control, found.control_interval, 0, of="c_t")
    if copied or spread == 1:
        yield Drawn("CopyingMeasure.p_value", found.p_value, is_null=not copied, of="c_t")


def nearest_shares(rng, n, size, held, copied, dim=3):
    """The share of samples that are nearest to a training sample; half of the training set is its control."""
    train, holdout = rows(rng, size, dim), rows(rng, held, dim)
    gen = generated(rng, n, train, copied, 0.02)
    half = as_embeddings(train)
    first, rest = Subset(half, np.arange(0, size, 2)), Subset(half, np.arange(1, size, 2))
    found = measure(as_embeddings(gen), half, as_embeddings(holdout), 1, RUN)
    control = measure(first, rest, as_embeddings(holdout), 1, RUN)
    one = dcr(found, control, CONFIDENCE)
    yield Drawn("CopyingMeasure.interval", one.value, one.interval, None if copied else 0.5, of="dcr")
    yield Drawn("CopyingMeasure.control_interval", one.control, one.control_interval, 0.5, of="dcr")
    yield Drawn("CopyingMeasure.p_value", one.p_value, is_null=not copied, of="dcr")


def fitted(rng, n, size, held, copied, dim=4, what=("mifid", "fld_gap")):
    """Measures that fit a law. Of MiFID the training set is given, of FLD's gap the generated set."""
    given = np.random.default_rng(1 << 40)
    if "mifid" in what:
        train = rows(given, size, dim) + 6
        gen = generated(rng, n, train - 6, copied, 0.02) + 6
        one = mifid(*map(as_embeddings, (gen, train, rows(rng, held, dim) + 6)), CONFIDENCE, 0)
        yield Drawn("CopyingMeasure.interval", one.value, one.interval, of="mifid")
        yield Drawn("CopyingMeasure.control_interval", one.control, one.control_interval, of="mifid")
        yield Drawn("CopyingMeasure.p_value", one.p_value, is_null=not copied, of="mifid")
    if "fld_gap" in what:
        train, fresh = rows(rng, size, dim), rows(rng, held, dim)
        gen = generated(rng if copied else given, n, train, copied, 0.02)
        whole = as_embeddings(train)
        halves = tuple(Subset(whole, np.arange(part, size, 2)) for part in (0, 1))
        one = fld_gap(as_embeddings(gen), halves, as_embeddings(fresh), CONFIDENCE, 0)
        yield Drawn("CopyingMeasure.interval", one.value, one.interval, of="fld_gap")
        yield Drawn("CopyingMeasure.control_interval", one.control, one.control_interval, of="fld_gap")
        yield Drawn("CopyingMeasure.p_value", one.p_value, is_null=not copied, of="fld_gap")


def holdouts(rng, train, held, dim=3, windows=1, lacking=False):
    """Training set and holdout of one law, of videos with several windows, or of a holdout that lacks a kind."""
    sets = []
    for n in (train, held):
        centers = np.repeat(rng.normal(size=(n // windows, dim)), windows, 0)
        samples = centers + (0.2 if windows > 1 else 0) * rng.normal(size=(len(centers), dim))
        samples[: n // 4] += 4 if n == train or not lacking else 0
        videos = {"video": np.arange(len(samples)) // windows}
        both = fe.EmbeddingSet(samples.astype(np.float32), metadata=videos)
        sets.append(both.grouped("video") if windows > 1 else both)
    found = holdout_p_value(*sets, int(rng.integers(1 << 30)), RUN)
    yield Drawn("Audit.holdout_p_value", found, is_null=not lacking)


class _Kinds:
    """Two kinds of a training set, as far as a test of strata needs them."""

    names = ("left", "right")

    @property
    def examples(self):
        return [mock.Mock(top_ids=()) for _ in self.names]


def strata(rng, n, m, size, copied, dim=3):
    """Two strata of a training set; the copies are in the first stratum."""
    train, holdout = rows(rng, size, dim), rows(rng, m, dim)
    gen = rows(rng, n, dim)
    left = np.flatnonzero(train[:, 0] < 0)
    count = round(copied * n)
    gen[:count] = train[rng.choice(left, count)] + 0.02 * rows(rng, count, dim)
    own, fresh = (closeness(one, train, 10) for one in (gen, holdout))
    parts = [(one[:, 0] > 0).astype(np.int64) for one in (gen, holdout)]
    test = cell_test(own.authenticity.distances, parts[0], fresh.authenticity.distances, parts[1])
    found = copying_by_stratum(_Kinds(), *parts, own.calibrated, fresh.calibrated, 0.1, test)
    for one in found:
        copies = copied and one.name == "left"
        yield Drawn("Stratum.p_value", one.p_value, is_null=not copies, of="copies" if copies else "fresh")


def sides(rng, n, size, held, copied, dim=3):
    """Samples that are nearer to real ones than fresh samples, of whatever set; or copies of training samples."""
    train, holdout = rows(rng, size, dim), rows(rng, held, dim)
    gen = generated(rng, n, train, copied, 0.02, 0.5)
    near = (nearest(one, base, 10) for base, one in ((train, gen), (train, holdout), (holdout, gen), (holdout, train)))
    to_train, fresh, to_holdout, others = near
    found = Sides.of(Near.of(to_train, fresh), Near.of(to_holdout, others))
    yield Drawn("CopyingMeasure.against_holdout", found.p_value(), is_null=not copied)
    yield Drawn("Stratum.against_holdout", found.p_value(gen[:, 0] > 0), is_null=not copied)


VALUES = ("CopyingMeasure.interval", "CopyingMeasure.control_interval")
ALL = (*VALUES, "CopyingMeasure.p_value")
SIDES = ("CopyingMeasure.against_holdout", "Stratum.against_holdout")
HOLDOUT, STRATUM = ("Audit.holdout_p_value",), ("Stratum.p_value",)

DESIGNS = (
    Design(
        "100 fresh samples and a holdout of 100",
        "small",
        ALL,
        partial(single_samples, n=100, m=100, size=120, copied=0),
        runs=150,
        quick=4,
    ),
    Design(
        "300 samples, 30 % of them copies",
        "large",
        ALL,
        partial(single_samples, n=300, m=200, size=200, copied=0.3),
        runs=100,
        quick=3,
    ),
    Design(
        "200 samples that are far, few of them suspicious",
        "rare",
        VALUES,
        partial(single_samples, n=200, m=400, size=200, copied=0, spread=2),
        runs=100,
        quick=0,
    ),
    Design(
        "cells of 150 fresh samples", "small", ALL, partial(cells, n=150, m=200, size=150, copied=0), runs=500, quick=15
    ),
    Design(
        "cells of 200 samples, copies or far",
        "large",
        ALL,
        partial(cells, n=200, m=1250, size=200, copied=0.5, spread=2),
        runs=400,
        quick=12,
    ),
    Design(
        "nearest sets of 120 fresh samples",
        "small",
        ALL,
        partial(nearest_shares, n=120, size=120, held=100, copied=0),
        runs=300,
        quick=6,
    ),
    Design(
        "nearest sets, a holdout of 60",
        "rare",
        ALL,
        partial(nearest_shares, n=400, size=200, held=60, copied=0),
        runs=200,
        quick=0,
    ),
    Design(
        "nearest sets of 200 samples, 30 % of them copies",
        "large",
        ALL,
        partial(nearest_shares, n=200, size=150, held=200, copied=0.3),
        runs=200,
        quick=6,
    ),
    Design(
        "MiFID of 120 fresh samples",
        "small",
        ALL,
        partial(fitted, n=120, size=120, held=150, copied=0, what=("mifid",)),
        runs=300,
        quick=8,
    ),
    Design(
        "MiFID of 120 samples, 60 % of them copies",
        "large",
        ALL,
        partial(fitted, n=120, size=120, held=150, copied=0.6, what=("mifid",)),
        runs=200,
        quick=6,
    ),
    Design(
        "gap of FLD of 120 fresh samples",
        "small",
        ALL,
        partial(fitted, n=120, size=120, held=150, copied=0, what=("fld_gap",)),
        runs=150,
        quick=3,
    ),
    Design(
        "gap of FLD of 120 samples, 30 % of them copies",
        "large",
        ALL,
        partial(fitted, n=120, size=120, held=150, copied=0.3, what=("fld_gap",)),
        runs=100,
        quick=0,
    ),
    Design("training set and holdout of 60", "small", HOLDOUT, partial(holdouts, train=60, held=60), runs=200, quick=6),
    Design(
        "training set and holdout of 30 videos",
        "clustered",
        HOLDOUT,
        partial(holdouts, train=120, held=120, windows=4),
        runs=150,
        quick=4,
    ),
    Design(
        "a training set of 80 with a kind that the holdout of 81 lacks",
        "large",
        HOLDOUT,
        partial(holdouts, train=80, held=81, lacking=True),
        runs=30,
        quick=5,
    ),
    Design(
        "two strata of 200 fresh samples",
        "small",
        STRATUM,
        partial(strata, n=200, m=200, size=150, copied=0),
        runs=200,
        quick=8,
    ),
    Design(
        "two strata of 300 samples, 20 % of them copies in a stratum",
        "large",
        STRATUM,
        partial(strata, n=300, m=300, size=150, copied=0.2),
        runs=100,
        quick=0,
    ),
    Design(
        "samples that are nearer to both sets",
        "large",
        SIDES,
        partial(sides, n=150, size=150, held=150, copied=0),
        runs=200,
        quick=8,
    ),
    Design(
        "copies of the training set and a larger holdout",
        "rare",
        SIDES,
        partial(sides, n=150, size=120, held=200, copied=0.3),
        runs=100,
        quick=8,
    ),
)
