"""Measure what a monitor says of fixed prompts: how often nothing, and how soon it names a drift beside fresh samples.

    python benchmarks/fixed_prompts.py [--regime unchanged … --runs … --jobs …]

A run draws a reference of 1 000 photographs, 64 fresh ones at each of 16 evaluations, and 16 of fixed prompts. Each
picture of a fixed prompt has a brightness of its own at each evaluation (σ = 2 of 255). *unchanged*: nothing else
changes. *saturation*: that of all pictures grows by 3 % an evaluation. *by fixed prompts*: they name the drift, or,
unchanged, anything. *by fresh samples*: an alarm does. *step*: the median step of either.
"""

import warnings

import numpy as np
from _record import record
from _runs import rate, run
from monitor import SEEDS as MONITOR_SEEDS
from monitor import a_set, colored, draw, small, step_of

import finc_eval as fe

EVALUATIONS, PROMPTS = 16, 16
REGIMES = {"unchanged": 0, "saturation": 3}


def one(regime, seed):
    rng, growth = np.random.default_rng(seed), REGIMES[regime]
    rows, _, pixels = draw("photographs", rng, 1000)
    monitor = fe.Monitor(a_set(rows, pixels), seed=seed % MONITOR_SEEDS, run=fe.Run(device="cpu"))
    fixed = draw("photographs", rng, PROMPTS)[2]
    for step in range(EVALUATIONS):
        fresh = colored(draw("photographs", rng, 64)[2], growth * step)
        light = 2 * rng.normal(size=(PROMPTS, 1, 1, 1))
        same = np.clip(colored(fixed, growth * step) + light, 0, 255).round().astype(np.uint8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            monitor.update(step, a_set(small(fresh), fresh), fixed=a_set(small(same), same))
    alarms = [alarm.step for alarm in monitor.alarms if not growth or alarm.name == "saturation"]
    changes = [one.step for one in monitor.result.fixed.changes if not growth or one.name == "saturation"]
    return {
        "fresh": bool(alarms),
        "fixed": bool(changes),
        "fresh, step": min(alarms, default=None),
        "fixed, step": min(changes, default=None),
    }


def report(regimes):
    rows = []
    for regime, runs in regimes.items():
        row = {"what": regime}
        for key, words in (("fixed", "by fixed prompts"), ("fresh", "by fresh samples")):
            steps = [np.inf if run[f"{key}, step"] is None else run[f"{key}, step"] for run in runs]
            row |= {words: rate(runs, key), f"{words}, step": step_of(np.median(steps))}
        rows.append(row)
    record("fixed_prompts", rows, "Runs in which a drift is named, or anything if nothing changes; 95 % intervals.")


if __name__ == "__main__":
    run("fixed_prompts", [*REGIMES], one, report, {"unchanged": 200, "saturation": 40})
