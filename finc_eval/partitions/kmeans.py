"""k-means, by faiss where it is installed, else by scipy."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

ITERATIONS = 12
"""Steps of Lloyd's algorithm. What a comparison finds hardly changes after ten."""


def kmeans(
    rows: NDArray[np.float32], clusters: int, seed: int, device: torch.device, *, spread: bool = False
) -> NDArray[np.float32]:
    """Return the centers of k-means, shape (clusters, d).

    Args:
        rows: shape (m, d); at least `clusters` rows.
        clusters: number of centers.
        seed: random seed of the first centers, which are rows.
        device: a CUDA device is used where faiss was built for it.
        spread: whether the first centers are far from each other (`spread_rows`), so that a small cluster that is far
            from all others gets one; default: rows at random.
    """
    start = spread_rows(rows, clusters, seed) if spread else None
    try:
        import faiss
    except ImportError:
        from scipy.cluster.vq import kmeans2

        if start is None:
            start = rows[np.random.default_rng(seed).choice(len(rows), clusters, replace=False)]
        centers, _ = kmeans2(rows, start, iter=ITERATIONS, minit="matrix", missing="warn", check_finite=False)
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
    fit.train(rows, init_centroids=start)
    return np.asarray(fit.centroids, np.float32)


def spread_rows(rows: NDArray[np.float32], count: int, seed: int) -> NDArray[np.float32]:
    """Draw rows one by one, each with a probability that goes by its squared distance from those before.

    This is the start of k-means++ (Arthur and Vassilvitskii 2007). Where all rows are drawn already, any are.

    Args:
        rows: shape (m, d).
        count: number of rows to draw.
        seed: random seed.
    """
    rng, x = np.random.default_rng(seed), rows.astype(np.float64)
    norms, drawn = np.square(x).sum(1), [int(rng.integers(len(x)))]
    squared = np.full(len(x), np.inf)
    while len(drawn) < count:
        last = drawn[-1]
        squared = np.minimum(squared, np.maximum(norms + norms[last] - 2 * x @ x[last], 0))
        squared[last] = 0
        reached = squared.cumsum()
        drawn.append(int(min(reached.searchsorted(rng.random() * reached[-1], "right"), len(x) - 1)))
    return rows[drawn]
