"""Smallest numbers from which on something holds, and the score from which on a sample is a member of a kind."""

from __future__ import annotations

from collections.abc import Callable

import torch

BINS = 4096  # bins of a histogram of scores, over [−1, 1]: a threshold is exact to 0.0005

LEAST_OF_A_MEMBER, HALF_A_MEMBER, MOST_OF_A_MEMBER = 0.4, 0.5, 0.65
"""Parts of the score of a typical member: the least threshold; the end of the background, samples of other kinds; and
the largest threshold."""

HALVINGS = 40  # halvings of an interval, after which it is about as narrow as single precision allows


Fitted = Callable[[int], torch.Tensor]
"""Part of a fold that is in each bin of the scores on directions that were fitted to it: (t, BINS), float64."""


def thresholds_of(fitted_first: Fitted, fitted_second: Fitted, columns: slice) -> torch.Tensor:
    """Return the least score of a member on the directions that score either fold; negative for the negative tail.

    It stands clear of the scores of samples of other kinds, within bounds around half the score of a typical member.
    All is seen in the fold that the direction was fitted to. The result is for fold 0, then for fold 1, (2, t).
    """
    square, thresholds = ((torch.arange(BINS // 2, dtype=torch.double) + 0.5) * (2 / BINS)).square(), []
    for fold in (1, 0):
        bins = (fitted(fold)[columns] for fitted in (fitted_first, fitted_second))
        # Both tails, from the middle outwards: (t, BINS) → (2, t, BINS / 2).
        first, second = (torch.stack([counts[:, BINS // 2 :], counts[:, : BINS // 2].flip(1)]) for counts in bins)
        tail = ((first - second) @ square).argmax(0)
        first, second = (counts[tail, torch.arange(len(tail))] for counts in (first, second))
        typical = _typical_score(first - second, square)
        typical = torch.where(typical > 0, typical, _typical_score(first, square))
        typical = torch.where(typical > 0, typical, 1.0)
        near = second * (square < (HALF_A_MEMBER * typical[:, None]).square())
        # 2.25: threshold of a member, over the root mean square of the scores of the background.
        clear = torch.maximum(LEAST_OF_A_MEMBER * typical, 2.25 * _root(near @ square, near.sum(1)))
        thresholds.append((1 - 2 * tail) * torch.minimum(clear, MOST_OF_A_MEMBER * typical))
    return torch.stack(thresholds)


def _typical_score(more: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
    """Return the score c of a member: if members score c and all else alike in both sets, Σ s⁴ is c² times Σ s²."""
    return _root(more @ square.square(), more @ square).clamp_max(1.0)


def _root(over: torch.Tensor, under: torch.Tensor) -> torch.Tensor:
    """Return the root of each ratio, shape (t,), 0 unless both are positive."""
    return torch.where((over > 0) & (under > 0), over / under, 0.0).sqrt()


def smallest(holds: Callable[[float], bool], most: float, halvings: int = HALVINGS) -> float | None:
    """Return the smallest number from 1 on that holds, as all larger numbers do; None if none up to `most` does."""
    low, high = 1.0, 2.0
    while not holds(high):
        low, high = high, 2 * high
        if high > most:
            return None
    return smallest_between(holds, low, high, halvings)


def smallest_between(holds: Callable[[float], bool], low: float, high: float, halvings: int = HALVINGS) -> float:
    """Return the smallest number of an interval that holds; its upper end must."""
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
