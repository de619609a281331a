"""The forest of shares: where the shares of sets and their intervals stand on one scale, mode by mode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, log10
from typing import NamedTuple

from markupsafe import Markup

from finc_eval.comparison.direction import Interval
from finc_eval.core.words import percent
from finc_eval.report.drawings.svg import Axis, Ink, drawing, line, mark
from finc_eval.report.formats import share_interval

WIDTH, MARGIN = 300, 8
"""Width of a drawing in pixels, and what is kept free at its ends."""

SPACING, AROUND = 9, 8
"""Pixels from one set to the next, and above the first and below the last together."""

AXIS_HEIGHT = 18

LEAST_SCALE = 0.001
"""Share at the right end of the scale at least."""


class Drawn(NamedTuple):
    """A share to draw: its color, the name of its set, its value and, if it has one, its interval."""

    ink: Ink
    name: str
    value: float
    interval: Interval | None = None

    @property
    def end(self) -> float:
        """Right end of what is drawn."""
        return self.value if self.interval is None else self.interval[1]

    @property
    def words(self) -> str:
        """The share and its interval in words."""
        interval = "" if self.interval is None else f" {share_interval(self.interval)}"
        return f"{self.name} {percent(self.value, 1)}{interval}"


def forest_scale(ends: Iterable[float]) -> Axis:
    """Return the scale from zero that intervals with these upper ends fill."""
    return Axis(0.0, max([LEAST_SCALE, *ends]), MARGIN, WIDTH - MARGIN)


def forest(title: str, shares: Sequence[Drawn], scale: Axis) -> Markup:
    """Draw the shares of sets that are of one mode, one below the other."""
    height = SPACING * len(shares) + AROUND
    parts = [line([(scale.at(tick), 0), (scale.at(tick), height)]) for tick in scale.ticks]
    for row, one in enumerate(shares, start=1):
        ends = one.interval and (scale.at(one.interval[0]), scale.at(one.interval[1]))
        parts.append(mark(one.ink, (scale.at(one.value), SPACING * row), one.words, ends))
    return drawing(f"Shares of {title}", "; ".join(one.words for one in shares), (WIDTH, height), parts)


def forest_axis(scale: Axis) -> Markup:
    """Return the numbers above a column of drawings; screen readers skip them, as the table has the shares."""
    size = Markup('width="{0}" height="{1}" viewBox="0 0 {0} {1}"').format(WIDTH, AXIS_HEIGHT)
    label = Markup('<text x="{:.1f}" y="13" font-size="11" text-anchor="{}" fill="currentColor">{:.{}f}{}</text>')
    labels = Markup("").join(
        label.format(scale.at(tick), _anchor(scale, tick), 100 * tick, _decimals(scale), "" if place else " %")
        for place, tick in enumerate(scale.ticks)
    )
    return Markup('<svg class="forest-axis" {} aria-hidden="true">{}</svg>').format(size, labels)


def _anchor(scale: Axis, tick: float) -> str:
    """Return how a number stands at its tick, so that all of it is in the drawing."""
    return "start" if tick == 0 else "end" if scale.at(tick) > WIDTH - 2 * MARGIN else "middle"


def _decimals(scale: Axis) -> int:
    step = scale.ticks[1] if len(scale.ticks) > 1 else scale.high
    return max(0, ceil(-log10(100 * step) - 1e-9))
