"""A metric from a function of two sets: its scores with interval and floor, and what boards and gates stand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.estimates.estimate import Estimate
from finc_eval.estimates.of_statistic import Statistic, estimate_statistic
from finc_eval.measures.inputs import MIN_INTERVAL_SAMPLES, Estimator, Metric, MetricInputs, split_reference
from finc_eval.measures.score import Score

Prepare = Callable[[Embeddings, Embeddings, Run], Statistic]
"""Function of both sets that returns the statistic; what it fits to them, such as cells, is held for the error."""


def of_statistic(
    name: str,
    description: str,
    prepare: Prepare,
    *,
    higher_is_better: bool | None,
    bounds: tuple[float, float] = (-inf, inf),
    notes: Callable[[Embeddings, Embeddings], tuple[str, ...]] = lambda gen, ref: (),
    **fields: object,
) -> Metric:
    """Return the entry of a metric whose numbers are smooth functions of two sets.

    From the function follow its interval, for other samples of the same numbers, its floor, which is its value for a
    part of the reference against the rest, its rank on boards, and its limits in gates, paired or not.

    Args:
        name: name to ask for it by.
        description: what it measures, in a few words.
        prepare: function of both sets that returns the statistic.
        higher_is_better: whether a better generator has larger values; None if neither direction is better.
        bounds: least and largest value of the metric. A statistic that goes beyond keeps its error there.
        notes: function of both sets that returns what to know before trusting the values.
        fields: settings of the metric, for its signature.
    """

    def compute(inputs: MetricInputs) -> list[Score]:
        gen, ref = inputs.embeddings()
        statistic, parts = prepare(gen, ref, inputs.run), split_reference(ref, gen.n)
        floors = prepare(*parts, inputs.run)(*parts)
        values, intervals, reason = _measure(statistic, gen, ref)
        return [
            Score(
                key,
                _within(value, bounds),
                inputs.signature(**fields),
                interval=_inside(intervals.get(key), bounds),
                floor=_within(floors[key], bounds),
                higher_is_better=higher_is_better,
                notes=(*notes(gen, ref), *reason),
            )
            for key, value in values.items()
        ]

    def estimator(ref: Embeddings, run: Run) -> Estimator:
        def estimate(gen: Embeddings, units: NDArray[np.int64] | None = None) -> Estimate:
            _check_size(gen, ref)
            return next(iter(estimate_statistic(prepare(gen, ref, run), gen, ref, units).values()))

        return estimate

    return Metric(name, description, compute, estimator=estimator, higher_is_better=higher_is_better, bounds=bounds)


def _measure(
    statistic: Statistic, gen: Embeddings, ref: Embeddings
) -> tuple[Mapping[str, float], dict[str, tuple[float, float]], tuple[str, ...]]:
    """Return the values, their intervals, and the reason if there are none."""
    try:
        _check_size(gen, ref)
        found = estimate_statistic(statistic, gen, ref)
    except DataError as error:
        return statistic(gen, ref), {}, (f"no interval: {error}",)
    return {key: one.value for key, one in found.items()}, {key: one.interval for key, one in found.items()}, ()


def _within(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])


def _inside(interval: tuple[float, float] | None, bounds: tuple[float, float]) -> tuple[float, float] | None:
    return None if interval is None else (_within(interval[0], bounds), _within(interval[1], bounds))


def _check_size(gen: Embeddings, ref: Embeddings) -> None:
    if min(gen.n, ref.n) < MIN_INTERVAL_SAMPLES:
        raise DataError(f"it takes {MIN_INTERVAL_SAMPLES} samples of each set")
