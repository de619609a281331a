"""What all pages share: their templates' environment, the samples they show, and the drawings of intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from math import floor, log10
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from finc_eval.report.formats import frequency, number, p_value, percent, printable, ratio

ALPHA = 0.05
"""Adjusted p-value up to which a mode counts as significant; the intervals belong to it."""

SHOWN = 16
"""Samples of each set and mode on a page."""

LEAD = 3
"""Samples of a mode in the headline table."""

METHOD_NAMES: dict[str, str] = {"finc": "FINC", "ken": "KEN", "rarity": "Rarity", "fld": "FLD"}
"""What to call methods in prose."""

WHISKER_WIDTH = 160
"""Width of an interval drawing, in its own units; 6 are kept free at each end."""


def interval_scale(estimates: Iterable[tuple[float, tuple[float, float]]]) -> dict[str, Any]:
    """One scale for the drawings of all intervals, each given as (estimate, (low, high)).

    Returns:
        `at`, which puts a value on the drawing, its `width`, and a round `tick` to the right of zero.
    """
    ends = [end for estimate, interval in estimates for end in (*interval, estimate)]
    low, high = min(0.0, *ends, 0.0), max(0.0, *ends, 0.0)
    span = high - low or 1.0

    def at(value: float) -> str:
        return f"{6 + (WHISKER_WIDTH - 12) * (value - low) / span:.1f}"

    power = 10.0 ** floor(log10(high)) if high > 0 else 1.0
    tick = max((step * power for step in (1, 2, 5) if step * power <= high), default=high)
    return {"at": at, "width": WHISKER_WIDTH, "tick": tick}


def kinds(count: int) -> str:
    """So many kinds of samples, in words."""
    return f"{count} kind of samples" if count == 1 else f"{count} kinds of samples"


@cache
def environment() -> Environment:
    """Where the templates are, how they escape, and the filters they use."""
    made = Environment(
        loader=PackageLoader("finc_eval.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=printable,
    )
    filters: dict[str, Callable[..., object]] = {
        "number": number,
        "ratio": ratio,
        "p_value": p_value,
        "percent": percent,
        "frequency": frequency,
        "count": lambda value: f"{value:,}",
    }
    made.filters.update(filters)
    return made
