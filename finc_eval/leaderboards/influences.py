"""Influence of each sample on Fréchet distances and squared MMDs: what makes differences of models exact.

The influence of a sample says by how much an estimate would move if the law had more of it. Its variance is that of the
estimate, and models with one reference share the influence of its samples. Where two sets are of one law, the influence
is estimated from noise, and gives √2 times the error: ranks are then conservative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.leaderboards.estimates import Estimate, unit_sums
from finc_eval.metrics.gaussian import GaussianStatistics, from_embeddings, row_blocks
from finc_eval.metrics.mmd import KernelSums

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Influence:
    """Influence of the samples of both sets, each of mean 0: shapes (n,) and (m,)."""

    of_model: Array
    of_ref: Array

    def estimate(self, value: float, model: Embeddings, ref: Embeddings) -> Estimate:
        """Return the estimate with this influence, from samples in their groups."""
        own = unit_sums(self.of_model / model.n, model.group_hashes())
        return Estimate(value, float(own @ own), unit_sums(self.of_ref / ref.n, ref.group_hashes()))


def frechet_influence(model: Embeddings, ref: Embeddings, run: Run) -> Influence:
    """Return the influence of samples on the Fréchet distance, from two passes over each set.

    With T the optimal map from the Gaussian of one set to that of the other, the derivative of the distance with
    respect to the mean of this set is 2(μ − μ'), and with respect to its covariance I − T.
    """
    x, y = from_embeddings(model, run=run), from_embeddings(ref, run=run)
    root, inverse = _powers(x.covariance)
    middle = root @ y.covariance @ root
    middle_root, middle_inverse = _powers(middle)
    to_ref, to_model = inverse @ middle_root @ inverse, root @ middle_inverse @ root
    return Influence(_of_samples(model, x, y, to_ref, run), _of_samples(ref, y, x, to_model, run))


def kernel_influence(sums: KernelSums) -> Influence:
    """Return the influence of samples on the unbiased squared MMD, from the sums of kernel rows."""
    n, m = len(sums.xx), len(sums.yy)
    of_model = 2 * (sums.xx / (n - 1) - sums.xy / m)
    of_ref = 2 * (sums.yy / (m - 1) - sums.yx / n)
    return Influence(*((one - one.mean()).cpu().numpy() for one in (of_model, of_ref)))


def _powers(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the square root of a symmetric positive matrix, and the inverse of it where it is not singular."""
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    kept = values > len(values) * torch.finfo(values.dtype).eps * values[-1]
    values, vectors = values[kept].sqrt(), vectors[:, kept]
    return (vectors * values) @ vectors.T, (vectors / values) @ vectors.T


def _of_samples(
    embeddings: Embeddings, own: GaussianStatistics, other: GaussianStatistics, to_other: torch.Tensor, run: Run
) -> Array:
    where = own.mean.device
    slope = torch.eye(own.dim, dtype=torch.double, device=where) - to_other
    found = torch.empty(embeddings.n, dtype=torch.double)
    for here, rows in row_blocks(embeddings, where, run.batch_size):
        rows = rows - own.mean
        found[here] = (2 * rows @ (own.mean - other.mean) + ((rows @ slope) * rows).sum(1)).cpu()
    return np.asarray((found - found.mean()).numpy())
