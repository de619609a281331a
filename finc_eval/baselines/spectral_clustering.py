"""Spectral clustering of samples found novel: how the FINC paper turns scores of samples into kinds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil, log2
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.base import as_embeddings
from finc_eval.embeddings.neighbors import check_enough, nearest

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Cluster:
    """Samples of one kind.

    Attributes:
        members: their rows in the set, most typical first: those with the most affinity to the others of the cluster.
        typicality: of each member, its mean affinity to the cluster's members, in [0, 1).
    """

    members: NDArray[np.int64]
    typicality: NDArray[np.float64]

    @property
    def size(self) -> int:
        """How many samples."""
        return len(self.members)


@dataclass(frozen=True, eq=False)
class Clustering:
    """Kinds among samples found novel.

    Attributes:
        clusters: largest first.
        samples: the rows that were clustered, shape (m,).
        labels: the place in `clusters` of each of them, shape (m,).
        neighbors: k of the affinity.
    """

    clusters: tuple[Cluster, ...]
    samples: NDArray[np.int64]
    labels: NDArray[np.int64]
    neighbors: int


def spectral_clustering(
    embeddings: object, samples: NDArray[np.int64], clusters: int, *, neighbors: int | None = None, seed: int = 0
) -> Clustering:
    """Cluster some samples of a set by their neighbors among each other.

    The affinity of neighbors is exp(−‖x − y‖² / (s_x s_y)), s the distance to the k-th neighbor (Zelnik-Manor, Perona
    2004), that of others 0: sparse, with at most 2k entries a sample on average.

    Args:
        embeddings: the set: array or tensor (n, d), `EmbeddingCache` or the path of one.
        samples: the rows to cluster, such as `Rarity.novel` and `Likelihoods.novel` give.
        clusters: how many.
        neighbors: k; log₂ m + 1 of m samples when left out, rounded up.
        seed: of the k-means that ends a spectral clustering.

    Raises:
        FincEvalError: fewer samples than clusters or neighbors, or fewer than two clusters.
    """
    from sklearn.cluster import SpectralClustering

    if clusters < 2:
        raise FincEvalError(f"clusters must be at least 2, got {clusters}")
    if len(samples) <= clusters:
        raise FincEvalError(
            f"{len(samples)} samples were found novel, too few for {clusters} clusters: lower the threshold, or ask "
            "for fewer clusters"
        )
    samples = np.array(samples, np.int64)
    chosen = as_embeddings(as_embeddings(embeddings).rows_at(samples), "the novel samples")
    if neighbors is None:
        neighbors = min(ceil(log2(len(samples))) + 1, len(samples) - 1)
    check_enough(chosen, neighbors)
    matrix = affinity(chosen, neighbors)
    found = SpectralClustering(clusters, affinity="precomputed", assign_labels="kmeans", random_state=seed)
    with warnings.catch_warnings():
        # Kinds without a link between them are what is looked for.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        raw = found.fit_predict(matrix)
    by_size = np.argsort(-np.bincount(raw, minlength=clusters), kind="stable")
    labels = np.argsort(by_size)[raw]
    kinds = []
    for label in range(clusters):
        members = np.flatnonzero(labels == label)
        typicality = np.asarray(matrix[members][:, members].sum(1)).ravel() / max(len(members), 1)
        order = np.argsort(-typicality, kind="stable")
        kinds.append(Cluster(samples[members[order]], typicality[order]))
    return Clustering(tuple(kinds), samples, labels, neighbors)


def affinity(embeddings: object, neighbors: int) -> csr_array:
    """The symmetric sparse affinity of `spectral_clustering`, shape (m, m)."""
    from scipy.sparse import csr_array

    found = nearest(embeddings, embeddings, neighbors, exclude_self=True)
    count = len(found.distances)
    widths = found.distances[:, -1]
    # scikit-learn takes no indices of 64 bits.
    rows = np.repeat(np.arange(count, dtype=np.int32), neighbors)
    columns = found.indices.ravel().astype(np.int32)
    # Copies of one sample beyond k have width 0 and distance 0: they are alike.
    products = np.maximum(widths[rows] * widths[columns], np.finfo(np.float64).tiny)
    values = np.exp(-np.square(found.distances.ravel()) / products)
    one_way = csr_array((values, (rows, columns)), shape=(count, count))
    return one_way.maximum(one_way.T)
