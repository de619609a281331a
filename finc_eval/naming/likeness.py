"""Likeness of a picture to itself: to its mirror image, turned, and of its halves to each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import uniform_filter

MOST_PIXELS = 128  # longest side that is looked at: 1 ms of a core

AROUND = 5  # pixels of the side of the square whose mean is taken off: what is left are edges

BLANK = 1e-3  # deviation of the edges, with light in 0 … 1, below which a picture has none

LIKENESS = (
    "two halves that mirror each other",
    "a top and a bottom that mirror each other",
    "a top that is the bottom turned upside down",
    "two halves that are the same",
    "a top and a bottom that are the same",
)
"""Words for pictures whose likeness is large, in the order of `measure_likeness`."""


def measure_likeness(image: Image.Image) -> NDArray[np.float32]:
    """Measure how like a picture is to itself: correlations of edges, in the order of `LIKENESS`, shape (5,)."""
    gray = image.convert("L")
    longest = max(gray.size)
    if longest > MOST_PIXELS:
        sides = [max(2, round(side * MOST_PIXELS / longest)) for side in gray.size]
        gray = gray.resize((sides[0], sides[1]), Image.Resampling.BOX)
    light = np.asarray(gray, np.float32) / 255
    light = light[: len(light) // 2 * 2, : light.shape[1] // 2 * 2]
    if not light.size:
        return np.zeros(len(LIKENESS), np.float32)
    edges = light - uniform_filter(light, AROUND, mode="reflect")
    height, width = (side // 2 for side in edges.shape)
    pairs = (
        (edges, edges[:, ::-1]),
        (edges, edges[::-1]),
        (edges, edges[::-1, ::-1]),
        (edges[:, :width], edges[:, width:]),
        (edges[:height], edges[height:]),
    )
    return np.array([_correlate(*pair) for pair in pairs], np.float32)


def _correlate(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    first, second = first - first.mean(), second - second.mean()
    spread = float(np.sqrt(np.square(first).mean() * np.square(second).mean()))
    return float((first * second).mean()) / spread if spread > BLANK**2 else 0.0
