"""`Measure`: a metric of one training run of a model, and `Measuring`, which computes it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature, SignatureText
from finc_eval.embeddings.base import Embeddings
from finc_eval.estimates.error_source import GEN, REF
from finc_eval.estimates.estimate import Estimate
from finc_eval.leaderboards.ranks import model_estimate
from finc_eval.measures.inputs import Metric, split_reference
from finc_eval.measures.metrics import metrics
from finc_eval.measures.registry import get_metric

Array = NDArray[np.float64]


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
        floor: the number that samples of the reference get instead, as many as the model has; None if it is not known.
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
    floor: float | None = None

    def __post_init__(self) -> None:
        low, high = self.interval or (0.0, 0.0)
        if not (low <= high and (self.own_variance or 0.0) >= 0):
            raise DataError(f"the interval or the variance of {self.title!r:.100} is negative")

    @classmethod
    def of(
        cls, estimate: Estimate, higher_is_better: bool, title: str, signature: Signature, floor: float | None = None
    ) -> Measure:
        """Keep an estimate."""
        shared = estimate.source(REF)
        parts = None if shared is None else tuple(shared.parts.tolist())
        known = estimate.value, estimate.interval, estimate.variance_of(GEN), parts
        return cls(*known, higher_is_better, title, None, signature, floor)

    def estimate(self) -> Estimate | None:
        """Return the estimate; None if its error is not known."""
        if self.value is None or self.own_variance is None:
            return None
        influence = None if self.ref_influence is None else np.array(self.ref_influence)
        return model_estimate(self.value, self.own_variance, influence, interval=self.interval)


class Measuring:
    """Computes one metric of models against one reference; what the reference alone decides is computed once."""

    def __init__(self, metric: Metric, ref: Embeddings, run: Run) -> None:
        self._metric, self._ref, self._run = metric, ref, run
        self._estimate = None if metric.estimator is None else metric.estimator(ref, run)
        self._signature = Signature(metric.name, (("ref", ref.digest[:12]), ("fx", ref.space)))
        self._floors: dict[int, float | None] = {}  # by the number of samples of the part of the reference

    def measure(self, label: str, model: Embeddings) -> Measure:
        """Compute the metric of a model, by its first score that has a better direction.

        A set that the metric refuses has a reason instead.
        """
        metric, better = self._metric, self._metric.higher_is_better
        if self._estimate is not None and better is not None and metric.is_defined_on(model, self._ref):
            try:
                estimate = self._estimate(model, None).as_known()
            except DataError:
                return self._measure_by_score(label, model)
            title = metric.estimated or metric.description
            return Measure.of(estimate, better, title, self._signature, self._floor(model.n))
        return self._measure_by_score(label, model)

    def _floor(self, n: int) -> float | None:
        """Estimate the metric of a part of the reference against the rest, as `split_reference` divides it."""
        n = min(n, self._ref.n // 2)
        if n not in self._floors:
            self._floors[n] = None
            if self._metric.estimator is not None and n > 0:
                part, rest = split_reference(self._ref, n)
                with suppress(DataError):  # parts of a reference may be too small where the whole is not
                    self._floors[n] = self._metric.estimator(rest, self._run)(part, None).value
        return self._floors[n]

    def _measure_by_score(self, label: str, model: Embeddings) -> Measure:
        metric, signature = self._metric, self._signature
        title = metric.description
        try:
            scores = metrics(model, self._ref, metric.name, run=self._run.prefixed(f"{metric.name} of {label}"))
        except (DataError, IncompatibleError) as error:
            return Measure(None, None, None, None, None, title, str(error), signature)
        score = next((found for found in scores if found.higher_is_better is not None), scores.scores[0])
        title = f"{score.key}, of {title}" if len(scores) > 1 else title
        better, deviation = score.higher_is_better, score.standard_error
        if better is not None and deviation is not None:
            # As if its error shared nothing with others.
            variance = (deviation * metric.error_factor(model, self._ref)) ** 2
            return Measure.of(model_estimate(score.center, variance), better, title, signature, score.floor)
        why = f"neither a higher nor a lower {score.key} is better"
        if better is not None:
            lacking = [note for note in score.notes if note.startswith("no interval")]
            why = lacking[0] if lacking else f"{score.key} has no interval"
        return Measure(score.value, None, None, None, better, title, why, signature, score.floor)


def bounds_of(metric: str) -> tuple[float, float]:
    """Return the smallest and the largest value that a metric can have; its estimates may go beyond."""
    return get_metric(metric).bounds
