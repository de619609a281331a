"""k-means, by faiss where it is installed, else by scipy, and numbers of samples in its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import send
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.numerics.eigen import PrincipalAxes, unit_of

ITERATIONS = 12
"""Steps of Lloyd's algorithm. What a comparison finds hardly changes after ten."""


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
    fit.train(rows)
    return np.asarray(fit.centroids, np.float32)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of several runs of k-means: a sample is of the nearest center of each run.

    Attributes:
        centers: centers of each run, shape (runs, cells, d), relative to `origin`.
        origin: mean of the fitted rows, shape (d,).
    """

    centers: torch.Tensor
    origin: torch.Tensor

    @classmethod
    def fit(cls, rows: torch.Tensor, cells: int, seeds: Sequence[int], run: Run | None = None) -> Cells:
        """Fit k-means to the coordinates of rows on their principal axes, once for each seed."""
        axes = PrincipalAxes.of(rows)
        x = np.ascontiguousarray(axes(rows.cpu()).numpy())
        found = [torch.from_numpy(kmeans(x, cells, seed, Run.of(run).torch_device)) for seed in seeds]
        return cls(torch.stack([axes.points(one) for one in found]), axes.origin)

    def count(self, embeddings: Embeddings, run: Run | None = None) -> NDArray[np.int64]:
        """Return the number of samples in each cell of each run, shape (runs, cells)."""
        run = Run.of(run)
        runs, cells, _ = self.centers.shape
        unit, device = unit_of(self.centers), run.torch_device
        centers, origin = send(self.centers.flatten(0, 1), device) / unit, send(self.origin, device)
        norms, first = centers.square().sum(1), torch.arange(runs, device=device) * cells
        found = torch.zeros(runs * cells, dtype=torch.long, device=device)
        for batch in embeddings.batches(run.portion, partial(send, device=device)):
            # ‖x − c‖² without ‖x‖², which all centers share.
            squared = norms - 2 * ((batch.rows - origin) / unit) @ centers.T
            nearest = squared.view(-1, runs, cells).argmin(2)
            found += torch.bincount((nearest + first).flatten(), minlength=runs * cells)
            run.progress("count", batch.start + len(batch.rows), embeddings.n)
        return found.reshape(runs, cells).cpu().numpy()
