"""Are the shares of kinds right, and do their intervals hold?

The designs of `inference_power.py`, and pairs of one law. Two truths: the share of the planted *class* in each set, for
the most significant kind of every class found; and the *operational* share of a kind, which is that of its samples
among fresh samples of the same law. Fresh samples are as many as the law gives of every class, weighted by the shares
of the classes in a set, and intervals are widened by two standard errors of that estimate. A run holds if all intervals
of all its kinds hold.
"""

from functools import partial

import numpy as np
from _designs import clusters, digits, judge, nothing, photographs, real, shown, six
from _record import record
from _runs import rate, run
from inference_null import TIGHT, ZIPF
from inference_power import ALPHA, SIX, SMALL

import finc_eval as fe

FEATURES = 2000
GAUSS, LOOSE = partial(clusters, 26, 512), partial(clusters, 26, 512, centers=0.35)
PHOTOGRAPHS, DIGITS = partial(real, photographs), partial(real, digits)
PLANTED = {
    "gauss-six": (GAUSS, (2000, 2000), SIX),
    "loose-six": (LOOSE, (2000, 2000), SIX),
    "gauss-six-300-5000": (GAUSS, (300, 5000), SIX),
    "photographs-six": (PHOTOGRAPHS, (1500, 1500), SIX),
    "photographs-small": (PHOTOGRAPHS, (1500, 1500), SMALL),
    "digits-six": (DIGITS, (2000, 2000), SIX),
    "digits-small": (DIGITS, (2000, 2000), SMALL),
}
EQUAL = {
    "tight-1000-1000": (TIGHT, (1000, 1000)),
    "tight-100-5000": (TIGHT, (100, 5000)),
    "zipf-500-10000": (ZIPF, (500, 10_000)),
}


def one(regime, seed):
    rng = np.random.default_rng(seed)
    if regime in PLANTED:
        law, sizes, changes = PLANTED[regime]
        source = law()(rng)
        sets = six(source, sizes, **changes)
    else:
        law, sizes = EQUAL[regime]
        source = law()(rng)
        sets = nothing(source, rng, sizes)
    found = fe.compare(sets.gen.rows, sets.ref.rows, features=FEATURES, seed=seed)
    kinds = found.significant(ALPHA)
    classes, _, _ = judge(sets, [*map(shown, kinds)])
    rows, which = source.fresh()
    place = found.assign(rows)
    return {
        "classes": [against_class(kinds[number], name, sets) for name, number in classes.items()],
        "holds": all(hold(kind, place == number, which, sets) for number, kind in enumerate(found.kinds)),
    }


def against_class(kind, name, sets):
    """Return what the kind says of its class, and the truth."""
    gen, ref = (float(shares[name]) for shares in sets.shares)
    low, high = kind.share_difference_interval
    more = gen > ref
    return {
        "own": kind.share_gen if more else kind.share_ref,
        "own truth": max(gen, ref),
        "difference": abs(kind.share_difference),
        "difference truth": abs(gen - ref),
        "covered": bool(low <= gen - ref <= high),
    }


def hold(kind, inside, which, sets):
    """Return whether the three intervals of a kind hold what fresh rows say, of which `inside` are of the kind."""
    truths, errors = zip(*(share(inside, which, weights) for weights in sets.shares), strict=True)
    gen, ref = kind.shares["gen"], kind.shares["ref"]
    return all(
        low - 2 * error <= truth <= high + 2 * error
        for (low, high), truth, error in (
            (gen.interval, truths[0], errors[0]),
            (ref.interval, truths[1], errors[1]),
            (kind.share_difference_interval, truths[0] - truths[1], float(np.hypot(*errors))),
        )
    )


def share(inside, which, weights):
    """Return the share of a kind in a law that has these shares of the classes, and its standard error."""
    counts = np.bincount(which, minlength=len(weights))
    found = np.bincount(which, inside, len(weights))
    # None of 1000 is not known to be none.
    spread = (found + 1) / (counts + 2)
    error = weights**2 * spread * (1 - spread) / np.maximum(counts, 1)
    return float(weights @ (found / np.maximum(counts, 1))), float(np.sqrt(error.sum()))


def report(found):
    record(
        "inference_shares",
        [row(regime, runs) for regime, runs in found.items()],
        f"r = {FEATURES}; errors are means over the classes found, as fractions of a set",
    )


def row(regime, runs):
    classes = [one for run in runs for one in run["classes"]]
    column = {key: np.array([one[key] for one in classes]) for key in (classes[0] if classes else ())}

    def cell(function, *keys):
        return f"{function(*(column[key] for key in keys)):.4f}" if classes else ""

    return {
        "design": regime,
        "runs": len(runs),
        "classes found": len(classes),
        "difference / truth, median": cell(lambda a, b: np.median(a / b), "difference", "difference truth"),
        "error of the difference": cell(lambda a, b: np.abs(a - b).mean(), "difference", "difference truth"),
        "error of a set's own share": cell(lambda a, b: np.abs(a - b).mean(), "own", "own truth"),
        "interval holds the class": f"{int(sum(column['covered']))}/{len(classes)}" if classes else "",
        "all operational shares hold": rate(runs, "holds"),
    }


if __name__ == "__main__":
    run(
        "inference_shares", [*PLANTED, *EQUAL], one, report, {**dict.fromkeys(PLANTED, 12), **dict.fromkeys(EQUAL, 100)}
    )
