"""Measure what a monitor says of a GAN of digits that is tuned further, whole and broken in two ways.

    python benchmarks/monitor_training.py [--regime … --runs … --jobs …]

A GAN is trained on digits in one color each, once. Then it is tuned for 400 steps with other seeds, with a look of 64
samples every 20 steps, against 2 000 samples of step 0. *frozen*: nothing is trained. *healthy*: the training goes on.
*slow discriminator*: the discriminator learns at a hundredth of the generator's rate, a way to collapse.
*reward for redness*: the generator is paid for red pictures.
"""

from functools import cache

import numpy as np
import torch
from _record import record
from _runs import rate, run

import finc_eval as fe
from finc_eval.demo.fine_tuning import GENTLE, RATE, DigitGan

REGIMES = {
    "frozen": None,
    "healthy": {},
    "slow discriminator": {"rate": RATE, "discriminator_rate": RATE / 100},
    "slow discriminator, gentle": {"rate": GENTLE, "discriminator_rate": GENTLE / 100},
    "reward for redness": {"redness": 3.0},
}
LOOKS, EVERY = 20, 20
RUNS = dict.fromkeys(REGIMES, 20) | {"healthy": 60}
trained = cache(DigitGan.trained)


def one(regime, seed):
    torch.set_num_threads(1)
    gan = trained().copy(seed)
    monitor = fe.Monitor(gan.sample(2000, seed=seed), seed=seed)
    for look in range(1, LOOKS + 1):
        if REGIMES[regime] is not None:
            gan.train(EVERY, **REGIMES[regime])
        monitor.update(look * EVERY, gan.sample(64, seed=10_000 + 1000 * seed + look))
    return {"alarms": [[one.step, one.name, one.text] for one in monitor.alarms], "keep": monitor.result.keep}


def names_it(alarm, regime):
    _, name, text = alarm
    if regime == "reward for redness":
        return name == "warmth" and "redder" in text
    return "gone" in text or "rarer" in text or "grown" in text or "less diverse" in text


def report(regimes):
    rows = []
    for regime, runs in regimes.items():
        row = {"training": regime, "an alarm in 20 looks": rate(runs, "alarms")}
        if regime not in ("frozen", "healthy"):
            named = [[alarm[0] for alarm in one["alarms"] if names_it(alarm, regime)] for one in runs]
            row["named"] = rate([{"named": bool(one)} for one in named], "named")
            first = [[alarm[0] for alarm in one["alarms"]] for one in runs]
            for column, steps in (("step of the first alarm", first), ("step of the name", named)):
                row[column] = f"{np.median([min(one, default=np.inf) for one in steps]):g}"
        row["alarms"] = f"{np.median([len(one['alarms']) for one in runs]):g}"
        row["step to keep"] = f"{np.median([one['keep'] for one in runs]):g}"
        rows.append(row)
    record("monitor_training", rows, "Runs with an alarm, with 95 % intervals; medians of steps and numbers of alarms.")


if __name__ == "__main__":
    run("monitor_training", list(REGIMES), one, report, RUNS)
