"""Spectral clustering of novel samples, by which the FINC paper turns scores of samples into directions."""

from __future__ import annotations

import warnings
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from finc_eval.baselines.fld import Likelihoods
from finc_eval.baselines.rarity import RarityScores
from finc_eval.core.device import Device
from finc_eval.core.errors import DataError, check_count, check_fraction, check_seed
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.neighbors import nearest


def most_novel(scored: RarityScores | Likelihoods, share: float) -> NDArray[np.int64]:
    """Select the most novel samples, most novel first: a share of all, in (0, 1], and at least one."""
    check_fraction("share", share, one=True)
    return scored.order[: max(round(share * len(scored.scores)), 1)]


def spectral_clustering(
    embeddings: object, samples: NDArray[np.int64], clusters: int, *, seed: int = 0, run: Run | None = None
) -> NDArray[np.int64]:
    """Cluster some samples of a set by their neighbors among each other, and return the cluster of each, largest first.

    The affinity of two neighbors is exp(−‖x − y‖² / (s_x s_y)), where s is the distance to the k-th neighbor
    (Zelnik-Manor and Perona 2004), with k = log₂ m + 1 for m samples; all other affinities are 0. `samples` are row
    numbers, such as `most_novel` returns.
    """
    # scikit-learn takes a second to import, which the methods without clusters need not wait for.
    from sklearn.cluster import SpectralClustering

    check_count("clusters", clusters, least=2)
    if len(samples) <= clusters:
        raise DataError(
            f"the number of novel samples, {len(samples)}, is too small for {clusters} clusters: take a larger "
            "share, or fewer clusters"
        )
    chosen = as_embeddings(as_embeddings(embeddings).rows_at(np.array(samples, np.int64)), "the novel samples")
    neighbors = min(ceil(log2(len(samples))) + 1, len(samples) - 1)
    matrix = affinity(chosen, neighbors, Run.of(run).torch_device)
    clustering = SpectralClustering(
        clusters, affinity="precomputed", assign_labels="kmeans", random_state=check_seed(seed)
    )
    with warnings.catch_warnings():
        # Clusters without a link between them are what is looked for.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        raw = clustering.fit_predict(matrix)
    by_size = np.argsort(-np.bincount(raw, minlength=clusters), kind="stable")
    labels: NDArray[np.int64] = np.argsort(by_size)[raw]
    return labels


def affinity(embeddings: object, neighbors: int, device: Device = None) -> csr_array:
    """Return the symmetric sparse affinity of `spectral_clustering`, shape (m, m)."""
    near = nearest(embeddings, embeddings, neighbors, exclude_self=True, device=device)
    count = len(near.distances)
    widths = near.distances[:, -1]
    # scikit-learn refuses indices of 64 bits.
    rows = np.repeat(np.arange(count, dtype=np.int32), neighbors)
    columns = near.indices.ravel().astype(np.int32)
    # More than k copies of one sample have width 0 and distance 0: their affinity is 1.
    products = np.maximum(widths[rows] * widths[columns], np.finfo(np.float64).tiny)
    values = np.exp(-np.square(near.distances.ravel()) / products)
    one_way = csr_array((values, (rows, columns)), shape=(count, count))
    return one_way.maximum(one_way.T)
