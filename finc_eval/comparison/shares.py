"""Shares: which fraction of a set are members of a mode, by exact counts beyond a threshold.

A member of a mode scores beyond a threshold on the mode's tail. The threshold comes from one fold and the counts from
the other, so that they are binomial whatever the data: rare kinds, heavy tails, any sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, sqrt

import torch

from finc_eval.comparison.estimates import HALVES_CORRELATION
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.score_pass import BINS, ScoredSet
from finc_eval.numerics.exact_tests import clopper_pearson, mover
from finc_eval.numerics.inference import critical_value, upper_tail

LEAST, HALF, MOST = 0.4, 0.5, 0.65
"""Parts of the score of a typical member: the least threshold; the end of the background, samples of other kinds; and
the largest threshold."""

ABOVE_BACKGROUND = 2.25
"""Threshold of a member, over the root mean square of the scores of the background."""


@dataclass(frozen=True)
class Share:
    """A fraction of a set, with an interval."""

    value: float
    interval: tuple[float, float]


Weighted = Sequence[tuple[float, ScoredSet]]
"""A mixture of sets, with weights that add to 1."""


def confidence_of(family: int) -> float:
    """Return the confidence of each of so many intervals that hold simultaneously, each from two correlated halves."""
    return 1 - 2 * upper_tail(critical_value(family) * sqrt(1 + HALVES_CORRELATION))


def thresholds_of(own: ScoredSet, others: Weighted, column: int) -> tuple[float, float]:
    """Return the least score of a member on the directions that score either fold; negative for the negative tail.

    It stands clear of the scores of samples of other kinds, within bounds around half the score of a typical member.
    All is seen in the fold that the direction was fitted to.
    """
    return _threshold(own, others, 1, column), _threshold(own, others, 0, column)


def share_of(one: ScoredSet, column: int, thresholds: tuple[float, float], confidence: float) -> Share:
    """Count the members of the direction in a column among the samples of a set, each in the fold that is held out.

    Of a sketch that keeps no samples, the mass is returned: a share can be anything then.
    """
    if not one.scores.n:
        return Share(float(one.masses[slice(column, column + 1)].pooled()[0]), (0.0, 1.0))
    count = sum(one.scores.beyond(fold, column, threshold) for fold, threshold in enumerate(thresholds))
    return exact_share(count, one.scores.n, float(one.masses.effect[column]), confidence)


def held_out_members(
    scoring: tuple[torch.Tensor, torch.Tensor], rank: int, thresholds: tuple[float, float], one: SketchedSet
) -> torch.Tensor:
    """Tell which samples of a set's bottom-k sample `share_of` counts, shape (m,), on the CPU.

    Args:
        scoring: directions that score fold 0 and those that score fold 1, each (q, t).
        rank: column of the direction.
        thresholds: least score of a member on either, negative for the negative tail.
        one: the set.
    """
    features, folds = one.sample
    scores = (features @ torch.stack([vectors[:, rank] for vectors in scoring], 1)).cpu()
    first, second = (
        scored * copysign(1, threshold) >= abs(threshold)
        for scored, threshold in zip(scores.unbind(1), thresholds, strict=True)
    )
    return torch.where(folds == 0, first, second)


def exact_share(count: float, n: float, effect: float, confidence: float) -> Share:
    """Return count / n with the interval of Clopper and Pearson, of n / effect samples (Korn and Graubard 1998)."""
    low, high = clopper_pearson(count / effect, n / effect, confidence)
    return Share(count / n, (float(low), float(high)))


def difference_of(own: Share, other: Share) -> Share:
    """Subtract two independent shares, with an interval of the same confidence (MOVER: Zou and Donner 2008)."""
    first, second = ((one.interval[0], one.value, one.interval[1]) for one in (own, other))
    low, high = mover(first, second)
    return Share(own.value - other.value, (float(low), float(high)))


def _threshold(own: ScoredSet, others: Weighted, fold: int, column: int) -> float:
    # Tails in rows, from the middle outwards: which share of a set is in each bin.
    first, second = (
        torch.stack([bins[BINS // 2 :], bins[: BINS // 2].flip(0)])
        for bins in (
            own.scores.fitted(fold, column),
            sum(
                (weight * one.scores.fitted(fold, column) for weight, one in others),
                torch.zeros(BINS, dtype=torch.double),
            ),
        )
    )
    square = ((torch.arange(BINS // 2, dtype=torch.double) + 0.5) * (2 / BINS)).square()
    tail = int(((first - second) @ square).argmax())
    first, second = first[tail], second[tail]
    typical = _typical_score(first - second, square) or _typical_score(first, square) or 1.0
    below = square < (HALF * typical) ** 2
    background = _root(float(second[below] @ square[below]), float(second[below].sum()))
    return (1 - 2 * tail) * min(max(LEAST * typical, ABOVE_BACKGROUND * background), MOST * typical)


def _typical_score(more: torch.Tensor, square: torch.Tensor) -> float:
    """Return the score c of a member: if members score c and all else alike in both sets, Σ s⁴ is c² times Σ s²."""
    return min(_root(float(more @ square.square()), float(more @ square)), 1.0)


def _root(over: float, under: float) -> float:
    """Return the root of a ratio, 0 unless both are positive."""
    return sqrt(over / under) if min(over, under) > 0 else 0.0
