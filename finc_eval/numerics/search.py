"""The smallest number from which on something holds, by doubling and halving."""

from __future__ import annotations

from collections.abc import Callable

HALVINGS = 40
"""Halvings of an interval, after which it is about as narrow as single precision allows."""


def smallest(holds: Callable[[float], bool], most: float, halvings: int = HALVINGS) -> float | None:
    """Return the smallest number from 1 on that holds, as all larger ones do; None if none up to `most` does."""
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
