"""Designs of attacks on membership: scores of members and of non-members, and differences of densities."""

from functools import partial

import numpy as np
from _law import Design, Drawn, Holds, NoClaim, PValue
from scipy.stats import norm

from finc_eval.numerics.attack_statistics import attack_statistics
from finc_eval.private.kahm.membership import membership_score

PROMISES = {
    "AttackStatistics.auc": NoClaim("a number that has an interval: `auc_interval`"),
    "AttackStatistics.auc_interval": Holds(),
    "AttackStatistics.confidence": NoClaim("the level that was asked for"),
    "AttackStatistics.epsilon_lower_bound": Holds(
        width=None, why="a bound; the designs say how far below the truth it may lie"
    ),
    "OperatingPoint.interval": Holds(
        width=(0.8, 1.7), why="exact for each share, so wider than 95 % needs for few members or rare alarms"
    ),
    "DensityDifference.standardized": NoClaim("an estimate, with the p-value of its permutations and their values"),
    "DensityDifference.p_value": PValue(exact=True),
    "MembershipScore.threshold_95": Holds(
        width=None, why="a bound of the values of equal densities, which the values of unlike densities exceed"
    ),
}

ATTACK = ("AttackStatistics.auc_interval", "AttackStatistics.epsilon_lower_bound", "OperatingPoint.interval")


def normal_scores(rng, members, non_members, shift):
    """Scores of two normal laws. Without a shift every guarantee holds; with one, scores contradict each at last."""
    x, y = rng.normal(shift, 1, members), rng.normal(0, 1, non_members)
    found = attack_statistics(x, y)
    yield Drawn("AttackStatistics.auc_interval", found.auc, found.auc_interval, norm.cdf(shift / np.sqrt(2)))
    for limit, point in ((0.01, found.at_1_percent), (0.001, found.at_01_percent)):
        allowed = np.sort(y)[::-1][int(limit * non_members)]  # the highest score that must not raise an alarm
        yield Drawn("OperatingPoint.interval", point.tpr, point.interval, norm.sf(allowed - shift), of=f"{limit:.1%}")
    if shift == 0:
        bound = found.epsilon_lower_bound
        yield Drawn("AttackStatistics.epsilon_lower_bound", bound, (bound, np.inf), 0.0)


def betraying(rng, members, non_members, epsilon, delta, reach):
    """The best attack on a mechanism at its limit: it betrays a share δ, and of others answers rightly by ε.

    Among equal answers a score says nothing. The bound lies at most `reach` below ε.
    """
    right = np.exp(epsilon) / (1 + np.exp(epsilon))
    x = np.where(rng.random(members) < delta, 2, rng.random(members) < right)
    y = np.where(rng.random(non_members) < delta, -1, rng.random(non_members) >= right)
    x, y = (one + rng.random(len(one)) / 2 for one in (x, y))
    found = attack_statistics(x, y, delta=delta)
    bound = found.epsilon_lower_bound
    yield Drawn("AttackStatistics.epsilon_lower_bound", bound, (bound, bound + reach), epsilon)
    auc = 1 - (1 - delta) ** 2 * (1 - right)
    yield Drawn("AttackStatistics.auc_interval", found.auc, found.auc_interval, auc)


def distances(rng, members, non_members, nearer):
    """Distances of members and non-members to a model, of one law, or of members that are nearer."""
    x, y = rng.gamma(4, 1 / (1 + nearer), members), rng.gamma(4, 1, non_members)
    found = membership_score(x, y, permutations=19, seed=int(rng.integers(1 << 30)))
    score, is_null = found.difference, not nearer
    yield Drawn("DensityDifference.p_value", score.p_value, is_null=is_null)
    if is_null:
        yield Drawn(
            "MembershipScore.threshold_95", score.standardized, (-np.inf, found.threshold_95), score.standardized
        )
    else:
        yield Drawn(
            "MembershipScore.threshold_95", score.standardized, (found.threshold_95, np.inf), score.standardized
        )


SCORES = ("AttackStatistics.auc_interval", "OperatingPoint.interval")
BOUND = "AttackStatistics.epsilon_lower_bound"
DENSITIES = ("DensityDifference.p_value", "MembershipScore.threshold_95")

DESIGNS = (
    Design(
        "scores of 30 members and 40 others that say nothing",
        "small",
        (*SCORES, BOUND),
        partial(normal_scores, members=30, non_members=40, shift=0),
        runs=1000,
        quick=80,
    ),
    Design(
        "scores of 60 members and 2000 others",
        "rare",
        SCORES,
        partial(normal_scores, members=60, non_members=2000, shift=1),
        runs=1000,
        quick=30,
    ),
    Design(
        "scores of 500 members and 400 others",
        "large",
        SCORES,
        partial(normal_scores, members=500, non_members=400, shift=1.5),
        runs=1000,
        quick=0,
    ),
    Design(
        "answers by ε = 1 about 2000 members and 2000 others",
        "large",
        ("AttackStatistics.auc_interval", BOUND),
        partial(betraying, members=2000, non_members=2000, epsilon=1, delta=0, reach=0.25),
        runs=500,
        quick=20,
    ),
    Design(
        "answers by ε = 2 with δ = .1 about 1000 members and 3000 others",
        "large",
        ("AttackStatistics.auc_interval", BOUND),
        partial(betraying, members=1000, non_members=3000, epsilon=2, delta=0.1, reach=0.4),
        runs=500,
        quick=0,
    ),
    Design(
        "distances of 25 members and 30 others of one law",
        "small",
        DENSITIES,
        partial(distances, members=25, non_members=30, nearer=0),
        runs=400,
        quick=12,
    ),
    Design(
        "distances of 12 members and 60 others of one law",
        "rare",
        DENSITIES,
        partial(distances, members=12, non_members=60, nearer=0),
        runs=300,
        quick=0,
    ),
    Design(
        "distances of 60 members that are nearer and 50 others",
        "large",
        DENSITIES,
        partial(distances, members=60, non_members=50, nearer=1.5),
        runs=100,
        quick=5,
    ),
)
