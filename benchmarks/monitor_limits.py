"""Compute how often anybody could name a drift before step 20, and how often the bets of a monitor do.

    python benchmarks/monitor_limits.py

Simulated drifts that grow by the same amount at each of 19 looks: of a mean, by .0163 standard deviations a step, as
saturation that grows by 1 % a step in photographs moves it, or a kind of a tenth that fades over 20 steps.
*knows all*: the likelihood ratio of the drift itself, its start, size and thing being known, against 1/α.
*knows all but the thing*: the same, against 50/α, as one of 50 things may drift. *bets*: those of a monitor, also
against 50/α.
"""

import numpy as np
from _record import record
from _runs import counted
from scipy.special import ndtri
from scipy.stats import hypergeom

from finc_eval.monitoring.betting import weigh

SETTINGS = {
    # drift: (samples of the reference that count, samples of a look)
    "mean": ((1000, 64), (3000, 64), (1000, 256), (200, 64), (5000, 16)),
    "kind": ((667, 64), (3333, 64), (133, 64), (3333, 16)),
}
LOOKS, RUNS, THINGS, ALPHA = 19, 2000, 50, 0.05
SLOPE, SHARE = 0.0163, 0.1


def mean(reference, size, rng):
    """Return the scores of looks, (looks, runs), and the logarithm of the likelihood ratio after each look."""
    before, count, moved = rng.normal(size=RUNS) / reference**0.5, reference, 0.0
    scores, expected = [], []
    for look in range(1, LOOKS + 1):
        error = (1 / size + 1 / count) ** 0.5
        expected.append((SLOPE * look - moved) / error)
        own = SLOPE * look + rng.normal(size=RUNS) / size**0.5
        scores.append((own - before) / error)
        before = (before * count + own * size) / (count + size)
        moved, count = (moved * count + SLOPE * look * size) / (count + size), count + size
    scores, shift = np.array(scores), np.array(expected)[:, None]
    return scores, np.cumsum(shift * scores - shift**2 / 2, 0)


def kind(reference, size, rng):
    """Return the same of a kind; the likelihood ratio knows its share in the reference's law, too."""
    before, count, scores, ratio = rng.binomial(reference, SHARE, RUNS), reference, [], []
    for look in range(1, LOOKS + 1):
        share = SHARE * (1 - look / (LOOKS + 1))
        own = rng.binomial(size, share, RUNS)
        law = count + size, before + own, size
        p = hypergeom.cdf(own - 1, *law) + rng.random(RUNS) * hypergeom.pmf(own, *law)
        scores.append(ndtri(np.clip(p, 1e-12, 1 - 1e-12)))
        ratio.append(own * np.log(share / SHARE) + (size - own) * np.log((1 - share) / (1 - SHARE)))
        before, count = before + own, count + size
    return np.array(scores), np.cumsum(ratio, 0)


def row(drift, reference, size):
    scores, ratio = {"mean": mean, "kind": kind}[drift](reference, size, np.random.default_rng(0))
    bets = np.max([weigh(scores[: look + 1]).log_e for look in range(LOOKS)], 0)
    best, one, all_things = ratio.max(0), -np.log(ALPHA), np.log(THINGS / ALPHA)
    return {
        "drift, reference, look": f"{drift}, {reference}, {size}",
        "knows all": counted(int((best >= one).sum()), RUNS),
        "knows all but the thing": counted(int((best >= all_things).sum()), RUNS),
        "bets": counted(int((bets >= all_things).sum()), RUNS),
    }


if __name__ == "__main__":
    rows = [row(drift, *setting) for drift, settings in SETTINGS.items() for setting in settings]
    record("monitor_limits", rows, "Drifts that are named before step 20, of simulated ones, with 95 % intervals.")
