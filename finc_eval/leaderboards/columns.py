"""`Column`: one number of all models, from metrics and from counts of kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings
from finc_eval.leaderboards.estimates import Estimate
from finc_eval.leaderboards.influences import FrechetReference, kernel_influence
from finc_eval.leaderboards.shares import FACTOR, ShareRule, share_estimates
from finc_eval.metrics.evaluate import evaluate
from finc_eval.metrics.inputs import MIN_INTERVAL_SAMPLES, Metric
from finc_eval.metrics.kid import polynomial_kernel
from finc_eval.metrics.mmd import kernel_sums
from finc_eval.metrics.score import Score
from finc_eval.numerics.inference import normal_quantile

SHARES: dict[str, tuple[str, ShareRule]] = {
    "unmatched": ("share of its samples that the reference has no match for, at least", ShareRule(True, 1.0)),
    "missing": ("share of the reference that is missing", ShareRule(True, FACTOR)),
    "novel": ("share of its samples that are novel", ShareRule(False, FACTOR)),
}
"""Numbers from counts of kinds: what each is in words, and its rule."""

DEFAULT_METRICS = ("fd", "kid")
"""Metrics of which a board takes one by default."""

FRECHET = ("fid", "fd", "fd_dinov2")
"""Fréchet distances of whole embeddings, whose influence values give the covariance of models."""


@dataclass(frozen=True, eq=False)
class Column:
    """One number of all models.

    Attributes:
        key: name of the number.
        title: what it is, in a few words.
        higher_is_better: whether a better model has a larger value.
        signature: everything that changes the number, except the models.
        bounds: smallest and largest value that the number can have, where estimates may go beyond.
        estimates: estimate of each model that has one, by its name.
        values: value of each model without an estimate that has one.
        reasons: why a model has no estimate.
    """

    key: str
    title: str
    higher_is_better: bool
    signature: Signature
    bounds: tuple[float, float] = (-inf, inf)
    estimates: dict[str, Estimate] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def share_columns(
    models: Mapping[str, NDArray[np.float64]], ref: NDArray[np.float64], signature: Signature
) -> list[Column]:
    """Return the numbers that follow from how many samples each set has of each kind.

    Args:
        models: number of samples of each kind, shape (kinds,), by model.
        ref: those of the reference.
        signature: signature of the partition into kinds.
    """
    found = []
    for key, (title, rule) in SHARES.items():
        estimates = dict(zip(models, share_estimates(rule, list(models.values()), ref), strict=True))
        fields = (*signature.fields, ("factor", f"{rule.factor:g}"))
        found.append(Column(key, title, False, Signature(key, fields), (0.0, 1.0), estimates))
    return found


def metric_column(metric: Metric, models: Mapping[str, Embeddings], ref: Embeddings, run: Run) -> Column:
    """Return a metric of all models, by its first score that has a better direction.

    Models whose sets it refuses have a reason instead.
    """
    lower = 0.0 if metric.name in FRECHET else -inf
    sizes = Signature(metric.name, (("ref", ref.digest[:12]), ("fx", ref.space)))
    title, estimates, values, reasons = metric.description, {}, {}, {}
    better: set[bool] = set()
    frechet: FrechetReference | None = None
    for done, (name, one) in enumerate(models.items()):
        run.progress(metric.name, done, len(models))
        if metric.name == "kid":
            estimates[name] = _kid(one, ref, run)
            continue
        if metric.name in FRECHET and _is_defined_on(metric, one, ref) and _has_full_rank(one, ref):
            frechet = frechet or FrechetReference(ref, run)
            estimates[name] = frechet.estimate(one)
            continue
        try:
            scores = evaluate(one, ref, metric.name, run=run.prefixed(name))
        except (DataError, IncompatibleError) as error:
            reasons[name] = str(error)
            continue
        score = next((found for found in scores if found.higher_is_better is not None), scores.scores[0])
        if len(scores) > 1:
            title = f"{score.key}, of {metric.description}"
        if score.higher_is_better is not None:
            better.add(score.higher_is_better)
        if score.higher_is_better is None or score.interval is None:
            values[name] = score.value
            reasons[name] = _why_not(score)
        else:
            estimates[name] = _estimate(score)
    run.progress(metric.name, len(models), len(models))
    return Column(
        key=metric.name,
        title=title,
        higher_is_better=True in better,
        signature=sizes,
        bounds=(lower, inf),
        estimates=estimates,
        values=values,
        reasons=reasons,
    )


def default_metrics(models: Mapping[str, Embeddings], ref: Embeddings) -> tuple[str, ...]:
    """Return the metrics of a board for which none was named: fd where it has an interval, else kid."""
    fd, kid = DEFAULT_METRICS
    return (fd,) if all(_has_full_rank(one, ref) for one in models.values()) else (kid,)


def _kid(model: Embeddings, ref: Embeddings, run: Run) -> Estimate:
    sums = kernel_sums(model, ref, polynomial_kernel, run=run)
    return kernel_influence(sums).estimate(sums.unbiased(), model, ref)


def _estimate(score: Score) -> Estimate:
    """Return the estimate behind a score, from its interval, as if it shared nothing with others."""
    value = score.value if score.unbiased is None else score.unbiased
    low, high = score.interval or (value, value)
    return Estimate(value, (max(high - value, value - low) / normal_quantile()) ** 2)


def _is_defined_on(metric: Metric, *sets: Embeddings) -> bool:
    """Return whether these are embeddings of the extractor that the metric is defined on."""
    return all(metric.extractor in (None, one.space.split("@")[0]) for one in sets)


def _has_full_rank(one: Embeddings, ref: Embeddings) -> bool:
    """Return whether both sets have samples enough for the bias and the error of a Fréchet distance."""
    return min(one.n, ref.n) >= max(ref.dim + 1, MIN_INTERVAL_SAMPLES)


def _why_not(score: Score) -> str:
    if score.higher_is_better is None:
        return f"neither a higher nor a lower {score.key} is better"
    return next((note for note in score.notes if note.startswith("no interval")), f"{score.key} has no interval")
