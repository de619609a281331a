"""Plans of what decides a margin: prompts, seeds, votes or labels that tell two models apart in 80 % of repetitions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt

import numpy as np
from pydantic import computed_field

from finc_eval.core.record import Record
from finc_eval.core.words import plural
from finc_eval.judges.paired import Array, Means
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import ALPHA, OF_POWER, units_for, upper_quantile

MOST = 10**7  # units that nobody collects

TRUE = "if the margin seen is true"  # two equal models have a margin, too, which no number of units decides


@dataclass(frozen=True)
class MarginPlan(Record):
    """Plan of what decides the margin between a model and the next one.

    Attributes:
        judge: name of the judge; "votes" for votes.
        first: the better one by its value.
        second: the next one.
        margin: difference of their values.
        detectable: difference that the data at hand would decide in 80 % of repetitions.
        unit: "prompts", "votes" or "labels", which are labeled prompts of each model.
        have: number of units at hand.
        needed: number of units that decide this margin in 80 % of repetitions; None if no number does, or more than
            anybody collects, or more labels than there are prompts.
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

    @computed_field  # type: ignore[prop-decorator]
    @property
    def more(self) -> int | None:
        """Number of units to collect besides those at hand; 0 if they are enough, None if `needed` is not known."""
        return None if self.needed is None else max(self.needed - self.have, 0)

    @property
    def sentence(self) -> str:
        """Sentence on what decides the order of the two models."""
        order = f"the order of {self.first} and {self.second} by {self.judge}"
        each = " for each model" if self.unit == "labels" else ""
        if self.more is None:
            return f"No number of {self.unit} that anybody collects decides {order}."
        if self.more == 0:
            return f"The {plural(self.have, self.unit[:-1])}{each} at hand decide {order} in 80 % of draws, {TRUE}."
        return f"With {plural(self.more, f'more {self.unit[:-1]}')}{each}, {order} is decided in 80 % of draws, {TRUE}."


def reach(models: int) -> float:
    """Return the distance in standard errors that is decided in 80 % of repetitions among all ordered pairs."""
    return upper_quantile(level_of_each(ALPHA, models * (models - 1))) + OF_POWER


def plan(
    judge: str,
    names: tuple[str, ...],
    values: Array,
    covariance: Array,
    unit: str,
    have: int,
    means: Means | None = None,
    fixed: Array | None = None,
    least: int = 2,
    most: int = MOST,
) -> tuple[MarginPlan, ...]:
    """Plan for each two neighbors by value.

    The error shrinks with the root of the number of units of the same kind: new prompts, or votes of new voters on new
    prompts in the same mix. The margin is that of the data at hand, which is not the true one: the planned number,
    drawn again, decided in 69 to 91 % (`benchmarks/labels.py`).

    Args:
        judge: name of the judge.
        names: names of the p models.
        values: numbers that are higher for better models, shape (p,).
        covariance: their covariance, as far as more units shrink it, shape (p, p).
        unit: what there may be more of.
        have: number of units at hand.
        means: means whose samples of a prompt may be more, too; default: none.
        fixed: covariance that more units leave as it is, shape (p, p); default: 0.
        least: smallest number of units that are ever enough.
        most: largest number of units that there may be.

    Example:
        >>> import numpy as np
        >>> from finc_eval.judges.power import plan
        >>> (found,) = plan("votes", ("a", "b"), np.array([0.2, 0.0]), np.diag([0.005, 0.005]), "votes", 100)
        >>> found.needed, found.more
        (197, 97)
    """
    order, distance, found = np.argsort(-values, kind="stable").tolist(), reach(len(names)), []
    for first, second in pairwise(order):
        shrinks = max(_of_difference(covariance, first, second), 0.0)
        stays = 0.0 if fixed is None else max(_of_difference(fixed, first, second), 0.0)
        margin = float(values[first] - values[second])
        needed = units_for(have, shrinks, margin, distance, stays)
        found.append(
            MarginPlan(
                judge=judge,
                first=names[first],
                second=names[second],
                margin=margin,
                detectable=distance * sqrt(shrinks + stays),
                unit=unit,
                have=have,
                needed=max(ceil(needed), least) if needed < most else None,
                seeds=None if means is None else _seeds(means, shrinks + stays, margin / distance),
            )
        )
    return tuple(found)


def _of_difference(covariance: Array, first: int, second: int) -> float:
    """Return the variance of the difference of two numbers from their covariance with others, shape (p, p)."""
    return float(covariance[first, first] + covariance[second, second] - 2 * covariance[first, second])


def _seeds(means: Means, variance: float, target: float) -> int | None:
    """Return the samples of each prompt that bring the standard error of a difference down to a target."""
    if not np.isfinite(means.within) or target <= 0:
        return None
    prompts = min(means.prompts)
    of_samples = 2 * means.within / prompts  # of one sample a prompt and model
    rest = target**2 - max(variance - of_samples / means.seeds, 0)
    return max(ceil(of_samples / rest), 1) if rest > 0 else None
