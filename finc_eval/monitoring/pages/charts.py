"""Charts of followed things over the steps, and the one unit in which page and tables write each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from markupsafe import Markup

from finc_eval.core.words import percent
from finc_eval.monitoring.followed import RELATIVE, is_share
from finc_eval.monitoring.steps import step_text
from finc_eval.report.colors import Ink
from finc_eval.report.drawings import Axis, drawing, line, mark, text
from finc_eval.report.formats import number

WIDTH, HEIGHT = 640, 230  # pixels of a chart: two of them fill a page of 1 400
LEFT, RIGHT, TOP = 64, 24, 44  # pixels around what is drawn

UNITS = "Shares are in percent of the samples. Anything else is how far it is from {}: in percent, or in σ, the "
UNITS += "standard deviation of the reference."


@dataclass(frozen=True)
class UnitOfThing:
    """Unit in which a followed thing is written: percent of samples, or how far it is from a value.

    Attributes:
        name: name of the thing.
        origin: value from which scores are measured, that of the reference; None if it is not known.
        spread: standard deviation of a score in the reference; None of a share, and if it is not known.
    """

    name: str
    origin: float | None
    spread: float | None

    @property
    def sign(self) -> str:
        """The sign behind numbers: " %", " σ", or nothing for a number without a unit."""
        if self._is_share or self._is_relative:
            return " %"
        return " σ" if self._has_origin else ""

    def at(self, value: float) -> float:
        """Return a value as a number in this unit."""
        if self._is_share:
            return 100 * value
        if self.origin is None or not self._has_origin:
            return value
        if self._is_relative:
            return 100 * (value / self.origin - 1)
        return (value - self.origin) / (self.spread or 1.0)

    def write(self, value: float | None) -> str:
        """Write a value; "–" for None."""
        if value is None:
            return "–"
        if self._is_share:
            return percent(value, int(value < 0.1))
        if not self._has_origin:
            return number(value)
        return self.write_tick(round(self.at(value), 0 if self._is_relative else 1))

    def write_range(self, interval: tuple[float, float], start: float) -> str:
        """Write an interval of the change of a value from `start`: in percent of this, as sentences write it."""
        own = replace(self, origin=start) if self._is_relative and start > 0 else self
        zero = own.origin or 0.0
        low, high = (round(own.at(zero + end) - own.at(zero), 1) for end in interval)
        return f"{low:+.3g} to {high:+.3g}{' points' if self._is_share else own.sign}".replace("-", "−")

    def write_tick(self, tick: float) -> str:
        """Write a number of this unit, as on an axis."""
        tick = 0.0 if round(tick, 9) == 0 else tick  # and not −0
        is_plain = self._is_share or not self._has_origin or tick == 0
        return (f"{tick:.3g}" if is_plain else f"{tick:+.3g}").replace("-", "−") + self.sign

    @property
    def _is_share(self) -> bool:
        return self.spread is None and is_share(self.name)

    @property
    def _has_origin(self) -> bool:
        # 1e-9: part of a value below which its spread is that of rounding, as all samples of the reference have it.
        return self.origin is not None and self.spread is not None and self.spread > 1e-9 * abs(self.origin)

    @property
    def _is_relative(self) -> bool:
        return self._has_origin and self.name in RELATIVE and (self.origin or 0) > 0


class Curve(NamedTuple):
    """A curve of a chart: its color, its name, and its values at the steps, None where there is none."""

    ink: Ink
    name: str
    values: Sequence[float | None]


class MarkedChange(NamedTuple):
    """A change that a chart marks: since when, the interval of this, and what is said of it."""

    since: float
    interval: tuple[float, float]
    words: str


def chart(
    title: str,
    steps: Sequence[float],
    curves: Sequence[Curve],
    unit: UnitOfThing,
    *,
    level: float | None = None,
    change: MarkedChange | None = None,
) -> Markup:
    """Draw curves over the steps, or nothing if none of them has a value.

    Args:
        title: what is drawn.
        steps: the steps, in ascending order.
        curves: the curves, each with a value at each step.
        unit: unit of the values.
        level: value of the reference, a dashed line; None: no line.
        change: change to mark, None: no mark.
    """
    drawn = [
        (curve, [(step, unit.at(value)) for step, value in zip(steps, curve.values, strict=True) if value is not None])
        for curve in curves
    ]
    ends = [value for _, points in drawn for _, value in points]
    if not ends:
        return Markup("")
    base = [] if level is None else [unit.at(level)]
    across, up = Axis(steps[0], steps[-1], LEFT, WIDTH - RIGHT), _upward([*ends, *base])
    parts = [_tick(up, tick, unit) for tick in up.ticks]
    parts += [text((across.at(step), HEIGHT - 10), step_text(step)) for step in _labels(steps)]
    parts += _changed(across, up, change)
    parts += [line([(LEFT, up.at(value)), (WIDTH - RIGHT, up.at(value))], "ref", dashes="4 3") for value in base]
    for curve, points in drawn:
        placed = [(across.at(step), up.at(value)) for step, value in points]
        words = [f"{curve.name}, step {step_text(step)}: {unit.write_tick(round(value, 2))}" for step, value in points]
        parts += [line(placed, curve.ink, width=2), *map(mark, [curve.ink] * len(placed), placed, words)]
    parts.append(text((LEFT, 16), title, anchor="start"))
    ends_in_words = "; ".join(
        f"{curve.name}: {' to '.join(unit.write_tick(round(value, 2)) for _, value in (points[0], points[-1]))}"
        for curve, points in drawn
        if points
    )
    return drawing(
        title, f"{ends_in_words}, from step {step_text(steps[0])} on", (WIDTH, HEIGHT), parts, css_class="drawn course"
    )


def _upward(values: Sequence[float]) -> Axis:
    """Return the axis of values, which has some height if they are all the same."""
    low, high = min(values), max(values)
    if high - low < 1e-9 * max(abs(low), abs(high), 1):
        high = low + 1
    return Axis(low, high, HEIGHT - 30, TOP)  # 30: pixels of the numbers of the steps


def _tick(up: Axis, tick: float, unit: UnitOfThing) -> Markup:
    place = up.at(tick)
    return line([(LEFT, place), (WIDTH - RIGHT, place)]) + text(
        (LEFT - 6, place + 4), unit.write_tick(tick), anchor="end"
    )


def _labels(steps: Sequence[float]) -> list[float]:
    """Return at most five of the steps, evenly spread, the first and the last among them."""
    count = min(len(steps), 5)
    return [steps[round(place * (len(steps) - 1) / max(count - 1, 1))] for place in range(count)]


def _changed(across: Axis, up: Axis, change: MarkedChange | None) -> list[Markup]:
    """Mark since when something has changed: a line, and its interval below."""
    if change is None:
        return []
    first, since, last = (across.at(step) for step in (change.interval[0], change.since, change.interval[1]))
    return [
        line([(since, up.start), (since, up.end)], "other", dashes="2 3"),
        line([(first, up.start), (last, up.start)], "other", width=5),
        text((since, TOP - 5), f"since {step_text(change.since)}"),
    ]
