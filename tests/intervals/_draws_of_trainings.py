"""Designs of two trainings side by side: pairs of one law, and differences of a known size and start."""

from functools import partial

import numpy as np
from _law import Design, Drawn, Holds, NoClaim, PValue

import finc_eval as fe
from finc_eval.monitoring.betting import weigh
from finc_eval.monitoring.fixed.prompts import change_interval
from finc_eval.monitoring.fixed.ranks import score_of_pairs
from finc_eval.monitoring.trainings.scan import scan_p_values
from finc_eval.monitoring.trainings.shared_steps import SharedSteps
from finc_eval.numerics.families import closed_e_values

PROMISES = {
    "FollowedByBoth.p_value": PValue(),
    "TrainingDifference.p_value": PValue(),
    "Trainings.alpha": PValue(),
    "TrainingDifference.since_interval": Holds(width=None, why="it ends at whole steps"),
    "TrainingDifference.interval": Holds(
        width=None, why="how many steps it is of depends on when a change of a training seems to have ended"
    ),
    "FollowedByBoth.spread": NoClaim("the unit in which a score is written"),
    "Followed.spread": NoClaim("the unit in which a score is written"),
    "FixedChange.interval": Holds(),
}
P_VALUES = ("FollowedByBoth.p_value", "TrainingDifference.p_value", "Trainings.alpha")
STEPS, START = 16, 6


def side_by_side(rng, reference, samples, steps, prompts=0, shift=0.0):
    """The smallest p-value of two trainings; with prompts, each has a law of its own, and a few samples."""

    def draw(n, moved=0.0):
        if not prompts:
            return rng.normal(moved, 1, (n, 4)).astype(np.float32)
        names = np.repeat(rng.integers(1 << 30, size=n // prompts), prompts)
        rows = rng.normal(size=(n, 4)) / 2 + np.repeat(rng.normal(size=(n // prompts, 4)), prompts, 0)
        return fe.EmbeddingSet(rows.astype(np.float32), metadata={"prompt": [str(name) for name in names]})

    trainings = {
        name: {step: draw(samples, moved) for step in range(steps)} for name, moved in (("a", 0), ("b", shift))
    }
    found = fe.compare_trainings(trainings, draw(reference), seed=int(rng.integers(1 << 30)))
    least = min(thing.p_value for thing in found.followed)
    assert bool(found.differences) == (least <= found.alpha)
    yield from (Drawn(name, least, is_null=shift == 0) for name in P_VALUES)


def scanned(rng, steps, things, silent=0.0, shift=0.0):
    """The smallest p-value of independent scores, of which the first thing is shifted in the second half."""
    scores = rng.normal(size=(steps, things))
    scores[steps // 2 :, 0] += shift
    scores[rng.random(scores.shape[0]) < silent] = np.nan
    least = float(scan_p_values(scores)[0].min())
    yield from (Drawn(name, least, is_null=shift == 0) for name in P_VALUES)


def dated(rng, before, after, length=1, is_mean=False):
    """The start of a difference, and its size at the last step, of 64 samples a step of either training."""
    law = before + (after - before) * np.clip((np.arange(STEPS) - START + 1) / length, 0, 1)
    shared = SharedSteps(None, (), 0 if is_mean else 1)
    for own in law:
        if is_mean:
            drawn = [rng.normal(middle, 1, 64) for middle in (own, before)]
            shared.units.append(np.array([[[one.sum(), 64, (one**2).sum()]] for one in drawn]))
        else:
            shared.units.append(np.array([[[count, 64, count]] for count in rng.binomial(64, (own, before))]))
    change = shared.change_of(0, STEPS - 4)
    first, second, interval = shared.now(0)
    yield Drawn("TrainingDifference.since_interval", change.start, (change.first, change.last), START)
    yield Drawn("TrainingDifference.interval", first - second, interval, float(law[-1] - before))


def paired(rng, n, change):
    """The mean change of n fixed prompts."""
    first = rng.normal(size=n)
    now = first + change + 0.5 * rng.normal(size=n)
    yield Drawn("FixedChange.interval", float((now - first).mean()), change_interval(first, now), change)


def fixed(rng, n, looks, things):
    """The least α at which unchanged fixed prompts would have had a change at any look, by pairs alone."""
    values = rng.normal(size=(things, n)) + 0.3 * rng.normal(size=(looks, things, n)).round(1)  # some are equal
    scores = np.array([[score_of_pairs(values[t, k], values[:t, k], rng) for k in range(things)] for t in range(looks)])
    least = min(np.exp(-closed_e_values(weigh(scores[:look]))).min() for look in range(1, looks + 1))
    yield Drawn("Course.alpha", min(1.0, least))


SIZES = ("TrainingDifference.since_interval", "TrainingDifference.interval")
DESIGNS = (
    Design(
        "12 fixed prompts, 10 looks, 5 things",
        "paired",
        ("Course.alpha",),
        partial(fixed, n=12, looks=10, things=5),
        runs=400,
        quick=10,
    ),
    Design("a change of 16 fixed prompts", "paired", ("FixedChange.interval",), partial(paired, n=16, change=0.3)),
    Design("no change of 8 fixed prompts", "small", ("FixedChange.interval",), partial(paired, n=8, change=0.0)),
    Design("a share of 2 % that becomes 25 % in one training", "large", SIZES, partial(dated, before=0.02, after=0.25)),
    Design("a share of 10 % that one training loses", "rare", SIZES, partial(dated, before=0.1, after=0.0)),
    Design(
        "a share of 5 % that grows to 20 % over 6 steps of one training",
        "small",
        SIZES,
        partial(dated, before=0.05, after=0.2, length=6),
    ),
    Design(
        "a mean that jumps by half of a standard deviation in one training",
        "large",
        SIZES,
        partial(dated, before=0.0, after=0.5, is_mean=True),
    ),
    Design(
        "scores of 5 things over 2 steps of two trainings",
        "small",
        P_VALUES,
        partial(scanned, steps=2, things=5),
        runs=300,
        quick=20,
    ),
    Design(
        "scores of 20 things over 30 steps of two trainings, a third of them silent",
        "rare",
        P_VALUES,
        partial(scanned, steps=30, things=20, silent=0.3),
        runs=100,
        quick=0,
    ),
    Design(
        "scores of 5 things over 10 steps of two trainings, one of them shifted",
        "large",
        P_VALUES,
        partial(scanned, steps=10, things=5, shift=3),
        runs=40,
        quick=2,
    ),
    Design(
        "two trainings of one law, six steps of 24 samples",
        "small",
        P_VALUES,
        partial(side_by_side, reference=60, samples=24, steps=6),
        runs=60,
        quick=2,
    ),
    Design(
        "two trainings of one law, six steps of 12 prompts with four samples each",
        "clustered",
        P_VALUES,
        partial(side_by_side, reference=120, samples=48, steps=6, prompts=4),
        runs=60,
        quick=0,
    ),
)
