"""Designs of monitors: looks of an unchanged law, and of a law that changes."""

from functools import partial

import numpy as np
from _law import Design, Drawn, PValue

import finc_eval as fe

PROMISES = {"Course.alpha": PValue()}


def followed(rng, reference, samples, looks, prompts=0, copied=0.0, shift=0.0):
    """The least α at which a monitor would have raised an alarm at any of its looks.

    With prompts, each look has samples of new prompts, of which each has a law of its own. Of the samples, a share
    repeats one of a few, as of a law with blanks.
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


DESIGNS = (
    Design(
        "six looks of 24 samples, a reference of 60",
        "small",
        ("Course.alpha",),
        partial(followed, reference=60, samples=24, looks=6),
        runs=60,
        quick=6,
    ),
    Design(
        "six looks of 12 prompts with four samples each",
        "clustered",
        ("Course.alpha",),
        partial(followed, reference=120, samples=48, looks=6, prompts=4),
        runs=60,
        quick=4,
    ),
    Design(
        "six looks with 3 % blanks",
        "rare",
        ("Course.alpha",),
        partial(followed, reference=150, samples=48, looks=6, copied=0.03),
        runs=60,
        quick=4,
    ),
    Design(
        "six looks of 48 samples that are shifted",
        "large",
        ("Course.alpha",),
        partial(followed, reference=150, samples=48, looks=6, shift=1.0),
        runs=20,
        quick=3,
    ),
)
