"""k-means, by faiss where it is installed, else by scipy."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

ITERATIONS = 20
"""Steps of Lloyd's algorithm. The kinds found hardly change after ten."""


def kmeans(rows: NDArray[np.float32], clusters: int, seed: int, device: torch.device) -> NDArray[np.float32]:
    """Return the centers of k-means, shape (clusters, d).

    Args:
        rows: shape (m, d); at least `clusters` rows.
        clusters: number of centers.
        seed: random seed of the first centers, which are rows.
        device: a CUDA device is used where faiss was built for it.
    """
    try:
        import faiss
    except ImportError:
        from scipy.cluster.vq import kmeans2

        start = np.random.default_rng(seed).choice(len(rows), clusters, replace=False)
        centers, _ = kmeans2(rows, rows[start], iter=ITERATIONS, minit="matrix", missing="warn", check_finite=False)
        return np.asarray(centers, np.float32)
    fit = faiss.Kmeans(
        rows.shape[1],
        clusters,
        niter=ITERATIONS,
        seed=seed,
        gpu=device.type == "cuda" and faiss.get_num_gpus() > 0,
        min_points_per_centroid=1,
        max_points_per_centroid=len(rows),
    )
    fit.train(rows)
    return np.asarray(fit.centroids, np.float32)
