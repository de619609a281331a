"""`Measure`: a metric of one training run of a model, and `Measuring`, which computes it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature, SignatureText
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.recipe import extractor_of
from finc_eval.leaderboards.ranks import ModelEstimate, part_sums
from finc_eval.measures.estimate import unit_influences, units_of
from finc_eval.measures.frechet_estimate import FrechetSet, estimate_frechet
from finc_eval.measures.inputs import MIN_INTERVAL_SAMPLES, Metric
from finc_eval.measures.kid import polynomial_kernel
from finc_eval.measures.metrics import metrics
from finc_eval.measures.mmd import KernelSums, kernel_sums

Array = NDArray[np.float64]


def model_estimate(value: float, own: Array, shared: Array) -> ModelEstimate:
    """Return the estimate on which units of the model and of the reference have these influences, (u,) and (v,)."""
    return ModelEstimate(value, float(own @ own), part_sums(shared))


def frechet_estimate(model: Embeddings, ref: FrechetSet, run: Run) -> ModelEstimate:
    """Estimate the Fréchet distance of a model, without bias."""
    found = estimate_frechet(FrechetSet.of(model, run), ref, run=run)
    return model_estimate(found.unbiased, *found.influences)


def kernel_estimate(sums: KernelSums, model: Embeddings, ref: Embeddings) -> ModelEstimate:
    """Return the estimate of the unbiased squared MMD, from the sums of kernel rows."""
    n, m = len(sums.xx), len(sums.yy)
    of_model = 2 * (sums.xx / (n - 1) - sums.xy / m)
    of_ref = 2 * (sums.yy / (m - 1) - sums.yx / n)
    pairs = ((of_model, model), (of_ref, ref))
    influences = (unit_influences(derivative.cpu().numpy(), units_of(one)) for derivative, one in pairs)
    return model_estimate(sums.unbiased(), *influences)


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
    def of(cls, found: ModelEstimate, higher_is_better: bool, title: str, signature: Signature) -> Measure:
        """Keep an estimate."""
        shared = None if found.ref_influence is None else tuple(found.ref_influence.tolist())
        return cls(found.value, found.interval, found.own_variance, shared, higher_is_better, title, None, signature)

    def estimate(self) -> ModelEstimate | None:
        """Return the estimate; None if its error is not known."""
        if self.value is None or self.own_variance is None:
            return None
        influence = None if self.ref_influence is None else np.array(self.ref_influence)
        return ModelEstimate(self.value, self.own_variance, influence, own_interval=self.interval)


class Measuring:
    """Computes one metric of models against one reference; what the reference alone decides is computed once."""

    def __init__(self, metric: Metric, ref: Embeddings, run: Run) -> None:
        self._metric, self._ref, self._run = metric, ref, run
        self._frechet: FrechetSet | None = None

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
            self._frechet = self._frechet or FrechetSet.of(ref, self._run)
            return Measure.of(frechet_estimate(model, self._frechet, self._run), False, title, signature)
        try:
            scores = metrics(model, ref, metric.name, run=self._run.prefixed(f"{metric.name} of {label}"))
        except (DataError, IncompatibleError) as error:
            return Measure(None, None, None, None, None, title, str(error), signature)
        score = next((found for found in scores if found.higher_is_better is not None), scores.scores[0])
        title = f"{score.key}, of {title}" if len(scores) > 1 else title
        better, deviation = score.higher_is_better, score.standard_error
        if better is not None and deviation is not None:
            # As if its error shared nothing with others.
            return Measure.of(ModelEstimate(score.center, deviation**2), better, title, signature)
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
