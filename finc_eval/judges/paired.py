"""Mean scores of models over prompts, paired where models share them, with their joint error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.judges.weighting import Weighting
from finc_eval.numerics.inference import least_variance

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

PAIRED_FROM = 0.5
"""Part of the prompts of the model with most of them that all models must have: then means are over these prompts.

With the part c of the prompts, paired differences are more exact than means of all prompts if prompts make more than
1 − c of the variance: half of it, or more."""


@dataclass(frozen=True, eq=False)
class Means:
    """Mean scores of p models by one judge.

    Each mean is an `Estimate` (`leaderboards.judged`); what it is not is in the table of all models and prompts.
    """

    models: tuple[str, ...]
    values: Array  # mean over prompts of the mean of each prompt's samples, shape (p,)
    influences: Array  # influence of each prompt, shape (p, b); 0 where a model lacks the prompt
    degrees: float  # degrees of freedom of the errors: prompts of the model with the fewest, minus 1
    prompts: tuple[int, ...]  # number of prompts behind the mean of each model
    is_paired: bool  # whether all means are over the same prompts
    table: Array  # mean score of each model and prompt, shape (p, b); NaN where a model lacks the prompt
    within: float  # mean variance of samples of one prompt and model; NaN if no prompt has two samples
    seeds: float  # mean number of samples of a prompt and model
    fixed: Array  # part of the covariance that more prompts do not shrink, (p, p)
    floors: Array  # least variance of each mean besides its influences, shape (p,): see `floor_of_shares`

    @property
    def covariance(self) -> Array:
        """Covariance of the means, shape (p, p)."""
        return np.asarray(self.influences @ self.influences.T)


def mean_scores(
    values: Mapping[str, Array], prompts: Mapping[str, Sequence[str]], weightings: Mapping[str, Weighting] | None = None
) -> Means:
    """Return the means of models over prompts, or the numbers of a benchmark.

    Args:
        values: scores of the samples of each model, shape (n,), finite.
        prompts: prompt of each of these samples.
        weightings: rule of a benchmark for the samples of each model; default: the mean of each prompt's samples, and
            of prompts that models share, if they share most.
    """
    models = tuple(values)
    names = sorted({prompt for texts in prompts.values() for prompt in texts})
    number = {name: place for place, name in enumerate(names)}
    blocks = {model: np.array([number[prompt] for prompt in prompts[model]], np.int64) for model in models}
    table, within, seeds = _by_prompt(values, blocks, len(names))
    known = np.isfinite(table)
    common = known.all(0)
    is_paired = len(models) > 1 and common.sum() >= max(PAIRED_FROM * known.sum(1).max(), 2)  # two have an interval
    kept = known & (common | (not is_paired))
    counts = (kept if weightings is None else known).sum(1)
    if weightings is None:
        means = np.where(kept, table, 0).sum(1) / counts
        free = np.maximum(counts - 1, 1)
        influences = np.where(kept, table - means[:, None], 0) / np.sqrt(counts * free)[:, None]
        degrees, floors = float(max(counts.min() - 1, 1)), floor_of_shares(means, np.where(kept, table, np.nan))
    else:
        ruled = [by_rule(values[model], blocks[model], weightings[model], len(names)) for model in models]
        means, influences = np.array([each.value for each in ruled]), np.stack([each.influences for each in ruled])
        degrees, floors = min(each.degrees for each in ruled), np.array([each.floor for each in ruled])
    return Means(
        models=models,
        values=means,
        influences=influences,
        degrees=degrees,
        prompts=tuple(counts.tolist()),
        is_paired=bool(is_paired),
        table=np.where(kept, table, np.nan),
        within=within,
        seeds=seeds,
        fixed=np.zeros((len(models), len(models))),
        floors=floors,
    )


def _by_prompt(values: Mapping[str, Array], blocks: Mapping[str, Integers], b: int) -> tuple[Array, float, float]:
    """Return the mean of each model and prompt, (p, b), their variance within prompts, and samples of a prompt."""
    table = np.full((len(values), b), np.nan)
    squares, degrees, sizes = 0.0, 0, []
    for place, (model, block) in enumerate(blocks.items()):
        count = np.bincount(block, minlength=b)
        total = np.bincount(block, values[model], minlength=b)
        has = count > 0
        table[place, has] = total[has] / count[has]
        squares += float(((values[model] - table[place, block]) ** 2).sum())
        degrees += int((count[has] - 1).sum())
        sizes.append(float(count[has].mean()))
    return table, squares / degrees if degrees else float("nan"), float(np.mean(sizes))


@dataclass(frozen=True, eq=False)
class Ruled:
    """Number of a benchmark for one model."""

    value: float
    influences: Array  # influence of each of b prompts, shape (b,); 0 where the model lacks the prompt
    degrees: float  # degrees of freedom of the error, by Welch and Satterthwaite
    floor: float  # least variance of it besides its influences: of tasks whose samples are all right, or all wrong


def by_rule(scores: Array, prompt: Integers, rule: Weighting, b: int) -> Ruled:
    """Return the number that a rule gives, with the influence of each prompt by the jackknife within tasks.

    θ = Σ_g μ_g / G over G tasks, μ_g = Σ w·s / Σ w. Without prompt c, μ_g moves by −Σ_c w·(s − μ_g) / (Σ w − Σ_c w).
    Prompts are random within tasks. A task of one prompt has no variance of its own: it counts by its distance from the
    mean of tasks, which is more (collapsed strata, Cochran 1977, 5A.12).

    Args:
        scores: scores of the samples, shape (n,), finite.
        prompt: number of the prompt of each sample, shape (n,).
        rule: rule of these n samples.
        b: number of prompts of all models.

    Example:
        >>> import numpy as np
        >>> from finc_eval.judges.paired import by_rule
        >>> from finc_eval.judges.weighting import Weighting
        >>> by_rule(np.array([1.0, 0.0]), np.array([0, 1]), Weighting("by frames", np.array([3.0, 1.0])), 2).value
        0.75
    """
    weights, task = rule.weights, np.unique(rule.task_numbers, return_inverse=True)[1]
    totals = np.bincount(task, weights)
    centers = np.bincount(task, weights * scores) / totals
    tasks, value, floor = len(totals), float(centers.mean()), 0.0
    influences, variances, degrees = np.zeros(b), [], []
    for number in range(tasks):
        here = task == number
        sizes = np.bincount(prompt[here], weights[here], b)
        moved = np.bincount(prompt[here], weights[here] * (scores[here] - centers[number]), b)
        has, count = sizes > 0, int((sizes > 0).sum())
        if count > 1:
            part = moved / np.where(has, totals[number] - sizes, 1) * np.sqrt((count - 1) / count)
            degrees.append(float(totals[number] ** 2 / (sizes**2).sum()) - 1)
        else:
            part = has * (centers[number] - value)
            degrees.append(1.0)
        if not part.any():
            floor += float(floor_of_shares(centers[[number]], centers[[number]].repeat(count)[None])[0]) / tasks**2
        influences += part / tasks
        variances.append(float((part**2).sum()))
    return Ruled(value, influences, satterthwaite(variances, degrees), floor)


def satterthwaite(variances: Sequence[float], degrees: Sequence[float]) -> float:
    """Return the degrees of freedom of a sum of variances with degrees of freedom each, at least 1.

    Welch 1947, Satterthwaite 1946. Without any variance, they are those of the variance with the fewest.
    """
    spread = sum(variance**2 / degree for variance, degree in zip(variances, degrees, strict=True))
    return max(sum(variances) ** 2 / spread if spread else min(degrees), 1.0)


def floor_of_shares(values: Array, table: Array) -> Array:
    """Return the least variance of each mean of zeros and ones, shape (p,); 0 for any other scores.

    Only a share of 0 or 1 has one: the variance of others is part of the joint error of all models. `values` are the
    means, shape (p,), and `table` has the mean of each prompt, shape (p, b), NaN where a model lacks it.
    """
    known = np.isfinite(table)
    if not np.isin(table[known], (0.0, 1.0)).all():
        return np.zeros(len(values))
    rows = zip(table, known, np.isin(values, (0.0, 1.0)), strict=True)
    return np.array([least_variance(row[has], (0.0, 1.0)) if sure else 0.0 for row, has, sure in rows])
