"""Measure how often two trainings of one law differ, and how a difference is named and dated.

    python benchmarks/trainings.py [--regime clusters … --runs … --jobs …]

A run draws a reference and both trainings, with replacement, from one pool. *one law*: both have the same law at each
step; in "both drift", distances to the mean shrink in both. *changed*: from step 5 of 12 on, the second training has
another law: distances to the mean shrink by a fifth at once, a class of a tenth is gone, or pictures are more vivid by
30 %. *named*: the thing that was changed has a difference; of a class, a kind most of whose samples are of it. *near*:
its date is within two steps. *start* and *size*: intervals of 95 % that hold the step, and the difference at the last
step as 4 000 further samples of each law tell it.
"""

import warnings

import numpy as np
from _record import record
from _runs import rate, run
from monitor import SEEDS as MONITOR_SEEDS
from monitor import a_set, colored, draw, small

import finc_eval as fe

STEPS, START = 12, 5
SAME = {
    # name: pool, samples of the reference, samples of a step of either training, steps
    "clusters, 12 steps of 64": ("clusters", 1000, (64, 64), STEPS),
    "clusters, 50 steps of 64": ("clusters", 500, (64, 64), 50),
    "clusters, 2 steps of 200": ("clusters", 200, (200, 200), 2),
    "heavy tails, steps of 64 and of 24": ("heavy tails", 1000, (64, 24), STEPS),
    "both drift, 12 steps of 64": ("clusters", 1000, (64, 64), STEPS),
    "100 samples repeat, 12 steps of 64": ("clusters", 1000, (64, 64), STEPS),
    "photographs, 12 steps of 64": ("photographs", 1000, (64, 64), STEPS),
}
CHANGED = {
    # name: pool, what changes
    "less diverse": ("clusters", "diversity"),
    "a class of a tenth is gone": ("clusters", "kind"),
    "photographs, more vivid": ("photographs", "saturation"),
}


def samples(pool, rng, n, changed="", drift=0.0, few=None):
    """Return samples of a law; `few` are the rows that it repeats, and `drift` shrinks distances to the mean."""
    rows, _, pixels = draw(pool, rng, n, fading=float(changed == "kind"))
    if few is not None:
        rows = few[rng.integers(0, len(few), n)]
    if changed == "saturation":
        pixels = colored(pixels, 30)
        rows = small(pixels)
    if changed == "diversity" or drift:
        middle = rows.mean(0) if pool != "clusters" else 0.0
        rows = middle + (rows - middle) * (0.8 if changed else 1 - drift)
    return a_set(rows, pixels)


def of_one_law(regime, seed):
    pool, n, sizes, steps = SAME[regime]
    rng = np.random.default_rng(seed)
    few = draw(pool, rng, 100)[0] if regime.startswith("100") else None
    reference = samples(pool, rng, n, few=few)
    trainings = [
        {
            step: samples(pool, rng, size, drift=0.04 * step if "drift" in regime else 0, few=few)
            for step in range(steps)
        }
        for size in sizes
    ]
    return {"differs": bool(compare(trainings, reference, seed).differences)}


def compare(trainings, reference, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        named = dict(zip("ab", trainings, strict=True))
        return fe.compare_trainings(named, reference, seed=seed % MONITOR_SEEDS, run=fe.Run(device="cpu"))


def changed(regime, seed):
    pool, what = CHANGED[regime]
    rng = np.random.default_rng(seed)
    reference = samples(pool, rng, 1000)
    first = {step: samples(pool, rng, 64) for step in range(STEPS)}
    second = {step: samples(pool, rng, 64, what if step >= START else "") for step in range(STEPS)}
    found = compare([first, second], reference, seed)
    known = {"diversity": "diversity", "saturation": "saturation"}.get(what)
    fitting = [
        one for one in found.differences if one.name == known or (known is None and is_of_class(one, reference, seed))
    ]
    if not fitting:
        return {"named": False}
    one = fitting[0]
    return {
        "named": True,
        "near": abs(one.since - START) <= 2,
        "start": one.since_interval[0] <= START <= one.since_interval[1],
        "size": bool(one.interval[0] <= truth(one.name, pool, what, reference, seed) <= one.interval[1]),
    }


def monitor_of(reference, seed):
    return fe.Monitor(reference, seed=seed % MONITOR_SEEDS, run=fe.Run(device="cpu"))


def is_of_class(difference, reference, seed):
    """Return whether a difference is of a kind that is gone and has mostly samples of class 3."""
    monitor = monitor_of(reference, seed)
    if difference.name not in monitor.basis.names or difference.first < difference.second:
        return False
    rows, labels, _ = draw("clusters", np.random.default_rng(seed + 1), 1000)
    leaf, _ = monitor.basis.tree.assign(rows)
    inside = monitor.basis.members[monitor.basis.names.index(difference.name)][leaf]
    return bool((labels[inside] == 3).mean() > 0.5)


def truth(name, pool, what, reference, seed):
    """Return the difference of both laws in a thing, by many further samples."""
    monitor, rng = monitor_of(reference, seed), np.random.default_rng([seed, 7])
    values = []
    for law in ("", what):
        parts = [monitor.measure(samples(pool, rng, 500, law)) for _ in range(8)]
        place = monitor.names.index(name)
        total, count = sum(part.sums[place] for part in parts)
        values.append(total / count)
    return values[0] - values[1]


def one(regime, seed):
    return of_one_law(regime, seed) if regime in SAME else changed(regime, seed)


def report(regimes):
    rows = []
    for regime, runs in regimes.items():
        named = [run for run in runs if run.get("named")]
        row = {"trainings": regime, "differ, one law": rate(runs, "differs") if regime in SAME else ""}
        row["named"] = rate(runs, "named") if regime in CHANGED else ""
        rows.append(row | {key: rate(named, key) if named else "" for key in ("near", "start", "size")})
    record("trainings", rows, "Pairs of trainings with a difference, and what is said of it, with 95 % intervals.")


if __name__ == "__main__":
    run("trainings", [*SAME, *CHANGED], one, report, dict.fromkeys(SAME, 200) | dict.fromkeys(CHANGED, 100))
