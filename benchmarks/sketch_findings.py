"""Measure what a comparison of two sums says: of sets of one law, and of planted differences.

    python benchmarks/sketch_findings.py [--regime NAME …] [--runs N] [--jobs N] [--minutes N]

Sets of 2 000 samples of six kinds in 8 entries, with two columns of numbers; `SketchSum` keeps 600 samples of each,
and counts equal samples in the whole set. *some of 40 000*: sets of 40 000 samples. A tenth of these is counted, and
300 samples are kept.

Of sets of one law: runs with a finding of each kind, and with a p-value of the sets of at most .05. Of planted
differences: runs whose findings have the planted one, and whose interval of a share of repeats has the planted share.
*by numbers*: only the p-values of sums are computed, without a comparison. Sets have 2 000 samples; 150 values are
counted, or 300 samples in groups of 4 are kept.
"""

import numpy as np
import torch
from _record import record
from _runs import rate, run

import finc_eval as fe
from finc_eval.findings.copies import p_of_copies
from finc_eval.naming.share_repeated import AllRepeats
from finc_eval.numerics.exchanges import exchange_units
from finc_eval.numerics.hash_counts import HashCounts
from finc_eval.sketches.one_law import UnitFeatures

N, DIM = 2000, 8
MIDDLES = 3 * np.random.default_rng(99).normal(size=(6, DIM))
KINDS = ("kind", "column", "repeat", "copy")


def drawn(rng, n, size=1):
    """Rows of six kinds, and two numbers of each; `size` samples in a row have one middle."""
    middles = MIDDLES[rng.integers(0, 6, n // size)] + (rng.normal(size=(n // size, DIM)) if size > 1 else 0)
    rows = middles.repeat(size, 0) + rng.normal(size=(n, DIM))
    return rows.astype(np.float32), rng.normal(size=n), rng.exponential(size=n)


def added(sums, given, size=1):
    """Add rows and numbers as three workers do, and finish."""
    rows, first, second = given
    order = np.arange(len(rows))
    state = sums.zero()
    for part in np.array_split(order, 3):
        groups = part // size if size > 1 else None
        numbers = {"first": first[part], "second": second[part]}
        ids = [f"{row}.png" for row in part]
        state = sums.combine(state, sums.add(sums.zero(), rows[part], ids=ids, groups=groups, columns=numbers))
    return sums.finish(state)


def twice(rng, given, part):
    """Let a part of the samples be the same as others, two and two."""
    half = round(len(given[0]) * part / 2)
    given[0][:half] = given[0][half : 2 * half]


def of_few_values(rng, given, values):
    """Let three of ten samples be of a few values, which both sets have."""
    chosen = rng.random(len(given[0])) < 0.3
    given[0][chosen] = np.random.default_rng(5).normal(size=(values, DIM))[rng.integers(0, values, chosen.sum())]


def sets_of(regime, rng):
    """Return both sets of a regime, and the size of their groups."""
    size, n = (4 if "groups" in regime else 1), (40_000 if "40 000" in regime else N)
    gen, ref = drawn(rng, n, size), drawn(rng, n, size)
    if regime == "one law of few values":
        of_few_values(rng, gen, 450)
        of_few_values(rng, ref, 450)
    if regime == "one law, all samples of the reference twice":
        ref[0][: n // 2] = ref[0][n // 2 :]
    if "repeats" in regime:
        twice(rng, gen, 0.1)
    if "copies" in regime:
        gen[0][: n // 10] = ref[0][: n // 10]
    if "look" in regime:
        gen[1][rng.random(n) < 0.2] += 4
    if "lost kind" in regime:
        nearest = np.square(gen[0][:, None] - MIDDLES).sum(2).argmin(1)
        gen[0][nearest == 2] += (MIDDLES[3] - MIDDLES[2]).astype(np.float32)
    return gen, ref, size


def by_numbers(seed):
    """Return the p-values of repeats, of copies and of the sets for two sets of one law."""
    rng = np.random.default_rng([seed, 77])
    hashes = rng.integers(0, 2**64, 2 * N + 450, dtype=np.uint64, endpoint=False)
    counts = []
    for first in (0, N):
        values = np.arange(first, first + N)
        chosen = rng.random(N) < 0.3
        values[chosen] = 2 * N + rng.integers(0, 450, chosen.sum())
        counts.append(HashCounts.of(hashes[values], 150))
    features, sums = rng.normal(size=(DIM, 60)) / 4, []
    for _ in range(2):
        rows = torch.from_numpy(drawn(rng, 300, 4)[0] @ features)
        units = UnitFeatures(np.arange(300) // 4, None, 120, torch.device("cpu"))
        units.update(torch.cat([rows.cos(), rows.sin()], 1).float() / np.sqrt(60), torch.arange(300))
        sums.append(units.result())
    return {
        "repeat": AllRepeats.of(*counts).p_value(seed, 199) <= LEVEL,
        "copy": p_of_copies(*counts) <= LEVEL,
        "sets": exchange_units(*sums, seed, by_column=False).p_value() <= LEVEL,
    }


NUMBERS, LEVEL = "one law, by numbers, p ≤ .05", 0.05
NULLS = (
    NUMBERS,
    "one law",
    "one law, groups of 4",
    "one law of few values",
    "one law, all samples of the reference twice",
)
PLANTED = {
    "a lost kind": "kind",
    "a lost kind, groups of 4": "kind",
    "a look in 20 %": "column",
    "a look in 20 %, groups of 4": "column",
    "10 % repeats": "repeat",
    "10 % repeats, some of 40 000": "repeat",
    "10 % copies": "copy",
    "10 % copies, some of 40 000": "copy",
}
REGIMES = (*NULLS, *PLANTED)
ORDER = REGIMES[1:]  # of seeds


def one(regime, seed):
    """Compare the sums of two sets, and of planted differences also their embeddings."""
    if regime == NUMBERS:
        return by_numbers(seed)
    rng = np.random.default_rng([seed, ORDER.index(regime)])
    gen, ref, size = sets_of(regime, rng)
    sums = fe.SketchSum(reference=ref[0][:1000], features=20, sample=300 if "40 000" in regime else 600, seed=seed)
    found = fe.compare(added(sums, gen, size), added(sums, ref, size))
    said = {finding.kind for finding in found.findings}
    figures = {kind: kind in said for kind in KINDS}
    figures["sets"] = found.sets_p_value is not None and found.sets_p_value <= 0.05
    figures["share"] = [each.share_gen for each in found.findings if each.kind == PLANTED.get(regime)][:1]
    intervals = [look.interval for look in found.looks if look.trait == "repeat" and look.interval is not None]
    if intervals and regime in PLANTED:
        figures["holds"] = intervals[0][0] <= 0.1 <= intervals[0][1]
    return figures


def report(found):
    nulls, planted = [], []
    for regime, runs in found.items():
        if regime in NULLS:
            nulls.append({"sets": regime} | {f"a {kind}": rate(runs, kind) for kind in KINDS})
            nulls[-1]["p of the sets ≤ .05"] = rate(runs, "sets")
        else:
            kind, shares = PLANTED[regime], [share for one in runs for share in one["share"] if share is not None]
            planted.append(
                {
                    "planted": regime,
                    "found": rate(runs, kind),
                    "mean share, %": f"{100 * np.mean(shares):.1f}" if shares and kind != "kind" else "",
                    "interval has the share": rate(runs, "holds"),
                }
            )
    for name, rows in (("sketch_nulls", nulls), ("sketch_planted", planted)):
        if rows:
            record(name, rows, f"{N} samples, sums of three workers, 95 % intervals")


if __name__ == "__main__":
    run(
        "sketch_findings",
        REGIMES,
        one,
        report,
        {regime: 1000 if regime == NUMBERS else 200 if regime in NULLS else 60 for regime in REGIMES},
    )
