"""False discoveries of comparisons, and coverage of their intervals.

Every regime draws sets of one law and compares them. A false discovery is a run with any p ≤ .05. *tight*: 50
clusters in 32 dimensions; centers have standard deviation 0.5 per axis, samples 0.1 around them. *zipf*: 200 clusters
in 64 dimensions, with shares in proportion to 1/rank. *digits* and *photographs*: disjoint random parts of real sets,
given by pixels and by features of EfficientNet-Lite0. *t2*: independent t variables with 2 degrees of freedom.
*wide*: one Gaussian with n < d. *points*: 30 points with repeats. Groups are k noisy copies of every sample, in gen
alone or in both sets. They are told by a column (*groups*), by ids such as clip#3 (*clips*), or not at all
(*repeats*, which are exact). Groups of uneven sizes: *bursts* are 400 single samples and about four groups of 25, each
of one of two kinds that come in no other way; *powers* are 80 groups of one kind each, whose sizes follow a power law
up to 150. *rho*: one kind, or one of each role, lies on the boundary ρ. If ρ < 1, all other kinds differ by more, and
only a kind or direction is false that consists of such a kind by nine tenths. *kinds*: three sets, by
`fe.kinds`. *releases*: two releases of one law against a reference of another; a false discovery is a
direction that is said to have changed.

A comparison tests kinds and directions, two families that share the error. Each regime also asks whether all intervals
of a run hold 0: of the excesses, of the differences of shares, and of the overall difference; and how often the p-value
of the overall difference is at most .05.
"""

from functools import partial

import numpy as np
from _designs import clusters, copies, digits, drawn, heavy_tails, kind_of, photographs, points, real, same_law, shown
from _record import record
from _runs import rate, run

import finc_eval as fe

ALPHA, RUNS, FEATURES = 0.05, 400, 125
TIGHT, ZIPF = partial(clusters, 50, 32, spread=0.1), partial(clusters, 200, 64, spread=0.1, zipf=True)
GAUSS, THIRTY = partial(clusters, 20, 64), partial(clusters, 30, 32, spread=0.1)
REAL = {"digits": partial(real, digits), "photographs": partial(real, photographs)}
GROUPED = 600
"""Samples a set in the regimes with groups, copies included."""
NEAR = 0.3
"""Noise of the copies in a group; samples of the law itself have noise 1."""
UNEVEN, SINGLE, BURSTS, BURST_SIZE = partial(clusters, 20, 16, spread=0.1), 400, 4, 25
"""Law of groups of uneven sizes; single samples, mean number of bursts, and samples in each."""


def two_sets(law, n, m, seed):
    """Compare two sets of one law."""
    rng = np.random.default_rng(seed)
    return judged(fe.compare(*(part.rows for part in same_law(law()(rng), rng, n, m)), features=FEATURES, seed=seed))


def groups(how, count, both, seed):
    """Compare sets of which one or both consist of copies."""
    rng = np.random.default_rng(seed)
    size = 1000 if how == "repeats" else GROUPED
    sets = []
    for part, copied in zip(same_law(GAUSS()(rng), rng, size, size), (True, both), strict=True):
        few = type(part)(part.rows[: size // count], part.kinds[: size // count]) if copied else part
        rows, group = copies(few, count if copied else 1, 0.0 if how == "repeats" else NEAR, rng)
        ids = [f"{name}#{place}" for place, name in enumerate(group)] if how == "clips" else None
        told = how == "groups"
        metadata = {"group": [str(name) for name in group]} if told else None
        sets.append(rows if how == "repeats" else fe.EmbeddingSet(rows, ids, metadata))
    told = {"groups": "group"} if how == "groups" else {}
    return judged(fe.compare(*sets, features=FEATURES, seed=seed, **told))


def uneven(how, both, seed):
    """Compare sets of which one or both consist of groups of uneven sizes, each of one kind."""
    rng = np.random.default_rng(seed)
    source = UNEVEN()(rng)
    first, second = (grouped(source, how, rng) if copied else single(source, how, rng) for copied in (True, both))
    return judged(fe.compare(first, second, features=FEATURES, seed=seed, groups="group"))


def uneven_kinds(how, seed):
    """Count the kinds of three sets of groups of uneven sizes."""
    rng = np.random.default_rng(seed)
    source = UNEVEN()(rng)
    return judged(fe.kinds({name: grouped(source, how, rng) for name in "abc"}, seed=seed, groups="group"))


def grouped(source, how, rng):
    """Draw groups of uneven sizes, each of one kind."""
    if how == "bursts":
        bursts = rng.poisson(BURSTS)
        kinds = np.concatenate([rng.integers(2, 20, SINGLE), rng.integers(2, size=bursts)])
        sizes = np.repeat([1, BURST_SIZE], [SINGLE, bursts])
    else:
        kinds = rng.integers(20, size=80)
        sizes = np.minimum(rng.pareto(1.1, 80) + 1, 150).astype(int)
    group = np.repeat(np.arange(len(sizes)), sizes)
    return fe.EmbeddingSet(source.draw(kinds[group]), metadata={"group": group.astype(str).tolist()})


def single(source, how, rng):
    """Draw independent samples of the law of such groups."""
    together = BURSTS * BURST_SIZE
    shares = np.full(20, 1 / 20)
    if how == "bursts":
        shares[:2], shares[2:] = together / 2, SINGLE / 18
    return fe.EmbeddingSet(
        drawn(source, rng, shares / shares.sum(), GROUPED).rows,
        metadata={"group": [str(place) for place in range(GROUPED)]},
    )


def boundary(rho, seed):
    """Compare sets on the boundary: kind 0 has ρ times the share in gen and, if ρ < 1, kind 1 in ref."""
    rng = np.random.default_rng(seed)
    source = partial(clusters, 20, 32, spread=0.1)()(rng)
    few = 0.05
    own, other = ([few * rho], [few]) if rho > 1 else ([few * rho, few], [few, few * rho])
    sets = [
        drawn(source, rng, np.array([*first, *[(1 - sum(first)) / (20 - len(first))] * (20 - len(first))]), 1000)
        for first in (own, other)
    ]
    found = fe.compare(*(part.rows for part in sets), rho=rho, features=FEATURES, seed=seed)
    if rho > 1:
        return judged(found, one_sided=True)
    on_boundary = {("over", 0), ("under", 1)}
    false = [
        (role, kind_of(tops, sets[role == "under"].kinds, 0.9)[0]) in on_boundary
        for role, tops in map(shown, (*found.significant(ALPHA), *differing(found)))
    ]
    return {"false": any(false), "warned": bool(found.warnings)}


def kinds(law, n, count, seed):
    """Count the kinds of three sets of one law, each of groups of `count` near copies."""
    rng = np.random.default_rng(seed)
    sets = {}
    for name, part in zip("abc", same_law(law()(rng), rng, *(size // count for size in n)), strict=True):
        rows, group = copies(part, count, NEAR * (count > 1), rng)
        sets[name] = fe.EmbeddingSet(rows, metadata={"group": group.astype(str).tolist()})
    return judged(fe.kinds(sets, seed=seed, groups="group" if count > 1 else None))


def releases(n, m, seed):
    """Compare two releases of one law with a sketch of a reference of another."""
    rng = np.random.default_rng(seed)
    source = THIRTY()(rng)
    count = len(source.shares)
    ref, gen = np.ones(count), np.ones(count)
    ref[:2], gen[2:4] = 0, 3
    reference = drawn(source, rng, ref / ref.sum(), 3000).rows
    first, second = (drawn(source, rng, gen / gen.sum(), size).rows for size in (n, m))
    old = fe.compare(first, reference, features=FEATURES, seed=seed)
    new = fe.compare(second, reference, features=FEATURES, seed=seed, kinds=old)
    return {"false": any(change.told for change in fe.compare_releases(old, new))}


def judged(found, one_sided=False):
    """Return what is wrong with a result, where nothing differs; None where results of its type have no such figure."""
    overall, p_value = getattr(found, "difference_interval", None), getattr(found, "difference_p_value", None)
    kinds, directions = getattr(found, "kinds", ()), directions_of(found)
    false = [kind for kind in kinds if kind.p_value <= ALPHA]
    shares = [kind.interval for kind in kinds]
    shares += [one.share_difference_interval for one in directions if hasattr(one, "share_difference_interval")]
    return {
        "false": bool(false or differing(found)),
        "directions": bool(differing(found)),
        "kinds": bool(false),
        "excess": all_hold([one.interval for one in directions if hasattr(one, "interval")], one_sided),
        "shares": None if one_sided else all_hold(shares),
        "overall": None if one_sided or overall is None else overall[0] <= 0,
        "p": None if one_sided or p_value is None else p_value <= ALPHA,
        "warned": bool(getattr(found, "warnings", ())),
    }


def directions_of(found):
    """Return the directions of a result; none of kinds alone."""
    return getattr(found, "directions", getattr(found, "modes", ()))


def differing(found):
    """Return the significant directions."""
    return [mode for mode in directions_of(found) if mode.p_value <= ALPHA]


def all_hold(intervals, one_sided=False):
    """Return whether all intervals hold 0, or at least do not lie above it; None without one."""
    return all(low <= 0 and (high >= 0 or one_sided) for low, high in intervals) if intervals else None


SIZES = ((40, 40), (100, 100), (1000, 1000), (100, 5000), (300, 5000), (500, 10_000))
REGIMES = {
    **{
        f"{name}-{n}-{m}": partial(two_sets, law, n, m)
        for laws, sizes in (({"tight": TIGHT, "zipf": ZIPF}, SIZES), (REAL, ((500, 500), (100, 5000))))
        for name, law in laws.items()
        for n, m in sizes
    },
    "t2-500-500": partial(two_sets, partial(heavy_tails, 32, 2), 500, 500),
    "wide-200-200": partial(two_sets, partial(clusters, 1, 2000), 200, 200),
    "points-300-300": partial(two_sets, partial(points, 30, 32), 300, 300),
    **{
        f"{how}-{count}-{'both' if both else 'gen'}": partial(groups, how, count, both)
        for how, counts in (("groups", (2, 3, 5)), ("clips", (3,)), ("repeats", (5,)))
        for count in counts
        for both in (False, True)
    },
    **{
        f"{how}-{'both' if both else 'gen'}": partial(uneven, how, both)
        for how in ("bursts", "powers")
        for both in (False, True)
    },
    "rho-0.5": partial(boundary, 0.5),
    "rho-2": partial(boundary, 2.0),
    "kinds-500-500-500": partial(kinds, THIRTY, (500, 500, 500), 1),
    "kinds-100-300-3000": partial(kinds, THIRTY, (100, 300, 3000), 1),
    "kinds-zipf-100-300-3000": partial(kinds, ZIPF, (100, 300, 3000), 1),
    "kinds-groups-3": partial(kinds, GAUSS, (600, 600, 600), 3),
    "kinds-groups-3-unequal": partial(kinds, GAUSS, (300, 900, 3000), 3),
    "kinds-bursts": partial(uneven_kinds, "bursts"),
    "kinds-powers": partial(uneven_kinds, "powers"),
    "releases-1500-1500": partial(releases, 1500, 1500),
    "releases-150-3000": partial(releases, 150, 3000),
}


def one(regime, seed):
    return REGIMES[regime](seed)


def report(found):
    rows = [
        {
            "regime": regime,
            "false discovery": rate(runs, "false"),
            "by directions": rate(runs, "directions"),
            "by kinds": rate(runs, "kinds"),
            "excesses hold": rate(runs, "excess"),
            "shares hold": rate(runs, "shares"),
            "difference holds": rate(runs, "overall"),
            "difference, p": rate(runs, "p"),
            "warned": rate(runs, "warned"),
            "s": round(float(np.median([run["seconds"] for run in runs])), 2),
        }
        for regime, runs in found.items()
    ]
    record(
        "inference_null",
        rows,
        f"runs of all, with Clopper–Pearson 95 % intervals; α = {ALPHA} for all kinds and directions of a run; "
        f"r = {FEATURES}; s: median seconds of a run in one thread",
    )


if __name__ == "__main__":
    run("inference_null", REGIMES, one, report, RUNS)
