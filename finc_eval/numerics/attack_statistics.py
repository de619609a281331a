"""Statistics of a membership attack: rates with exact intervals, and a lower bound of ε.

An attack scores members and non-members, larger for samples that it takes for members. An alarm is a score above a
threshold, so equal scores raise it together or not at all, and nothing is interpolated between them. Infinite scores
are ranked like others.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import computed_field
from scipy.optimize import brentq

from finc_eval.core.errors import DataError, check_fraction
from finc_eval.core.record import Record
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import clopper_pearson, normal_quantile, share_bounds

ROOT_MARGIN = 1e-12  # distance from 0 and 1 at which the search for an end of an interval stops


@dataclass(frozen=True)
class OperatingPoint(Record):
    """The attack at the lowest threshold that keeps the rate of false alarms at or below a limit.

    Attributes:
        limit: highest rate of false alarms allowed.
        fpr: rate reached; below the limit where ties, or too few non-members, leave no threshold nearer.
        tpr: share of members with an alarm.
        interval: Clopper and Pearson's interval of that share, for other members and the same threshold.
        non_members: number of non-members that the threshold was found from.
    """

    limit: float
    fpr: float
    tpr: float
    interval: tuple[float, float]
    non_members: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def resolved(self) -> bool:
        """True if the limit allows enough false alarms to mean something: 0.1 % takes 10 000 non-members."""
        # 10: false alarms that an operating point must allow for; with this many, their rate is known to about a third.
        return self.limit * self.non_members >= 10


@dataclass(frozen=True)
class AttackStatistics(Record):
    """Success of an attack at telling members from non-members.

    Attributes:
        members, non_members: number of samples of each that were attacked.
        auc: probability that a member scores above a non-member, ties counted half; 0.5 is chance.
        auc_interval: Newcombe's interval of the AUC.
        advantage: largest difference of true and false positive rates over all thresholds, in [0, 1]. It is
            a maximum, so it lies above 0 for scores that say nothing.
        at_1_percent, at_01_percent: the attack at 1 % and at 0.1 % false positives.
        epsilon_lower_bound: ε below which the scores contradict every (ε, δ)-guarantee; 0 if they exclude none.
        delta: δ of that guarantee.
        confidence: confidence level of each interval and of the bound.
    """

    members: int
    non_members: int
    auc: float
    auc_interval: tuple[float, float]
    advantage: float
    at_1_percent: OperatingPoint
    at_01_percent: OperatingPoint
    epsilon_lower_bound: float
    delta: float
    confidence: float


def attack_statistics(
    members: ArrayLike, non_members: ArrayLike, *, delta: float = 0.0, confidence: float = 0.95
) -> AttackStatistics:
    """Compute all statistics of an attack."""
    x, y = _scores(members, "members"), _scores(non_members, "non-members")
    value = auc(x, y)
    return AttackStatistics(
        members=len(x),
        non_members=len(y),
        auc=value,
        auc_interval=auc_interval(value, len(x), len(y), confidence),
        advantage=advantage(x, y),
        at_1_percent=operating_point(x, y, 0.01, confidence),
        at_01_percent=operating_point(x, y, 0.001, confidence),
        epsilon_lower_bound=epsilon_lower_bound(x, y, delta=delta, confidence=confidence),
        delta=delta,
        confidence=confidence,
    )


def alarm_curve(members: ArrayLike, non_members: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count alarms about members, and about non-members, at every threshold that makes a difference, shape (t,).

    The strictest threshold comes first, and raises none; equal scores are one step.
    """
    x, y = _scores(members, "members"), _scores(non_members, "non-members")
    scores = np.concatenate([x, y])
    order = np.argsort(-scores, kind="stable")
    member = order < len(x)
    last = np.append(scores[order][1:] != scores[order][:-1], True)  # of equal scores
    return np.insert(np.cumsum(member)[last], 0, 0), np.insert(np.cumsum(~member)[last], 0, 0)


def auc(members: ArrayLike, non_members: ArrayLike) -> float:
    """Return the probability that a member scores above a non-member, ties counted half (Mann and Whitney)."""
    x, y = _scores(members, "members"), _scores(non_members, "non-members")
    y = np.sort(y)
    below = np.searchsorted(y, x, "left") + np.searchsorted(y, x, "right")
    return float(below.sum() / 2 / len(x) / len(y))


def auc_interval(value: float, members: int, non_members: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Newcombe's interval of an AUC (2006, method 5): all θ at most z standard errors from the value.

    The error is Hanley and McNeil's at θ, not at the value: it is exact where scores say nothing (θ = ½). The interval
    does not shrink to a point at an AUC of 1, as that of an `Estimate` would.
    """
    check_fraction("confidence", confidence)
    z, half = normal_quantile(confidence), (members + non_members) / 2

    def error(theta: float) -> float:
        spread = 2 * half - 1 - (3 * half - 3) / ((2 - theta) * (1 + theta))
        return sqrt(theta * (1 - theta) * spread / (members * non_members))

    # The ends 0 and 1 solve the equation too, wherever the value is one of them: they are left out.
    low = 0.0 if value <= 0 else brentq(lambda theta: value - theta - z * error(theta), 0, min(value, 1 - ROOT_MARGIN))
    high = 1.0 if value >= 1 else brentq(lambda theta: theta - value - z * error(theta), max(value, ROOT_MARGIN), 1)
    return float(low), float(high)


def advantage(members: ArrayLike, non_members: ArrayLike) -> float:
    """Return the largest difference of true and false positive rates (balanced accuracy is ½ + ½ of it)."""
    true, false = alarm_curve(members, non_members)
    return float((true / true[-1] - false / false[-1]).max())


def operating_point(
    members: ArrayLike, non_members: ArrayLike, limit: float, confidence: float = 0.95
) -> OperatingPoint:
    """Return the true positive rate where at most a share `limit` of non-members raises an alarm."""
    check_fraction("the limit of false positives", limit)
    true, false = alarm_curve(members, non_members)
    allowed = limit * int(false[-1]) * (1 + 1e-12)  # 0.01 × 700 is below 7 in floating point
    last = int(np.flatnonzero(false <= allowed)[-1])
    low, high = clopper_pearson(true[last], true[-1], confidence)
    return OperatingPoint(
        limit=limit,
        fpr=float(false[last] / false[-1]),
        tpr=float(true[last] / true[-1]),
        interval=(float(low), float(high)),
        non_members=int(false[-1]),
    )


def epsilon_lower_bound(
    members: ArrayLike, non_members: ArrayLike, *, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Return the ε that a guarantee of (ε, δ) must exceed: the largest log((TPR − δ)/FPR), with rates at their worst.

    A guarantee bounds alarms about members by those about non-members, TPR ≤ e^ε FPR + δ, and the other way round.
    Thresholds are the 1st, 2nd, 4th, 8th … largest score of one set, fixed before the scores were seen: the share of
    that set beyond its k-th largest score is at most Beta(k, n − k + 1) distributed, and the count of the other set is
    binomial. Every bound is taken at (1 − confidence) over their number, so that all hold at once. δ is in [0, 1), and
    the bound is at least 0.
    """
    check_fraction("confidence", confidence)
    check_fraction("delta", delta, zero=True)
    x, y = _scores(members, "members"), _scores(non_members, "non-members")
    # The four cases: more members than non-members above a threshold or below it, and the reverse.
    cases = [(x, y), (-x, -y), (y, x), (-y, -x)]
    places = [(more, less, k) for more, less in cases for k in threshold_ranks(len(less))]
    tail = level_of_each((1 - confidence) / 2, len(places))
    best = 0.0
    for more, less, k in places:
        threshold = -np.partition(-less, k - 1)[k - 1]
        likely = float(share_bounds((more > threshold).sum(), len(more), tail)[0]) - delta
        rare = float(share_bounds(k - 1, len(less), tail)[1])
        if likely > 0:
            best = max(best, log(likely / rare))
    return best


def threshold_ranks(n: int) -> list[int]:
    """Return the ranks 1, 2, 4, … up to n/2, or 1, of the ordered scores that are thresholds, of n."""
    return [2**power for power in range(max((n // 2).bit_length(), 1))]


def _scores(values: ArrayLike, name: str) -> NDArray[np.float64]:
    scores = np.asarray(values, np.float64)
    if scores.ndim != 1 or not len(scores):
        raise DataError(f"the scores of {name} must be of shape (n,) with n at least 1, got {scores.shape}")
    if np.isnan(scores).any():
        row = int(np.flatnonzero(np.isnan(scores))[0])
        raise DataError(f"the score of {name} in row {row} is NaN: an attack must score every sample")
    return scores
