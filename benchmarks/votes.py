"""Measure how often intervals and ranks by votes and by scores are right, over simulated voters, prompts and judges.

    python benchmarks/votes.py [--regime "20 prompts" … --runs … --jobs …]

Votes: models have strengths, which differ from prompt to prompt and from voter to voter. Voters have qualities: by 0
they vote at random, by 2 they see differences twice as large. The truth of a regime is the fit of 400 000 votes of as
many prompts and voters. *intervals*: intervals of single models that hold the truth. *ranks*: draws in which
all rank sets hold the true ranks. *first*: draws in which one model is surely first.

Covariates: models show unlike amounts of something that people prefer. The truth is the fit with the covariate of
400 000 votes. *intervals*: those of strengths at equal covariates. *effect*: draws in which the interval of the effect
holds. *found*: draws in which the covariate does something at 5 %. *moved*: draws in which the rank sets of a model,
with and without the covariate, have no rank in common.

Scores: `a judge that is noise` scores samples of equal models; prompts differ. *ranked*: draws in which any model is
ranked. `a judge with a bias` adds to the scores of one model, in one kind of prompts alone. *named*: draws in which it
is named; *others*: draws in which a part is named that has no bias: six kinds, words, and 34 looks, which overlap.

The regimes from `held out` on were drawn up after the method was fixed.
"""

from functools import cache

import numpy as np
from _record import record
from _runs import rate, run

from finc_eval.judges.bradley_terry import fit_strengths, spread_of
from finc_eval.judges.dividing import _have_looks
from finc_eval.judges.paired import mean_scores
from finc_eval.judges.parts import Division, Gains, find_parts, without_twins
from finc_eval.leaderboards.judged import _estimates, _of_strengths
from finc_eval.leaderboards.ranks import joint_covariance, rank
from finc_eval.naming.traits import TRAITS
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
ACTS = {"effect": 0.6, "more": (0.0, 1.0, 0.0, 0.0, -1.0)}
COVARIATES = {
    "a covariate acts": SAME | MIXED | ACTS,
    "it acts, 20 prompts": SAME | MIXED | ACTS | {"prompts": 20},
    "it acts, one voter of half of the votes": SAME | MIXED | ACTS | {"dominant": 0.5},
    "a covariate that is noise": SAME | MIXED | {"effect": 0.0},
    "held out: voters take it unlike": SAME | ALIKE | ACTS | {"of_tastes": 0.6, "voters": 25},
    "held out: three equal models, one shows more": SAME
    | ALIKE
    | {"models": (0.0, 0.0, 0.0), "effect": 1.0, "more": (1.0, 0.0, 0.0), "prompts": 40},
    "held out: a covariate that is noise, six voters": SAME | ALIKE | {"voters": 6, "votes": 300, "effect": 0.0},
}
SCORES = {
    "a judge that is noise": {"prompts": 60, "models": 4, "skew": False},
    "noise, 12 prompts": {"prompts": 12, "models": 4, "skew": False},
    "held out: noise, skewed scores of 25 prompts": {"prompts": 25, "models": 6, "skew": True},
    "held out: noise, right or wrong": {"prompts": 40, "models": 5, "skew": None},
    "a judge with a bias": {"prompts": 150, "models": 3, "skew": False, "bias": 1.2},
    "held out: bias, skewed": {"prompts": 100, "models": 2, "skew": True, "bias": 2.0},
}
FAMILIES = {"votes": VOTES, "covariates": COVARIATES, "scores": SCORES}
RUNS = 400


def draw_votes(
    rng,
    models,
    prompts,
    voters,
    votes,
    dominant,
    tie,
    of_prompts,
    of_voters,
    qualities,
    effect=None,
    more=(),
    of_tastes=0.0,
):
    """Return left, right, outcome, prompt, voter and the difference of the covariate of simulated votes."""
    truth = np.array(models, float)
    by_prompt = rng.normal(size=(prompts, len(truth))) * of_prompts
    by_voter, quality = rng.normal(size=(voters, len(truth))) * of_voters, rng.choice(qualities, voters)
    left = rng.integers(0, len(truth), votes)
    right = (left + rng.integers(1, len(truth), votes)) % len(truth)
    prompt, voter = rng.integers(0, prompts, votes), rng.integers(0, voters, votes)
    voter = np.where(rng.random(votes) < dominant, 0, voter)
    shown = rng.normal(size=(prompts, len(truth))) + np.array(more or (0.0,))
    taste = (effect or 0.0) + rng.normal(size=voters) * of_tastes
    seen = quality[voter][:, None] * (
        truth + by_prompt[prompt] + by_voter[voter] + taste[voter][:, None] * shown[prompt]
    )
    a, b = seen[np.arange(votes), left], seen[np.arange(votes), right]
    difference = shown[prompt, left] - shown[prompt, right]
    logits = np.stack([a, b, np.full(votes, -1e9) if np.isinf(tie) else tie + (a + b) / 2], 1)
    return left, right, (logits + rng.gumbel(size=logits.shape)).argmax(1), prompt, voter, difference[:, None]


@cache
def truth_of(regime):
    """Return the strengths of a regime that very many prompts and voters show, and the effect of its covariate."""
    has = regime in COVARIATES
    settings = (COVARIATES if has else VOTES)[regime] | {
        "prompts": 20_000,
        "voters": 20_000,
        "votes": 400_000,
        "dominant": 0.0,
    }
    models = np.array(settings["models"], float)
    left, right, outcome, _, _, difference = draw_votes(np.random.default_rng(99), **settings)
    found = fit_strengths(left, right, outcome, len(models), difference if has else None)
    # Models of one strength are equal, whatever the draw.
    return np.array([found.strengths[models == one].mean() for one in models]), found.effects


def ranks_hold(truth, ranking):
    """Return whether the rank sets hold all true ranks; equal models share a rank, and each of it may be."""
    for own, (low, high) in zip(truth, ranking.rank_sets, strict=True):
        above, alike = int((truth > own + 1e-9).sum()), int((np.abs(truth - own) <= 1e-9).sum())
        if low > above + 1 or high < above + alike:
            return False
    return True


def ranked(fit, spread):
    estimates = _of_strengths([str(one) for one in range(len(fit.strengths))], fit, spread)
    return rank(fit.strengths, joint_covariance([one for (one,) in estimates.values()]), higher_is_better=True)


def of_votes(regime, seed):
    truth, _ = truth_of(regime)
    left, right, outcome, prompt, voter, _ = draw_votes(np.random.default_rng(seed), **VOTES[regime])
    fit = fit_strengths(left, right, outcome, len(truth))
    spread = spread_of(fit, prompt, voter)
    half = student_quantile(spread.degrees) * np.sqrt(np.diag(spread.covariance))
    ranking = ranked(fit, spread)
    return {
        "inside": [bool(one) for one in np.abs(fit.strengths - truth) <= half],
        "ranks": ranks_hold(truth, ranking),
        "first": any(one == (1, 1) for one in ranking.rank_sets),
        "half": float(half.mean()),
    }


def of_covariates(regime, seed):
    truth, effect = truth_of(regime)
    left, right, outcome, prompt, voter, difference = draw_votes(np.random.default_rng(seed), **COVARIATES[regime])
    sets, models = [], len(truth)
    for given in (None, difference):
        fit = fit_strengths(left, right, outcome, models, given)
        spread = spread_of(fit, prompt, voter)
        sets.append(ranked(fit, spread))
    half = student_quantile(spread.degrees) * np.sqrt(np.diag(spread.covariance))
    of_effect = spread_of(fit, prompt, voter, of=fit.design.slopes)
    width = student_quantile(of_effect.degrees) * float(of_effect.covariance[0, 0]) ** 0.5
    plain, equal = (one.rank_sets for one in sets)
    return {
        "inside": [bool(one) for one in np.abs(fit.strengths - truth) <= half],
        "ranks": ranks_hold(truth, sets[1]),
        "effect": bool(abs(fit.effects - effect)[0] <= width),
        "found": bool(abs(fit.effects[0]) > width),
        "moved": any(one[1] < other[0] or other[1] < one[0] for one, other in zip(plain, equal, strict=True)),
    }


def looks_of_noise(rng, models, count):
    """Return the looks of samples whose traits are noise, some of them correlated."""
    traits = [one for one in TRAITS if one.least is None]
    values = rng.normal(size=(models * count, len(traits))) + rng.normal(size=(models * count, 1))
    looks, has = _have_looks(traits, values)
    cells, cell = np.unique(has, axis=0, return_inverse=True)
    return [Division(looks, cell[one * count : (one + 1) * count], cells.T) for one in range(models)]


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
    looks = looks_of_noise(rng, models, count)
    gains = [
        Gains(
            name,
            means.table[place] - np.delete(means.table, place, 0).mean(0),
            np.arange(count),
            {"kind": kinds, "look": looks[place]},
        )
        for place, name in enumerate(means.models)
    ]
    found = find_parts("judge", without_twins(gains, 0), names)
    planted = [one for one in found if one.name == "0" and one.part in ("text", "dog")]
    ranked = any(one != (1, models) for one in ranking.rank_sets)
    if "bias" in settings:
        return {"named": bool(planted)}
    return {"ranked": ranked, "others": bool(found)}


def one(regime, seed):
    """Return whether intervals and ranks of a draw hold."""
    return (of_votes if regime in VOTES else of_covariates if regime in COVARIATES else of_scores)(regime, seed)


def report(regimes):
    tables = {"votes": [], "covariates": [], "scores": []}
    for regime, runs in regimes.items():
        family = next(name for name, own in FAMILIES.items() if regime in own)
        row = {"regime": regime}
        if family != "scores":
            inside = [value for one in runs for value in one["inside"]]
            row |= {"intervals": f"{np.mean(inside):.3f} of {len(inside):,}", "ranks": rate(runs, "ranks")}
        if family == "votes":
            row["first"] = f"{np.mean([one['first'] for one in runs]):.2f}"
            row["half-width"] = f"{np.mean([one['half'] for one in runs]):.2f}"
        elif family == "covariates":
            row |= {key: rate(runs, key) for key in ("effect", "found", "moved")}
        else:
            row |= {key: rate(runs, key) for key in ("ranked", "others", "named")}
        tables[family].append(row)
    notes = {
        "votes": "Intervals of single models, and draws, with 95 % intervals; half-widths in log odds.",
        "covariates": "Intervals of strengths at equal covariates, and draws, with 95 % intervals.",
        "scores": "Draws, with 95 % intervals.",
    }
    for family, rows in tables.items():
        if rows:
            record(family, rows, notes[family])


if __name__ == "__main__":
    run("votes", [name for own in FAMILIES.values() for name in own], one, report, RUNS)
