"""Figures as inline SVG: text stays text, colors are the page's own, and equal numbers give equal bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Stand-ins that matplotlib accepts, and the CSS they become, so that a figure follows the page's light or dark theme.
INK, GEN, REF, RULE = "#010101", "#020202", "#030303", "#040404"
THEME = {INK: "currentColor", GEN: "var(--gen)", REF: "var(--ref)", RULE: "var(--rule)"}

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "finc-eval",
    "font.size": 10,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "grid.color": RULE,
    "xtick.color": INK,
    "ytick.color": INK,
    "ytick.left": False,
    "legend.frameon": False,
}

STROKES = 'stroke-linejoin="round" stroke-linecap="butt"'

RANK_SPACING = 10
"""Ranks between two marks of an axis of ranks."""

MAX_LABELED_VALUES = 12
"""Values on the axis of a sweep that bear their number."""

ROLE_OFFSET = 1.02
"""Factor by which the marks of the two roles stand to either side of their value, so that none hides another."""

NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def spectrum_svg(over: Sequence[float], under: Sequence[float]) -> str:
    """Draw the leading eigenvalues of both roles against their rank, as an <svg> element."""
    from matplotlib import style  # a second of import that only reports need
    from matplotlib.figure import Figure

    with style.context(["default", STYLE]):
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        axes = figure.add_subplot()
        for values, color, marker, label in (
            (over, GEN, "o", "more in the generated set"),
            (under, REF, "s", "more in the reference set"),
        ):
            ranks = range(1, len(values) + 1)
            axes.plot(ranks, values, color=color, marker=marker, markersize=3.5, linewidth=1.2, label=label)
        axes.axhline(0, color=INK, linewidth=0.8)
        longest = max(len(over), len(under), 1)
        axes.set_xticks([1, *range(RANK_SPACING, longest + 1, RANK_SPACING)])
        axes.set_xlabel("rank")
        axes.set_ylabel("eigenvalue")
        axes.legend()
        return _svg(figure)


class Mark(NamedTuple):
    """A mode in the figure of a sweep: parameter, difference of shares in points, spreadness (NaN: not known)."""

    value: float
    difference: float
    spreadness: float


def sweep_svg(
    parameter: str, values: Sequence[float], marks: tuple[Sequence[Mark], Sequence[Mark]], lines: dict[str, float]
) -> str:
    """Draw difference and spreadness of modes against a parameter, as an <svg> element.

    Args:
        parameter: symbol of the parameter.
        values: values that were tried, ascending.
        marks: over- and under-represented modes.
        lines: one or two values to point out, by name.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    first, last = min(*values, *lines.values()), max(*values, *lines.values())
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(7.2, 4.8), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for found, color, marker, label, shift in (
            (marks[0], GEN, "o", "more in the generated set", 1 / ROLE_OFFSET),
            (marks[1], REF, "s", "more in the reference set", ROLE_OFFSET),
        ):
            places = [mark.value * shift for mark in found]
            style_of = {"color": color, "marker": marker, "markersize": 4, "linestyle": "none"}
            upper.plot(places, [mark.difference for mark in found], label=label, **style_of)
            lower.plot(places, [mark.spreadness for mark in found], **style_of)
        lower.axhline(1, color=INK, linewidth=0.8)
        lower.set_ymargin(0.1)
        for axes in (upper, lower):
            axes.set_xscale("log")
            axes.set_xlim(first / 1.2, last * 1.2)
            axes.set_ylim(bottom=0)
            axes.minorticks_off()
        for height, dashes, (what, value) in zip((1.02, 1.1), ("--", ":"), lines.items(), strict=False):
            for axes in (upper, lower):
                axes.axvline(value, color=INK, linewidth=0.9, linestyle=dashes, zorder=1)
            align = "left" if value**2 < first * last else "right"
            upper.text(value, height, what, transform=upper.get_xaxis_transform(), ha=align)
        shown = values[:: ceil(len(values) / MAX_LABELED_VALUES)]
        lower.set_xticks(shown, [f"{value:.4g}" for value in shown])
        lower.set_xlabel(parameter)
        upper.set_ylabel("difference, points")
        lower.set_ylabel("spreadness")
        figure.legend(loc="outside lower center", ncols=2)
        return _svg(figure)


def _svg(figure: Figure) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata=NO_METADATA)
    return _inline(stream.getvalue())


def _inline(svg: str) -> str:
    """Turn an SVG file into an element of an HTML page: no prolog, no namespaces, the page's font and colors."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' (?:xmlns(?::\w+)?|version)="[^"]*"', "", svg)
    # A rule for "*" would reach the rest of the page; both properties are inherited, so the root can hold them.
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", svg)  # how matplotlib before 3.11 spells it
    for stand_in, color in THEME.items():
        svg = svg.replace(stand_in, color)
    svg = re.sub(r' style="([^"]*)"', _as_attributes, svg)
    return svg.replace("<svg ", f'<svg aria-hidden="true" {STROKES} ', 1).strip()


def _as_attributes(style: re.Match[str]) -> str:
    """Turn a style attribute into presentation attributes: a strict policy allows no styles but the page's own."""
    pairs = (part.split(":", 1) for part in style[1].split(";") if ":" in part)
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs)
