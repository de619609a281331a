"""k-means, by faiss if installed, else by scipy, on a sample of all sets together."""

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
from finc_eval.embeddings.keys import mix_bits
from finc_eval.numerics.arrays import without_fold
from finc_eval.numerics.eigen import PrincipalAxes, unit_of

ITERATIONS = 12  # Steps of Lloyd's algorithm. What a comparison finds hardly changes after ten.

FIT_SAMPLES = 10_000
"""Samples of all sets that kinds are fitted to, at most. Small planted kinds of 16 000 digits are met with a mean
Jaccard index of .50, .61, .67, .71 with 2 500, 5 000, 10 000, 16 000, in 1.0, 1.6, 4.1, 4.8 seconds."""


def kmeans(rows: NDArray[np.float32], clusters: int, seed: int, device: torch.device) -> NDArray[np.float32]:
    """Return the centers of k-means, shape (clusters, d).

    Rows have shape (m, d), with at least `clusters` rows.
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
class KMeansCells:
    """Cells of several runs of k-means: a sample is of the nearest center of each run."""

    centers: torch.Tensor  # centers of each run, shape (runs, cells, d), relative to `origin`
    origin: torch.Tensor  # mean of the fitted rows, shape (d,)

    @classmethod
    def fit(cls, rows: torch.Tensor, cells: int, seeds: Sequence[int], run: Run | None = None) -> KMeansCells:
        """Fit k-means to the coordinates of rows on their principal axes, once for each seed."""
        axes = PrincipalAxes.of(rows)
        x = np.ascontiguousarray(axes(rows.cpu()).numpy())
        centers = [torch.from_numpy(kmeans(x, cells, seed, Run.of(run).torch_device)) for seed in seeds]
        return cls(torch.stack([axes.points(points) for points in centers]), axes.origin)

    def count(self, embeddings: Embeddings, run: Run | None = None) -> NDArray[np.int64]:
        """Return the number of samples in each cell of each run, shape (runs, cells)."""
        run = Run.of(run)
        runs, cells, _ = self.centers.shape
        unit, device = unit_of(self.centers), run.torch_device
        centers, origin = send(self.centers.flatten(0, 1), device) / unit, send(self.origin, device)
        norms, first = centers.square().sum(1), torch.arange(runs, device=device) * cells
        counts = torch.zeros(runs * cells, dtype=torch.long, device=device)
        for batch in embeddings.batches(run.portion, partial(send, device=device)):
            # ‖x − c‖² without ‖x‖², which all centers share.
            squared = norms - 2 * ((batch.rows - origin) / unit) @ centers.T
            nearest = squared.view(-1, runs, cells).argmin(2)
            counts += torch.bincount((nearest + first).flatten(), minlength=runs * cells)
            run.progress("count", batch.start + len(batch.rows), embeddings.n)
        return counts.reshape(runs, cells).cpu().numpy()


def pool_samples(sets: Sequence[Embeddings], capacity: int = FIT_SAMPLES) -> torch.Tensor:
    """Return the rows of a random sample of all sets together, in random order; of a group of samples, one.

    Which rows they are, and their order, follows from the ids alone: each set is in the sample in proportion to its
    size. Kinds that are fitted to it treat the sets alike, so that without a difference between them the labels
    of the samples are exchangeable given the kinds, and exact tests may use all samples. With as many rows of a small
    set as of a large one, or with copies, kinds would form around single samples of one set.
    """
    keys, owner, index = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64)
    for number, embeddings in enumerate(sets):
        hashes, rows = embeddings.id_keys(), np.arange(embeddings.n)
        groups = embeddings.group_hashes()
        if groups is not None:
            order = hashes.argsort(kind="stable")
            rows = order[np.unique(groups[order], return_index=True)[1]]
            hashes = groups[rows]
        # A sketch has kept the samples with the smallest hashes: others decide here, without the bit of the fold.
        keys = np.concatenate([keys, mix_bits(without_fold(hashes))])
        owner, index = np.concatenate([owner, np.full(len(rows), number)]), np.concatenate([index, rows])
        kept = keys.argsort(kind="stable")[:capacity]
        keys, owner, index = keys[kept], owner[kept], index[kept]
    sample = torch.empty(len(keys), sets[0].dim)
    for number, embeddings in enumerate(sets):
        mine = np.flatnonzero(owner == number)
        sample[torch.from_numpy(mine)] = embeddings.rows_at(index[mine]).cpu()
    return sample
