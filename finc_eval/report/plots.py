"""Figures as inline SVG: text stays text, colours are the page's own, and equal numbers give equal bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

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

STROKES = "stroke-linejoin: round; stroke-linecap: butt"

SPACING = 10
"""Of the marks on an axis of ranks."""

NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def spectrum_svg(over: Sequence[float], under: Sequence[float]) -> str:
    """The leading eigenvalues of both roles against their rank, as an <svg> element of numbers and our own words."""
    from matplotlib import style  # a second of import that only reports need
    from matplotlib.figure import Figure

    with style.context(["default", STYLE]):
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        axes = figure.add_subplot()
        for values, colour, marker, label in (
            (over, GEN, "o", "more in the generated set"),
            (under, REF, "s", "more in the reference set"),
        ):
            ranks = range(1, len(values) + 1)
            axes.plot(ranks, values, color=colour, marker=marker, markersize=3.5, linewidth=1.2, label=label)
        axes.axhline(0, color=INK, linewidth=0.8)
        longest = max(len(over), len(under), 1)
        axes.set_xticks([1, *range(SPACING, longest + 1, SPACING)])
        axes.set_xlabel("rank")
        axes.set_ylabel("eigenvalue")
        axes.legend()
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata=NO_METADATA)
    return _inline(stream.getvalue())


def _inline(svg: str) -> str:
    """An SVG file as an element of an HTML page: no prolog, no namespaces, the page's font and colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' (?:xmlns(?::\w+)?|version)="[^"]*"', "", svg)
    # A rule for "*" would reach the rest of the page; both properties are inherited, so the root can hold them.
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", svg)  # how matplotlib before 3.11 spells it
    for stand_in, colour in THEME.items():
        svg = svg.replace(stand_in, colour)
    return svg.replace("<svg ", f'<svg aria-hidden="true" style="{STROKES}" ', 1).strip()
