"""Parts of pictures on thumbnails: is a picture its own cropped, moved, within bars, or painted over in part?"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from finc_eval.same_ids.shown import FAINT, THUMB, Thumbs, unit_rows

Array = NDArray[np.float64]

PARTS = (0.9, 0.8, 0.7, 0.6, 0.5)  # parts of each side to which pictures may be cropped, or pressed between bars
MOVES = (0.03, 0.06, 0.1, 0.15, 0.2)  # parts of a side by which pictures may be moved: 0.5 to 3 places of a thumbnail
FEW_MOVES = 0.08  # part of a side, about one place of 16, by which a picture may move and still be its own
PLACES = (0.0, 0.5, 1.0)  # starts of a part, in parts of the room that it leaves

Window = tuple[float, float]  # a part of a side, and where it begins
WHOLE: Window = (1.0, 0.5)
CROPPED, FRAMED, SHIFTED, MOVED = "cropped", "within bars", "shifted", "moved a little"

CROPS: list[tuple[tuple[Window, Window], tuple[Window, Window], str]] = [
    *(((WHOLE, WHOLE), ((part, down), (part, right)), CROPPED) for part, down, right in product(PARTS, PLACES, PLACES)),
    *(((WHOLE, WHOLE), sides, CROPPED) for part in PARTS for sides in (((part, 0.5), WHOLE), (WHOLE, (part, 0.5)))),
    *((((part, 0.5), (part, 0.5)), (WHOLE, WHOLE), FRAMED) for part in PARTS),
    *((sides, (WHOLE, WHOLE), FRAMED) for part in PARTS for sides in (((part, 0.5), WHOLE), (WHOLE, (part, 0.5)))),
    *(
        (
            ((1 - by * (down != 0.5), down), (1 - by * (right != 0.5), right)),
            ((1 - by * (down != 0.5), 1 - down), (1 - by * (right != 0.5), 1 - right)),
            MOVED if by < FEW_MOVES else SHIFTED,
        )
        for by, down, right in product(MOVES, PLACES, PLACES)
        if (down, right) != (0.5, 0.5)
    ),
]
"""The rows and columns of the first picture that are compared with those of the second, and the name of the first."""

REPAINTED = [(8, 8), (6, 11), (11, 6), (4, 16), (16, 4)]
"""Rows and columns of the windows that are left out: a quarter of a thumbnail."""


def crop_names() -> list[str]:
    """Return what the first picture is called for each column of `liken_crops`."""
    return [name for *_, name in CROPS]


def liken_crops(first: Thumbs, second: Thumbs) -> Array:
    """Return the correlations of parts of the first thumbnails with parts of the second, (n, crops)."""
    n, found = len(first), np.empty((len(first), len(CROPS)))
    both = [some.reshape(-1, THUMB, THUMB, 3).astype(np.float32) / 255 for some in (first, second)]
    for column, (*windows, _) in enumerate(CROPS):
        parts = [
            np.einsum("ab,nbcd,ec->naed", _stretch(*rows), some, _stretch(*columns), optimize=True).reshape(n, -1)
            for some, (rows, columns) in zip(both, windows, strict=True)
        ]
        found[:, column] = np.einsum("nk,nk->n", unit_rows(parts[0]), unit_rows(parts[1]))
    return found


def _stretch(part: float, start: float) -> NDArray[np.float32]:
    """Return the matrix that stretches a part of a line of values over the whole line, by linear interpolation."""
    at = np.clip((np.arange(THUMB) + 0.5) * part + start * (1 - part) * THUMB - 0.5, 0, THUMB - 1)
    before = np.minimum(at.astype(int), THUMB - 2)
    found = np.zeros((THUMB, THUMB), np.float32)
    found[np.arange(THUMB), before] = 1 - (at - before)
    found[np.arange(THUMB), before + 1] = at - before
    return found


def liken_rest(first: Thumbs, second: Thumbs) -> Array:
    """Return the correlation of thumbnails without a quarter, where it is largest, (n,): a part may be painted over."""
    x, y = (some.reshape(len(some), -1, THUMB, 3).astype(float) / 255 for some in (first, second))
    sums = [values.sum(3) for values in (x, y, x * x, y * y, x * y)]
    found = np.full(len(first), -1.0)
    for rows, columns in REPAINTED:
        for top, left in product(range(0, THUMB - rows + 1, 2), range(0, THUMB - columns + 1, 2)):
            kept = np.ones((THUMB, THUMB), bool)
            kept[top : top + rows, left : left + columns] = False
            kept = np.tile(kept, (x.shape[1] // THUMB, 1))
            count = 3 * int(kept.sum())
            mean_x, mean_y, xx, yy, xy = (total[:, kept].sum(1) / count for total in sums)
            spread = np.sqrt((xx - mean_x**2 + FAINT**2) * (yy - mean_y**2 + FAINT**2))
            found = np.maximum(found, (xy - mean_x * mean_y) / spread)
    return found
