"""Communities: samples that share their nearest neighbors, and how closely the communities are linked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from finc_eval.embeddings.search.neighbors import nearest

NEIGHBORS = 15
"""Nearest neighbors of each sample. With 10 or 25, planted kinds are met as well."""

RESOLUTION = 16.0
"""Resolution of modularity at which the smallest communities are found: some 150 of 6 000 samples. With 8 or 32, their
unions meet planted kinds as well (mean Jaccard index within .02 on digits, photographs, clips and the demo)."""


class Communities(NamedTuple):
    """Communities of a graph.

    Attributes:
        labels: community of each sample, from 0 on, shape (m,).
        links: weight of the links between every two communities, shape (k, k); on the diagonal, inside of each, twice.
    """

    labels: NDArray[np.int64]
    links: NDArray[np.float64]


def communities(x: torch.Tensor, seed: int, device: torch.device) -> Communities:
    """Divide rows into small communities of their graph of shared neighbors.

    Two samples are linked if one is among the other's nearest neighbors, with the Jaccard index of their neighbors
    as weight (Levine et al. 2015). Communities maximize the modularity (Blondel et al. 2008). Communities by Leiden's
    algorithm meet planted kinds as well, but scikit-network's draws numbers that no seed governs.

    Args:
        x: rows, shape (m, d), at least 2.
        seed: random seed of the order in which samples are moved.
        device: device on which neighbors are found.
    """
    from sknetwork.clustering import Louvain

    k = min(NEIGHBORS, len(x) - 1)
    near = nearest(x, x, k, exclude_self=True, device=device).indices
    graph = shared_neighbors(near)
    labels = np.arange(len(x))
    if graph.nnz:
        labels = Louvain(resolution=RESOLUTION, shuffle_nodes=True, random_state=seed).fit_predict(graph)
    _, labels = np.unique(labels, return_inverse=True)
    member = csr_matrix((np.ones(len(x)), (np.arange(len(x)), labels)))
    return Communities(labels, (member.T @ graph @ member).toarray())


def shared_neighbors(near: NDArray[np.int64]) -> csr_matrix:
    """Return the graph of shared neighbors, shape (m, m), from the k nearest neighbors of each row, shape (m, k)."""
    m, k = near.shape
    links = csr_matrix((np.ones(near.size), (np.repeat(np.arange(m), k), near.ravel())), (m, m))
    shared = (links @ links.T).multiply((links + links.T) > 0).tocsr()
    shared.setdiag(0)
    shared.eliminate_zeros()
    shared.data = shared.data / (2 * k - shared.data)
    return shared
