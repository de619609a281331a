"""Approximate neighbors in very large sets by faiss: an inverted file, and the recall that it was measured to have.

The base is divided by k-means, and a query is compared with the samples of the nearest cells. How many cells are looked
into follows from a sample of the queries, whose exact neighbors are found: as few as reach `RECALL`. The distances of
what is found are exact.
"""

from __future__ import annotations

from importlib.util import find_spec
from math import sqrt
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.embeddings.base import Embeddings, Subset

SearchIndex = Literal["exact", "auto"]
"""How neighbors are found: exactly, or by an inverted file where there are more than `EXACT_PAIRS` pairs."""

EXACT_PAIRS = 10**10
"""Pairs of samples up to which all are compared: 100 000 × 100 000 take minutes on a CPU."""

RECALL = 0.95
"""Share of the exact neighbors of a sample of queries that the inverted file has to find."""

RECALL_QUERIES = 200
"""Queries whose exact neighbors are found, to measure the recall: its standard error is at most 1.6 points."""

CELLS_PER_ROOT = 4
"""Cells of the inverted file per root of the number of samples, as faiss advises."""

TRAINED_PER_CELL = 40
"""Samples per cell that k-means sees, as faiss advises."""

FIRST_PROBES = 4
"""Cells that are looked into at first; the number is doubled until the recall is reached."""

ADDED_ROWS = 1 << 16
"""Rows that enter the index together."""


def by_index(index: SearchIndex, queries: int, base: int) -> bool:
    """Return whether so many pairs are searched by an inverted file."""
    return index == "auto" and queries * base > EXACT_PAIRS and find_spec("faiss") is not None


class InvertedFile:
    """An inverted file of a base, which it holds in memory.

    Args:
        base: embeddings, shape (m, d).
    """

    def __init__(self, base: Embeddings) -> None:
        import faiss

        cells = max(min(int(CELLS_PER_ROOT * sqrt(base.n)), base.n // TRAINED_PER_CELL), 1)
        drawn = np.random.default_rng(0).choice(base.n, min(TRAINED_PER_CELL * cells, base.n), replace=False)
        rows = _rows(base, np.sort(drawn))
        # Float32 keeps its digits near the origin; no distance depends on it.
        self._center = rows.mean(0, dtype=np.float64).astype(np.float32)
        self._index: Any = faiss.IndexIVFFlat(faiss.IndexFlatL2(base.dim), base.dim, cells)
        self._index.cp.seed = 0
        self._index.train(rows - self._center)
        for start in range(0, base.n, ADDED_ROWS):
            self._index.add(_rows(base, np.arange(start, min(start + ADDED_ROWS, base.n))) - self._center)
        self._index.make_direct_map()
        self._index.nprobe = min(FIRST_PROBES, cells)

    @property
    def probes(self) -> int:
        """Number of cells that a query looks into."""
        return int(self._index.nprobe)

    def look_further(self) -> bool:
        """Double the number of cells that a query looks into; return whether there were more."""
        before = self.probes
        self._index.nprobe = min(2 * before, self._index.nlist)
        return self.probes > before

    def search(
        self, queries: Embeddings, k: int, own: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Find neighbors of every query: distances and rows of the base, each (n, k); infinite and −1 where too few.

        Args:
            queries: embeddings, shape (n, d).
            k: number of neighbors.
            own: row of each query in the base, which is not a neighbor of itself, shape (n,).
        """
        distances, indices = np.full((queries.n, k), np.inf), np.full((queries.n, k), -1, np.int64)
        for start in range(0, queries.n, ADDED_ROWS // 16):
            places = np.arange(start, min(start + ADDED_ROWS // 16, queries.n))
            rows = _rows(queries, places) - self._center
            _, found = self._index.search(rows, k + (own is not None))
            there = found >= 0 if own is None else (found >= 0) & (found != own[places][:, None])
            there &= there.cumsum(1) <= k
            i, j = np.nonzero(there)
            difference = rows[i].astype(np.float64) - self._index.reconstruct_batch(found[i, j])
            rank = there.cumsum(1)[i, j] - 1
            distances[places[i], rank] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
            indices[places[i], rank] = found[i, j]
        order = np.lexsort((indices, distances), axis=1)
        return np.take_along_axis(distances, order, 1), np.take_along_axis(indices, order, 1)


def sampled_queries(queries: Embeddings) -> tuple[Subset, NDArray[np.int64]]:
    """Return the queries that the recall is measured on, and their rows."""
    rows = np.sort(np.argsort(queries.id_keys(), kind="stable")[:RECALL_QUERIES])
    return Subset(queries, rows), rows


def recall_of(found: NDArray[np.float64], exact: NDArray[np.float64]) -> float:
    """Return the share of exact neighbors that were found, by their distances, each (n, k); of ties any counts."""
    return float((found <= exact[:, -1:] * (1 + 1e-6)).mean())


def _rows(source: Embeddings, places: NDArray[np.int64]) -> NDArray[np.float32]:
    rows: torch.Tensor = source.rows_at(places)
    return np.ascontiguousarray(rows.cpu().numpy())
