"""Designs of scores by judges and of votes: means, strengths, ranks, covariates, parts, and plans of what decides."""

from dataclasses import replace
from functools import partial

import numpy as np
from _law import Design, Drawn, Holds, NoClaim, PValue
from _ranked import drawn_p_values, drawn_ranks, ranked

from finc_eval.judges.covariates import Covariate, strengths_at_equal
from finc_eval.judges.layouts.vbench_totals import QUALITY, SEMANTIC
from finc_eval.judges.parts import Division, Gains, _compare, find_parts
from finc_eval.judges.sample_scores import SampleScores
from finc_eval.judges.strengths import Strengths
from finc_eval.judges.votes import Votes
from finc_eval.judges.weighting import Weighting
from finc_eval.leaderboards.judged import Judgments
from finc_eval.leaderboards.judged_board import _at_equal

RANKS = Holds(together=True, width=None, why="Criterion.p_values says how much is found")

PROMISES = {
    "JudgedPart.interval": Holds(width=(0.8, 1.5), why="Student's t of few prompts; two more at each end"),
    "JudgedPart.p_value": PValue(together=True),
    "ScoreStanding.interval": Holds(),
    "ScoreStanding.rank_set": RANKS,
    "VoteStanding.interval": Holds(),
    "VoteStanding.rank_set": RANKS,
    "VoteStanding.equal_interval": Holds(),
    "VoteStanding.equal_rank_set": RANKS,
    "CovariateEffect.interval": Holds(),
    "CovariateEffect.p_value": PValue(exact=True),
    "CovariateEffect.unit": NoClaim("the unit of an effect, which is of the votes at hand"),
    "MarginPlan.margin": NoClaim("a difference of two values; Criterion.p_values says how sure its sign is"),
    "MarginPlan.detectable": Holds(0.8, width=None, why="a margin of this size is decided, one of half the size not"),
}


def part_of_prompts(rng, prompts, answers, inside, right, elsewhere=None):
    """A judge who is right or wrong by chance, of some answers to each prompt; a part of the prompts."""
    prompt = np.repeat(np.arange(prompts), answers)
    rights = np.where(np.arange(prompts) < inside, right, right if elsewhere is None else elsewhere)
    chance = (np.clip(rng.normal(rights, 0.15 * (answers > 1)), 0, 1) if answers > 1 else rights)[prompt]
    values = (rng.random(len(prompt)) < chance).astype(float)
    division = Division.of_texts(np.where(prompt < inside, "in", "out"))
    found = _compare("judge", "a", "label", values, prompt, division, division.names.index("in"))
    if np.ptp(values) > 0:  # no part is found where nothing differs
        yield Drawn("JudgedPart.interval", found.value, found.interval)


def all_parts(rng, prompts, parts, answers, gain):
    """The parts that are found among several; one of them has a gain of the mean, unless that is 0."""
    prompt = np.repeat(np.arange(prompts), answers)
    part = (np.arange(prompts) % parts)[prompt]
    values = rng.normal(0, 0.6, prompts)[prompt] + rng.normal(0, 0.8, len(prompt)) + gain * (part == 0)
    names = np.array([f"part {one}" for one in range(parts)])
    gains = Gains("a", values, prompt, {"label": Division.of_texts(names[part].tolist())}, has_words=False)
    found = find_parts("judge", [gains], [])
    yield Drawn("JudgedPart.p_value", min((one.p_value for one in found), default=1.0), is_null=gain == 0)


def table_of(name, values, prompts):
    """Return a table of scores; `values` has a row of samples for each prompt."""
    names = tuple(f"p{one}" for one in prompts for _ in range(values.shape[1]))
    ids = tuple(f"{name}{row}" for row in range(len(names)))
    return SampleScores(name, {"judge": values.ravel()}, ids, names, True, True)


def judged(scores, votes=None):
    return Judgments(tuple(scores), scores, votes, ()).results(0)


def worth_of(qualities):
    return {f"m{place}": quality for place, quality in enumerate(qualities)}


def scores_of_models(rng, qualities, prompts, seeds, shared, right):
    """Return the scores of models: of prompts that models share or not, as numbers or as right answers."""
    scores = {}
    of_prompt = rng.normal(0, 1, prompts)
    for place, (name, quality) in enumerate(worth_of(qualities).items()):
        numbers = np.arange(prompts) + (0 if shared else place * prompts)
        own = of_prompt if shared else rng.normal(0, 1, prompts)
        if right:
            values = (rng.random((prompts, seeds)) < quality).astype(float)
        else:
            values = quality + own[:, None] + rng.normal(0, 0.7, (prompts, seeds))
        scores[name] = table_of(name, values, numbers)
    return scores


SCORED = ("ScoreStanding.interval", "ScoreStanding.rank_set", "Criterion.p_values")


def models_by_scores(rng, qualities, prompts, seeds=1, shared=True, right=False, clear=9.0):
    """Models that a judge scores; the true mean of each is its quality."""
    worth = worth_of(qualities)
    found = judged(scores_of_models(rng, qualities, prompts, seeds, shared, right))
    criterion, standings = ranked(found.columns[0], worth)
    for name, one in standings.items():
        yield Drawn("ScoreStanding.interval", one.value, one.interval, worth[name])
    yield from drawn_ranks("ScoreStanding.rank_set", {key: one.rank_set for key, one in standings.items()}, worth)
    yield from drawn_p_values(criterion, worth, clear)


def ruled(values, prompt, weights, tasks=()):
    """Return the interval of a number that a benchmark makes of the samples of one model."""
    ids = tuple(map(str, range(len(values))))
    texts = tuple(map(str, prompt))
    rule = Weighting("rule", weights, tasks, (0.0, 1.0))
    table = SampleScores("m", {"judge": values}, ids, texts, True, True, weighted={"judge": rule})
    (column,) = judged({"m": table}).columns
    return column.estimates["m"]


def mean_of_tasks(rng, tasks, prompts, images):
    """Right and wrong images of tasks of unlike size and difficulty: GenEval's number."""
    rates, sizes = np.linspace(0.95, 0.2, tasks), prompts + 5 * np.arange(tasks)
    task = np.repeat(np.arange(tasks), sizes)
    chance = rng.beta(3 * rates[task], 3 * (1 - rates[task]))
    right = (rng.random((len(task), images)) < chance[:, None]).astype(float).ravel()
    names = tuple(f"t{one}" for one in np.repeat(task, images))
    found = ruled(right, np.repeat(np.arange(len(task)), images), np.ones(len(right)), names)
    yield Drawn("ScoreStanding.interval", found.value, found.interval, float(rates.mean()), of="tasks")


def by_frames(rng, prompts, videos):
    """Shares of right frames of videos of 8 and 64 frames, of which the long ones are worse: VBench's number."""
    frames = rng.choice([8, 64], (prompts, videos))
    rate = np.where(frames == 8, 0.8, 0.5)
    chance = np.clip(rate + rng.uniform(-0.2, 0.2, (prompts, 1)), 0, 1)
    share = rng.binomial(frames, rng.beta(6 * chance, 6 * (1 - chance))) / frames
    found = ruled(share.ravel(), np.repeat(np.arange(prompts), videos), frames.ravel().astype(float))
    yield Drawn("ScoreStanding.interval", found.value, found.interval, (8 * 0.8 + 64 * 0.5) / 72, of="frames")


def total_of_vbench(rng, prompts, each, videos):
    """Dimensions of one model, each of some of the prompts, whose qualities all dimensions share."""
    of_prompts, judges = rng.normal(0, 0.05, prompts), {}
    for place, (name, (low, high, _)) in enumerate((QUALITY | SEMANTIC).items()):
        some = (5 * place + np.arange(each)) % prompts
        values = np.full((prompts, videos), np.nan)
        values[some] = 0.3 * low + 0.7 * high + of_prompts[some][:, None] + rng.normal(0, 0.05, (each, videos))
        judges[name] = values.ravel()
    texts = tuple(f"p{one}" for one in range(prompts) for _ in range(videos))
    rule = Weighting.plain("VBench by videos", len(texts))
    ids = tuple(map(str, range(len(texts))))
    table = SampleScores("m", judges, ids, texts, True, True, weighted=dict.fromkeys(judges, rule))
    found = judged({"m": table}).columns[-1].estimates["m"]
    yield Drawn("ScoreStanding.interval", found.value, found.interval, 0.7, of="total")


def asked_again(rng, prompts, repeats, of_repeats, noise):
    """Two models that a judge scored several times; all scores of a repeat may be higher together."""
    names = tuple(f"r{one}" for one in range(repeats))
    shift, scores = rng.normal(0, of_repeats, (repeats, 1)), {}
    of_prompts = rng.normal(0, 0.5, prompts)
    for model in ("m0", "m1"):
        found = of_prompts + rng.normal(0, 0.5, prompts) + shift + rng.normal(0, noise, (repeats, prompts))
        table = table_of(model, found.mean(0)[:, None], range(prompts))
        scores[model] = replace(table, repeats={"judge": found}, repeat_names=names)
    (column,) = judged(scores).columns
    criterion, standings = ranked(column, scores)
    for one in standings.values():
        yield Drawn("ScoreStanding.interval", one.value, one.interval, 0.0, of="asked again")
    yield from drawn_p_values(criterion, dict.fromkeys(scores, 0.0), 1.0, of="asked again")


def plans(rng, models, prompts, seeds, by):
    """Two neighbors apart by the difference that other data of the law say is decided, and by 0.45 of it."""
    equal = (0.0,) * models

    def found_of(qualities):
        if by == "votes":
            votes = votes_of(rng, qualities, 600, prompts, 30)
            return judged({f"m{one}": empty(f"m{one}") for one in range(models)}, Strengths.of(votes))
        if by == "labels":
            scores, labels = labeled_models(rng, qualities, prompts)
            return Judgments(tuple(scores), scores, None, (), labels=labels).results(0)
        return judged(scores_of_models(rng, qualities, prompts, seeds, True, False))

    def decides(gap):
        found = found_of((gap, *equal[1:]) if by != "votes" else (gap / 2, *([-gap / 2] * (models - 1))))
        criterion, _ = ranked(found.columns[-1], worth_of(equal))
        a, b = criterion.names.index("m0"), criterion.names.index("m1")
        return criterion.p_values[a][b]

    size = found_of(equal).plans[-1].detectable
    number = "MarginPlan.detectable"
    yield Drawn(number, size, (0.0, 0.05), decides(size), of=f"all of it, {by}")
    yield Drawn(number, size, (0.05, 1.0), decides(0.45 * size), of=f"less than half of it, {by}")


def labeled_models(rng, qualities, labels):
    """Return scores of 600 samples of models by a judge, and labels of some of them."""
    scores, people = {}, {}
    for name, quality in worth_of(qualities).items():
        values = rng.normal(quality, 1, 600)
        scores[name] = table_of(name, (3 * values + rng.normal(0, 1, 600))[:, None], range(600))
        some = rng.choice(600, labels, replace=False)
        rating = values[some] + rng.normal(0, 0.5, labels)
        prompts = tuple(f"p{one}" for one in some)
        ids = tuple(f"{name}{one}" for one in some)
        people[name] = SampleScores(name, {"rating": rating}, ids, prompts, True, True)
    return scores, people


def empty(name):
    return SampleScores(name, {}, (), (), True, True)


def votes_of(rng, strengths, count, prompts, voters, spread=0.0, effect=0.0, shown=None):
    """Return votes by Davidson's law, of voters and prompts that like models in their own way if there is a spread."""
    strengths, models = np.asarray(strengths, float), len(strengths)
    prompt, voter, rows = np.arange(count) % prompts, rng.integers(0, voters, count), np.arange(count)
    left = rng.integers(0, models, count)
    right = (left + rng.integers(1, models, count)) % models
    tastes = strengths + spread * (
        rng.normal(size=(prompts, models))[prompt] + rng.normal(size=(voters, models))[voter]
    )
    gap = tastes[rows, left] - tastes[rows, right] + (0.0 if shown is None else effect * (shown[0] - shown[1]))
    weights = np.stack([np.exp(gap / 2), np.exp(-gap / 2), np.full(count, 0.3)], 1)
    outcome = (rng.random(count)[:, None] > (weights / weights.sum(1, keepdims=True)).cumsum(1)).sum(1)
    texts = tuple(f"p{one}" for one in range(prompts))
    voter = np.unique(voter, return_inverse=True)[1]
    return Votes(tuple(f"m{one}" for one in range(models)), left, right, outcome, prompt, voter, texts, tuple("v"))


VOTED = ("VoteStanding.interval", "VoteStanding.rank_set", "Criterion.p_values")


def models_by_votes(rng, strengths, count, prompts, voters, spread=0.0, clear=9.0):
    """Models that people vote on; without a spread of tastes, the true strength of each is known."""
    worth = worth_of(np.array(strengths) - np.mean(strengths))
    votes = Strengths.of(votes_of(rng, strengths, count, prompts, voters, spread))
    criterion, standings = ranked(judged({name: empty(name) for name in worth}, votes).columns[0], worth)
    for name, one in standings.items():
        truth = None if spread else worth[name]
        yield Drawn("VoteStanding.interval", one.value, one.interval, truth, of=f"{name}, {count}" if spread else "")
    yield from drawn_ranks("VoteStanding.rank_set", {key: one.rank_set for key, one in standings.items()}, worth)
    yield from drawn_p_values(criterion, worth, clear, of="votes")


EQUAL = (
    *("CovariateEffect.interval", "CovariateEffect.p_value"),
    *("VoteStanding.equal_interval", "VoteStanding.equal_rank_set"),
)


def votes_with_covariates(rng, strengths, count, effects):
    """Votes that a covariate of what is shown decides, too: its effect, by turns none, and strengths without it."""
    effect = float(rng.choice(effects))
    worth = worth_of(np.array(strengths) - np.mean(strengths))
    shown = rng.normal(size=(2, count))
    votes = votes_of(rng, strengths, count, count, count, effect=effect, shown=shown)
    covariate = Covariate("light", *shown)
    equal = strengths_at_equal(votes, [covariate])
    (one,) = equal.effects
    yield Drawn("CovariateEffect.interval", one.effect, one.interval, effect * covariate.unit)
    yield Drawn("CovariateEffect.p_value", one.p_value, is_null=effect == 0)
    fitted = Strengths.of(votes)
    made = judged({name: empty(name) for name in worth}, type(fitted)(votes, fitted.fit, fitted.spread, equal))
    at_equal = _at_equal(made)
    for name, (value, interval, _) in at_equal.items():
        yield Drawn("VoteStanding.equal_interval", value, interval, worth[name])
    yield from drawn_ranks(
        "VoteStanding.equal_rank_set", {name: ranks for name, (*_, ranks) in at_equal.items()}, worth
    )


PART = ("JudgedPart.interval",)

DESIGNS = (
    Design(
        "a part of 12 of 60 prompts, one answer",
        "small",
        PART,
        partial(part_of_prompts, prompts=60, answers=1, inside=12, right=0.5),
        400,
        60,
    ),
    Design(
        "a part of 20 of 60 prompts, four answers",
        "clustered",
        PART,
        partial(part_of_prompts, prompts=60, answers=4, inside=20, right=0.5),
        400,
        60,
    ),
    Design(
        "a part of 10 of 200 prompts, most right",
        "rare",
        PART,
        partial(part_of_prompts, prompts=200, answers=1, inside=10, right=0.9),
        400,
        60,
    ),
    Design(
        "a part of 15 of 100 prompts, right as nowhere else",
        "rare",
        PART,
        partial(part_of_prompts, prompts=100, answers=1, inside=15, right=0.9, elsewhere=0.995),
        400,
        0,
    ),
    Design(
        "four parts of 48 prompts, of two answers",
        "clustered",
        ("JudgedPart.p_value",),
        partial(all_parts, prompts=48, parts=4, answers=2, gain=0.0),
        400,
        40,
    ),
    Design(
        "four parts of 48 prompts, one of them better",
        "clustered",
        ("JudgedPart.p_value",),
        partial(all_parts, prompts=48, parts=4, answers=2, gain=1.6),
        100,
        30,
    ),
    Design(
        "four models scored on the same 80 prompts",
        "paired",
        SCORED,
        partial(models_by_scores, qualities=(0.0, 0.0, 0.1, 0.9), prompts=80, clear=0.8),
        300,
        8,
    ),
    Design(
        "three models scored on 12 prompts, three seeds",
        "small",
        SCORED,
        partial(models_by_scores, qualities=(0.0, 0.0, 3.0), prompts=12, seeds=3, clear=2.0),
        300,
        12,
    ),
    Design(
        "three models scored on prompts of their own",
        "clustered",
        SCORED,
        partial(models_by_scores, qualities=(0.0, 0.0, 1.0), prompts=60, seeds=2, shared=False, clear=0.9),
        300,
        0,
    ),
    Design(
        "three models, right in 94 to 97 of 200 answers",
        "rare",
        SCORED,
        partial(models_by_scores, qualities=(0.97, 0.94, 0.97), prompts=200, right=True),
        300,
        8,
    ),
    Design(
        "six tasks of 10 to 35 prompts, four images",
        "clustered",
        ("ScoreStanding.interval",),
        partial(mean_of_tasks, tasks=6, prompts=10, images=4),
        1000,
        40,
    ),
    Design(
        "24 prompts of five videos, weighed by frames",
        "clustered",
        ("ScoreStanding.interval",),
        partial(by_frames, prompts=24, videos=5),
        1000,
        40,
    ),
    Design(
        "VBench's total, of 30 prompts",
        "clustered",
        ("ScoreStanding.interval",),
        partial(total_of_vbench, prompts=30, each=12, videos=3),
        400,
        0,
    ),
    Design(
        "two models scored three times, each time otherwise",
        "clustered",
        ("ScoreStanding.interval", "Criterion.p_values"),
        partial(asked_again, prompts=40, repeats=3, of_repeats=0.1, noise=0.7),
        600,
        40,
    ),
    Design(
        "plans of scores",
        "paired",
        ("MarginPlan.detectable",),
        partial(plans, models=3, prompts=60, seeds=2, by="scores"),
        200,
        5,
    ),
    Design(
        "plans of votes",
        "clustered",
        ("MarginPlan.detectable",),
        partial(plans, models=3, prompts=60, seeds=1, by="votes"),
        100,
        0,
    ),
    Design(
        "plans of labels",
        "clustered",
        ("MarginPlan.detectable",),
        partial(plans, models=3, prompts=80, seeds=1, by="labels"),
        200,
        0,
    ),
    Design(
        "four models, 400 votes",
        "large",
        VOTED,
        partial(models_by_votes, strengths=(0.0, 0.0, 0.4, 1.4), count=400, prompts=400, voters=400, clear=1.3),
        200,
        6,
    ),
    Design(
        "three models, 40 voters on 40 prompts, with tastes",
        "clustered",
        VOTED,
        partial(models_by_votes, strengths=(0.0, 0.0, 1.2), count=600, prompts=40, voters=40, spread=0.5, clear=1.1),
        200,
        8,
    ),
    Design(
        "votes and a covariate",
        "small",
        EQUAL,
        partial(votes_with_covariates, strengths=(0.0, 0.0, 0.5), count=150, effects=(0.0, 0.0, 1.0)),
        200,
        6,
    ),
)
