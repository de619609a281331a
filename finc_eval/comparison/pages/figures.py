"""Figures of the pages of comparisons and sweeps: eigenvalues by rank, directions against a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, isnan
from typing import NamedTuple

from markupsafe import Markup

from finc_eval.comparison.direction import Role
from finc_eval.core.words import SET_NAMES, figure
from finc_eval.findings.finding import Finding
from finc_eval.report.colors import Ink
from finc_eval.report.drawings import Axis, drawing, line, mark, text

INKS: dict[Role, tuple[Ink, str]] = {
    "over": ("gen", "more in the generated set"),
    "under": ("ref", "more in the reference set"),
}
"""Color and meaning of the roles."""

WIDTH, LEFT, RIGHT = 720, 64, 16  # width of a figure, and what is left of its axis and right of it, in pixels
SPECTRUM_HEIGHT, UPPER_HEIGHT, LOWER_HEIGHT = 210, 210, 140  # heights of the panels

TOP, GAP, BOTTOM, LEGEND = 16, 28, 42, 24
"""Pixels above the first panel, between two, below the last, and of the line of the legend."""

NAMED_LINES = 18  # pixels of a line of text above the figure of a sweep
RANK_SPACING = 10  # ranks between two numbers of an axis of ranks

ROLE_OFFSET = 3.5
"""Pixels by which the marks of the two roles stand to either side of their value, so that none hides another."""

AROUND_VALUES = 1.2  # factor by which the axis of a sweep goes beyond its values


def spectrum_svg(over: Sequence[float], under: Sequence[float]) -> Markup:
    """Draw the leading eigenvalues of both roles against their rank."""
    values: dict[Role, Sequence[float]] = {"over": over, "under": under}
    every = [0.0, *over, *under]
    longest = max(len(over), len(under), 2)
    ranks = Axis(1, longest, LEFT + 8, WIDTH - RIGHT)
    height = Axis(min(every), max(every) or 1.0, TOP + SPECTRUM_HEIGHT, TOP)
    parts = [*_grid(height, "eigenvalue"), line([(LEFT, height.at(0)), (WIDTH - RIGHT, height.at(0))], "ink")]
    for role, found in values.items():
        ink, _ = INKS[role]
        places = [(ranks.at(rank), height.at(value)) for rank, value in enumerate(found, start=1)]
        parts += [line(places, ink, width=1.2)] if places else []
        parts += [
            mark(ink, place, f"rank {rank}, {INKS[role][1]}: {value:.4g}")
            for rank, (place, value) in enumerate(zip(places, found, strict=True), start=1)
        ]
    below = TOP + SPECTRUM_HEIGHT
    parts += [
        text((ranks.at(rank), below + 18), str(rank)) for rank in [1, *range(RANK_SPACING, longest + 1, RANK_SPACING)]
    ]
    parts += [text(((LEFT + WIDTH) / 2, below + 36), "rank"), *_legend(below + BOTTOM + 12)]
    ranges = "; ".join(
        f"{INKS[role][1]}: from {max(found):.4g} to {min(found):.4g}" for role, found in values.items() if found
    )
    return drawing(
        "Leading eigenvalues of both roles against their rank", ranges, (WIDTH, below + BOTTOM + LEGEND), parts
    )


def course_svg(finding: Finding) -> Markup:
    """Draw how a drift goes on over clips: the means of both sets in each part of the time."""
    values = [value for _, *both in finding.course for value in both]
    across = Axis(0.0, finding.course[-1][0] + finding.course[0][0], LEFT, WIDTH - RIGHT)
    height = Axis(min(values), max(max(values), min(values) + 1e-6), TOP + LOWER_HEIGHT, TOP)
    inks: tuple[Ink, Ink] = ("gen", "ref")
    parts = [*_grid(height, "mean")]
    for place, (ink, words) in enumerate(zip(inks, SET_NAMES.values(), strict=True), start=1):
        points = [(across.at(row[0]), height.at(row[place])) for row in finding.course]
        parts += [line(points, ink, width=1.6)]
        parts += [
            mark(ink, point, f"{words}, {row[0]:.2f} s: {row[place]:.3g}")
            for point, row in zip(points, finding.course, strict=True)
        ]
    below = TOP + LOWER_HEIGHT
    parts += [text((across.at(second), below + 18), f"{second:g}") for second in across.ticks]
    parts += [text(((LEFT + WIDTH) / 2, below + 36), "seconds")]
    return drawing(f"Clips {finding.name} over time", "The table has the numbers", (WIDTH, below + BOTTOM), parts)


class Mark(NamedTuple):
    """A direction in the figure of a sweep: parameter, difference of shares in points, spreadness or NaN, and name."""

    value: float
    difference: float
    spreadness: float
    name: str


def sweep_svg(
    parameter: str, values: Sequence[float], marks: Mapping[Role, Sequence[Mark]], lines: Mapping[str, float]
) -> Markup:
    """Draw difference and spreadness of directions against a parameter."""
    first, last = min(*values, *lines.values()), max(*values, *lines.values())
    across = Axis(first / AROUND_VALUES, last * AROUND_VALUES, LEFT, WIDTH - RIGHT, is_log=True)
    top = TOP + NAMED_LINES * len(lines)
    every = [point for found in marks.values() for point in found]
    upper = Axis(0.0, 1.05 * max([point.difference for point in every], default=1.0), top + UPPER_HEIGHT, top)
    known = [point.spreadness for point in every if not isnan(point.spreadness)]
    start = top + UPPER_HEIGHT + GAP
    below = start + LOWER_HEIGHT
    lower = Axis(0.0, 1.1 * max([1.0, *known]), below, start)
    parts = [*_grid(upper, "difference, points"), *_grid(lower, "spreadness")]
    parts += [line([(LEFT, lower.at(1)), (WIDTH - RIGHT, lower.at(1))], "ink")]
    for place, (dashes, (what, value)) in enumerate(zip(("6 4", "2 3"), lines.items(), strict=False)):
        x = across.at(value)
        parts += [line([(x, top), (x, below)], "ink", dashes=dashes)]
        parts += [text((x, TOP + NAMED_LINES * place), what, anchor="start" if value**2 < first * last else "end")]
    for (role, found), shift in zip(marks.items(), (-ROLE_OFFSET, ROLE_OFFSET), strict=True):
        ink, meaning = INKS[role]
        for point in found:
            x, words = across.at(point.value) + shift, f"{point.name}, {meaning}, {parameter} = {point.value:.4g}"
            parts += [mark(ink, (x, upper.at(point.difference)), f"{words}: {point.difference:.1f} points")]
            if not isnan(point.spreadness):
                parts += [mark(ink, (x, lower.at(point.spreadness)), f"{words}: spreadness {point.spreadness:.2f}")]
    # 12: values on the axis of a sweep that bear their number.
    shown = values[:: ceil(len(values) / 12)]
    parts += [text((across.at(value), below + 18), f"{value:.4g}") for value in shown]
    parts += [text(((LEFT + WIDTH) / 2, below + 36), parameter), *_legend(below + BOTTOM + 12)]
    title = f"Difference of shares and spreadness of every significant direction against {parameter}"
    counts = ", ".join(f"{sum(point.value == value for point in every)} at {value:.4g}" for value in values)
    return drawing(title, f"number of directions: {counts}", (WIDTH, below + BOTTOM + LEGEND), parts)


def _grid(height: Axis, name: str) -> list[Markup]:
    """Draw the lines of the round numbers of a vertical axis, the numbers, and its name."""
    lines = [line([(LEFT, height.at(tick)), (WIDTH - RIGHT, height.at(tick))]) for tick in height.ticks]
    numbers = [text((LEFT - 6, height.at(tick) + 4), figure(tick), anchor="end") for tick in height.ticks]
    return [*lines, *numbers, text((14, (height.start + height.end) / 2), name, turned=True)]


def _legend(y: float) -> list[Markup]:
    parts = []
    for (ink, meaning), x in zip(INKS.values(), (WIDTH / 2 - 200, WIDTH / 2 + 20), strict=True):
        parts += [mark(ink, (x, y - 4), meaning), text((x + 10, y), meaning, anchor="start")]
    return parts
