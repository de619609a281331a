"""Simulated leaderboards: do all rank sets of a board hold the true ranks, and how many pairs are told apart?

Eight models, of which some are equal. A model lacks a part λ of the reference's samples, all of them of every second
kind, and has in their place too much of two kinds and one that the reference does not have. Every number of a board
grows with λ or stays, so the true order is that of λ, with ties. Models have n and 2n samples in turn, the reference
2n. *shared*: one reference, as `fe.leaderboard` has it. *separate*: each model is measured against a reference of its
own. *large*: the shared reference has 20n samples. *groups*: every sample is one of three near copies, in all sets, and
a column says so. A board *holds* by a number if each of the eight rank sets holds the true rank: a model shares the
rank of its equals. *halves*: the only models are two halves of one set of 2n samples (λ = 0.2); how often does any
number call them different? Halves of real sets, too: a quarter each of the photographs of Tiny-ImageNet or of the clips
of UCF101, against the other half. They need the test assets (FINC_EVAL_ASSETS).

    python benchmarks/leaderboard.py --jobs 1 --minutes 5
"""

import numpy as np
import torch
from _designs import Part, copies
from _real import tiny_imagenet, ucf101
from _record import record
from _runs import rate, run

import finc_eval as fe
from finc_eval.leaderboards.columns import RULES, SHARES
from finc_eval.leaderboards.measures import Measuring, bounds_of
from finc_eval.leaderboards.ranks import joint_covariance, model_estimate, rank
from finc_eval.leaderboards.shares import estimate_unmatched, share_estimates
from finc_eval.measures.registry import get_metric
from finc_eval.partitions.counts import count, tally_sets
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.settings import MAIN_LEVEL

PARTS = np.array([0, 0, 0.1, 0.1, 0.2, 0.3, 0.3, 0.4])
"""λ of the models."""

TRUE_RANKS = [1 + int((one > PARTS).sum()) for one in PARTS]

DIM, KINDS = 16, 30
SIZES = {"300": (300, ("fd", "kid")), "1000": (1000, ("fd",)), "5000": (5000, ("fd",))}
REAL = {"photographs": tiny_imagenet, "clips": ucf101}
REGIMES = [f"{refs}-{size}" for size in SIZES for refs in ("shared", "separate", "halves")]
REGIMES += ["large-300", "groups-300", *(f"halves-{name}" for name in REAL)]
COPIES, NOISE = 3, 0.3
NAMES = [f"model {number}" for number in range(len(PARTS))]


def one(regime, seed):
    """Simulate a board, and return of each number whether it holds and how many pairs it tells apart."""
    torch.set_num_threads(1)
    refs, size = regime.split("-")
    if size in REAL:
        return real_halves(REAL[size](), np.random.default_rng(seed))
    n, metrics = SIZES[size]
    rng = np.random.default_rng([seed, n, refs == "shared"])
    centers = rng.normal(0, 2, (KINDS + 1, DIM))
    law = np.append(1 / np.arange(1, KINDS + 1) ** 0.7, 0)
    law /= law.sum()
    other = np.zeros(KINDS + 1)
    other[[4, 8, KINDS]] = 0.25, 0.25, 0.5
    lost = law * (np.arange(KINDS + 1) % 2)
    laws = [law + part * (other - lost / lost.sum()) for part in PARTS]
    if refs == "halves":
        rows = draw(laws[4], 2 * n, centers, rng)
        return halves({"a": rows[:n], "b": rows[n:]}, draw(law, 2 * n, centers, rng), metrics)
    order = rng.permutation(len(laws))
    models = {NAMES[k]: draw(laws[k], n * (1 + place % 2), centers, rng) for place, k in enumerate(order)}
    if refs != "separate":
        ref = draw(law, (20 if refs == "large" else 2) * n, centers, rng)
        told = {}
        if refs == "groups":
            models, ref = {name: grouped(rows, rng) for name, rows in models.items()}, grouped(ref, rng)
            told = {"groups": "group"}
        board = fe.leaderboard(models, ref, metrics=metrics, run=fe.Run("cpu"), **told)
        sets = {one.key: [board[name].scores[one.key].rank_set for name in NAMES] for one in board.criteria}
        pairs = {one.key: one.separable_pairs for one in board.criteria}
        same = {f"{key} of no difference": board[NAMES[0]].scores[key].value for key in SHARES}
        lows = [board[name].scores["unmatched"].interval[0] for name in NAMES]
        return figures(sets, pairs) | same | {"unmatched above the truth": int(sum(lows > PARTS))}
    references = {name: draw(law, 2 * n, centers, rng) for name in models}
    return figures(*separate(models, references, metrics))


def grouped(rows, rng):
    """Return as many rows, of which each three are near copies of one."""
    rows, group = copies(Part(rows[: len(rows) // COPIES], None), COPIES, NOISE, rng)
    return fe.EmbeddingSet(rows, metadata={"group": group.astype(str).tolist()})


def real_halves(found, rng):
    if found is None:
        raise SystemExit("real sets need the test assets: set FINC_EVAL_ASSETS")
    rows = rng.permutation(found[0])
    quarter = len(rows) // 4
    return halves({"a": rows[:quarter], "b": rows[quarter : 2 * quarter]}, rows[2 * quarter :], ("kid",))


def halves(models, ref, metrics):
    """Return by which numbers a board of two models calls them different."""
    board = fe.leaderboard(models, ref, metrics=metrics, run=fe.Run("cpu"))
    called = {f"{one.key} differs": board.separable("a", "b", one.key) for one in board.criteria}
    return called | {"any differs": any(called.values())}


def draw(law, n, centers, rng):
    kinds = rng.choice(len(law), n, p=law)
    return (centers[kinds] + rng.normal(size=(n, DIM))).astype(np.float32)


def effective_counts(sets, kinds):
    tallies = {label: tally_sets({label: count(one, kinds).counts})[label] for label, one in sets.items()}
    return {label: one.effective() for label, one in tallies.items()}


def separate(models, references, metrics):
    """Rank models that are measured against a reference each, so that their estimates share nothing.

    Ranks are as on a board otherwise: 0 takes part where it is the best number that there is.
    """
    run_on = fe.Run("cpu")
    sets = {label: opened(rows) for label, rows in models.items()}
    refs = {label: opened(rows) for label, rows in references.items()}
    kinds = KindTree.of_sets([*sets.values(), *refs.values()]).pruned(MAIN_LEVEL)
    counts = effective_counts(sets, kinds)
    ref_counts = effective_counts(refs, kinds)
    found = {"unmatched": {label: estimate_unmatched(one, ref_counts[label], 0) for label, one in counts.items()}}
    for key, rule in RULES.items():
        every = [one.members for one in counts.values()]
        found[key] = {
            label: share_estimates(rule, every, ref_counts[label].members)[place] for place, label in enumerate(counts)
        }
    for metric in metrics:
        found[metric] = {
            label: Measuring(get_metric(metric), refs[label], run_on).measure(label, one).estimate()
            for label, one in sets.items()
        }
    rankings = {}
    for key, estimates in found.items():
        alone = [model_estimate(estimates[name].value, estimates[name].standard_error ** 2) for name in NAMES]
        best = 0.0 if key in SHARES or bounds_of(key)[0] == 0 else None
        rankings[key] = rank(np.array([one.value for one in alone]), joint_covariance(alone), best=best)
    return (
        {key: one.rank_sets for key, one in rankings.items()},
        {key: one.separable_pairs for key, one in rankings.items()},
    )


def opened(rows):
    from finc_eval.embeddings.opening import as_embeddings

    return as_embeddings(rows, "a set")


def figures(sets, pairs):
    held = {
        f"{key} holds": all(low <= rank <= high for (low, high), rank in zip(found, TRUE_RANKS, strict=True))
        for key, found in sets.items()
    }
    return held | {f"{key} pairs": number for key, number in pairs.items()}


def above(found, key):
    told = [one[f"{key} above the truth"] for one in found if f"{key} above the truth" in one]
    return f"{sum(told)}/{len(NAMES) * len(told)}" if told else ""


def mean(found, key):
    values = [one[key] for one in found if key in one]
    return f"{np.mean(values):.4f}" if values else ""


def report(runs):
    rows = []
    different = sum(a != b for place, a in enumerate(PARTS) for b in PARTS[:place])
    ranked = {regime: found for regime, found in runs.items() if not regime.startswith("halves")}
    for regime, found in ranked.items():
        refs, size = regime.split("-")
        for key in ("unmatched", "missing", "novel", "fd", "kid"):
            told = [one[f"{key} pairs"] for one in found if f"{key} pairs" in one]
            if told:
                rows.append(
                    {
                        "number": key,
                        "n": f"{size} or {2 * int(size)} v {(20 if refs == 'large' else 2) * int(size)}",
                        "reference": {"separate": "separate", "groups": "shared, groups of 3"}.get(refs, "shared"),
                        "all true ranks held": rate(found, f"{key} holds"),
                        f"pairs told apart, of {different}": f"{np.mean(told):.1f}",
                        "mean where nothing differs": mean(found, f"{key} of no difference"),
                        "intervals above the truth": above(found, key),
                    }
                )
    total = sum(len(found) for found in ranked.values())
    if rows:
        record("leaderboard", rows, f"{total} boards of 8 models, with Clopper–Pearson 95 % intervals")
    same = [
        {"n": regime.split("-")[1]} | {key: rate(found, key) for key in found[0] if key.endswith("differs")}
        for regime, found in runs.items()
        if regime not in ranked
    ]
    if same:
        columns = dict.fromkeys(key for row in same for key in row)
        record("leaderboard_halves", [{key: row.get(key, "") for key in columns} for row in same], "halves of one set")


if __name__ == "__main__":
    run("leaderboard", REGIMES, one, report, 500)
