"""Shares: which fraction of a set are members of a mode, by exact counts on data that did not help to find it."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from finc_eval.comparison.estimates import HALVES_CORRELATION
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.scored import DirectionMembers, ScoredSet
from finc_eval.numerics.exact_tests import clopper_pearson, mover
from finc_eval.numerics.inference import critical_value, upper_tail

ANY = (0.0, 1.0)
"""Interval of a share about which nothing is known."""


@dataclass(frozen=True)
class Share:
    """A fraction of a set, with an interval."""

    value: float
    interval: tuple[float, float]


def confidence_of(family: int) -> float:
    """Return the confidence of each of so many intervals that hold simultaneously, each from two correlated halves."""
    return 1 - 2 * upper_tail(critical_value(family) * sqrt(1 + HALVES_CORRELATION))


def share_of(one: ScoredSet, column: int, members: DirectionMembers, confidence: float) -> Share:
    """Return the share of the members of a direction, each sample counted in the fold that is held out.

    For a sketch that keeps no samples, the mass is returned with the interval [0, 1].
    """
    if not one.scores.n:
        return Share(float(one.masses[slice(column, column + 1)].pooled()[0]), ANY)
    return set_share(one.sketched, members.count, one.scores.n, float(one.masses.effect[column]), confidence)


def set_share(one: SketchedSet, count: float, n: float, effect: float, confidence: float) -> Share:
    """Return `exact_share` of a set; of a set without enough independent samples, the share can be anything."""
    return exact_share(count, n, effect, confidence) if one.is_testable else Share(count / n, ANY)


def exact_share(count: float, n: float, effect: float, confidence: float) -> Share:
    """Return count / n with the interval of Clopper and Pearson, of n / effect samples (Korn and Graubard 1998)."""
    low, high = clopper_pearson(count / effect, n / effect, confidence)
    return Share(count / n, (float(low), float(high)))


def difference_of(own: Share, other: Share) -> Share:
    """Subtract two independent shares, with an interval of the same confidence (MOVER: Zou and Donner 2008)."""
    first, second = ((one.interval[0], one.value, one.interval[1]) for one in (own, other))
    low, high = mover(first, second)
    return Share(own.value - other.value, (float(low), float(high)))
