"""Ranges of numbers and dates as properties of samples: "40 to 60", "March 2024"."""

from __future__ import annotations

import math
import re
from calendar import month_name
from collections.abc import Callable, Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

MAX_CODES = 20
"""Distinct whole numbers up to which a column is one of codes, whose values are compared one by one."""

BINS = 24
"""Parts of equal frequency of a column; a range is any number of parts that follow each other, 300 ranges in all."""

DATE = re.compile(r"([0-9]{4})[-/]([0-9]{1,2})(?:[-/]([0-9]{1,2})(?:[T ][0-9:.,+Z -]*)?)?")
"""A month or a day, with or without a time (ISO 8601)."""


def ranges_of(values: Sequence[str]) -> list[list[str]] | None:
    """Return the ranges that each value lies in, none for a missing one; None for values of another kind.

    The ranges depend on the values of all samples together, not on which of them are members of a mode, so that each is
    a property with a test of its own.
    """
    given = np.array([value != "" for value in values])
    if not given.any():
        return None
    known = [value for value in values if value]
    found = _of_dates(known) or _of_numbers(known)
    if found is None:
        return None
    following = iter(found)
    return [next(following) if here else [] for here in given]


def _of_numbers(values: Sequence[str]) -> list[list[str]] | None:
    try:
        numbers = np.array([float(value) for value in values])
    except ValueError:
        return None
    whole = bool((numbers == np.round(numbers)).all())
    if not np.isfinite(numbers).all() or len(np.unique(numbers)) <= (MAX_CODES if whole else 2):
        return None
    return _bin(numbers, lambda number: f"{number:,.0f}" if whole else _short(number, numbers))


def _of_dates(values: Sequence[str]) -> list[list[str]] | None:
    days = []
    for value in values:
        parts = DATE.fullmatch(value.strip())
        try:
            days.append(date(int(parts[1]), int(parts[2]), int(parts[3] or 1)) if parts else date(1, 1, 1))
        except ValueError:
            return None
        if not parts:
            return None
    if len(set(days)) < 2:
        return None
    many_years = len({day.year for day in days}) > 1
    named = [[str(day.year), f"{month_name[day.month]} {day.year}"] for day in days]
    if many_years:
        named = [[*mine, month_name[day.month]] for mine, day in zip(named, days, strict=True)]
    ordinals = np.array([day.toordinal() for day in days], float)
    of_months = not any(parts[3] for parts in map(DATE.fullmatch, map(str.strip, values)) if parts)

    def write(number: float) -> str:
        day = date.fromordinal(int(number))
        return f"{month_name[day.month]} {day.year}" if of_months else day.isoformat()

    binned = _bin(ordinals, write)
    return [[*mine, *ours] for mine, ours in zip(named, binned, strict=True)]


def _bin(numbers: NDArray[np.float64], write: Callable[[float], str]) -> list[list[str]]:
    """Return all ranges of adjacent parts that each number lies in, as texts; the whole range is none."""
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, BINS + 1)[1:-1]))
    part = np.searchsorted(edges, numbers, side="left")
    parts = np.unique(part)
    low = {int(one): numbers[part == one].min() for one in parts}
    high = {int(one): numbers[part == one].max() for one in parts}
    last = len(parts) - 1
    inside: dict[int, list[str]] = {int(one): [] for one in parts}
    for first, start in enumerate(parts):
        for end in range(first, last + 1):
            if (first, end) == (0, last):
                continue
            least, most = write(low[int(start)]), write(high[int(parts[end])])
            text = least if least == most else f"{least} to {most}"
            for one in parts[first : end + 1]:
                inside[int(one)].append(text)
    return [inside[int(one)] for one in part]


def _short(number: float, numbers: NDArray[np.float64]) -> str:
    """Return a number with as many digits as tell the values of a column apart in hundredths of their range."""
    spread = float(np.ptp(numbers))
    digits = max(0, 2 - math.floor(math.log10(spread)))
    return f"{number:,.{min(digits, 12)}f}"
