"""Influence of each sample on Fréchet distances and squared MMDs: what makes differences of models exact.

The influence of a sample says by how much an estimate would move if the law had more of it. Its variance equals the
estimate's, and models of one reference share the influence of its samples. Where two sets are of one law, the influence
is estimated from noise, and gives √2 times the error: ranks are then conservative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.leaderboards.estimates import Estimate, part_sums, unit_sums
from finc_eval.measures.gaussian import GaussianStatistics, blocks_of_embeddings, row_blocks
from finc_eval.measures.mmd import KernelSums

Array = NDArray[np.float64]

BLOCKS = 10
"""Blocks of each set for the jackknife of the bias, as in `frechet_interval`."""


@dataclass(frozen=True, eq=False)
class Influence:
    """Influence of the samples of both sets, each of mean 0: shapes (n,) and (m,)."""

    of_model: Array
    of_ref: Array

    def estimate(self, value: float, model: Embeddings, ref: Embeddings) -> Estimate:
        """Return the estimate with this influence, from samples in their groups."""
        own = unit_sums(self.of_model / model.n, model.group_hashes())
        shared = part_sums(unit_sums(self.of_ref / ref.n, ref.group_hashes()))
        return Estimate(value, float(own @ own), shared)


class FrechetReference:
    """A reference for Fréchet distances of several models: everything that depends on it alone is computed once."""

    def __init__(self, ref: Embeddings, run: Run) -> None:
        self._ref, self._run = ref, run
        self._blocks = blocks_of_embeddings(ref, BLOCKS, run=run)
        self._whole = self._blocks.statistics()
        self._root, _ = _powers(self._whole.covariance)

    def estimate(self, model: Embeddings) -> Estimate:
        """Estimate the distance of a model, without bias, as `frechet_interval` does, with influence values.

        With T the optimal map from one set's Gaussian to the other's, the derivative of the distance with
        respect to the mean of this set is 2(μ − μ'), and with respect to its covariance I − T.
        """
        blocks = blocks_of_embeddings(model, BLOCKS, run=self._run)
        x, y = blocks.statistics(), self._whole
        root, inverse = _powers(x.covariance)
        middle_root, middle_inverse = _powers(root @ y.covariance @ root)
        value = _distance(x, y, float(middle_root.trace()))
        without = [
            [_distance(part, y, _trace_root(self._root, part)) for part in map(blocks.statistics, range(BLOCKS))],
            [_distance(x, part, _trace_root(root, part)) for part in map(self._blocks.statistics, range(BLOCKS))],
        ]
        bias = sum((BLOCKS - 1) * (float(np.mean(values)) - value) for values in without)
        to_ref, to_model = inverse @ middle_root @ inverse, root @ middle_inverse @ root
        found = Influence(
            _of_samples(model, x, y, to_ref, self._run), _of_samples(self._ref, y, x, to_model, self._run)
        )
        return found.estimate(value - bias, model, self._ref)


def kernel_influence(sums: KernelSums) -> Influence:
    """Return the influence of samples on the unbiased squared MMD, from the sums of kernel rows."""
    n, m = len(sums.xx), len(sums.yy)
    of_model = 2 * (sums.xx / (n - 1) - sums.xy / m)
    of_ref = 2 * (sums.yy / (m - 1) - sums.yx / n)
    return Influence(*((one - one.mean()).cpu().numpy() for one in (of_model, of_ref)))


def _distance(x: GaussianStatistics, y: GaussianStatistics, trace_root: float) -> float:
    """Return the Fréchet distance of two Gaussians, given the trace of the root of the product of covariances."""
    traces = float(x.covariance.trace() + y.covariance.trace())
    return float((x.mean - y.mean).square().sum()) + traces - 2 * trace_root


def _trace_root(root: torch.Tensor, other: GaussianStatistics) -> float:
    """Return tr (Σ^½ Σ' Σ^½)^½, from the root of one covariance: eigenvalues alone are a fifth of the work."""
    middle = root @ other.covariance @ root
    return float(torch.linalg.eigvalsh((middle + middle.T) / 2).clamp_min(0).sqrt().sum())


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
    for here, rows in row_blocks(embeddings, where, run.portion):
        rows = rows - own.mean
        found[here] = (2 * rows @ (own.mean - other.mean) + ((rows @ slope) * rows).sum(1)).cpu()
    return np.asarray((found - found.mean()).numpy())
