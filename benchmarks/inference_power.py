"""Planted changes that a comparison finds.

*novel*: one cluster that the reference lacks, among 20 Gaussian clusters in 512 dimensions; centers have standard
deviation 0.5 per axis, samples 1. *six*: 2 novel kinds of 5 %, 2 that are gone, one of three times and one of a third
of its share (4 % and 12 %). *small*: the same with 2 %, and twice and half (3 % and 6 %). *gauss* is 26 clusters of the
same sort, *photographs* and *digits* are real classes, drawn anew in each run; see `_designs.py`.

A change is found if a kind of the comparison with p ≤ .05 that differs in the right way has a majority of the planted
kind among its typical samples of the set that has more; *by directions* if a direction of the right role has it among
its 50 best samples. *not planted* are other kinds with p ≤ .05, a run. Beside it is a plain label-blind k-means of the
pooled set, with Fisher's exact test of every cluster and Holm's correction: for k = 50, and for 20, 50, 100 and 200
together.
"""

from functools import partial

import faiss
import numpy as np
from _designs import clusters, digits, judge, one_novel, photographs, real, shown, six
from _record import record
from _runs import counted, run
from scipy import stats

import finc_eval as fe

ALPHA, FEATURES = 0.05, 500
LEVELS = (20, 50, 100, 200)
SIX, SMALL = {"share": 0.05, "base": 0.04, "factor": 3}, {"share": 0.02, "base": 0.03, "factor": 2}
NOVEL = {
    f"novel-{n}-{share:g}": (partial(clusters, 21, 512), partial(one_novel, n=n, share=share))
    for n, shares in ((1000, (0.01, 0.015, 0.02, 0.03, 0.04)), (5000, (0.006, 0.01, 0.015, 0.02)))
    for share in shares
}
PLANTED = {
    f"{name}-{size}": (law, partial(six, sizes=(n, n), **changes))
    for name, law, n in (
        ("gauss", partial(clusters, 26, 512), 2000),
        ("photographs", partial(real, photographs), 1500),
        ("digits", partial(real, digits), 2000),
    )
    for size, changes in (("six", SIX), ("small", SMALL))
}
REGIMES = NOVEL | PLANTED


def sets_of(regime, seed):
    law, plant = REGIMES[regime]
    rng = np.random.default_rng(seed)
    return plant(law()(rng))


def one(regime, seed):
    sets = sets_of(regime, seed)
    found = fe.compare(sets.gen.rows, sets.ref.rows, features=FEATURES, seed=seed)

    def figures(chosen):
        kinds, others, purities = judge(sets, chosen)
        return {"found": len(kinds), "others": others, "purities": purities}

    assigned = [kmeans(np.concatenate([sets.gen.rows, sets.ref.rows]), k, seed) for k in LEVELS]
    return {
        "planted": len(sets.roles),
        "kinds": figures([*map(shown, found.significant(ALPHA))]),
        "directions": figures([shown(mode) for mode in found.directions if mode.p_value <= ALPHA]),
        "k = 50": figures(significant_clusters(assigned[1:2], len(sets.gen.rows))),
        "k = all": figures(significant_clusters(assigned, len(sets.gen.rows))),
    }


def kmeans(rows, k, seed):
    """Return the cluster of every row, (n,), and its distance to the center."""
    found = faiss.Kmeans(
        rows.shape[1], k, niter=20, seed=seed, min_points_per_centroid=1, max_points_per_centroid=len(rows)
    )
    found.train(rows)
    distance, index = found.index.search(rows, 1)
    return index[:, 0], distance[:, 0]


def significant_clusters(levels, n):
    """Return role and members of the clusters that differ by Fisher's test and Holm's correction; gen comes first."""
    tested = []
    for own, distance in levels:
        for cluster in np.unique(own):
            members = np.flatnonzero(own == cluster)
            members = members[distance[members].argsort(kind="stable")]
            gen, ref = members[members < n], members[members >= n] - n
            table = [[len(gen), len(ref)], [n - len(gen), len(own) - n - len(ref)]]
            more = len(gen) * (len(own) - n) > len(ref) * n
            tested.append((stats.fisher_exact(table).pvalue, "over" if more else "under", gen if more else ref))
    tested.sort(key=lambda item: item[0])
    adjusted = np.maximum.accumulate([p * (len(tested) - place) for place, (p, *_) in enumerate(tested)])
    return [(role, members) for p, (_, role, members) in zip(adjusted, tested, strict=True) if p <= ALPHA]


def report(found):
    for name, regimes in (("novel", NOVEL), ("planted", PLANTED)):
        rows = [row(regime, found[regime]) for regime in regimes if regime in found]
        if rows:
            record(
                f"inference_power_{name}",
                rows,
                f"changes found of all planted, with Clopper–Pearson 95 % intervals; r = {FEATURES}; "
                "k: k-means with Fisher's test, beside it on the same sets",
            )


def row(regime, runs):
    planted = sum(run["planted"] for run in runs)

    def count(key):
        return sum(run[key]["found"] for run in runs)

    def others(key):
        return f"{np.mean([run[key]['others'] for run in runs]):.2f}"

    purities = [purity for run in runs for purity in run["kinds"]["purities"]]
    return {
        "design": regime,
        "found": counted(count("kinds"), planted),
        "by directions": count("directions"),
        "k = 50": count("k = 50"),
        "k = 20, 50, 100, 200": count("k = all"),
        "not planted: ours, k = 50, all k": " / ".join(map(others, ("kinds", "k = 50", "k = all"))),
        "purity": f"{np.mean(purities):.2f}" if purities else "",
    }


if __name__ == "__main__":
    run("inference_power", REGIMES, one, report, {name: 20 if name in NOVEL else 40 for name in REGIMES})
