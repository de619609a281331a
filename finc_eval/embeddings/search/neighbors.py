"""Exact nearest neighbors of sets of any size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.checks import check_count
from finc_eval.core.device import Device
from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.distance_blocks import blocks, blocks_within
from finc_eval.embeddings.search.smallest import Smallest
from finc_eval.embeddings.space import check_alike


class Neighbors(NamedTuple):
    """Nearest neighbors, nearest first; equally near ones in the order of the base.

    Attributes:
        distances: shape (n, k).
        indices: rows of the base, shape (n, k).
    """

    distances: NDArray[np.float64]
    indices: NDArray[np.int64]


def nearest(queries: object, base: object, k: int, *, exclude_self: bool = False, device: Device = None) -> Neighbors:
    """Find the k nearest neighbors of every query in a base.

    Args:
        queries: embeddings of shape (n, d): an array, a tensor, a cache or the path of one.
        base: embeddings of shape (m, d).
        k: number of neighbors.
        exclude_self: whether queries and base are the same set, and no sample is a neighbor of itself; its copies are.
        device: device to compute on; default: CUDA if available.
    """
    x, y = open_pair(queries, base)
    if exclude_self and x.n != y.n:
        raise IncompatibleError(f"exclude_self needs the same set twice, got {x.n} queries and a base of {y.n}")
    check_enough(y, k, itself=exclude_self)
    found = Smallest(x.n, k)
    for block in blocks_within(y, device) if exclude_self else blocks(x, y, device):
        found.update(block)
    return Neighbors(np.sqrt(found.keys), found.indices)


def squared_radii(base: object, k: int, device: Device = None) -> NDArray[np.float64]:
    """Return the squared distance of every sample to its k-th nearest neighbor in its own set, itself excluded: (n,).

    It is squared because distances are compared by their squares: the square of a root may differ from the number.
    """
    y = as_embeddings(base)
    check_enough(y, k)
    found = Smallest(y.n, k)
    for block in blocks_within(y, device):
        found.update(block)
    return np.ascontiguousarray(found.keys[:, -1])


def kth_distances(base: object, k: int, device: Device = None) -> NDArray[np.float64]:
    """Return the distance of every sample to its k-th nearest neighbor in its own set, itself excluded: (n,)."""
    return np.sqrt(squared_radii(base, k, device))


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
            f"{base.name} has {base.n} sample{'s' * (base.n != 1)}, too few for {k} neighbor{'s' * (k != 1)} of each: "
            f"pass at least {k + itself}, or a smaller k"
        )
