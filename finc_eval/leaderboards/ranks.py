"""Ranks of models, by estimates whose joint covariance follows from the sources of error that models share.

After Mogstad, Romano, Shaikh and Wilhelm (Review of Economic Studies 2024): every "a is not better than b" is tested,
all ordered pairs as one family, by step-down with the joint distribution of the differences. A model is surely worse
than the models that are surely better than it, and its rank set follows by counting. All rank sets hold together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.errors import UsageError
from finc_eval.estimates.error_source import GEN, REF, ErrorSource
from finc_eval.estimates.estimate import Estimate
from finc_eval.numerics.inference import ALPHA, DEFAULT_CONFIDENCE

Array = NDArray[np.float64]

DRAWS = 10_000
"""Draws from the joint distribution of the estimates. A p-value of 0.05 has a standard error of 0.002 by them."""

SEED = 0  # random seed of the draws: the same estimates always give the same ranks


@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranks of p models by one number."""

    order: tuple[int, ...]  # indices of the models, the best estimate first
    p_values: Array  # adjusted p-value of "a is not better than b" at [a, b], shape (p, p); 1 where it cannot be sure
    gaps: Array  # distance of the estimates of each two models, shape (p, p)
    alpha: float  # level of all statements together

    @property
    def better(self) -> NDArray[np.bool_]:
        """Truth of "a is surely better than b" at [a, b], shape (p, p)."""
        return np.asarray(self.p_values <= self.alpha)

    @property
    def separable(self) -> NDArray[np.bool_]:
        """Truth of "a and b can be distinguished" at [a, b], shape (p, p)."""
        return np.asarray(self.better | self.better.T)

    @property
    def rank_sets(self) -> tuple[tuple[int, int], ...]:
        """Lowest and highest rank that each model may have: all of them hold together with probability 1 − α.

        The rank of a model is 1 plus the number of models that are better; models that are equally good share it.
        """
        better, models = self.better, len(self.order)
        above, below = better.sum(0), better.sum(1)
        return tuple((1 + int(a), models - int(b)) for a, b in zip(above, below, strict=True))

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Models by group, best first.

        The anchor of a group is the best model that is in no group yet. Its group has all others left that cannot be
        distinguished from it, so that no chain of close models joins two that differ from each other's anchor.
        """
        left, found, apart = list(self.order), [], self.separable
        while left:
            anchor = left[0]
            group = tuple(model for model in left if model == anchor or not apart[anchor, model])
            found.append(group)
            left = [model for model in left if model not in group]
        return tuple(found)

    @property
    def separable_neighbors(self) -> int:
        """Number of models that can be distinguished from the next one in the order, of p − 1."""
        apart = self.separable
        return sum(bool(apart[a, b]) for a, b in zip(self.order, self.order[1:], strict=False))

    @property
    def separable_pairs(self) -> int:
        """Number of pairs of models that can be distinguished, of p·(p − 1)/2."""
        return int(self.separable.sum()) // 2

    @property
    def smallest_separable_gap(self) -> float | None:
        """Smallest distance of two models that can be distinguished; None if no two can be."""
        return float(self.gaps[self.separable].min()) if self.separable.any() else None

    def ordered(self, values: Sequence[float], bounds: tuple[float, float], higher_is_better: bool) -> Ranking:
        """Return the ranks with the models in the order of these values, and the distances of these.

        What the values contradict is not sure: "a is surely better than b" where the value of b is the better one. With
        fewer statements, all that are left hold together as before.
        """
        found = np.asarray(values, float)
        worth = found if higher_is_better else -found
        within = np.clip(found, *bounds)
        return replace(
            self,
            order=tuple(sorted(self.order, key=lambda model: -worth[model])),
            p_values=np.where(worth[:, None] < worth, 1.0, self.p_values),
            gaps=np.abs(within[:, None] - within),
        )


def rank(
    values: Sequence[float] | Array,
    covariance: ArrayLike,
    *,
    higher_is_better: bool = False,
    best: float | None = None,
    alpha: float = ALPHA,
) -> Ranking:
    """Rank models by estimates, and find which differences are certain.

    What estimates (p,) share, such as a reference, is in their covariance (p, p). Estimates beyond `best`, such
    as 0 for a distance, count as equal to it; a model is called worse only if it is surely not at `best`. α is the
    probability that any statement is wrong.
    """
    worth, shared = np.asarray(values, float), np.asarray(covariance, float)
    if worth.ndim != 1 or shared.shape != (len(worth), len(worth)):
        raise UsageError(
            f"values and covariance must have shapes (p,) and (p, p), got {worth.shape} and {shared.shape}"
        )
    if not (np.isfinite(worth).all() and np.isfinite(shared).all()):
        raise UsageError("values and covariance must be finite: leave out models without an estimate")
    worth = worth if higher_is_better else -worth
    order = tuple(np.argsort(-worth, kind="stable").tolist())
    if best is None:
        return Ranking(order, _adjust(worth, shared), np.abs(worth[:, None] - worth), alpha)
    # The best value takes part like a model without error.
    limit = best if higher_is_better else -best
    p_values = _adjust(np.append(worth, limit), np.pad(shared, (0, 1)))
    within = np.minimum(worth, limit)
    return Ranking(order, np.maximum(p_values[:-1, :-1], p_values[-1, :-1]), np.abs(within[:, None] - within), alpha)


def _adjust(worth: Array, covariance: Array) -> Array:
    """Return the step-down p-values of "a is not better than b" for all ordered pairs (Romano and Wolf 2005).

    `worth` is higher for better models, shape (p,), with its covariance (p, p); the result has a row for each a and a
    column for each b, shape (p, p), and 1 on the diagonal.

    The largest statistic is compared with the largest of all ordered pairs under equality, the next one with the
    largest of the pairs that are left, and so on. A pair stays in the family when its reverse has left it.
    """
    variances = covariance.diagonal()
    error = np.sqrt(np.maximum(variances[:, None] + variances - 2 * covariance, 0))
    gaps = worth[:, None] - worth
    first, second = np.nonzero(~np.eye(len(gaps), dtype=bool))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = np.nan_to_num(gaps / error, nan=0.0, posinf=np.inf, neginf=-np.inf)[first, second]
        scale = np.where(error > 0, 1 / error, 0.0)[first, second]
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0))
    draws = root @ np.random.default_rng(SEED).standard_normal((len(gaps), DRAWS))
    largest, adjusted = np.full(DRAWS, -np.inf), np.ones(len(statistics))
    ascending = statistics.argsort(kind="stable")
    for pair in ascending:
        np.maximum(largest, (draws[first[pair]] - draws[second[pair]]) * scale[pair], out=largest)
        adjusted[pair] = (1 + np.count_nonzero(largest >= statistics[pair])) / (1 + DRAWS)
    adjusted[ascending[::-1]] = np.maximum.accumulate(adjusted[ascending[::-1]])
    found = np.ones_like(gaps)
    found[first, second] = adjusted
    return found


def model_estimate(
    value: float,
    own_variance: float,
    shared: Array | None = None,
    *,
    degrees: float = inf,
    interval: tuple[float, float] | None = None,
) -> Estimate:
    """Return an estimate for one model, with the variance from its own set and what its error shares with others.

    The product of `shared` with another model's vector is the covariance of the two from what both share, such as the
    reference or prompts: one entry per random part of it, or per kind; None if the estimate shares nothing. `degrees`
    of freedom are those of the variance, where few units say how much they vary.
    """
    own = ErrorSource.of_variance(GEN, own_variance, degrees)
    sources = (own,) if shared is None else (own, ErrorSource(REF, shared, degrees))
    return Estimate.of(value, sources, interval=interval)


def joint_covariance(estimates: Sequence[Estimate]) -> Array:
    """Return the covariance of estimates of models against one reference, shape (p, p).

    Models share their sources REF, and no others. Where few units say how much a source varies, such as training runs,
    prompts or voters, its variance is wider by the square of Student's quantile over the normal one, both at the level
    of a single comparison of all p·(p − 1) (Bonferroni).
    """
    confidence = 1 - (1 - DEFAULT_CONFIDENCE) / max(len(estimates) * (len(estimates) - 1), 1)
    wider = [[source.widened(confidence) for source in estimate.sources] for estimate in estimates]
    covariance = np.diag(
        [sum(source.variance for source in sources if source.name != REF) for sources in wider]
    ).astype(float)
    shared = {place: source.parts for place, sources in enumerate(wider) for source in sources if source.name == REF}
    if shared:
        parts = np.stack([*shared.values()])
        covariance[np.ix_([*shared], [*shared])] += parts @ parts.T
    return covariance
