"""Two folds of a set, by the keys of the samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import sent
from finc_eval.numerics.folds import fold_of


class FoldChunks:
    """Regroups embeddings into chunks of one fold and one size, so that every matrix product has the same shape.

    Libraries keep compiled code for every shape they meet: with the uneven folds of every batch that is megabytes a
    batch, and a memory that grows with the number of samples.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])

    def add(self, keys: NDArray[np.uint64], rows: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Take embeddings in, shape (b, d), with their keys; yield (fold, chunk) for each that is full."""
        folds = fold_of(keys)
        # An order, as the host knows it: for a mask, it would wait for the device to count.
        order = sent(torch.from_numpy(folds.argsort(kind="stable")), rows.device)
        parts = rows[order].tensor_split([len(folds) - int(folds.sum())])
        for fold, (waiting, part) in enumerate(zip(self._waiting, parts, strict=True)):
            waiting.append(part)
            if sum(map(len, waiting)) >= self._size:
                *full, left = torch.split(torch.cat(waiting), self._size)
                if len(left) == self._size:
                    full, left = [*full, left], left[:0]
                waiting[:] = [left]
                yield from ((fold, chunk) for chunk in full)

    def rest(self) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield the remaining embeddings, in chunks that are not full."""
        for fold, waiting in enumerate(self._waiting):
            if sum(map(len, waiting)):
                yield fold, torch.cat(waiting)
                waiting.clear()


def rows_of(folds: torch.Tensor, fold: int) -> torch.Tensor:
    """Return the indices of the rows of a fold, ascending, from the fold of each row."""
    return (folds == fold).nonzero().squeeze(1)
