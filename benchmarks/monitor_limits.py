"""Compute how often anybody could name a drift before step 20, and how often the bets of a monitor do.

    python benchmarks/monitor_limits.py

Simulated drifts that grow by the same amount at each of 19 looks: of a mean, by .0163 standard deviations a step, as
saturation that grows by 1 % a step in photographs moves it, or a kind that fades over 20 steps: all of it, or a part
if the followed kind also has other samples. The reference is a sample, too: ratios of likelihoods are those of a look
given all samples so far. One of K things may drift, 50 of pictures and 33 of embeddings.

*once*: the most powerful test of all 19 looks together, which is done once and at no other look, at α/K. It knows the
drift and its size. *knows the drift*: the ratio of likelihoods of the drift, at each look, against K/α, as an alarm
that holds at every look needs it. *and not its size*: the same, of a mixture over sizes of both signs.
*bets*: those of a monitor, which know neither size nor start nor shape, also against K/α.
"""

import numpy as np
from _record import record
from _runs import counted
from scipy.special import ndtri
from scipy.stats import binom, hypergeom

from finc_eval.monitoring.betting import DRIFT, _ratio, weigh

SETTINGS = {
    # drift: (samples of the reference that count, samples of a look); of a kind, its share, and the part that fades
    "mean": ((1000, 64), (3000, 64), (1000, 256), (200, 64), (5000, 16)),
    "kind": (
        *((size, 64, 0.1, 1) for size in (133, 667, 2000, 3333)),
        (667, 64, 0.1, 0.75),
        (2000, 64, 0.1, 0.75),
        (3333, 64, 0.1, 0.75),
        (667, 64, 0.05, 1),
        (3333, 64, 0.05, 1),
        (667, 32, 0.1, 1),
        (3333, 32, 0.1, 1),
        (3333, 16, 0.1, 1),
    ),
}
LOOKS, RUNS, ALPHA = 19, 2000, 0.05
THINGS = {"mean": 50, "kind": 33}
SLOPE = 0.0163


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


def kind(reference, size, share, part, rng):
    """Return the same of a kind, of which a part fades. The ratio is that of a count given all counts so far."""
    before, count, scores, ratio = rng.binomial(reference, share, RUNS), reference, [], []
    law = binom.pmf(np.arange(reference + 1), reference, share)  # of the count before
    for look in range(1, LOOKS + 1):
        left = share * (1 - part * look / (LOOKS + 1))
        own = rng.binomial(size, left, RUNS)
        p, mass = (one(own, count + size, before + own, size) for one in (hypergeom.cdf, hypergeom.pmf))
        scores.append(ndtri(np.clip(p - rng.random(RUNS) * mass, 1e-12, 1 - 1e-12)))
        own_law = binom.pmf(np.arange(size + 1), size, left)
        both = np.convolve(law, own_law)
        ratio.append(np.log(law[before] * own_law[own] / both[before + own]) - np.log(mass))
        before, count, law = before + own, count + size, both
    return np.array(scores), np.cumsum(ratio, 0)


def once(ratio, level):
    """Return how many runs the most powerful test rejects; its bound follows from ratios under the alternative."""
    order = np.argsort(-ratio)
    is_inside = np.cumsum(np.exp(-ratio[order])) / len(ratio) <= level
    return int(is_inside.sum())


def without_size(scores):
    """Return the largest logarithm of the mixture over sizes of a drift from the first look on."""
    look = np.arange(1.0, LOOKS + 1)[:, None]
    return _ratio(np.cumsum(scores * look, 0), np.cumsum(look**2, 0), DRIFT).max(0)


def row(drift, *setting):
    scores, ratio = {"mean": mean, "kind": kind}[drift](*setting, np.random.default_rng(0))
    bets = np.max([weigh(scores[: look + 1]) for look in range(LOOKS)], 0)
    level = ALPHA / THINGS[drift]
    enough = [one >= -np.log(level) for one in (ratio.max(0), without_size(scores), bets)]
    counts = [once(ratio[-1], level), *(int(one.sum()) for one in enough)]
    name = ", ".join(map(str, (drift, *setting[:2])))
    if drift == "kind":
        name += f"; {100 * setting[2]:.0f} %, of which {100 * setting[3]:.0f} % fade"
    columns = ("once", "knows the drift", "and not its size", "bets")
    return {"drift, reference, look": name} | {
        column: counted(count, RUNS) for column, count in zip(columns, counts, strict=True)
    }


if __name__ == "__main__":
    rows = [row(drift, *setting) for drift, settings in SETTINGS.items() for setting in settings]
    record("monitor_limits", rows, "Drifts that are named before step 20, of simulated ones, with 95 % intervals.")
