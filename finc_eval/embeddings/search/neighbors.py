"""Nearest neighbors of sets of any size: exact, or by an inverted file of faiss with a measured recall.

The inverted file divides the base by k-means, and compares a query with the samples of the nearest cells. It looks into
as few cells as reach `RECALL` on a sample of the queries, whose exact neighbors are found. All distances are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from math import sqrt
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import Device, usable_device
from finc_eval.core.errors import DataError, IncompatibleError, check_choice, check_count
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import as_embeddings, open_pair
from finc_eval.embeddings.search.distance_blocks import Smallest, blocks, blocks_within
from finc_eval.embeddings.subset import Subset
from finc_eval.numerics.names import SearchIndex

EXACT_PAIRS = 10**10  # pairs of samples up to which all are compared: 100 000 × 100 000 take minutes on a CPU
RECALL = 0.95  # share of the exact neighbors of a sample of queries that the inverted file has to find
RECALL_QUERIES = 200  # queries with exact neighbors, to measure the recall: its standard error is at most 1.6 points
CELLS_PER_ROOT = 4  # cells of the inverted file per root of the number of samples, as faiss advises
TRAINED_PER_CELL = 40  # samples per cell that k-means sees, as faiss advises
FIRST_PROBES = 4  # cells that are looked into at first; the number is doubled until the recall is reached
QUERIES_TOGETHER = 1024  # queries that are searched together: 5 neighbors each, of 2048 entries, are 84 MB in float64
MAX_GPU_PROBES = 2048  # cells that a query looks into at most on a GPU, and neighbors that it finds: faiss has no more
FOUND_TOGETHER = 1 << 25  # pairs within a radius that are found together at most, which a collapsed set has: 400 MB


def by_index(index: SearchIndex, queries: int, base: int) -> bool:
    """Return whether this many pairs are searched by an inverted file."""
    return index == "auto" and queries * base > EXACT_PAIRS and find_spec("faiss") is not None


def _gpu_copy(index: Any, device: torch.device) -> Any | None:
    """Return an index of faiss on a GPU; None without a GPU, or where faiss is built without CUDA."""
    import faiss

    if device.type != "cuda" or not faiss.get_num_gpus():
        return None
    return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), device.index or 0, index)


class InvertedFile:
    """An inverted file of a base, shape (m, d), which it holds in memory, and also on a GPU if there is one.

    The GPU finds neighbors; their distances, and what is within a radius, are computed on the CPU.
    """

    def __init__(self, base: Embeddings, device: torch.device) -> None:
        import faiss

        cells = max(min(int(CELLS_PER_ROOT * sqrt(base.n)), base.n // TRAINED_PER_CELL), 1)
        drawn = np.random.default_rng(0).choice(base.n, min(TRAINED_PER_CELL * cells, base.n), replace=False)
        rows = _rows(base, np.sort(drawn))
        # Float32 keeps its digits near the origin; no distance depends on it.
        self._center = rows.mean(0, dtype=np.float64).astype(np.float32)
        self._index: Any = faiss.IndexIVFFlat(faiss.IndexFlatL2(base.dim), base.dim, cells)
        self._index.cp.seed = 0
        self._on_gpu = _gpu_copy(self._index, device)
        filled = self._index if self._on_gpu is None else self._on_gpu
        filled.train(rows - self._center)
        # 1 << 16: rows that enter the index together.
        for places in _portions(base.n, 1 << 16):
            filled.add(_rows(base, places) - self._center)
        if self._on_gpu is not None:
            self._index = faiss.index_gpu_to_cpu(self._on_gpu)
        self._index.make_direct_map()
        self.cells, self.probes = cells, min(FIRST_PROBES, cells)

    def look_further(self) -> bool:
        """Double the number of cells that a query looks into; return whether there were more."""
        before, self.probes = self.probes, min(2 * self.probes, self.cells)
        return self.probes > before

    def search(
        self, queries: Embeddings, k: int, own: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Find k neighbors of every query: squared distances and rows of the base, each (n, k).

        A query is not a neighbor of its `own` row of the base, shape (n,). A query whose cells have fewer samples looks
        into all cells: a radius that is not known would be infinite.
        """
        squared, indices = np.empty((queries.n, k)), np.empty((queries.n, k), np.int64)
        for places in _portions(queries.n, QUERIES_TOGETHER):
            rows = _rows(queries, places) - self._center
            mine = None if own is None else own[places]
            squared[places], indices[places] = self._found(rows, k, mine, self.probes)
            few = np.flatnonzero(indices[places, -1] < 0)
            if len(few):
                nearest_few = self._found(rows[few], k, None if mine is None else mine[few], self.cells)
                squared[places[few]], indices[places[few]] = nearest_few
        return squared, indices

    def _found(
        self, rows: NDArray[np.float32], k: int, own: NDArray[np.int64] | None, probes: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Find the neighbors of rows in some cells; infinite and −1, in the last places, where there are too few."""
        squared, indices = np.full((len(rows), k), np.inf), np.full((len(rows), k), -1, np.int64)
        wanted = k + (own is not None)
        index = self._index if self._on_gpu is None or max(probes, wanted) > MAX_GPU_PROBES else self._on_gpu
        index.nprobe = probes
        _, numbers = index.search(rows, wanted)
        there = numbers >= 0 if own is None else (numbers >= 0) & (numbers != own[:, None])
        rank = there.cumsum(1) - 1
        i, j = np.nonzero(there & (rank < k))
        difference = rows[i].astype(np.float64) - self._index.reconstruct_batch(numbers[i, j])
        squared[i, rank[i, j]] = np.einsum("ij,ij->i", difference, difference)
        indices[i, rank[i, j]] = numbers[i, j]
        order = np.lexsort((indices, squared), axis=1)
        return np.take_along_axis(squared, order, 1), np.take_along_axis(indices, order, 1)

    def within(self, queries: Embeddings, squared_radius: float) -> NDArray[np.int64]:
        """Count the samples of the base within a radius of every query, in the cells that are looked into: (n,)."""
        counts = np.zeros(queries.n, np.int64)
        self._index.nprobe = self.probes
        for places in _portions(queries.n, min(QUERIES_TOGETHER, max(FOUND_TOGETHER // self._index.ntotal, 1))):
            limits, _, _ = self._index.range_search(_rows(queries, places) - self._center, squared_radius)
            counts[places] = np.diff(limits.astype(np.int64))
        return counts


def draw_rows(embeddings: Embeddings, count: int) -> NDArray[np.int64]:
    """Draw rows of a set by the hashes of their ids, in the order of the set."""
    return np.sort(np.argsort(embeddings.id_keys(), kind="stable")[:count])


def _portions(n: int, size: int) -> Iterator[NDArray[np.int64]]:
    return (np.arange(start, min(start + size, n)) for start in range(0, n, size))


def _rows(source: Embeddings, places: NDArray[np.int64]) -> NDArray[np.float32]:
    rows: torch.Tensor = source.rows_at(places)
    return np.ascontiguousarray(rows.cpu().numpy())


class Neighbors(NamedTuple):
    """Nearest neighbors, nearest first; equally near samples in the order of the base."""

    distances: NDArray[np.float64]  # shape (n, k)
    indices: NDArray[np.int64]  # rows of the base, shape (n, k)
    # share of the exact neighbors that were found, measured on a sample of the queries; None if all are exact
    recall: float | None = None


def nearest(
    queries: object,
    base: object,
    k: int,
    *,
    exclude_self: bool = False,
    device: Device = None,
    index: SearchIndex = "exact",
) -> Neighbors:
    """Find the k nearest neighbors of every query in a base.

    Queries (n, d) and base (m, d) are arrays, tensors, caches or paths. With `exclude_self` they are one set, and no
    sample is its own neighbor, though its copies are. `index` is "exact", or "auto" for an inverted file of faiss, in
    memory, beyond 10^10 pairs.
    """
    check_choice("index", index, get_args(SearchIndex))
    x, y = open_pair(queries, base, names=("queries", "base"))
    if exclude_self and x.n != y.n:
        raise IncompatibleError(f"exclude_self needs the same set twice, got {x.n} queries and a base of {y.n}")
    squared, indices, recall = _search(x, y, k, exclude_self, device, index)
    return Neighbors(np.sqrt(squared), indices, recall)


def _search(
    x: Embeddings, y: Embeddings, k: int, exclude_self: bool, device: Device, index: SearchIndex
) -> tuple[NDArray[np.float64], NDArray[np.int64], float | None]:
    """Return the squared distances of the neighbors, their rows and the recall; see `nearest`."""
    check_enough(y, k, itself=exclude_self)
    if by_index(index, x.n, y.n):
        inverted, recall = inverted_file(x, y, k, exclude_self=exclude_self, device=device)
        return *inverted.search(x, k, np.arange(x.n) if exclude_self else None), recall
    smallest = Smallest(x.n, k)
    for block in blocks_within(y, device) if exclude_self else blocks(x, y, device):
        smallest.update(block)
    return smallest.keys, smallest.indices, None


def inverted_file(
    x: Embeddings, y: Embeddings, k: int, *, exclude_self: bool = False, device: Device = None
) -> tuple[InvertedFile, float]:
    """Make an inverted file of y that looks into as many cells as the recall of x's neighbors needs; return both."""
    inverted, rows = InvertedFile(y, usable_device(device)), draw_rows(x, RECALL_QUERIES)
    sample, own_rows = Subset(x, rows), rows if exclude_self else None
    exact = nearest(sample, y, k + exclude_self, device=device)
    # Of several at distance 0, it does not matter which is the sample itself; of ties, any counts.
    farthest = np.square(exact.distances[:, -1:]) * (1 + 1e-6)
    while True:
        recall = float((inverted.search(sample, k, own_rows)[0] <= farthest).mean())
        if recall >= RECALL or not inverted.look_further():
            return inverted, recall


class Radii(NamedTuple):
    """Squared distance of every sample to its k-th nearest neighbor in its own set, itself excluded.

    They are squared because distances are compared by their squares: the square of a root may differ from the number.
    """

    squared: NDArray[np.float64]  # shape (n,)
    recall: float | None = None  # share of the exact neighbors that were found; None if all are exact


def radii(base: object, k: int, device: Device = None, index: SearchIndex = "exact") -> Radii:
    """Return the squared distances of samples to the k-th nearest in their own set; see `nearest` for the index."""
    y = as_embeddings(base)
    squared, _, recall = _search(y, y, k, True, device, index)
    return Radii(np.ascontiguousarray(squared[:, -1]), recall)


def least_recall(*recalls: float | None) -> float | None:
    """Return the smallest of several recalls, None if all neighbors are exact."""
    return min((recall for recall in recalls if recall is not None), default=None)


def index_signature(recall: float | None) -> tuple[tuple[str, str], ...]:
    """Return the field of a signature that says that neighbors were approximate; none if all are exact."""
    return () if recall is None else (("index", "ivf"),)


def recall_notes(recall: float | None) -> tuple[str, ...]:
    """Return a note on the recall of approximate neighbors; none if all are exact."""
    if recall is None:
        return ()
    return (f"an inverted file of faiss found the neighbors, in a sample {recall:.1%} of the exact neighbors",)


def check_enough(base: Embeddings, k: int, *, itself: bool = True) -> None:
    """Raise DataError unless every sample finds k neighbors in a set; `itself` says that it belongs to the set."""
    check_count("k", k)
    if base.n < k + itself:
        raise DataError(
            f"{base.name} has {plural(base.n, 'sample')}, too few for {plural(k, 'neighbor')} of each: "
            f"pass at least {k + itself}, or a smaller k"
        )
