"""The block of cells in a file of embeddings: the cells of some of its samples, and their rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.files.stored import StoredFile, StoredRows
from finc_eval.core.files.writing import NewArray, NewFile
from finc_eval.embeddings.cells import Cells
from finc_eval.extractors.cells import TIMES, WINDOWS

VALUES, ROWS = "cells/values", "cells/rows"
"""Arrays of the block: the values (m, windows, c), a byte each, and the row of each sample (m,)."""


def new_cells(file: NewFile, rows: NDArray[np.int64], windows: int, channels: int) -> NewArray:
    """Write the rows that have cells, ascending, and reserve the space of their values, which are appended in order."""
    file.array(ROWS, rows)
    return file.rows(VALUES, (len(rows), windows, channels), "|i1")


class CellBlock:
    """The block in a file of n embeddings; its values are read when they are needed."""

    def __init__(self, file: StoredFile, n: int, space: str) -> None:
        self._file, self._n, self._space = file, n, space
        self.values: StoredRows = file.rows(VALUES, None, None, None, dtype="|i1")
        if self.values.shape[1] not in (WINDOWS, TIMES * WINDOWS):
            raise file.damaged(f"its cells are not of {WINDOWS} windows")
        self._rows = file.rows(ROWS, len(self.values), dtype="<i8")

    @property
    def shape(self) -> tuple[int, int]:
        """Windows of a sample, and numbers of a window."""
        return self.values.shape[1], self.values.shape[2]

    def rows(self) -> NDArray[np.int64]:
        """Read the row of each sample that has cells, shape (m,), ascending; DataError if the file is damaged."""
        rows: NDArray[np.int64] = self._rows.whole()
        if (np.diff(rows, prepend=-1) < 1).any() or (rows >= self._n).any():
            raise self._file.damaged(f"its cells are not of {self._n:,} samples in their order")
        return rows

    def read(self) -> Cells:
        """Read the cells of all samples that have them; DataError if the file is damaged."""
        return Cells(self.values.whole(), self.rows(), self._space)
