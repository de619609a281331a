"""Pictures among the samples that look like grids of samples, such as those of torchvision's `save_image`.

A few pictures are suspected if their sides are multiples of the one size that all others have. They are grids if their
pixels break where one cell ends and the next begins: a picture of twice the size goes on there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.words import plural
from finc_eval.samples.encoding import GridShape, grid_shape
from finc_eval.samples.files import FileSource
from finc_eval.samples.images import size_of
from finc_eval.samples.profile import Profile
from finc_eval.samples.source import Source

MIN_BREAK = 1.9
"""Mean step of pixels across the ends of cells, in units of the 90th percentile of all steps, from which on a picture
is a grid. With photographs of 64, 128 and 256 pixels, 480 grids of 2 × 2 to 8 × 8 had at least 2.0; 360 photographs of
twice the size had at most 1.7, and 95 % of 360 photographs of twice the width at most 1.4."""


def grids_among(samples: Source, profile: Profile) -> str | None:
    """Return a sentence that names the samples that look like grids of the others; None without any."""
    suspected = suspected_sizes(profile)
    if not suspected or not isinstance(samples, FileSource):
        return None
    named = [number for number in range(len(samples.ids)) if _size(samples, number) in suspected]
    shapes = [_shape_if_grid(samples, number, suspected) for number in named[:3]]  # few are decoded
    known = [shape for shape in shapes if shape is not None]
    if 2 * len(known) <= len(shapes):
        return None
    others = f" and {plural(len(named) - 1, 'other')}" if len(named) > 1 else ""
    shape = known[0]
    return (
        f"{samples.ids[named[0]]}{others}: pictures of {shape.columns} x {shape.rows} others, side by side. They look "
        "like grids of samples, and count as samples: leave them out by their names (exclude, --exclude)"
    )


def suspected_sizes(profile: Profile) -> dict[tuple[int, int], GridShape]:
    """Return the sizes of the few samples that have room for a whole number of all others, whose size is one."""
    sizes = {_parsed(text): count for text, count in profile.sizes.items()}
    if len(sizes) < 2 or profile.other_sizes or profile.fps:
        return {}
    common = max(sizes, key=lambda size: sizes[size])
    shapes = {size: grid_shape(size, common) for size in sizes if size != common}
    grids = {size: shape for size, shape in shapes.items() if shape is not None}
    cells = sum(sizes[size] * shape.cells for size, shape in grids.items())
    # Each sample is in one grid at most, and the last grid may have empty cells.
    room = sizes[common] + max((shape.cells - 1 for shape in grids.values()), default=0)
    return grids if len(grids) == len(shapes) and cells <= room else {}


def _parsed(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


def _size(samples: FileSource, number: int) -> tuple[int, int]:
    try:
        with samples.open(number) as stream:
            return size_of(stream)
    except (OSError, ValueError, KeyError):
        return 0, 0


def _shape_if_grid(samples: FileSource, number: int, suspected: dict[tuple[int, int], GridShape]) -> GridShape | None:
    """Return the shape of a grid; None if the picture goes on where its cells would end."""
    sample = samples.sample(number)
    if sample.pixels is None:
        return None
    height, width = sample.pixels.shape[:2]
    shape = suspected.get((width, height))
    return shape if shape is not None and is_grid(sample.pixels, shape) else None


def is_grid(pixels: NDArray[np.uint8], shape: GridShape) -> bool:
    """Return whether pixels, (height, width, 3), break at the ends of the cells of a grid."""
    values, breaks, steps = pixels.astype(np.float64).mean(2), list[float](), list[float]()
    for axis, (count, length) in enumerate(((shape.rows, shape.height), (shape.columns, shape.width))):
        step = np.abs(np.diff(values, axis=axis)).mean(1 - axis)
        start = shape.padding if shape.is_framed else 0
        ends = [start + (cell + 1) * length + cell * shape.padding - 1 for cell in range(count - 1)]
        breaks += step[ends].tolist()
        steps += step.tolist()
    return bool(breaks) and float(np.mean(breaks)) > MIN_BREAK * float(np.quantile(steps, 0.9))
