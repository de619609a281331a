"""`LocalInput`: what the test of local evidence knows of the samples of a set."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import UsageError

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LocalInput:
    """Arrays of the samples of a set, row by row; both sets have the same of them, or these are left out.

    Attributes:
        cells: early maps of a network on the windows of a square grid, row by row, shape (n, w, c): w is 49 for
            7 × 7, and 147 for three such grids of a clip, one after the other.
        likeness: likeness of each picture to itself, as `measure_likeness` returns, shape (n, k).
        embeddings: embeddings, shape (n, d).
        flipped: embeddings of the pictures upside down, NaN for pictures that were not turned, shape (n, d).
        units: number of what is independent, such as the group of each sample, as `unit_numbers` returns; permutations
            follow the order of these numbers and not of rows, shape (n,). If units have unlike numbers of samples, one
            sample of each is looked at. Default: each sample is independent.
        blocks: number of the block, such as the prompt, of each sample, the same in both sets, shape (n,). Labels are
            permuted inside blocks. Samples of a block that one set lacks are not compared. Default: one block.
        digests: digests of samples, equal for equal samples, shape (n,): equal samples are not near pairs. Default: no
            samples are equal.
    """

    cells: NDArray[np.int8] | None = None
    likeness: NDArray[np.float32] | None = None
    embeddings: NDArray[np.float32] | None = None
    flipped: NDArray[np.float32] | None = None
    units: Indices | None = None
    blocks: Indices | None = None
    digests: NDArray[np.uint64] | None = None

    def __post_init__(self) -> None:
        if not self.arrays:
            raise UsageError("LocalInput needs cells, likeness or embeddings: pass one of them")
        lengths = {
            len(array) for array in [*self.arrays.values(), self.units, self.blocks, self.digests] if array is not None
        }
        if len(lengths) > 1:
            raise UsageError(f"arrays of a set must have a row for each sample, got {sorted(lengths)} rows: align them")

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that are tested, by name."""
        named = {"cells": self.cells, "likeness": self.likeness, "embeddings": self.embeddings, "flipped": self.flipped}
        return {name: array for name, array in named.items() if array is not None}

    @property
    def turned(self) -> int:
        """Number of samples whose pictures were embedded upside down."""
        return 0 if self.flipped is None else int((~np.isnan(self.flipped[:, 0])).sum())

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(next(iter(self.arrays.values())))


def grid_of(windows: int) -> tuple[int, int]:
    """Return the number of square grids, 1 or 3, and the windows along a side, by the windows of a sample.

    Raises:
        UsageError: so many windows are not one or three square grids.
    """
    for grids in (1, 3):
        side = isqrt(windows // grids)
        if grids * side * side == windows:
            return grids, side
    raise UsageError(f"cells must have shape (n, w, c) with w windows of one or three square grids, got w = {windows}")
