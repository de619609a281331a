"""Drawings as inline SVG: each has a title and a description, each mark a title, and equal numbers give equal bytes.

Colors are attributes, so that drawings are complete under a policy that forbids styles; the page's style replaces them
by the colors of its theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log10
from typing import NamedTuple

from markupsafe import Markup

from finc_eval.core.words import percent
from finc_eval.report.colors import COLORS, Ink
from finc_eval.report.formats import printable, share_interval


@dataclass(frozen=True)
class Axis:
    """A scale of numbers on a line of pixels.

    Attributes:
        start, end: pixels of its ends.
    """

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False  # whether equal ratios are equally long

    def at(self, value: float) -> float:
        """Return the pixel of a number."""
        low, high, value = (log(number) if self.is_log else number for number in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (value - low) / ((high - low) or 1.0)

    @property
    def ticks(self) -> tuple[float, ...]:
        """Round numbers within a linear axis, zero among them."""
        # 5: steps between the round numbers of a linear axis, at most.
        least = (self.high - self.low) / 5
        power = 10.0 ** floor(log10(least))
        step = next(step * power for step in (1, 2, 5, 10) if step >= least / power - 1e-9)
        first, last = -floor(-self.low / step + 1e-9), floor(self.high / step + 1e-9)
        return tuple(step * number for number in range(first, last + 1))


def drawing(
    title: str, description: str, size: tuple[float, float], parts: Iterable[Markup], *, css_class: str = "drawn"
) -> Markup:
    """Return an <svg> element for the page, of the class `look`."""
    box = Markup('width="{0:g}" height="{1:g}" viewBox="0 0 {0:g} {1:g}"').format(*size)
    words = Markup("<title>{}</title><desc>{}</desc>").format(printable(title), printable(description))
    return Markup('<svg class="{}" role="img" {}>{}{}</svg>').format(css_class, box, words, Markup("\n").join(parts))


def line(points: Iterable[tuple[float, float]], ink: Ink = "rule", *, width: float = 1.0, dashes: str = "") -> Markup:
    """Return a line through points, in pixels."""
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dashed = Markup(' stroke-dasharray="{}"').format(dashes) if dashes else ""
    return Markup('<path class="{}" d="{}" fill="none" stroke="{}" stroke-width="{:g}"{}/>').format(
        ink, path, COLORS[ink], width, dashed
    )


def text(place: tuple[float, float], words: str, *, anchor: str = "middle", turned: bool = False) -> Markup:
    """Return a text at a place in pixels, from bottom to top if it is turned."""
    around = Markup(' transform="rotate(-90 {:.1f} {:.1f})"').format(*place) if turned else ""
    return Markup(
        '<text x="{:.1f}" y="{:.1f}" text-anchor="{}" font-size="12" class="ink" fill="{}"{}>{}</text>'
    ).format(*place, anchor, COLORS["ink"], around, printable(words))


def mark(ink: Ink, place: tuple[float, float], words: str, interval: tuple[float, float] | None = None) -> Markup:
    """Return a mark with its title: a square for the reference, a disk for anything else, with its interval."""
    x, y = place
    if ink == "ref":
        shape = Markup('<rect x="{:.1f}" y="{:.1f}" width="7" height="7"/>').format(x - 3.5, y - 3.5)
    else:
        # 4.0: radius of a mark, in pixels.
        shape = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{:g}"/>').format(x, y, 4.0)
    whisker = Markup("")
    if interval is not None:
        ends = "".join(f"M{end:.1f} {y - 3:.1f}V{y + 3:.1f}" for end in interval)
        path = f"M{interval[0]:.1f} {y:.1f}H{interval[1]:.1f}{ends}"
        whisker = Markup('<path d="{}" stroke-width="1.6" fill="none"/>').format(path)
    return Markup('<g class="{0}" fill="{1}" stroke="{1}"><title>{2}</title>{3}{4}</g>').format(
        ink, COLORS[ink], printable(words), whisker, shape
    )


def bar(share: float, words: str) -> Markup:
    """Return a line with a bar as long as a share, and words."""
    drawn = Markup(
        '<svg class="bar" width="70" height="8" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect width="{:.1f}" height="8" fill="currentColor"/></svg>'
    ).format(100 * share)
    return Markup("<div>{} {}</div>").format(drawn, printable(words))


CELL = 12  # pixels of a cell of a heat map


def heat_map(title: str, rows: Sequence[Sequence[float]], ink: Ink) -> Markup:
    """Draw how much each window of a picture says so, with a frame around the window that says most.

    Windows that speak against it, or hardly for it, are blank.
    """
    most = max(max(row) for row in rows)
    size = len(rows)
    cell = Markup('<rect x="{}" y="{}" width="{}" height="{}" fill="{}" fill-opacity="{:.2f}"/>')
    parts = [
        cell.format(CELL * x, CELL * y, CELL, CELL, COLORS[ink], value / most)
        for y, row in enumerate(rows)
        for x, value in enumerate(row)
        if value > most / 20 > 0
    ]
    y, x = max(((y, x) for y in range(size) for x in range(size)), key=lambda place: rows[place[0]][place[1]])
    frame = '<rect class="ink" x="{}" y="{}" width="{}" height="{}" fill="none" stroke="{}" stroke-width="1.5"/>'
    parts.append(Markup(frame).format(CELL * x, CELL * y, CELL, CELL, COLORS["ink"]))
    where = f"The surest window is in row {y + 1} and column {x + 1} of {size}"
    return drawing(title, where, (CELL * size, CELL * size), parts, css_class="heat")


SPREAD_WIDTH, SPREAD_HEIGHT, BELOW = 140, 26, 12
"""Pixels of a drawing of how values are spread, and below it of the words of its axis."""


def spread(title: str, shares: Mapping[Ink, tuple[str, Sequence[float]]], axis: str) -> Markup:
    """Draw how values are spread in sets: an area for the share of each bin, low values on the left.

    A bin is as wide as its share of all sets together, so that its height says how much more of it a set has.

    Args:
        title: what is spread.
        shares: name and shares of each set by its color; the areas of the first are filled.
        axis: words of the axis.
    """
    together = [sum(values) / len(shares) for values in zip(*(values for _, values in shares.values()), strict=True)]
    ends = [SPREAD_WIDTH * sum(together[: place + 1]) / sum(together) for place in range(len(together))]
    shape = Markup('<path class="{}" d="M0 {}{}V{}" stroke="{}" stroke-width="1.4" fill="{}" fill-opacity="0.25"/>')
    foot, parts = SPREAD_HEIGHT + 1, []
    for number, (ink, (_, values)) in enumerate(shares.items()):
        heights = [
            foot - SPREAD_HEIGHT * value / (len(shares) * width or 1.0)
            for value, width in zip(values, together, strict=True)
        ]
        steps = "".join(f"V{height:.1f}H{end:.1f}" for height, end in zip(heights, ends, strict=True))
        parts.append(shape.format(ink, foot, steps, foot, COLORS[ink], "none" if number else COLORS[ink]))
    words = Markup('<text x="{}" y="{}" text-anchor="end" font-size="10" class="ink" fill="{}">{} →</text>')
    parts.append(words.format(SPREAD_WIDTH, SPREAD_HEIGHT + BELOW, COLORS["ink"], printable(axis)))
    told = [f"{name}, from low to high: {', '.join(map(percent, values))}" for name, values in shares.values()]
    size = (SPREAD_WIDTH, SPREAD_HEIGHT + BELOW + 2)
    return drawing(title, "; ".join(told), size, parts, css_class="drawn spread")


FOREST_WIDTH, MARGIN = 300, 8  # width of a drawing in pixels, and what is kept free at its ends
SPACING, FOREST_AROUND = 9, 8  # pixels from one set to the next, and above the first and below the last together


class Drawn(NamedTuple):
    """A share to draw: its color, the name of its set, its value and, if it has one, its interval."""

    ink: Ink
    name: str
    value: float
    interval: tuple[float, float] | None = None

    @property
    def words(self) -> str:
        """The share and its interval in words."""
        interval = "" if self.interval is None else f" {share_interval(self.interval)}"
        return f"{self.name} {percent(self.value, 1)}{interval}"


def forest_scale(ends: Iterable[float]) -> Axis:
    """Return the scale from zero that intervals with these upper ends fill."""
    # 0.001: share at the right end of the scale at least.
    return Axis(0.0, max([0.001, *ends]), MARGIN, FOREST_WIDTH - MARGIN)


def forest(title: str, shares: Sequence[Drawn], scale: Axis) -> Markup:
    """Draw the shares of sets that are of one kind or direction, one below the other."""
    height = SPACING * len(shares) + FOREST_AROUND
    parts = [line([(scale.at(tick), 0), (scale.at(tick), height)]) for tick in scale.ticks]
    for row, share in enumerate(shares, start=1):
        ends = share.interval and (scale.at(share.interval[0]), scale.at(share.interval[1]))
        parts.append(mark(share.ink, (scale.at(share.value), SPACING * row), share.words, ends))
    return drawing(f"Shares of {title}", "; ".join(share.words for share in shares), (FOREST_WIDTH, height), parts)


def forest_axis(scale: Axis) -> Markup:
    """Return the numbers above a column of drawings; screen readers skip them, as the table has the shares."""
    size = Markup('width="{0}" height="{1}" viewBox="0 0 {0} {1}"').format(FOREST_WIDTH, 18)
    step = scale.ticks[1] if len(scale.ticks) > 1 else scale.high
    decimals = max(0, ceil(-log10(100 * step) - 1e-9))
    label = Markup('<text x="{:.1f}" y="13" font-size="11" text-anchor="{}" fill="currentColor">{:.{}f}{}</text>')
    labels = Markup("").join(
        label.format(
            scale.at(tick),
            "start" if tick == 0 else "end" if scale.at(tick) > FOREST_WIDTH - 2 * MARGIN else "middle",
            100 * tick,
            decimals,
            "" if at else " %",
        )
        for at, tick in enumerate(scale.ticks)
    )
    return Markup('<svg class="forest-axis" {} aria-hidden="true">{}</svg>').format(size, labels)
