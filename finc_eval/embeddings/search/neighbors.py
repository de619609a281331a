"""Nearest neighbors of sets of any size: exact, or approximate with a measured recall where that is asked for."""

from __future__ import annotations

from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.checks import check_choice, check_count
from finc_eval.core.device import Device
from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.words import counted
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.distance_blocks import blocks, blocks_within
from finc_eval.embeddings.search.inverted_file import (
    RECALL,
    InvertedFile,
    by_index,
    recall_of,
    sampled_queries,
)
from finc_eval.embeddings.search.smallest import Smallest
from finc_eval.embeddings.space import check_alike
from finc_eval.numerics.names import SearchIndex


class Neighbors(NamedTuple):
    """Nearest neighbors, nearest first; equally near ones in the order of the base.

    Attributes:
        distances: shape (n, k).
        indices: rows of the base, shape (n, k).
        recall: share of the exact neighbors that were found, measured on a sample of the queries; None where all are
            exact.
    """

    distances: NDArray[np.float64]
    indices: NDArray[np.int64]
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

    Args:
        queries: embeddings of shape (n, d): an array, a tensor, a cache or the path of one.
        base: embeddings of shape (m, d).
        k: number of neighbors.
        exclude_self: whether queries and base are the same set, and no sample is a neighbor of itself; its copies are.
        device: device to compute on; default: CUDA if available.
        index: "exact", or "auto" for an inverted file of faiss where there are more than 10^10 pairs. It holds the base
            in memory.
    """
    check_choice("index", index, get_args(SearchIndex))
    x, y = open_pair(queries, base)
    if exclude_self and x.n != y.n:
        raise IncompatibleError(f"exclude_self needs the same set twice, got {x.n} queries and a base of {y.n}")
    check_enough(y, k, itself=exclude_self)
    if by_index(index, x.n, y.n):
        inverted, recall = inverted_file(x, y, k, exclude_self=exclude_self, device=device)
        squared, indices = inverted.search(x, k, np.arange(x.n) if exclude_self else None)
        return Neighbors(np.sqrt(squared), indices, recall)
    found = Smallest(x.n, k)
    for block in blocks_within(y, device) if exclude_self else blocks(x, y, device):
        found.update(block)
    return Neighbors(np.sqrt(found.keys), found.indices)


def inverted_file(
    x: Embeddings, y: Embeddings, k: int, *, exclude_self: bool = False, device: Device = None
) -> tuple[InvertedFile, float]:
    """Make an inverted file of y that looks into as many cells as the recall of x's neighbors needs; return both."""
    inverted, (sample, rows) = InvertedFile(y), sampled_queries(x)
    own = rows if exclude_self else None
    exact = nearest(sample, y, k + exclude_self, device=device)
    # Of several at distance 0, it does not matter which is the sample itself.
    wanted = np.square(exact.distances[:, int(exclude_self) :])
    while (recall := recall_of(inverted.search(sample, k, own)[0], wanted)) < RECALL and inverted.look_further():
        pass
    return inverted, recall


class Radii(NamedTuple):
    """Squared distance of every sample to its k-th nearest neighbor in its own set, itself excluded.

    They are squared because distances are compared by their squares: the square of a root may differ from the number.

    Attributes:
        squared: shape (n,).
        recall: share of the exact neighbors that were found; None where all are exact.
    """

    squared: NDArray[np.float64]
    recall: float | None = None


def radii(base: object, k: int, device: Device = None, index: SearchIndex = "exact") -> Radii:
    """Return the squared distances of samples to the k-th nearest in their own set; see `nearest` for the index."""
    y = as_embeddings(base)
    check_enough(y, k)
    if by_index(index, y.n, y.n):
        inverted, recall = inverted_file(y, y, k, exclude_self=True, device=device)
        return Radii(inverted.search(y, k, np.arange(y.n))[0][:, -1], recall)
    found = Smallest(y.n, k)
    for block in blocks_within(y, device):
        found.update(block)
    return Radii(np.ascontiguousarray(found.keys[:, -1]))


def kth_distances(base: object, k: int, device: Device = None) -> NDArray[np.float64]:
    """Return the distance of every sample to its k-th nearest neighbor in its own set, itself excluded: (n,)."""
    return np.sqrt(radii(base, k, device).squared)


def least_recall(*recalls: float | None) -> float | None:
    """Return the smallest of several recalls, None where all neighbors are exact."""
    return min((recall for recall in recalls if recall is not None), default=None)


def index_signature(recall: float | None) -> tuple[tuple[str, str], ...]:
    """Return the field of a signature that says that neighbors were approximate; none where all are exact."""
    return () if recall is None else (("index", "ivf"),)


def recall_notes(recall: float | None) -> tuple[str, ...]:
    """Return a note on the recall of approximate neighbors; none where all are exact."""
    if recall is None:
        return ()
    return (f"an inverted file of faiss found the neighbors, in a sample {recall:.1%} of the exact ones",)


def open_pair(
    queries: object, base: object, names: tuple[str, str] = ("queries", "base")
) -> tuple[Embeddings, Embeddings]:
    """Open two sets of embeddings that can be compared.

    Args:
        queries: embeddings of shape (n, d): an array, a tensor, a cache or the path of one.
        base: embeddings of shape (m, d).
        names: names of the two sets in messages.
    """
    x, y = as_embeddings(queries, names[0]), as_embeddings(base, names[1])
    check_alike(x.name, x, y.name, y)
    return x, y


def check_enough(base: Embeddings, k: int, *, itself: bool = True) -> None:
    """Raise DataError unless every sample finds k neighbors in a set; `itself` says that it belongs to the set."""
    check_count("k", k)
    if base.n < k + itself:
        raise DataError(
            f"{base.name} has {counted(base.n, 'sample')}, too few for {counted(k, 'neighbor')} of each: "
            f"pass at least {k + itself}, or a smaller k"
        )
