"""The colors of sets and models: the same in the drawings, maps, rows and cards of a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, cast

Ink = Literal[
    "gen", "ref", "other", "rule", "ink",
    "model-0", "model-1", "model-2", "model-3", "model-4", "model-5", "model-6", "model-7",
]  # fmt: skip

COLORS: dict[Ink, str] = {
    "gen": "#b04a12",
    "ref": "#1f5f9e",
    "other": "#56616e",
    "rule": "#ccd2d9",
    "ink": "#17202b",
    "model-0": "#6a3d9a",
    "model-1": "#b85c00",
    "model-2": "#2e7d32",
    "model-3": "#b0287e",
    "model-4": "#c62828",
    "model-5": "#00767a",
    "model-6": "#7a6a00",
    "model-7": "#795548",
}
"""Colors of a light page, by the class for which the style has the colors of both themes."""

COLOR_NAMES: Mapping[Ink, str] = {
    "gen": "orange",
    "ref": "blue",
    "model-0": "purple",
    "model-1": "orange",
    "model-2": "green",
    "model-3": "pink",
    "model-4": "red",
    "model-5": "teal",
    "model-6": "olive",
    "model-7": "brown",
}
"""Names of the colors of sets in a sentence."""

MODELS = sum(ink.startswith("model-") for ink in COLORS)  # models of a page that has a color for each

PAIR: Mapping[str, Ink] = {"gen": "gen", "ref": "ref"}  # colors of a generated and a reference set


def inks_of(labels: Iterable[str], reference: str = "ref") -> dict[str, Ink]:
    """Return the color of each set of a page, by its label.

    The reference has its own color, and so has each other set, by its place: a set that is added last changes no color.
    Of more than eight others, colors could not be told apart: all have one. Of two sets, the second is the reference
    unless the first is.

    Example:
        >>> inks_of(["new", "old", "ref"])
        {'new': 'model-0', 'old': 'model-1', 'ref': 'ref'}
    """
    known = [*labels]
    if len(known) == 2:
        first = "ref" if known[0] == reference else "gen"
        return {known[0]: cast(Ink, first), known[1]: "gen" if first == "ref" else "ref"}
    others = [label for label in known if label != reference]
    inks = {label: "gen" if len(others) > MODELS else f"model-{number}" for number, label in enumerate(others)}
    return {label: cast(Ink, inks.get(label, "ref")) for label in known}
