"""Number of samples that pages show."""

from __future__ import annotations

from finc_eval.core.errors import UsageError

SHOWN_SAMPLES = 8
"""Samples of each set that a page shows of a kind or direction: as many typical ones, as many drawn at random, half as
many reference samples nearest to them, and as many of the opposite tail where that matters, of about 3 kB each."""

LEAD_SAMPLES = 3  # samples of a kind or a direction in a table

KEPT = 50  # samples of each set that a kind keeps, nearest to its center, and that a direction keeps of each tail

MAX_SHOWN = 16
"""Largest number of samples of a kind that a page shows, and of members of each set that a kind keeps, drawn at
random."""


def shown_if_muted(count: int) -> int:
    """Return how many typical samples a page shows of what does not count, of so many of what does: half."""
    return (count + 1) // 2


def check_shown(count: int) -> int:
    """Return a number of samples of each set and card, or raise UsageError if a page cannot show as many."""
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_SHOWN:
        raise UsageError(f"pictures must be a whole number from 0 to {MAX_SHOWN}, got {count!r}")
    return count
