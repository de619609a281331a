"""The courses of followed things as a figure of matplotlib, for papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = 6.0, 1.5  # inches of a course: six of them fill a page of 9 inches


class Drawable(NamedTuple):
    """A course to draw: its name, its values by step, the value of the reference, and the step of its alarm."""

    name: str
    values: Sequence[float | None]
    reference: float | None
    alarm: float | None


def draw_courses(steps: Sequence[float], courses: Sequence[Drawable]) -> Figure:
    """Draw courses below each other, at least one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(SIZE[0], SIZE[1] * len(courses)), layout="constrained")
    for axes, one in zip(figure.subplots(len(courses), squeeze=False, sharex=True).flat, courses, strict=True):
        axes.plot(steps, np.array(one.values, np.float64), marker=".")
        if one.reference is not None:
            axes.axhline(one.reference, linestyle="--", color="gray")
        if one.alarm is not None:
            axes.axvline(one.alarm, color="red")
        axes.set_title(one.name, fontsize="small", parse_math=False)
    axes.set_xlabel("Step")
    return figure
