"""Measure when monitors date changes, and whether intervals of start and size hold the truth.

    python benchmarks/monitor_dates.py [--regime … --runs … --jobs …]

A run draws the counts, or means, of one followed thing: a reference of 650 samples, and 30 evaluations of 64. It
changes from evaluation 8 on, at once or over several evaluations. The alarm comes when its e-value reaches K/α, for K =
50 things and α = .05. *at the alarm*: by the evaluations until then. *at the end*: by all 30. *near*: dated within two
evaluations. *start*, *size*: the interval holds the start, and the share or mean at the last evaluation.
"""

import numpy as np
from _record import record
from _runs import rate, run

from finc_eval.monitoring.betting import weigh
from finc_eval.monitoring.evidence.change_points import estimate_change
from finc_eval.monitoring.exchange import score_of_shares

REFERENCE, SAMPLES, LOOKS, START = 650, 64, 30, 8
LEVEL = np.log(50 / 0.05)

DRIFTS = {
    # name: share or mean before, after, evaluations from one to the other, whether it is a mean
    "share .08, gone": (0.08, 0.0, 1, False),
    "share .08, gone over 8": (0.08, 0.0, 8, False),
    "share .01 to .25": (0.01, 0.25, 1, False),
    "share .01 to .25 over 12": (0.01, 0.25, 12, False),
    "share 0 to .2": (0.0, 0.2, 1, False),
    "share .005 to .08": (0.005, 0.08, 1, False),
    "share .02 to .15 over 4": (0.02, 0.15, 4, False),
    "mean + .3": (0.0, 0.3, 1, True),
    "mean + .5": (0.0, 0.5, 1, True),
    "mean + 1 over 12": (0.0, 1.0, 12, True),
    "mean + .05 an evaluation": (0.0, 5.0, 100, True),
}


def drawn(before, after, length, is_mean, rng):
    """Return sums of all evaluations and of the reference, their scores, and the true values."""
    truth = before + (after - before) * np.clip((np.arange(LOOKS) - START + 1) / length, 0, 1)
    values, sizes = np.append(before, truth), np.append(REFERENCE, np.full(LOOKS, SAMPLES))
    totals = values * sizes + rng.normal(size=len(sizes)) * sizes**0.5 if is_mean else rng.binomial(sizes, values)
    sums = np.column_stack([totals, sizes]).astype(float)
    bag = np.cumsum(sums, 0)[:-1]
    if is_mean:
        apart = sums[1:, 0] / sums[1:, 1] - bag[:, 0] / bag[:, 1]
        scores = apart / np.sqrt(1 / sums[1:, 1] + 1 / bag[:, 1])
    else:
        scores = score_of_shares(sums[1:].astype(int), bag.astype(int), rng)
    return sums[1:], sums[0], scores, truth


def one(regime, seed):
    *law, is_mean = DRIFTS[regime]
    sums, reference, scores, truth = drawn(*law, is_mean, np.random.default_rng(seed))
    level = [weigh(scores[:count, None])[0] >= LEVEL for count in range(1, LOOKS + 1)]
    if not any(level):
        return {"alarm": None}
    raised, found = level.index(True), {}
    for name, count in (("at the alarm", raised + 1), ("at the end", LOOKS)):
        change = estimate_change(sums[:count], reference, raised, 1.0 if is_mean else None)
        found[f"near, {name}"] = abs(change.start - START) <= 2
        found[f"start, {name}"] = bool(change.first <= START <= change.last)
        found[f"size, {name}"] = bool(change.low <= truth[count - 1] <= change.high)
        found[f"width, {name}"] = change.last - change.first
    return {"alarm": raised} | found


def report(regimes):
    rows = []
    for regime, runs in regimes.items():
        alarms = [one for one in runs if one["alarm"] is not None]
        row = {"change": regime, "alarm (median)": f"{np.median([one['alarm'] for one in alarms]):g}"}
        for name in ("at the alarm", "at the end"):
            row |= {f"{what}, {name}": rate(alarms, f"{what}, {name}") for what in ("near", "start", "size")}
            row[f"width, {name}"] = f"{np.mean([one[f'width, {name}'] for one in alarms]):.1f}"
        rows.append(row)
    record("monitor_dates", rows, "Dates within two evaluations, and intervals that hold the truth.")


if __name__ == "__main__":
    run("monitor_dates", [*DRIFTS], one, report, 200)
