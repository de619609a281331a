"""Drawings as inline SVG: each has a title and a description, each mark a title, and equal numbers give equal bytes.

Colors are attributes, so that drawings are complete under a policy that forbids styles; the page's style replaces them
by the colors of its theme.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, log, log10
from typing import Literal

from markupsafe import Markup

from finc_eval.report.formats import printable

Ink = Literal["gen", "ref", "other", "rule", "ink"]

COLORS: dict[Ink, str] = {
    "gen": "#b04a12",
    "ref": "#1f5f9e",
    "other": "#56616e",
    "rule": "#ccd2d9",
    "ink": "#17202b",
}
"""Colors of a light page, by the class for which the style has the colors of both themes."""

MOST_TICKS = 5
"""Steps between the round numbers of a linear axis, at most."""

RADIUS = 4.0
"""Radius of a mark, in pixels."""


@dataclass(frozen=True)
class Axis:
    """A scale of numbers on a line of pixels.

    Attributes:
        start, end: pixels of its ends.
        is_log: whether equal ratios are equally long.
    """

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a number."""
        low, high, value = (log(one) if self.is_log else one for one in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (value - low) / ((high - low) or 1.0)

    @property
    def ticks(self) -> tuple[float, ...]:
        """Round numbers within a linear axis, zero among them."""
        step = round_step((self.high - self.low) / MOST_TICKS)
        first, last = -floor(-self.low / step + 1e-9), floor(self.high / step + 1e-9)
        return tuple(step * place for place in range(first, last + 1))


def round_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5, times a power of ten, that is not below a positive number."""
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step >= least / power - 1e-9)


def drawing(title: str, description: str, size: tuple[float, float], parts: Iterable[Markup]) -> Markup:
    """Return an <svg> element for the page."""
    box = Markup('width="{0:g}" height="{1:g}" viewBox="0 0 {0:g} {1:g}"').format(*size)
    words = Markup("<title>{}</title><desc>{}</desc>").format(printable(title), printable(description))
    return Markup('<svg class="drawn" role="img" {}>{}{}</svg>').format(box, words, Markup("\n").join(parts))


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
        shape = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{:g}"/>').format(x, y, RADIUS)
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
