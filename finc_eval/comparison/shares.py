"""Shares: which fraction of a set are members of a mode, by exact counts beyond a threshold.

A member of a mode scores beyond a threshold on the mode's tail. The threshold comes from one fold and the counts from the
other, so that they are binomial whatever the data: rare kinds, heavy tails, any sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from finc_eval.comparison.estimates import HALVES_CORRELATION
from finc_eval.comparison.score_pass import ScoredSet
from finc_eval.numerics.exact_tests import clopper_pearson, mover
from finc_eval.numerics.inference import critical_value, upper_tail

MEMBER_SCORE = 0.5
"""Threshold of a member, over the score of a typical one (docs/method.md compares other rules)."""


@dataclass(frozen=True)
class Share:
    """A fraction of a set, with an interval."""

    value: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Shares:
    """The members of a direction in the set that has more, and in the other.

    Attributes:
        own: share of the set that has more.
        other: share of the other set.
        difference: own minus other, with an interval.
        threshold: score beyond which a sample is a member, mean of the two folds'.
    """

    own: Share
    other: Share
    difference: Share
    threshold: float


def confidence_of(family: int) -> float:
    """Return the confidence of each of so many intervals that hold simultaneously, each from two correlated halves."""
    return 1 - 2 * upper_tail(critical_value(family) * sqrt(1 + HALVES_CORRELATION))


def shares_of(own: ScoredSet, other: ScoredSet, column: int, family: int) -> Shares:
    """Count the members of the direction in a column.

    Args:
        own: set that may have more of it.
        other: set compared with.
        column: column of the direction.
        family: number of directions whose intervals hold simultaneously.
    """
    thresholds = [_threshold(own, other, 1 - fold, column) for fold in (0, 1)]
    confidence = confidence_of(family)
    shares = [_share(one, column, thresholds, confidence) for one in (own, other)]
    return Shares(*shares, difference_of(*shares), sum(map(abs, thresholds)) / 2)


def difference_of(own: Share, other: Share) -> Share:
    """Subtract two independent shares, with an interval of the same confidence (MOVER: Zou and Donner 2008)."""
    low, high = mover(own.interval[0], own.value, own.interval[1], other.interval[0], other.value, other.interval[1])
    return Share(own.value - other.value, (float(low), float(high)))


def exact_share(count: float, n: float, effect: float, confidence: float) -> Share:
    """Return count / n with the interval of Clopper and Pearson, of n / effect samples (Korn and Graubard 1998)."""
    low, high = clopper_pearson(count / effect, n / effect, confidence)
    return Share(count / n, (float(low), float(high)))


def _share(one: ScoredSet, column: int, thresholds: list[float], confidence: float) -> Share:
    counts = [one.scores.beyond(fold, column, threshold) for fold, threshold in enumerate(thresholds)]
    return exact_share(sum(counts), one.scores.n, float(one.masses.effect[column]), confidence)


def _threshold(own: ScoredSet, other: ScoredSet, fold: int, column: int) -> float:
    """Return the threshold of a direction that was fitted to this fold, negative for the negative tail.

    If members score c and all else scores alike in both sets, the difference of the means of s⁴ over that of the
    means of s² is c².
    """
    powers = [one.scores.powers(fold)[:, :, column].numpy() for one in (own, other)]
    difference = powers[0] - powers[1]
    tail = int(np.argmax(difference[0]))
    second, fourth = difference[:, tail] if (difference[:, tail] > 0).all() else powers[0][:, tail]
    typical = sqrt(fourth / second) if second > 0 else 1.0
    return (1 - 2 * tail) * MEMBER_SCORE * min(typical, 1.0)
