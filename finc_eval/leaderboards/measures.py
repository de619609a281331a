"""`Measure`: a metric of one training run of a model, and `Measuring`, which computes it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature, SignatureText
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.space import extractor_of
from finc_eval.leaderboards.estimates import Estimate
from finc_eval.leaderboards.influences import FrechetReference, kernel_influence
from finc_eval.measures.inputs import MIN_INTERVAL_SAMPLES, Metric
from finc_eval.measures.kid import polynomial_kernel
from finc_eval.measures.metrics import metrics
from finc_eval.measures.mmd import kernel_sums
from finc_eval.measures.score import Score
from finc_eval.numerics.inference import normal_quantile

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
        own_variance: variance from the sampling of the model's set; None where it is not known.
        ref_influence: influence of random parts of the reference on the value; None where it shares nothing.
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
        """Return the estimate; None where its error is not known."""
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
        title = TITLES.get(self._metric.name, self._metric.description)
        if self._metric.name == "kid":
            sums = kernel_sums(model, self._ref, polynomial_kernel, run=self._run)
            return self._known(kernel_influence(sums).estimate(sums.unbiased(), model, self._ref), title, False)
        if self._metric.name in FRECHET and self._is_defined_on(model) and has_full_rank(model, self._ref):
            self._frechet = self._frechet or FrechetReference(self._ref, self._run)
            return self._known(self._frechet.estimate(model), title, False)
        try:
            scores = metrics(model, self._ref, self._metric.name, run=self._run.prefixed(label))
        except (DataError, IncompatibleError) as error:
            return self._unknown(None, None, title, str(error))
        score = next((found for found in scores if found.higher_is_better is not None), scores.scores[0])
        title = f"{score.key}, of {title}" if len(scores) > 1 else title
        if score.higher_is_better is None or score.interval is None:
            return self._unknown(score.value, score.higher_is_better, title, _why_not(score))
        return self._known(_estimate(score), title, score.higher_is_better)

    def _known(self, found: Estimate, title: str, higher_is_better: bool) -> Measure:
        return Measure.of(found, higher_is_better, title, self._signature())

    def _unknown(self, value: float | None, better: bool | None, title: str, reason: str) -> Measure:
        return Measure(value, None, None, None, better, title, reason, self._signature())

    def _signature(self) -> Signature:
        return Signature(self._metric.name, (("ref", self._ref.digest[:12]), ("fx", self._ref.space)))

    def _is_defined_on(self, model: Embeddings) -> bool:
        """Return whether these are embeddings of the extractor that the metric is defined on."""
        return all(self._metric.extractor in (None, extractor_of(one.space)) for one in (model, self._ref))


def lowest(metric: str) -> float:
    """Return the smallest value that a metric can have, where its estimates may go below it."""
    return 0.0 if metric in FRECHET else -inf


def has_full_rank(one: Embeddings, ref: Embeddings) -> bool:
    """Return whether both sets have samples enough for the bias and the error of a Fréchet distance."""
    return min(one.n, ref.n) >= max(ref.dim + 1, MIN_INTERVAL_SAMPLES)


def _estimate(score: Score) -> Estimate:
    """Return the estimate behind a score, from its interval, as if it shared nothing with others."""
    value = score.value if score.unbiased is None else score.unbiased
    low, high = score.interval or (value, value)
    return Estimate(value, (max(high - value, value - low) / normal_quantile()) ** 2)


def _why_not(score: Score) -> str:
    if score.higher_is_better is None:
        return f"neither a higher nor a lower {score.key} is better"
    return next((note for note in score.notes if note.startswith("no interval")), f"{score.key} has no interval")
