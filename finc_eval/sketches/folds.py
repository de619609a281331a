"""Two folds of a set, by the keys of the samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import Place, send
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.numerics.folds import fold_of

Rows = tuple[torch.Tensor, torch.Tensor]
"""Rows of samples, and their indices in the set."""


@dataclass(frozen=True, eq=False)
class FoldChunk:
    """Embeddings of one fold of a set."""

    fold: int
    rows: torch.Tensor
    index: torch.Tensor


class FoldChunks:
    """Regroups embeddings into chunks of one fold and one size, so that every matrix product has the same shape.

    Libraries keep compiled code for every shape they meet: with the uneven folds of every batch that is megabytes a
    batch, and a memory that grows with the number of samples.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: tuple[list[Rows], list[Rows]] = ([], [])

    def add(self, keys: NDArray[np.uint64], rows: torch.Tensor, start: int = 0) -> Iterator[FoldChunk]:
        """Take embeddings in, and yield the chunks that are full."""
        folds = fold_of(keys)
        # An order, as the host knows it: for a mask, it would wait for the device to count.
        order = send(torch.from_numpy(folds.argsort(kind="stable")), rows.device)
        ends = [len(folds) - int(folds.sum())]
        parts = zip(rows[order].tensor_split(ends), (order + start).tensor_split(ends), strict=True)
        for fold, (waiting, part) in enumerate(zip(self._waiting, parts, strict=True)):
            waiting.append(part)
            if sum(len(rows) for rows, _ in waiting) >= self._size:
                chunks = list(zip(*(torch.split(one, self._size) for one in _join(waiting)), strict=True))
                waiting[:] = [chunks.pop()] if len(chunks[-1][0]) < self._size else []
                yield from (FoldChunk(fold, *chunk) for chunk in chunks)

    def rest(self) -> Iterator[FoldChunk]:
        """Yield the remaining embeddings, in chunks that are not full."""
        for fold, waiting in enumerate(self._waiting):
            if sum(len(rows) for rows, _ in waiting):
                yield FoldChunk(fold, *_join(waiting))
                waiting.clear()


def _join(parts: Sequence[Rows]) -> Rows:
    rows, index = zip(*parts, strict=True)
    return torch.cat(rows), torch.cat(index)


def fold_chunks(embeddings: Embeddings, run: Run, place: Place, stage: str) -> Iterator[FoldChunk]:
    """Yield all embeddings of a set in chunks of one fold."""
    chunks = FoldChunks(run.portion)
    for batch in embeddings.batches(run.portion, place):
        yield from chunks.add(batch.keys, batch.rows, batch.start)
        run.progress(stage, batch.start + len(batch.rows), embeddings.n)
    yield from chunks.rest()


FAR = 100.0
"""Median distances from the middle of a set at which a sample is so far away that it is probably broken."""


@dataclass(frozen=True)
class Far:
    """The far samples of a set.

    Attributes:
        distance: its distance from the middle, in median distances.
    """

    count: int
    farthest: int
    distance: float


class FarSamples:
    """Looks for far samples in one pass over a set, on its device.

    Args:
        sample: random sample of the set, shape (m, d), on the CPU, which gives its middle and the unit of length.
        device: device of the rows.
    """

    def __init__(self, sample: torch.Tensor, device: torch.device) -> None:
        rows = sample.double()
        self._middle = rows.median(0).values
        self._typical = float(torch.linalg.vector_norm(rows - self._middle, dim=1).median())
        self._center = send(self._middle.float(), device)
        self._count = torch.zeros((), dtype=torch.long, device=device)
        self._largest = torch.zeros((), device=device)
        self._farthest = torch.zeros((), dtype=torch.long, device=device)

    def update(self, chunk: FoldChunk) -> None:
        """Look at the samples of a chunk."""
        # In units of the median distance first: the squares of others might not fit into float32.
        distances = torch.linalg.vector_norm((chunk.rows - self._center) / self._typical, dim=1)
        self._count += (distances > FAR).sum()
        largest, place = distances.max(0)
        self._farthest = torch.where(largest > self._largest, chunk.index.take(place), self._farthest)
        self._largest = torch.maximum(largest, self._largest)

    def result(self, embeddings: Embeddings) -> Far | None:
        """Return the far samples of the set, None if it has none or half of its samples are equal."""
        if not (self._typical and int(self._count)):
            return None
        farthest = int(self._farthest)
        row = embeddings.rows_at(np.array([farthest]))[0].double().cpu()
        distance = float(torch.linalg.vector_norm(row - self._middle)) / self._typical
        return Far(int(self._count), farthest, distance)
