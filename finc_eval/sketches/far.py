"""Samples so far from all others of their set that they are probably broken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from finc_eval.core.device import send
from finc_eval.embeddings.base import Embeddings
from finc_eval.sketches.folds import FoldChunk

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
        """Return the far samples of the set, None where it has none or half of its samples are equal."""
        if not (self._typical and int(self._count)):
            return None
        farthest = int(self._farthest)
        row = embeddings.rows_at(np.array([farthest]))[0].double().cpu()
        distance = float(torch.linalg.vector_norm(row - self._middle)) / self._typical
        return Far(int(self._count), farthest, distance)
