"""`Measure`: a metric of one training run of a model, and `Measuring`, which computes it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature, SignatureText
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.recipe import extractor_of
from finc_eval.leaderboards.ranks import Estimate, part_sums
from finc_eval.measures.gaussian import BLOCKS, GaussianStatistics, blocks_of_embeddings, row_blocks
from finc_eval.measures.inputs import MIN_INTERVAL_SAMPLES, Metric
from finc_eval.measures.kid import polynomial_kernel
from finc_eval.measures.metrics import metrics
from finc_eval.measures.mmd import KernelSums, kernel_sums
from finc_eval.numerics.inference import jackknife_bias

Array = NDArray[np.float64]


def estimate_of(value: float, *influences: tuple[Embeddings, Array]) -> Estimate:
    """Return the estimate whose samples, of the model and of the reference, have influences of mean 0, (n,) and (m,).

    Samples of one group count together.
    """
    sums = []
    for one, influence in influences:
        units, groups = influence / one.n, one.group_hashes()
        if groups is not None:
            units = np.bincount(np.unique(groups, return_inverse=True)[1], units).astype(float)
        sums.append(units)
    own, shared = sums
    return Estimate(value, float(own @ own), part_sums(shared))


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
        to_ref, to_model = inverse @ middle_root @ inverse, root @ middle_inverse @ root
        unbiased = value - jackknife_bias(value, *without)
        of_model = model, _of_samples(model, x, y, to_ref, self._run)
        return estimate_of(unbiased, of_model, (self._ref, _of_samples(self._ref, y, x, to_model, self._run)))


def kernel_estimate(sums: KernelSums, model: Embeddings, ref: Embeddings) -> Estimate:
    """Return the estimate of the unbiased squared MMD, from the sums of kernel rows."""
    n, m = len(sums.xx), len(sums.yy)
    of_model = 2 * (sums.xx / (n - 1) - sums.xy / m)
    of_ref = 2 * (sums.yy / (m - 1) - sums.yx / n)
    influences = ((one - one.mean()).cpu().numpy() for one in (of_model, of_ref))
    return estimate_of(sums.unbiased(), *zip((model, ref), influences, strict=True))


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


FRECHET = ("fid", "fd", "fd_dinov2")
"""Fréchet distances of whole embeddings, whose influence values give the covariance of models."""

TITLES = {"kid": "kernel inception distance, of all pairs of samples"}
"""Metrics that a board computes in one of the ways that their description has."""


@dataclass(frozen=True)
class Measure(Record):
    """A metric of one training run of a model, with what its error shares with the errors of other models.

    Attributes:
        value: the number, without the bias of finite sets; None if it could not be computed.
        interval: 95 % interval of it from sampling alone; None if it is not known.
        own_variance: variance from the sampling of the model's set; None if it is not known.
        ref_influence: influence of random parts of the reference on the value; None if it shares nothing.
        higher_is_better: whether a better model has a larger value; None if neither is better.
        title: what it is, in a few words.
        reason: why it has no variance; None if it has.
        signature: everything that changes the number, except the model.
    """

    value: float | None
    interval: tuple[float, float] | None
    own_variance: float | None
    ref_influence: tuple[float, ...] | None
    higher_is_better: bool | None
    title: str
    reason: str | None
    signature: SignatureText

    @classmethod
    def of(cls, found: Estimate, higher_is_better: bool, title: str, signature: Signature) -> Measure:
        """Keep an estimate."""
        shared = None if found.ref_influence is None else tuple(found.ref_influence.tolist())
        return cls(found.value, found.interval, found.own_variance, shared, higher_is_better, title, None, signature)

    def estimate(self) -> Estimate | None:
        """Return the estimate; None if its error is not known."""
        if self.value is None or self.own_variance is None:
            return None
        influence = None if self.ref_influence is None else np.array(self.ref_influence)
        return Estimate(self.value, self.own_variance, influence, own_interval=self.interval)


class Measuring:
    """Computes one metric of models against one reference; what the reference alone decides is computed once."""

    def __init__(self, metric: Metric, ref: Embeddings, run: Run) -> None:
        self._metric, self._ref, self._run = metric, ref, run
        self._frechet: FrechetReference | None = None

    def measure(self, label: str, model: Embeddings) -> Measure:
        """Compute the metric of a model, by its first score that has a better direction.

        A set that the metric refuses has a reason instead.
        """
        metric, ref = self._metric, self._ref
        title = TITLES.get(metric.name, metric.description)
        signature = Signature(metric.name, (("ref", ref.digest[:12]), ("fx", ref.space)))
        if metric.name == "kid":
            sums = kernel_sums(model, ref, polynomial_kernel, run=self._run)
            return Measure.of(kernel_estimate(sums, model, ref), False, title, signature)
        of_extractor = all(metric.extractor in (None, extractor_of(one.space)) for one in (model, ref))
        if metric.name in FRECHET and of_extractor and has_full_rank(model, ref):
            self._frechet = self._frechet or FrechetReference(ref, self._run)
            return Measure.of(self._frechet.estimate(model), False, title, signature)
        try:
            scores = metrics(model, ref, metric.name, run=self._run.prefixed(f"{metric.name} of {label}"))
        except (DataError, IncompatibleError) as error:
            return Measure(None, None, None, None, None, title, str(error), signature)
        score = next((found for found in scores if found.higher_is_better is not None), scores.scores[0])
        title = f"{score.key}, of {title}" if len(scores) > 1 else title
        better, deviation = score.higher_is_better, score.standard_error
        if better is not None and deviation is not None:
            # As if its error shared nothing with others.
            return Measure.of(Estimate(score.center, deviation**2), better, title, signature)
        why = f"neither a higher nor a lower {score.key} is better"
        if better is not None:
            lacking = [note for note in score.notes if note.startswith("no interval")]
            why = lacking[0] if lacking else f"{score.key} has no interval"
        return Measure(score.value, None, None, None, better, title, why, signature)


def lowest(metric: str) -> float:
    """Return the smallest value that a metric can have, if its estimates may go below it."""
    return 0.0 if metric in FRECHET else -inf


def has_full_rank(one: Embeddings, ref: Embeddings) -> bool:
    """Return whether both sets have samples enough for the bias and the error of a Fréchet distance."""
    return min(one.n, ref.n) >= max(ref.dim + 1, MIN_INTERVAL_SAMPLES)
