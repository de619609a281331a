"""Measure how often intervals and ranks by votes and by scores are right, over simulated voters, prompts and judges.

    python benchmarks/votes.py [--regime "20 prompts" … --runs … --jobs …]

Votes: models have strengths, which differ from prompt to prompt and from voter to voter. Voters have qualities: by 0
they vote at random, by 2 they see differences twice as large. The truth of a regime is the fit of 400 000 votes of as
many prompts and voters. *intervals*: intervals of single models that hold the truth. *ranks*: draws in which
all rank sets hold the true ranks. *first*: draws in which one model is surely first.

Scores: `a judge that is noise` scores samples of equal models; prompts differ. *ranked*: draws in which any model is
ranked. `a judge with a bias` adds to the scores of one model, in one kind of prompts alone. *named*: draws in which it
is named; *others*: draws in which a part is named that has no bias.

The regimes from `held out` on were drawn up after the method was fixed.
"""

from functools import cache

import numpy as np
from _record import record
from _runs import rate, run

from finc_eval.judges.bradley_terry import fit_strengths, spread_of
from finc_eval.judges.paired import mean_scores
from finc_eval.judges.parts import Division, Gains, find_parts
from finc_eval.leaderboards.judged import _estimates
from finc_eval.leaderboards.ranks import joint_covariance, rank
from finc_eval.numerics.inference import student_quantile

FIVE = (0.8, 0.3, 0.0, -0.3, -0.8)
SAME = {"models": FIVE, "prompts": 100, "voters": 50, "votes": 600, "dominant": 0.0, "tie": -0.5}
MIXED = {"of_prompts": 0.5, "of_voters": 0.5, "qualities": (0.0, 0.5, 1.0, 2.0)}
ALIKE = {"of_prompts": 0.5, "of_voters": 0.5, "qualities": (1.0,)}
VOTES = {
    "no ties, all alike": SAME | ALIKE | {"tie": -np.inf, "of_prompts": 0.0, "of_voters": 0.0},
    "ties": SAME | ALIKE,
    "voters of four qualities": SAME | MIXED,
    "20 prompts": SAME | MIXED | {"prompts": 20},
    "1,000 prompts, 5,000 votes": SAME | MIXED | {"prompts": 1000, "votes": 5000, "voters": 200},
    "one voter of half of the votes": SAME | MIXED | {"dominant": 0.5},
    "20 prompts, that voter": SAME | MIXED | {"prompts": 20, "dominant": 0.5, "voters": 15},
    "six voters": SAME | ALIKE | {"voters": 6, "votes": 300},
    "equal models": SAME | ALIKE | {"models": (0.0, 0.0, 0.0)},
    "held out: eight models, many ties": SAME | MIXED | {"models": (1, 0.6, 0.6, 0.1, 0, -0.5, -0.8, -1), "tie": 1.0},
    "held out: two models, 12 prompts": SAME
    | ALIKE
    | {"models": (0.2, -0.2), "prompts": 12, "voters": 9, "votes": 150, "of_voters": 1.0},
    "held out: three equal models, a voter of 80 %": SAME
    | ALIKE
    | {"models": (0.0, 0.0, 0.0), "dominant": 0.8, "voters": 20, "of_voters": 0.8},
    "held out: strong prompts": SAME | ALIKE | {"of_prompts": 1.5, "prompts": 40, "votes": 900},
}
SCORES = {
    "a judge that is noise": {"prompts": 60, "models": 4, "skew": False},
    "noise, 12 prompts": {"prompts": 12, "models": 4, "skew": False},
    "held out: noise, skewed scores of 25 prompts": {"prompts": 25, "models": 6, "skew": True},
    "held out: noise, right or wrong": {"prompts": 40, "models": 5, "skew": None},
    "a judge with a bias": {"prompts": 150, "models": 3, "skew": False, "bias": 1.2},
    "held out: bias, skewed": {"prompts": 100, "models": 2, "skew": True, "bias": 2.0},
}
RUNS = 400


def draw_votes(rng, models, prompts, voters, votes, dominant, tie, of_prompts, of_voters, qualities):
    """Return left, right, outcome, prompt and voter of simulated votes."""
    truth = np.array(models, float)
    by_prompt = rng.normal(size=(prompts, len(truth))) * of_prompts
    by_voter, quality = rng.normal(size=(voters, len(truth))) * of_voters, rng.choice(qualities, voters)
    left = rng.integers(0, len(truth), votes)
    right = (left + rng.integers(1, len(truth), votes)) % len(truth)
    prompt, voter = rng.integers(0, prompts, votes), rng.integers(0, voters, votes)
    voter = np.where(rng.random(votes) < dominant, 0, voter)
    seen = quality[voter][:, None] * (truth + by_prompt[prompt] + by_voter[voter])
    a, b = seen[np.arange(votes), left], seen[np.arange(votes), right]
    logits = np.stack([a, b, np.full(votes, -1e9) if np.isinf(tie) else tie + (a + b) / 2], 1)
    return left, right, (logits + rng.gumbel(size=logits.shape)).argmax(1), prompt, voter


@cache
def truth_of(regime):
    """Return the strengths of a regime that very many prompts and voters show."""
    settings = VOTES[regime] | {"prompts": 20_000, "voters": 20_000, "votes": 400_000, "dominant": 0.0}
    models = np.array(settings["models"], float)
    left, right, outcome, *_ = draw_votes(np.random.default_rng(99), **settings)
    found = fit_strengths(left, right, outcome, len(models)).strengths
    # Models of one strength are equal, whatever the draw.
    return np.array([found[models == one].mean() for one in models])


def ranks_hold(truth, ranking):
    """Return whether the rank sets hold all true ranks; equal models share a rank, and each of it may be."""
    for own, (low, high) in zip(truth, ranking.rank_sets, strict=True):
        above, alike = int((truth > own + 1e-9).sum()), int((np.abs(truth - own) <= 1e-9).sum())
        if low > above + 1 or high < above + alike:
            return False
    return True


def of_votes(regime, seed):
    truth = truth_of(regime)
    left, right, outcome, prompt, voter = draw_votes(np.random.default_rng(seed), **VOTES[regime])
    fit = fit_strengths(left, right, outcome, len(truth))
    spread = spread_of(fit, prompt, voter)
    half = student_quantile(spread.degrees) * np.sqrt(np.diag(spread.covariance))
    values, vectors = np.linalg.eigh(spread.covariance)
    names = [str(one) for one in range(len(truth))]
    estimates = _estimates(names, fit.strengths, vectors * np.sqrt(values.clip(0)), spread.degrees)
    ranking = rank(fit.strengths, joint_covariance([one for (one,) in estimates.values()]), higher_is_better=True)
    return {
        "inside": [bool(one) for one in np.abs(fit.strengths - truth) <= half],
        "ranks": ranks_hold(truth, ranking),
        "first": any(one == (1, 1) for one in ranking.rank_sets),
        "half": float(half.mean()),
    }


def of_scores(regime, seed):
    settings, rng = SCORES[regime], np.random.default_rng(seed)
    count, models = settings["prompts"], settings["models"]
    level, names = (
        rng.normal(size=count),
        [f"prompt {one:04d} {'text' if one % 4 == 0 else 'dog'}" for one in range(count)],
    )
    scores = {}
    for model in range(models):
        noise = rng.lognormal(0, 1, count) if settings["skew"] else rng.normal(size=count)
        scores[str(model)] = (level + noise > 0).astype(float) if settings["skew"] is None else level + noise
    scores["0"] = scores["0"] + settings.get("bias", 0.0) * np.array(["text" in one for one in names])
    means = mean_scores(scores, dict.fromkeys(scores, names))
    estimates = _estimates(means.models, means.values, means.influences, means.degrees)
    ranking = rank(means.values, joint_covariance([one for (one,) in estimates.values()]), higher_is_better=True)
    kinds = Division.of_texts(["text" if "text" in one else f"other {n % 5}" for n, one in enumerate(names)])
    gains = [
        Gains(name, means.table[place] - np.delete(means.table, place, 0).mean(0), np.arange(count), {"kind": kinds})
        for place, name in enumerate(means.models)
    ]
    found = find_parts("judge", gains[:1] if models == 2 else gains, names)
    planted = [one for one in found if one.name == "0" and one.part in ("text", "dog")]
    ranked = any(one != (1, models) for one in ranking.rank_sets)
    if "bias" in settings:
        return {"named": bool(planted)}
    return {"ranked": ranked, "others": bool(found)}


def one(regime, seed):
    """Return whether intervals and ranks of a draw hold."""
    return of_votes(regime, seed) if regime in VOTES else of_scores(regime, seed)


def report(regimes):
    votes, scores = [], []
    for regime, runs in regimes.items():
        if regime in VOTES:
            inside = [value for one in runs for value in one["inside"]]
            row = {"regime": regime, "intervals": f"{np.mean(inside):.3f} of {len(inside):,}"}
            row |= {"ranks": rate(runs, "ranks"), "first": f"{np.mean([one['first'] for one in runs]):.2f}"}
            votes.append(row | {"half-width": f"{np.mean([one['half'] for one in runs]):.2f}"})
        else:
            found = {key: rate(runs, key) for key in ("ranked", "others", "named")}
            scores.append({"regime": regime, **found})
    if votes:
        record("votes", votes, "Intervals of single models, and draws, with 95 % intervals; half-widths in log odds.")
    if scores:
        record("scores", scores, "Draws, with 95 % intervals.")


if __name__ == "__main__":
    run("votes", (*VOTES, *SCORES), one, report, RUNS)
