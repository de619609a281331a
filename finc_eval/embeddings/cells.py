"""`Cells`: the early maps of the network of an extractor, on 7 × 7 windows of each sample, beside its embedding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.extractors.cells import WINDOWS

MAX_CELLS = 4096
"""Pictures of a set whose cells are kept: at most 48 MB of 11 760 bytes each, as the default extractor has them. A clip
counts as three pictures."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of some samples of a set; those of two sets can be compared if their spaces are equal.

    Attributes:
        values: numbers of each window, shape (m, 49, c), row by row of the 7 × 7 grid, in units of 5 standard
            deviations of photographs / 127; of clips (m, 147, c), the grids of the first, second and last third.
        rows: row number of each sample in its set, shape (m,), ascending.
        space: digest of the layers, statistics and constants that made the values.
    """

    values: NDArray[np.int8]
    rows: NDArray[np.int64]
    space: str

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: NDArray[np.int64]) -> Cells:
        """Return the cells of a subset, whose sample k is row `rows[k]` of this set, in any order."""
        if not len(self.rows):
            return Cells(self.values, self.rows, self.space)
        places = np.searchsorted(self.rows, rows).clip(max=len(self.rows) - 1)
        kept = np.flatnonzero(self.rows[places] == rows)
        return Cells(self.values[places[kept]], kept, self.space)


def rows_with_cells(hashes: Iterable[NDArray[np.uint64]], windows: int = WINDOWS) -> NDArray[np.int64]:
    """Return the rows of a set whose cells are kept, ascending: those of the smallest hashes of ids; see `MAX_CELLS`.

    Consecutive portions of the hashes are enough, so that memory does not grow with the set. `windows` are those of a
    sample.
    """
    most = MAX_CELLS * WINDOWS // windows
    smallest, rows, n = np.empty(0, np.uint64), np.empty(0, np.int64), 0
    for portion in hashes:
        smallest = np.concatenate([smallest, portion])
        rows = np.concatenate([rows, np.arange(n, n + len(portion))])
        n += len(portion)
        kept = np.sort(smallest.argsort(kind="stable")[:most])
        smallest, rows = smallest[kept], rows[kept]
    return rows
