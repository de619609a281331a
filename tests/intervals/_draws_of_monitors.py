"""Designs of monitors: looks of an unchanged law, and of a law that changes."""

from functools import partial

import numpy as np
from _law import Design, Drawn, Holds, PValue

import finc_eval as fe
from finc_eval.monitoring.betting import weigh
from finc_eval.monitoring.evidence.change_points import estimate_change
from finc_eval.numerics.families import closed_e_values

PROMISES = {
    "Course.alpha": PValue(),
    "Alarm.since_interval": Holds(width=None, why="it ends at whole evaluations, and of a large jump is one of them"),
    "Alarm.after_interval": Holds(
        width=None, why="how many evaluations it is of depends on when the change seems to have ended"
    ),
}


def followed(rng, reference, samples, looks, prompts=0, copied=0.0, shift=0.0):
    """The least α at which a monitor would have raised an alarm at any of its looks.

    With prompts, the samples of a look are of new prompts, and each prompt has a law of its own. A share of the samples
    repeats a few samples, as blanks do.
    """

    def draw(n, moved=0.0):
        rows = rng.normal(moved, 1, (n, 4))
        names = rng.integers(1 << 30, size=n)
        if prompts:
            names = np.repeat(rng.integers(1 << 30, size=n // prompts), prompts)
            rows = rows / 2 + np.repeat(rng.normal(size=(n // prompts, 4)), prompts, 0)
        rows[rng.random(n) < copied] = 0
        return rows.astype(np.float32), [str(one) for one in names] if prompts else None

    rows, names = draw(reference)
    monitor, least = fe.Monitor(rows, prompts=names, seed=int(rng.integers(1 << 30))), 1.0
    for step in range(looks):
        rows, names = draw(samples, shift)
        monitor.update(step, rows, prompts=names)
        least = min(least, *(1 / max(one.evidence, 1e-300) for one in monitor.result.followed))
    assert bool(monitor.alarms) == (least <= monitor.alpha)
    yield Drawn("Course.alpha", least, is_null=shift == 0)


def scored(rng, looks, things, silent, shift=0.0):
    """The smallest p-value of bets on independent scores.

    A share of the scores is missing. The first thing is shifted from the middle on.
    """
    scores = rng.normal(size=(looks, things))
    scores[looks // 2 :, 0] += shift
    scores[rng.random(scores.shape) < silent] = np.nan
    least = min(np.exp(-closed_e_values(weigh(scores[:look]))).min() for look in range(1, looks + 1))
    yield Drawn("Course.alpha", min(1.0, least), is_null=shift == 0)


def dated(rng, before, after, length, is_mean=False, looks=24, start=8):
    """The start of a change, and the share or mean at the last evaluation, of 64 samples an evaluation."""
    truth = before + (after - before) * np.clip((np.arange(looks) - start + 1) / length, 0, 1)
    values, sizes = np.append(before, truth), np.append(650.0, np.full(looks, 64.0))
    noise = rng.normal(size=looks + 1) * sizes**0.5
    totals = values * sizes + noise if is_mean else rng.binomial(sizes.astype(int), values)
    sums = np.column_stack([totals, sizes])
    found = estimate_change(sums[1:], sums[0], looks - 8, 1.0 if is_mean else None)
    yield Drawn("Alarm.since_interval", found.start, (found.first, found.last), start)
    yield Drawn("Alarm.after_interval", found.now, (found.low, found.high), float(truth[-1]))


DATES = ("Alarm.since_interval", "Alarm.after_interval")
DESIGNS = (
    Design("a share of 1 % that becomes 25 %", "large", DATES, partial(dated, before=0.01, after=0.25, length=1)),
    Design("a share of 8 % that is lost", "rare", DATES, partial(dated, before=0.08, after=0.0, length=1)),
    Design(
        "a share of 8 % that fades over 8 evaluations", "small", DATES, partial(dated, before=0.08, after=0.0, length=8)
    ),
    Design(
        "a mean that jumps by half of a standard deviation",
        "large",
        DATES,
        partial(dated, before=0.0, after=0.5, length=1, is_mean=True),
    ),
    Design(
        "scores of 2 things over 12 looks",
        "small",
        ("Course.alpha",),
        partial(scored, looks=12, things=2, silent=0),
        runs=1000,
        quick=25,
    ),
    Design(
        "scores of 6 things over 20 looks, a third of them silent",
        "rare",
        ("Course.alpha",),
        partial(scored, looks=20, things=6, silent=0.3),
        runs=500,
        quick=0,
    ),
    Design(
        "scores of 6 things over 12 looks, one of them shifted",
        "large",
        ("Course.alpha",),
        partial(scored, looks=12, things=6, silent=0, shift=2.5),
        runs=200,
        quick=20,
    ),
    Design(
        "six looks of 24 samples, a reference of 60",
        "small",
        ("Course.alpha",),
        partial(followed, reference=60, samples=24, looks=6),
        runs=60,
        quick=2,
    ),
    Design(
        "six looks of 12 prompts with four samples each",
        "clustered",
        ("Course.alpha",),
        partial(followed, reference=120, samples=48, looks=6, prompts=4),
        runs=60,
        quick=0,
    ),
    Design(
        "six looks with 3 % blanks",
        "rare",
        ("Course.alpha",),
        partial(followed, reference=150, samples=48, looks=6, copied=0.03),
        runs=60,
        quick=0,
    ),
    Design(
        "six looks of 48 samples that are shifted",
        "large",
        ("Course.alpha",),
        partial(followed, reference=150, samples=48, looks=6, shift=1.0),
        runs=20,
        quick=1,
    ),
)
