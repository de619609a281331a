"""Plans of what decides a margin: prompts, seeds or votes that tell two models apart in 80 % of repetitions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt

import numpy as np

from finc_eval.core.record import Record
from finc_eval.judges.paired import Array, Means
from finc_eval.numerics.inference import ALPHA, POWER, upper_quantile


@dataclass(frozen=True)
class MarginPlan(Record):
    """Plan of what decides the margin between a model and the next one.

    Attributes:
        judge: name of the judge; "votes" for votes.
        first: the better one by its value.
        second: the next one.
        margin: difference of their values.
        detectable: difference that the data at hand would decide in 80 % of repetitions.
        unit: "prompts" or "votes".
        have: number of units at hand.
        needed: number of units that decide this margin in 80 % of repetitions; None for more than anybody collects.
        seeds: samples of each prompt that would decide it with the prompts at hand; None if no number does, or if no
            prompt has two samples.
    """

    judge: str
    first: str
    second: str
    margin: float
    detectable: float
    unit: str
    have: int
    needed: int | None
    seeds: int | None


def reach(models: int) -> float:
    """Return the distance in standard errors that is decided in 80 % of repetitions among all ordered pairs."""
    return upper_quantile(ALPHA / max(models * (models - 1), 1)) + upper_quantile(1 - POWER)


def plan(
    judge: str,
    names: tuple[str, ...],
    values: Array,
    covariance: Array,
    unit: str,
    have: int,
    means: Means | None = None,
) -> tuple[MarginPlan, ...]:
    """Plan for each two neighbors by value.

    `values` are higher for better models, shape (p,), and `covariance` is theirs, shape (p, p).

    The error shrinks with the root of the number of units of the same kind: new prompts, or votes of new voters on new
    prompts in the same mix.
    """
    order, distance, found = np.argsort(-values, kind="stable").tolist(), reach(len(names)), []
    for first, second in pairwise(order):
        variance = float(covariance[first, first] + covariance[second, second] - 2 * covariance[first, second])
        margin = float(values[first] - values[second])
        detectable = distance * sqrt(max(variance, 0))
        needed = have * (detectable / margin) ** 2 if margin > 0 else float("inf")
        found.append(
            MarginPlan(
                judge=judge,
                first=names[first],
                second=names[second],
                margin=margin,
                detectable=detectable,
                unit=unit,
                have=have,
                needed=max(ceil(needed), 2) if needed < 1e7 else None,  # nobody collects as many
                seeds=None if means is None else _seeds(means, variance, margin / distance),
            )
        )
    return tuple(found)


def _seeds(means: Means, variance: float, target: float) -> int | None:
    """Return the samples of each prompt that bring the standard error of a difference down to a target."""
    if not np.isfinite(means.within) or target <= 0:
        return None
    prompts = min(means.prompts)
    of_samples = 2 * means.within / prompts  # of one sample a prompt and model
    rest = target**2 - max(variance - of_samples / means.seeds, 0)
    return max(ceil(of_samples / rest), 1) if rest > 0 else None
