"""Spectral clustering of novel samples, by which the FINC paper turns scores of samples into modes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from finc_eval.core.checks import check_count
from finc_eval.core.device import Device
from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.neighbors import check_enough, nearest


@dataclass(frozen=True, eq=False)
class Cluster:
    """One cluster of samples.

    Attributes:
        members: rows of the samples in their set, most typical first.
        typicality: mean affinity of each member to all members, in [0, 1).
    """

    members: NDArray[np.int64]
    typicality: NDArray[np.float64]

    @property
    def size(self) -> int:
        """Number of members."""
        return len(self.members)


@dataclass(frozen=True, eq=False)
class Clustering:
    """Clusters of novel samples.

    Attributes:
        clusters: the clusters, largest first.
        samples: rows that were clustered, shape (m,).
        labels: index in `clusters` of each of these rows, shape (m,).
        neighbors: number of neighbors in the affinity.
    """

    clusters: tuple[Cluster, ...]
    samples: NDArray[np.int64]
    labels: NDArray[np.int64]
    neighbors: int


def spectral_clustering(
    embeddings: object,
    samples: NDArray[np.int64],
    clusters: int,
    *,
    neighbors: int | None = None,
    seed: int = 0,
    run: Run | None = None,
) -> Clustering:
    """Cluster some samples of a set by their neighbors among each other.

    The affinity of two neighbors is exp(−‖x − y‖² / (s_x s_y)), where s is the distance to the k-th neighbor
    (Zelnik-Manor and Perona 2004); all other affinities are 0. So it is sparse, with at most 2k entries per sample on
    average.

    Args:
        embeddings: embeddings of the set: array or tensor (n, d), `EmbeddingCache` or the path of one.
        samples: rows to cluster, such as `Rarity.novel` and `Likelihoods.novel` return.
        clusters: number of clusters.
        neighbors: k; default: log₂ m + 1 for m samples, rounded up.
        seed: random seed of the k-means that ends a spectral clustering.
        run: device that finds the neighbors; default: CUDA if available.
    """
    # scikit-learn takes a second to import, which the methods without clusters need not wait for.
    from sklearn.cluster import SpectralClustering

    check_count("clusters", clusters, least=2)
    if len(samples) <= clusters:
        raise DataError(
            f"the number of novel samples, {len(samples)}, is too small for {clusters} clusters: lower the threshold, "
            "or ask for fewer clusters"
        )
    samples = np.array(samples, np.int64)
    chosen = as_embeddings(as_embeddings(embeddings).rows_at(samples), "the novel samples")
    if neighbors is None:
        neighbors = min(ceil(log2(len(samples))) + 1, len(samples) - 1)
    check_enough(chosen, neighbors)
    matrix = affinity(chosen, neighbors, Run.of(run).torch_device)
    found = SpectralClustering(clusters, affinity="precomputed", assign_labels="kmeans", random_state=seed)
    with warnings.catch_warnings():
        # Clusters without a link between them are what is looked for.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        raw = found.fit_predict(matrix)
    by_size = np.argsort(-np.bincount(raw, minlength=clusters), kind="stable")
    labels = np.argsort(by_size)[raw]
    ordered = []
    for label in range(clusters):
        members = np.flatnonzero(labels == label)
        typicality = np.asarray(matrix[members][:, members].sum(1)).ravel() / max(len(members), 1)
        order = np.argsort(-typicality, kind="stable")
        ordered.append(Cluster(samples[members[order]], typicality[order]))
    return Clustering(tuple(ordered), samples, labels, neighbors)


def affinity(embeddings: object, neighbors: int, device: Device = None) -> csr_array:
    """Return the symmetric sparse affinity of `spectral_clustering`, shape (m, m)."""
    found = nearest(embeddings, embeddings, neighbors, exclude_self=True, device=device)
    count = len(found.distances)
    widths = found.distances[:, -1]
    # scikit-learn refuses indices of 64 bits.
    rows = np.repeat(np.arange(count, dtype=np.int32), neighbors)
    columns = found.indices.ravel().astype(np.int32)
    # More than k copies of one sample have width 0 and distance 0: their affinity is 1.
    products = np.maximum(widths[rows] * widths[columns], np.finfo(np.float64).tiny)
    values = np.exp(-np.square(found.distances.ravel()) / products)
    one_way = csr_array((values, (rows, columns)), shape=(count, count))
    return one_way.maximum(one_way.T)
